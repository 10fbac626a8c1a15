"""ET-GP-UCB: the trigger against a naive posterior, its records, late rewards and false alarms."""

from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.policies.gp.triggered import EventTriggeredGPUCB, trigger_threshold
from driftbandits.testing import POLICY_CHECKS

MAKERS = {
    "default": EventTriggeredGPUCB,
    "nervous": partial(EventTriggeredGPUCB, ridge=0.001, failure_probability=0.9, beta=1.0),
}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_conforms(make, check):
    check(make)


def small_arms(names=None):
    return db.ArmSet(np.linspace(0, 1, 12)[:, None], kernel=RBF(0.2), names=names)


def reward_at(now, arm, rng):
    mean = 0.7 * np.sin(arm + 3.0 * (now >= 60) + 3.0 * (now >= 110))
    return float(np.clip(mean + 0.1 * rng.standard_normal(), -1, 1))


def test_fires_as_a_naive_posterior_does():
    arms = small_arms()
    kernel = arms.features @ arms.features.T
    policy = EventTriggeredGPUCB(arms, horizon=150, seed=0, ridge=0.05, beta=1.0)
    rng = np.random.default_rng(0)
    data, fired = [], []
    for now in range(150):
        played = [arm for arm, _ in data]
        choice = policy.ask()
        gram = kernel[np.ix_(played, played)] + 0.05 * np.eye(len(data))
        solved = np.linalg.solve(gram, kernel[played]) if data else np.zeros((0, 12))
        mean = solved.T @ np.array([y for _, y in data])
        variance = kernel.diagonal() - np.einsum("ij,ij->j", kernel[played], solved)
        index = mean + np.sqrt(variance)
        assert index[choice.arm] > index.max() - 1e-7
        reward = reward_at(now, choice.arm, rng)
        limit = trigger_threshold(
            deviation=variance[choice.arm] ** 0.5, noise=0.1, observations=len(data) + 1, failure_probability=0.01
        )
        if abs(reward - mean[choice.arm]) > limit:
            data = []
            fired.append((now + 1, choice.arm, mean[choice.arm], reward, limit))
        data.append((choice.arm, reward))
        policy.tell(choice.id, reward)
    assert len(fired) >= 2
    assert [(c.round, c.arms) for c in policy.changes] == [(now, (arm,)) for now, arm, *_ in fired]
    for number, (change, (now, _, before, after, limit)) in enumerate(zip(policy.changes, fired, strict=True)):
        assert (change.epoch, change.block, change.interval, change.compared_with) == (number, 0, (now - 1, now), 0)
        assert (*change.before, *change.after) == pytest.approx((before, after))
        assert change.statistic == pytest.approx(abs(after - before))
        assert change.threshold == pytest.approx(limit)


def test_records_are_in_the_users_units_and_name_the_arm():
    arms = small_arms([f"price {number}" for number in range(12)])
    policy = EventTriggeredGPUCB(arms, seed=0, reward_range=(0.0, 100.0))
    for _ in range(100):
        policy.tell(policy.ask(allowed=["price 3"]).id, 90.0)
    policy.tell(policy.ask(allowed=["price 3"]).id, 10.0)
    (change,) = policy.changes
    assert change.names == ("price 3",)
    assert change.after == (10.0,)
    assert change.before[0] == pytest.approx(90.0, abs=0.1)
    assert policy.estimate()[3] < 15.0  # the reward that fired opens the new epoch


def test_rewards_from_before_the_firing_are_late_and_later_ones_count():
    policy = EventTriggeredGPUCB(small_arms(), seed=0)
    for _ in range(50):
        policy.tell(policy.ask(allowed=[3]).id, 0.9)
    waiting = [policy.ask(allowed=[3]).id for _ in range(5)]
    policy.tell(waiting[2], -0.9)
    assert len(policy.changes) == 1
    assert policy.changes[0].round == 55
    fresh = policy.estimate()[3]
    policy.tell(waiting[0], 0.9)
    assert policy.late == 1
    assert policy.estimate()[3] == fresh
    policy.tell(waiting[4], -0.9)
    assert policy.late == 1
    assert policy.estimate()[3] < fresh


def test_never_fired_is_gpucb():
    arms = small_arms()
    watching, plain = (make(arms, seed=1) for make in (EventTriggeredGPUCB, GPUCB))
    rng = np.random.default_rng(2)
    for _ in range(120):
        a, b = watching.ask(), plain.ask()
        assert a == b
        reward = float(np.sin(a.arm) * 0.5 + 0.05 * rng.standard_normal())
        watching.tell(a.id, reward)
        plain.tell(b.id, reward)
    assert watching.changes == ()


def test_no_false_alarm_where_nothing_changes():
    """Ten runs of 1,000 rounds: with delta 0.01 and a valid prior the chance of any alarm is below 0.1; seeds fixed."""
    for seed in range(10):
        world = db.environments.create("switching/1", seed=seed, horizon=1000, switches=())
        policy = EventTriggeredGPUCB(world.arms, horizon=1000, seed=seed, beta=1.0)
        assert db.simulate(policy, world, seed=seed).changes == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_finds_the_flip_at_once(seed):
    world = db.environments.create("switching/1", seed=seed)
    policy = EventTriggeredGPUCB(world.arms, horizon=world.horizon, seed=seed, beta=1.0)
    trace = db.simulate(policy, world, seed=seed)
    assert [change.round for change in trace.changes] == [3001]
    assert trace.regret.sum() < 300
