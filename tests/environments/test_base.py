"""What holds for every world: purity, common noise, truth against brute force, bad rounds."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from driftbandits.environments import Environment, Tabular, uniforms
from driftbandits.environments.base import UNIFORMS_PER_STREAM, _noise_chunk
from driftbandits.environments.noise import GaussianNoise
from driftbandits.errors import InputError

Build = Callable[[], Environment]


def test_means_do_not_depend_on_order_or_size_of_calls(build: Build) -> None:
    whole = build().means(0, build().horizon)
    backwards = build()
    for t in [*range(599, -1, -7), 0, 599]:
        assert (backwards.means(t)[0] == whole[t]).all()
    jumping = build()
    for start, size in np.random.default_rng(0).integers([0, 0], [400, 200], (40, 2)):
        assert (jumping.means(start, size) == whole[start : start + size]).all()


def test_means_of_and_best_are_entries_of_means(world: Environment) -> None:
    whole = world.means(0, world.horizon)
    chosen = np.random.default_rng(3).integers(len(world.arms), size=world.horizon)
    expected = whole[np.arange(world.horizon), chosen]
    assert (world.means_of(0, chosen) == expected).all()
    assert (world.best(0, world.horizon) == whole.max(axis=1)).all()
    for start, stop in [
        (0, 1),
        (149, 151),
        (399, 401),
        (140, 420),
        (255, 513),
        (599, 600),
        (300, 300),
        (600, 600),
    ]:
        assert (world.means_of(start, chosen[start:stop]) == expected[start:stop]).all()
        assert (world.best(start, stop - start) == whole[start:stop].max(axis=1)).all()


def test_rewards_do_not_depend_on_order_or_batching(build: Build) -> None:
    world = build()
    chosen = np.random.default_rng(3).integers(len(world.arms), size=world.horizon)
    batch = world.rewards(0, chosen, seed=9)
    single = build()
    one_by_one = [single.rewards(t, chosen[t : t + 1], seed=9)[0] for t in range(world.horizon - 1, -1, -1)]
    assert (batch == one_by_one[::-1]).all()
    assert (batch[123:456] == world.rewards(123, chosen[123:456], seed=9)).all()
    assert (batch != world.rewards(0, chosen, seed=10)).any()


def test_numpy_integers_are_rounds_like_any_other(build: Build) -> None:
    chosen = np.arange(10)
    _noise_chunk.cache_clear()  # or the cache would hide a stream that takes 0 and np.int64(0) for two names
    numpy = build()
    as_numpy = numpy.means(np.int64(250), np.int64(10)), numpy.rewards(np.int64(250), chosen, np.int64(3))
    _noise_chunk.cache_clear()
    plain = build()
    assert (as_numpy[0] == plain.means(250, 10)).all()
    assert (as_numpy[1] == plain.rewards(250, chosen, 3)).all()


def test_two_arms_of_one_round_share_their_noise(arms) -> None:
    world = Tabular(arms, np.tile(np.arange(12.0), (50, 1)), noise=GaussianNoise(1.0))
    low, high = world.rewards(0, np.zeros(50, int), seed=1), world.rewards(0, np.full(50, 7), seed=1)
    np.testing.assert_allclose(high - low, 7.0, rtol=0, atol=1e-14)


def test_rewards_stay_in_the_reward_range(world: Environment) -> None:
    low, high = world.reward_range
    chosen = np.random.default_rng(3).integers(len(world.arms), size=world.horizon)
    rewards = world.rewards(0, chosen, seed=2)
    assert low <= rewards.min() <= rewards.max() <= high
    whole = world.means(0, world.horizon)
    assert world.mean_range[0] <= whole.min() <= whole.max() <= world.mean_range[1]


def test_truth_against_brute_force(world: Environment) -> None:
    whole = world.means(0, world.horizon)
    changed = [t for t in range(1, world.horizon) if (whole[t] != whole[t - 1]).any()]
    assert world.change_rounds.tolist() == changed
    assert world.segments == 1 + len(changed)
    steps = sum(np.abs(whole[t] - whole[t - 1]).max() for t in changed)
    assert world.variation == pytest.approx(steps, rel=1e-12)
    assert world.best_arm_changes == _fewest_changes(whole)
    assert not world.change_rounds.flags.writeable


def _fewest_changes(whole: np.ndarray) -> int:
    """Dynamic programme over arms: cost of having played a best arm so far and ending on each arm."""
    cost = np.where(whole[0] == whole[0].max(), 0.0, np.inf)
    for row in whole[1:]:
        cost = np.where(row == row.max(), np.minimum(cost, cost.min() + 1), np.inf)
    return int(cost.min())


def test_a_pickled_world_goes_on_with_the_same_numbers(build: Build) -> None:
    world = build()
    before = world.means(590, 10)
    copy = pickle.loads(pickle.dumps(world))  # noqa: S301
    assert (copy.means(590, 10) == before).all()
    assert repr(copy) == repr(world)


def test_repr_names_class_and_settings(world: Environment) -> None:
    text = repr(world)
    assert text.startswith(type(world).__name__ + "(ArmSet(")
    assert f"noise={world.noise!r}" in text


@pytest.mark.parametrize(("start", "size"), [(-1, 1), (600, 1), (599, 2), (0, 601), (5, -1), (0.5, 1), ("0", 1)])
def test_rounds_outside_the_world_are_refused(world: Environment, start, size) -> None:
    for call in (world.means, world.best):
        with pytest.raises(InputError, match="rounds"):
            call(start, size)


def test_rounds_past_the_end_are_refused_by_rewards(world: Environment) -> None:
    with pytest.raises(InputError, match="longer horizon"):
        world.rewards(599, [0, 0], seed=0)


@pytest.mark.parametrize("chosen", [[12], [-1], [0, 12], [0, -1]])
def test_arms_that_do_not_exist_are_refused(world: Environment, chosen) -> None:
    with pytest.raises(InputError, match="arms are 0 to 11"):
        world.rewards(0, chosen, seed=0)


@pytest.mark.parametrize("chosen", [3, [[1, 2]], [0.5], ["a"]])
def test_arms_must_be_a_row_of_integers(world: Environment, chosen) -> None:
    with pytest.raises(InputError, match="row of whole numbers"):
        world.means_of(0, chosen)


@pytest.mark.parametrize("seed", [None, -1, 1.5])
def test_noise_wants_a_seed(world: Environment, seed) -> None:
    with pytest.raises(InputError, match="seed"):
        world.rewards(0, [0], seed=seed)


def test_attributes_cannot_be_set(world: Environment) -> None:
    for name in ("arms", "horizon", "noise", "name", "segments"):
        with pytest.raises(AttributeError):
            setattr(world, name, None)


def test_uniforms_are_the_same_whatever_the_chunks() -> None:
    whole = uniforms(3, 0, 5 * UNIFORMS_PER_STREAM + 17)
    for start, size in [
        (0, 1),
        (UNIFORMS_PER_STREAM - 1, 2),
        (UNIFORMS_PER_STREAM, UNIFORMS_PER_STREAM),
        (UNIFORMS_PER_STREAM - 5, 2 * UNIFORMS_PER_STREAM),
        (5 * UNIFORMS_PER_STREAM, 17),
        (9, 0),
    ]:
        part = uniforms(3, start, size)
        assert (part == whole[start : start + size]).all()
        assert not part.flags.writeable
    assert len(np.unique(whole)) == len(whole)
    assert (whole >= 0).all()
    assert (whole < 1).all()


@pytest.mark.statistical
def test_neighbouring_chunks_and_seeds_are_uncorrelated() -> None:
    # fixed seeds; 6 correlations of 4,096 pairs at 4 sd, 6e-5 each: false alarm 4e-4 in all
    rows = [uniforms(seed, chunk * UNIFORMS_PER_STREAM, UNIFORMS_PER_STREAM) for seed in (0, 1) for chunk in (0, 1)]
    correlations = np.corrcoef(rows)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(UNIFORMS_PER_STREAM)


def test_negative_places_in_the_noise_are_refused() -> None:
    with pytest.raises(InputError, match="negative"):
        uniforms(0, -1, 2)
