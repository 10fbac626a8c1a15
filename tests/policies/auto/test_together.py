"""Rewards that wait, against a twin that learns each at once: what is believed in the end is the same."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.policies.auto.together import MOST_DOUBTED, MOST_WAITING, Together

POINTS = np.linspace(0.0, 1.0, 12)[:, None]
MEANS = 0.6 * np.exp(-np.square((POINTS[:, 0] - 0.3) / 0.2))


class AtOnce(db.AutoBandit):
    """The slow twin: no reward waits."""

    def _waiting(self, *_):
        return None


def play_both(seed, rounds, change):
    """A policy and its twin, who is told the same rewards of the same arms; the means change their sign at `change`."""
    arms = db.ArmSet(POINTS, RBF(0.2))
    policy, twin = (kind(arms, kernel="given", seed=seed) for kind in (db.AutoBandit, AtOnce))
    rng, waited = np.random.default_rng(seed), 0
    for now in range(rounds):
        choice = policy.ask()
        imposed = twin.impose(choice.arm, choice.probability).decisions
        reward = float((MEANS if now < change else -MEANS)[choice.arm] + 0.1 * rng.standard_normal())
        policy.tell(choice, reward)
        twin.tell(imposed, [reward])
        waited += len(policy._together) > 0
    assert waited > rounds / 8
    policy._catch_up()
    return policy, twin


def weights_of(policy):
    """Weight of every hypothesis that has some, by what it is."""
    beliefs, weights = policy._beliefs, policy._mixture.weights()
    columns = (beliefs.kind, beliefs.birth, beliefs.rate, beliefs.origin)
    names = zip(*(column[: beliefs.count].tolist() for column in columns), strict=True)
    found = {}
    for name, weight in zip(names, weights.tolist(), strict=True):
        found[name] = found.get(name, 0.0) + weight
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounds", [300, 396, 404])
def test_hypotheses_weigh_what_they_weigh_where_no_reward_waits(seed, rounds):
    """Before a change, and just after it, when what had been due for births decides what is believed.

    The noise stands still while rewards wait: so weights agree to a tenth or so only, and who is surprised by a
    reward at the very limit may differ.
    """
    policy, twin = play_both(seed, rounds, change=398)
    mine, other = weights_of(policy), weights_of(twin)
    for name in mine.keys() | other.keys():
        assert mine.get(name, 0.0) == pytest.approx(other.get(name, 0.0), abs=0.15)
    assert policy._mixture._due == pytest.approx(twin._mixture._due, rel=0.05, abs=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_believed_of_the_arms_is_what_is_believed_where_no_reward_waits(seed):
    policy, twin = play_both(seed, 400, change=200)
    readings = [one._beliefs.reading(one._mixture.leader()) for one in (policy, twin)]
    for mine, other in zip(*readings, strict=True):
        np.testing.assert_allclose(mine, other, atol=0.02)


@pytest.mark.parametrize(
    ("doubt", "most"),
    [(0.0, MOST_WAITING), (MOST_DOUBTED / 100, MOST_WAITING), (MOST_DOUBTED / 5.5, 5), (MOST_DOUBTED, 1), (1.0, 1)],
)
def test_the_more_is_in_doubt_the_fewer_rewards_wait(doubt, most):
    together = Together()
    together.allow(doubt)
    for waiting in range(most):
        assert not together.enough, waiting
        together.add(0, 1, 0.1, 0.0)
    assert together.enough


def test_rewards_that_wait_are_learned_where_arms_become_too_many_to_wait():
    """Of more than 1,024 arms some are read at a time, and no reward waits."""
    grid = np.linspace(0.0, 1.0, 1_000)[:, None]
    policy = db.AutoBandit(db.ArmSet(grid), seed=0, rank=30)
    rng = np.random.default_rng(0)
    policy.law()
    while len(policy._together) < 4:
        choice = policy.ask()
        policy.tell(choice, float(0.5 - grid[choice.arm, 0] + 0.1 * rng.standard_normal()))
    told = policy._beliefs.told + len(policy._together)
    wider = policy.with_arms(policy.arms.extended(1.0 + np.linspace(0.001, 0.1, 100)[:, None]))
    assert len(policy._together) >= 4
    assert not wider._standing.everyone
    assert len(wider._together) == 0
    assert wider._beliefs.told == told
    for _ in range(5):
        wider.tell(wider.ask(), 0.1)
    assert wider.law().sum() == pytest.approx(1.0)
