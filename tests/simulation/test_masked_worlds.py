"""Playing worlds that do not always offer every arm, and worlds that draw their rewards themselves."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.environments import Tabular
from driftbandits.environments.noise import TruncatedGaussianNoise

HORIZON, ARMS = 400, 8


class Cubed(Tabular):
    """Rewards that are no noise around a mean: the cube of the round's uniform, less a hundredth of the arm."""

    def observe(self, start, arms, means, uniforms):
        return uniforms**3 - 0.01 * arms


def arms():
    return db.ArmSet(np.linspace(0, 1, ARMS)[:, None], kernel={"name": "rbf", "length_scale": 0.3})


def tables():
    draws = np.random.default_rng(0)
    means = draws.uniform(-0.5, 0.5, (HORIZON, ARMS))
    mask = draws.random((HORIZON, ARMS)) < 0.4
    mask[np.arange(HORIZON), draws.integers(ARMS, size=HORIZON)] = True
    return means, mask


POLICIES = [
    lambda here: db.Uniform(here, seed=1),
    lambda here: db.GPUCB(here, seed=1),
    lambda here: db.SlidingWindowUCB(here, seed=1, window=50),
    lambda here: db.Exp3S(here, seed=1, horizon=HORIZON),
    lambda here: db.AdaOPKB(here, seed=1, horizon=HORIZON),
]


@pytest.mark.parametrize("build", POLICIES)
def test_only_offered_arms_are_played_as_by_hand(build):
    means, mask = tables()
    world = Tabular(arms(), means, allowed=mask, noise=TruncatedGaussianNoise(0.1))
    trace = db.simulate(build(world.arms), world, seed=3)
    assert mask[np.arange(HORIZON), trace.arm].all()
    assert (trace.regret >= 0).all()
    np.testing.assert_array_equal(
        trace.regret, np.where(mask, means, -1).max(axis=1) - means[np.arange(HORIZON), trace.arm]
    )
    policy = build(world.arms)
    for now in range(HORIZON):
        choice = policy.ask(allowed=mask[now])
        assert choice.arm == trace.arm[now]
        assert choice.probability == trace.probability[now]
        policy.tell(choice.id, float(world.rewards(now, [choice.arm], 3)[0]))


@pytest.mark.parametrize("build", [db.GPUCB, db.OPKB])  # round by round, and in steady stretches
def test_worlds_may_draw_rewards_themselves(build):
    means, _ = tables()
    world = Cubed(arms(), means, noise=TruncatedGaussianNoise(0.1))
    trace = db.simulate(build(world.arms, horizon=HORIZON, seed=0), world, seed=5)
    assert (trace.reward == db.environments.uniforms(5, 0, HORIZON) ** 3 - 0.01 * trace.arm).all()
    assert (trace.reward == world.rewards(0, trace.arm, 5)).all()
