"""The rules of the factor beta, by their formulas.

The posterior of many arms: those that lead are those of the posterior of all arms, which is the slow road.
"""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from benchmarks import rounds
from driftbandits.errors import InputError
from driftbandits.policies.gp import gpucb
from driftbandits.policies.gp.leading import LeadingPosterior
from driftbandits.policies.gp.posterior import (
    CONFIDENCE_RULES,
    ArmPosterior,
    check_beta,
    confidence_factor,
    drift_factor,
)
from driftbandits.testing.helpers import require_equal


def test_confidence_rules():
    kwargs = {"gain": 3.0, "ridge": 0.25, "noise": 0.2, "bound": 1.5, "failure_probability": 0.1}
    log = np.log(10.0)
    assert confidence_factor("ridge", **kwargs) == pytest.approx(1.5 + 0.4 * np.sqrt(6 + 2 * log))
    assert confidence_factor("igp", **kwargs) == pytest.approx(1.5 + 0.2 * np.sqrt(2 * (4 + log)))
    assert confidence_factor("paper", **kwargs) == pytest.approx(1 + np.sqrt(2 * (7 + log)))
    assert confidence_factor("authors", **kwargs) == pytest.approx(1.5 + 0.2 * np.sqrt(2 * (3 + log)))
    assert confidence_factor(2.5, **kwargs) == 2.5


def test_drift_rules():
    assert drift_factor(0.7, arms=5, rounds=9, failure_probability=0.1) == 0.7
    beta = 2 * math.log(5 * math.pi**2 * 81 / 0.6)
    assert drift_factor("finite", arms=5, rounds=9, failure_probability=0.1) == pytest.approx(math.sqrt(beta))
    assert drift_factor("practical", arms=5, rounds=9, failure_probability=0.1) == pytest.approx(
        math.sqrt(0.8 * math.log(36))
    )


@pytest.mark.parametrize("wrong", ["finite", "", -1.0, float("nan"), True, None])
def test_other_factors_are_refused(wrong):
    with pytest.raises(InputError, match="beta must be"):
        check_beta(wrong, CONFIDENCE_RULES)


ARMS = db.ArmSet(np.random.default_rng(0).random((600, 2)), RBF(0.3))


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(gpucb, "LEAST_ARMS", 500)


def play(policy, count, seed=0, mask=None):
    rng, arms = np.random.default_rng(seed), []
    means = np.sin(7 * ARMS.points[:, 0]) * ARMS.points[:, 1] * 0.8
    for _ in range(count):
        choice = policy.ask(allowed=mask)
        policy.tell(choice, float(np.clip(means[choice.arm] + 0.1 * rng.standard_normal(), -1, 1)))
        arms.append(choice.arm)
    return arms


def pair(monkeypatch, kind=db.GPUCB, **settings):
    fast = kind(ARMS, seed=2, **settings)
    fast.law()
    monkeypatch.setattr(gpucb, "LEAST_ARMS", 10**9)
    slow = kind(ARMS, seed=2, **settings)
    slow.law()
    return fast, slow


@pytest.mark.parametrize("settings", [{}, {"beta": "igp", "noise": 0.1, "bound": 1.0}, {"scale": 0.0}])
def test_the_same_arms_lead(settings, monkeypatch):
    fast, slow = pair(monkeypatch, **settings)
    assert type(fast._posterior) is LeadingPosterior
    assert type(slow._posterior) is ArmPosterior
    assert play(fast, 250) == play(slow, 250)
    assert fast.law() == pytest.approx(slow.law())
    assert fast.estimate() == pytest.approx(slow.estimate(), abs=1e-9)
    assert np.array(fast.interval()) == pytest.approx(np.array(slow.interval()), abs=1e-7)
    assert fast.history.low[-1] == pytest.approx(slow.history.low[-1], abs=1e-7)
    assert fast.information_gain == pytest.approx(slow.information_gain)


def test_most_rewards_touch_a_few_groups_of_arms_alone(monkeypatch):
    brought, bring = [], LeadingPosterior._bring

    def counted(self, bounds, chosen, factor):
        brought.append(len(chosen))
        bring(self, bounds, chosen, factor)

    policy = db.GPUCB(ARMS, seed=0)
    play(policy, 150)
    monkeypatch.setattr(LeadingPosterior, "_bring", counted)
    play(policy, 150)
    groups = policy._posterior._groups
    assert sorted(set(groups.members.ravel())) == list(range(len(ARMS)))
    assert len(groups.members) > 30
    assert sum(brought) < 150 * len(groups.members) / 3


@pytest.mark.parametrize("settings", [{}, {"beta": "igp", "noise": 0.1}])
def test_no_index_is_above_the_bound_of_its_group(settings):
    """In all groups, whenever they were last brought up to date; the rewards turn after 100 rounds."""
    policy = db.GPUCB(ARMS, seed=0, **settings)
    rng, tight = np.random.default_rng(0), 0
    means = np.sin(7 * ARMS.points[:, 0]) * ARMS.points[:, 1] * 0.8
    for now in range(200):
        choice = policy.ask()
        mean = means[choice.arm] * (1 if now < 100 else -1)
        policy.tell(choice, float(np.clip(mean + 0.1 * rng.standard_normal(), -1, 1)))
        posterior = policy._posterior
        span, groups = posterior._span, posterior._groups
        factor = policy._factor(posterior.information_gain)
        mean, variance = posterior.mean_and_variance(np.arange(len(ARMS)))
        index = mean + factor * np.sqrt(np.maximum(variance, 0.0))
        most = span.bounds.most(factor, span.moved, groups.radii)
        assert (index[groups.members].max(axis=1) <= most + 1e-9).all()
        tight += int((most < index.max()).sum())
        near = groups.members[span.leaders].ravel()
        assert posterior.index(factor, len(ARMS))[near] == pytest.approx(index[near], abs=1e-9)
        assert np.delete(index, near).max(initial=-np.inf) < index.max()
    assert tight > 200 * len(groups.members) / 2  # most groups are ruled out by it


def test_many_rewards_and_a_group_that_has_missed_them_all(monkeypatch):
    """More rewards than are kept: variances come from the covariance then, and all is as if computed at once."""
    fast, slow = pair(monkeypatch)
    for policy in (fast, slow):
        rng = np.random.default_rng(1)
        for now in range(400):
            choice = policy.ask()
            sign = 1 if now < 350 else -1
            policy.tell(choice, sign * float(np.clip(0.9 - ARMS.points[choice.arm].sum() + 0.1 * rng.random(), -1, 1)))
    seen = fast._posterior._span.bounds.seen
    assert seen.min() < 400 - fast._posterior._span.kept
    assert np.array_equal(fast._posterior.weights, slow._posterior.weights)
    assert fast.law() == pytest.approx(slow.law())
    assert fast.estimate() == pytest.approx(slow.estimate(), abs=1e-8)
    assert fast._posterior.variance == pytest.approx(slow._posterior.variance, abs=1e-8)


def test_masks_removals_and_saving_bring_all_arms_up_to_date(monkeypatch):
    fast, slow = pair(monkeypatch)
    assert play(fast, 40, mask=np.arange(0, 600, 3)) == play(slow, 40, mask=np.arange(0, 600, 3))
    monkeypatch.setattr(gpucb, "LEAST_ARMS", 500)
    again = db.GPUCB.restore(ARMS, fast.state_dict())
    require_equal(again.state_dict(), fast.state_dict())
    assert play(again, 60, seed=1) == play(fast, 60, seed=1) == play(slow, 60, seed=1)
    require_equal(again.state_dict(), fast.state_dict())
    for posterior in (fast._posterior, slow._posterior):
        arm = int(posterior.weights.argmax())
        posterior.replace(arm, 0.0, 0.1)
        posterior.remove(arm, 0.1)
    assert fast._posterior.mean == pytest.approx(slow._posterior.mean, abs=1e-9)
    assert fast._posterior.variance == pytest.approx(slow._posterior.variance, abs=1e-9)


def test_arms_that_come_and_go(monkeypatch):
    fast, slow = pair(monkeypatch)
    monkeypatch.setattr(gpucb, "LEAST_ARMS", 500)
    play(fast, 50), play(slow, 50)
    fewer = ARMS.without(list(range(0, 60)))
    fast = fast.with_arms(fewer)
    monkeypatch.setattr(gpucb, "LEAST_ARMS", 10**9)
    slow = slow.with_arms(fewer)
    for _ in range(40):
        one, two = fast.ask(), slow.ask()
        assert one.arm == two.arm
        fast.tell(one, 0.001 * one.arm)
        slow.tell(two, 0.001 * two.arm)


def test_the_lean_loop_of_the_benchmark_plays_the_same_arms():
    """What the bookkeeping of a round is compared with has GPUCB's law."""
    arms = rounds.square(60)
    means, noise = rounds.reward_function(arms), (0.1 * np.random.default_rng(2).standard_normal(150)).tolist()
    assert rounds.lean_gpucb(arms, means, noise) == rounds.played_by_gpucb(arms, means, noise)
