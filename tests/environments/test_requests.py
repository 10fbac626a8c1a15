"""Worlds of requests: what changes, for whom, and that policies are given the contexts."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.environments import Requests
from driftbandits.environments.requests import KINDS, PART_ABOVE


def world(kind, **settings):
    return Requests.sample(kind=kind, seed=1, **{"horizon": 1_000, "size": 4, **settings})


@pytest.mark.parametrize("kind", KINDS)
def test_changes_are_in_the_middle_or_nowhere_or_always(kind):
    found = world(kind).change_rounds.tolist()
    wanted = {"switch": [500], "part": [500], "useless": [500], "drift": list(range(1, 1_000))}
    assert found == wanted.get(kind, [])


def test_only_a_fifth_of_the_requests_changes():
    part, still = world("part"), world("stationary")
    moved = (part.means(0, 1_000) != still.means(0, 1_000)).any(axis=1)
    wanted = (part.requests(0, 1_000)[:, 0] > PART_ABOVE) & (np.arange(1_000) >= 500)
    assert (moved == wanted).all()
    assert 0.1 < wanted[500:].mean() < 0.3


def test_a_mix_moves_and_the_functions_stay():
    mix = world("mix")
    first = mix.requests(0, 1_000)[:, 0]
    assert first[:200].mean() < -1.0 < 1.0 < first[-200:].mean()


def test_useless_columns_decide_nothing():
    means = world("useless").means(0, 1_000)
    assert (np.ptp(means[:500], axis=0) == 0).all()
    assert (means[0] != means[-1]).any()


def test_the_hour_decides_in_a_rhythm_and_comes_back():
    rhythm = world("rhythm")
    assert rhythm.means(3)[0] == pytest.approx(rhythm.means(483)[0])
    assert rhythm.requests(3)["hour"] == pytest.approx(rhythm.requests(483)["hour"])
    assert rhythm.contexts.names[0] == "hour"


def test_only_the_first_two_columns_decide():
    few, many = world("stationary", columns=2), world("stationary", columns=6)
    assert many.requests(0, 5).shape == (5, 6)
    codes = many.requests(0, 1_000)[:, :2]
    again = Requests.sample(kind="stationary", seed=1, horizon=1_000, size=4, columns=2)
    assert (again.means(0, 5) == few.means(0, 5)).all()
    assert np.corrcoef(codes.T)[0, 1] == pytest.approx(0.0, abs=0.1)


def test_clicks_are_rare_and_zero_or_one():
    clicks = world("stationary", clicks=True)
    rewards = clicks.rewards(0, np.zeros(1_000, dtype=int), 0)
    assert set(rewards.tolist()) == {0.0, 1.0}
    assert 0.0 < clicks.means(0, 1_000).mean() < 0.15
    with pytest.raises(db.DriftbanditsError, match="no other noise"):
        world("stationary", clicks=True, noise=db.environments.GaussianNoise(0.1))


def test_policies_with_contexts_are_given_them_and_others_play_blindly():
    switch = world("switch", horizon=300)
    seeing = db.DisjointLinUCB(switch.arms, contexts=switch.contexts, out_of_range="clip", seed=0)
    db.simulate(seeing, switch, seed=0)
    codes = switch.contexts.read_many(switch.requests(0, 300))
    assert np.abs(seeing.estimate(context=codes[0]) - seeing.estimate(context=-codes[0])).max() > 0.01
    assert db.simulate(db.Uniform(switch.arms), switch, seed=0).regret.sum() > 0
    with pytest.raises(db.DriftbanditsError, match="build the policy with contexts"):
        db.simulate(db.DisjointLinUCB(switch.arms, contexts=db.Contexts(3)), switch, seed=0)


def test_compare_gives_contexts_to_all_that_take_them():
    found = db.compare(
        [("DisjointLinUCB", {"beta": 0.3}), ("DisjointLinUCB", {"beta": 0.3, "contexts": None}), "Uniform"],
        [("requests/stationary", {"horizon": 3_000})],
        seeds=2,
        show=False,
    )
    regrets = found.summary.set_index("policy")["regret"]
    seeing, blind, chance = regrets.tolist()
    assert seeing < blind < chance
