"""The rules of the factor beta, by their formulas.

The posterior of many arms: those that lead are those of the posterior of all arms, which is the slow road.
"""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.gp import gpucb
from driftbandits.policies.gp.posterior import (
    CONFIDENCE_RULES,
    ArmPosterior,
    LeadingPosterior,
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


def play(policy, rounds, seed=0, mask=None):
    rng, arms = np.random.default_rng(seed), []
    means = np.sin(7 * ARMS.points[:, 0]) * ARMS.points[:, 1] * 0.8
    for _ in range(rounds):
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


def test_most_rewards_touch_the_pool_alone(monkeypatch):
    folds, fold = [], LeadingPosterior.fold

    def counted(self):
        folds.append(bool(self._span.late))
        fold(self)

    policy = db.GPUCB(ARMS, seed=0)
    play(policy, 150)
    monkeypatch.setattr(LeadingPosterior, "fold", counted)
    play(policy, 150)
    assert sum(folds) < 50


def test_no_index_outside_the_pool_is_above_its_bound():
    policy = db.GPUCB(ARMS, seed=0)
    for _ in range(60):
        play(policy, 1)
        posterior = policy._posterior
        pool = posterior._span.pool
        if pool is None:
            continue
        factor = policy._factor(posterior.information_gain)
        mean, variance = posterior.mean_and_variance(np.arange(len(ARMS)))
        index = mean + factor * np.sqrt(np.maximum(variance, 0.0))
        outside = np.delete(index, pool.arms)
        assert outside.max() <= pool.most_outside(factor, posterior._span.moved) + 1e-12
        assert posterior.index(factor, len(ARMS))[pool.arms] == pytest.approx(index[pool.arms])
        assert outside.max() < index.max()


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
