"""All registered worlds and the example pass the shipped suite, and every check of it finds the fault it is for."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from driftbandits import ArmSet, environments
from driftbandits.arms.kernels import kernel_from_config
from driftbandits.configuration.references import load
from driftbandits.environments import Piecewise, Tabular
from driftbandits.environments.noise import GaussianNoise, UniformNoise
from driftbandits.testing import ENVIRONMENT_CHECKS
from driftbandits.testing import environments as checks

ROOT = Path(__file__).parents[2]
ROUNDS, ARMS = 60, 5


def on_a_line():
    return ArmSet(np.linspace(0, 1, ARMS)[:, None], kernel=kernel_from_config({"name": "rbf", "length_scale": 0.2}))


def table(seed):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, (ROUNDS, ARMS))


def sometimes_away(seed=0):
    allowed = np.random.default_rng(seed + 100).random((ROUNDS, ARMS)) < 0.6
    allowed[:, 0] |= ~allowed.any(axis=1)
    return Tabular(on_a_line(), table(seed), allowed=allowed, noise=GaussianNoise(0.1))


def weekends(seed):
    return load(f"{ROOT / 'examples' / 'own_world.py'}:weekends")(seed=seed, weeks=1, visitors=20)


WORLDS = {
    **{name: partial(environments.create, name) for name in environments.names()},
    **{f"{name}, short": partial(environments.create, name, horizon=300) for name in ("cosine/slow", "forgetting")},
    "switching, short": partial(environments.create, "switching", horizon=300, switches=[100, 200], size=20),
    "sometimes away": sometimes_away,
    "examples/own_world.py": weekends,
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_world(check, name):
    check(WORLDS[name])


class Sound(Tabular):
    """A world without a fault; those below each have one."""

    def __init__(self, seed=0):
        super().__init__(on_a_line(), table(seed), noise=UniformNoise(0.1))


@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_a_world_by_its_class(check):
    check(Sound)


class OutsideItsRange(Sound):
    @property
    def mean_range(self):
        return (-0.1, 0.1)


class Walks(Sound):
    """Means that go on from where they stood."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.walked = 0

    def means(self, start, size=1):
        self.walked += 1
        return super().means(start, size) + 0.001 * self.walked


class DrawsAnew(Sound):
    def __init__(self, seed=0):
        super().__init__(np.random.default_rng().integers(2**31))  # not from the seed


class OffersNothing(Sound):
    def allowed(self, start, size=1):
        mask = np.ones((size, ARMS), dtype=bool)
        mask[np.arange(start, start + size) == 7] = False
        return mask


class OtherMeansOf(Sound):
    def means_of(self, start, arms):
        return super().means_of(start, arms)[::-1].copy()


class BestOfAll(Sound):
    """The best is that of the whole table, not of the round."""

    def best(self, start, size=1):
        self._check_rounds(start, size)
        return np.full(size, self._table.max())


class NoiseOfItsOwn(Sound):
    def observe(self, start, arms, means, uniforms):
        return means + 0.1 * np.random.default_rng().random(len(means))


class NoiseInBatches(Sound):
    """One more uniform per call."""

    def observe(self, start, arms, means, uniforms):
        return self.noise.sample(means, uniforms[::-1])


class FarNoise(Sound):
    def observe(self, start, arms, means, uniforms):
        return 3.0 * super().observe(start, arms, means, uniforms)


class WrongChanges(Piecewise):
    def __init__(self, seed=0):
        super().__init__(
            on_a_line(), table(seed)[:2], horizon=ROUNDS, switches=[30], noise=UniformNoise(0.1), name="wrong"
        )

    @property
    def change_rounds(self):
        return np.array([31])


class NoEnd(Sound):
    def means(self, start, size=1):
        return self._table[np.arange(start, start + size) % ROUNDS]


class CanBeWrittenTo(Sound):
    def __init__(self, seed=0):
        super().__init__(seed)
        self._table = self._table.copy()


class ForgetsInCopies(Sound):
    def __deepcopy__(self, memo):
        return Sound(seed=1)


class LongRepr(Sound):
    def __repr__(self):
        return "Sound(\n" + repr(self._table) + ")"


class BestIsLess(Sound):
    def best(self, start, size=1):
        return super().best(start, size) - 1.0


BROKEN = [
    (checks.means_are_a_table_of_numbers, OutsideItsRange),
    (checks.means_do_not_depend_on_the_order_of_calls, Walks),
    (checks.the_same_seed_is_the_same_world, DrawsAnew),
    (checks.every_round_offers_an_arm, OffersNothing),
    (checks.means_of_are_entries_of_means, OtherMeansOf),
    (checks.best_is_the_largest_mean_offered, BestOfAll),
    (checks.rewards_do_not_depend_on_who_plays, NoiseOfItsOwn),
    (checks.rewards_do_not_depend_on_who_plays, NoiseInBatches),
    (checks.rewards_lie_in_the_reward_range, FarNoise),
    (checks.changes_are_where_means_change, WrongChanges),
    (checks.rounds_and_arms_that_do_not_exist_are_refused, NoEnd),
    (checks.what_it_gives_cannot_change_it, CanBeWrittenTo),
    (checks.a_copy_is_the_same_world, ForgetsInCopies),
    (checks.repr_names_it, LongRepr),
    (checks.a_policy_can_play_it, BestIsLess),
]


@pytest.mark.parametrize(("check", "broken"), BROKEN, ids=lambda value: value.__name__)
def test_a_broken_world_is_found(check, broken):
    with pytest.raises(AssertionError):
        check(broken)


class WideWithSeedThree(Sound):
    """Means and rewards that leave their ranges on one seed only."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.factor = 3.0 if seed == 3 else 1.0

    def means(self, start, size=1):
        return self.factor * super().means(start, size)

    def observe(self, start, arms, means, uniforms):
        return self.factor * super().observe(start, arms, means, uniforms)


@pytest.mark.parametrize("check", [checks.means_are_a_table_of_numbers, checks.rewards_lie_in_the_reward_range])
def test_ranges_are_looked_at_on_several_seeds(check):
    with pytest.raises(AssertionError, match="range, with seed 3"):
        check(WideWithSeedThree)


class Lists(Sound):
    def means(self, start, size=1):
        return super().means(start, size).tolist()


class WholeNumbers(Sound):
    def means(self, start, size=1):
        return super().means(start, size).astype(np.int64)


class OneRowFlat(Sound):
    def means(self, start, size=1):
        return super().means(start, size).squeeze()


@pytest.mark.parametrize(
    ("world", "got"),
    [(Lists, "a list"), (WholeNumbers, r"int64 of shape \(1, 5\)"), (OneRowFlat, r"float64 of shape \(5,\)")],
)
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_means_that_are_no_table_of_floats_are_named_by_every_check(check, world, got):
    with pytest.raises(AssertionError, match=rf"must give a float array of shape \(size, N\) = \(1, 5\), got {got}$"):
        check(world)


def test_every_check_has_a_broken_twin():
    assert {check for check, _ in BROKEN} == set(ENVIRONMENT_CHECKS)
