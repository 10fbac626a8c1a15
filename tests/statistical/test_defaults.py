"""Policies learn with their defaults, or say what they must be told first."""

import pytest

import driftbandits as db
from driftbandits.environments.switching import SwitchingKernel

SAYS_WHAT_IT_NEEDS = "Its defaults are not enough"
NARROW = {"OPNN": {"width": 64}, "AdaOPNN": {"width": 64}}
SEEDS = (0, 1)
HORIZON = 3_000
WORLDS = {
    "nothing changes": {"switches": ()},
    "one flip": {"switches": (HORIZON // 2,)},
    "two redraws": {"switches": (HORIZON // 3, 2 * HORIZON // 3), "kind": "redraw"},
}


def regret(name, settings, **told):
    worlds = [SwitchingKernel.sample(seed=s, size=40, dimension=2, horizon=HORIZON, **settings) for s in SEEDS]
    policies = [db.POLICIES[name](w.arms, horizon=HORIZON, seed=s, **told) for w, s in zip(worlds, SEEDS, strict=True)]
    runs = zip(policies, worlds, SEEDS, strict=True)
    return sum(float(db.simulate(policy, world, seed=seed).regret.sum()) for policy, world, seed in runs)


@pytest.fixture(scope="module")
def uniform():
    return {world: regret("Uniform", settings) for world, settings in WORLDS.items()}


LEARNERS = [name for name in db.POLICIES if name != "Uniform"]
COMPLETE = [name for name in LEARNERS if SAYS_WHAT_IT_NEEDS not in db.POLICIES[name].__doc__]


@pytest.mark.statistical
@pytest.mark.parametrize("name", COMPLETE)
def test_defaults_alone_have_at_most_half_of_the_regret_of_chance(name, uniform):
    for world, settings in WORLDS.items():
        assert regret(name, settings) <= 0.5 * uniform[world], world


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in COMPLETE])
def test_who_needs_to_be_told_more_still_learns_while_nothing_changes(name, uniform):
    share = regret(name, WORLDS["nothing changes"], **NARROW.get(name, {})) / uniform["nothing changes"]
    assert share < 1.0


def test_who_needs_more_says_when_and_what():
    for name in LEARNERS:
        if name not in COMPLETE:
            sentence = db.POLICIES[name].__doc__.split(SAYS_WHAT_IT_NEEDS, 1)[1].split("\n\n")[0]
            assert sentence.startswith((" where ", " for ", " with ")), name
            assert any(word in sentence for word in (" told ", "Tell it", "tell it", "Take ", "see ")), name
