"""Exp3.S against its recursion in 50 digits, late rewards, masks, settings."""

import math
from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.adversarial.exp3s import Exp3S, exp3s_exploration
from driftbandits.testing import POLICY_CHECKS
from tests.policies.states import engine_of

MAKERS = {
    "default": Exp3S,
    "given": partial(Exp3S, exploration=0.3, share=0.01),
    "no share": partial(Exp3S, exploration=0.05, share=0.0),
}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_conforms(make, check):
    check(make)


def small_arms(size=5):
    return db.ArmSet(np.linspace(0, 1, size)[:, None])


class Exact:
    """The recursion as published, in 50 digits, without normalising."""

    def __init__(self, size, gamma, alpha):
        self.weights = [Decimal(1)] * size
        self.gamma, self.alpha = Decimal(gamma), Decimal(alpha)

    def law(self):
        total, size = sum(self.weights), len(self.weights)
        return [(1 - self.gamma) * w / total + self.gamma / size for w in self.weights]

    def learn(self, arm, reward, probability):
        total, size = sum(self.weights), len(self.weights)
        gain = (Decimal(reward) + 1) / 2 / Decimal(probability)
        self.weights[arm] *= (self.gamma * gain / size).exp()
        share = Decimal(1).exp() * self.alpha / size * total
        self.weights = [w + share for w in self.weights]


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("delay", [0, 7])
def test_law_is_the_published_one(alpha, delay):
    """The best arm changes half way; late rewards enter over the probability they were drawn with."""
    with localcontext() as context:
        context.prec = 50
        policy = Exp3S(small_arms(), seed=0, exploration=0.2, share=alpha)
        exact = Exact(5, 0.2, alpha)
        waiting = []
        for now in range(600):
            np.testing.assert_allclose(policy.law(), [float(p) for p in exact.law()], rtol=1e-10)
            choice = policy.ask(allowed=None if now % 5 else [0, 1, 2])
            good = choice.arm == (1 if now < 300 else 3)
            waiting.append((choice.id, choice.arm, 0.9 if good else -0.7, choice.probability))
            if len(waiting) > delay:
                ident, arm, reward, probability = waiting.pop(0)
                policy.tell(ident, reward)
                exact.learn(arm, reward, probability)


def test_follows_a_switch_only_with_a_share():
    """Long after the switch the sharing law is on the new arm; without a share it is not yet."""
    reached = {}
    for share in (0.0, 1e-3):
        policy = Exp3S(small_arms(), seed=1, exploration=0.1, share=share)
        for now in range(8000):
            choice = policy.ask()
            policy.tell(choice.id, 0.9 if choice.arm == (1 if now < 6000 else 3) else -0.9)
        reached[share] = policy.law()[3]
    assert reached[1e-3] > 0.8 > 0.2 > reached[0.0]


def test_weights_never_overflow():
    policy = Exp3S(small_arms(2), seed=0, exploration=1.0, share=0.0)
    for _ in range(3000):
        choice = policy.ask()
        policy.tell(choice.id, 1.0 if choice.arm else -1.0)
    log_weights = engine_of(policy)["log_weights"]
    assert log_weights[0] < -745  # as plain numbers this weight would be 0
    assert np.isfinite(log_weights).all()
    assert policy.law().tolist() == [0.5, 0.5]


def test_settings_follow_from_horizon_and_switches():
    policy = Exp3S(small_arms(), horizon=1000, switches=3)
    assert policy.exploration is None
    assert policy.needs_horizon
    policy.law()
    expected = math.sqrt(5 * (4 * math.log(5000) + math.e) / ((math.e - 1) * 1000))
    assert policy.exploration == pytest.approx(expected) == exp3s_exploration(horizon=1000, switches=3, arms=5)
    assert policy.share == 1e-3
    assert exp3s_exploration(horizon=10, switches=3, arms=5) == 1.0
    assert not Exp3S(small_arms(), exploration=0.1, share=0.0).needs_horizon


@pytest.mark.parametrize(
    "wrong", [{"exploration": 0}, {"exploration": 1.5}, {"share": -1}, {"switches": -1}, {"switches": "two"}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError):
        Exp3S(small_arms(), horizon=100, **wrong)


def test_learns_something():
    """Uniform play costs 6900 on average here; Exp3.S pays for a hundred arms and no assumptions, but beats it."""
    world = db.environments.create("switching/1", seed=0)
    trace = db.simulate(Exp3S(world.arms, horizon=world.horizon, seed=0), world, seed=0)
    uniform = (
        np.mean(world.best(0, 1) - world.means(0, 1)) * 3000
        + np.mean(world.best(5000, 1) - world.means(5000, 1)) * 7000
    )
    assert trace.regret.sum() < 0.85 * uniform
