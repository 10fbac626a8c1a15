"""GLR-klUCB: index, test, forced rounds and restarts against naive versions from the whole history."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq

import driftbandits as db
from driftbandits.detection.glr import MOST_SPLITS_PER_ARM, bernoulli_divergence
from driftbandits.errors import InputError
from driftbandits.policies.ucb.glr import GLRklUCB
from driftbandits.policies.ucb.ucb import bernoulli_upper
from driftbandits.testing import POLICY_CHECKS

MAKERS = {
    "local": partial(GLRklUCB, restart="local", exploration=1.0, failure_probability=0.5, test_every=1, split_every=1),
    "bernoulli": partial(GLRklUCB, divergence="bernoulli", exploration=0.0, threshold="theory"),
}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_conforms(make, check):
    check(make)


def small_arms(size=4, names=None):
    return db.ArmSet(np.linspace(0, 1, size)[:, None], names=names)


def naive_kl(kind, x, y, noise):
    if kind == "gaussian":
        return (x - y) ** 2 / (2 * noise**2)
    p, q = (min(max((v + 1) / 2, 1e-12), 1 - 1e-12) for v in (x, y))
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


class Naive:
    """Everything from the whole history, slowly."""

    def __init__(self, size, kind, restart, horizon, exploration, every, spacing, noise):
        self.size, self.kind, self.restart, self.horizon = size, kind, restart, horizon
        self.exploration, self.every, self.spacing, self.noise = exploration, every, spacing, noise
        self.histories = [[] for _ in range(size)]
        self.since = [0] * size
        self.origin, self.episode = 0, 1

    def forced(self, now):
        share = self.exploration * math.sqrt(self.episode * self.size * math.log(self.horizon) / self.horizon)
        position = (now - self.origin + 1) % math.floor(self.size / min(1.0, share))  # t - tau, from 1
        return position - 1 if 1 <= position <= self.size else None

    def index(self, now):
        values = []
        for history, since in zip(self.histories, self.since, strict=True):
            if not history:
                values.append(np.inf)
                continue
            mean, level = np.mean(history), math.log(now - since + 1) / len(history)
            if self.kind == "gaussian":
                values.append(mean + math.sqrt(2 * level) * self.noise)
            else:
                top = 1 - 2e-12
                gap = partial(lambda q, m, b: naive_kl(self.kind, m, q, self.noise) - b, m=mean, b=level)
                values.append(top if gap(top) <= 0 else mean if level == 0 else brentq(gap, mean, top, xtol=1e-14))
        return np.array(values)

    def learn(self, now, arm, reward):
        history = self.histories[arm]
        history.append(reward)
        n, mean = len(history), float(np.mean(history))
        if n % self.every:
            return None
        found = 0.0
        for s in range(self.spacing, n, self.spacing):
            before, after = np.mean(history[:s]), np.mean(history[s:])
            one, other = naive_kl(self.kind, before, mean, self.noise), naive_kl(self.kind, after, mean, self.noise)
            found = max(found, s * one + (n - s) * other)
        if found <= math.log(n**1.5 * math.sqrt(self.horizon)):
            return None
        for other in range(self.size) if self.restart == "global" else [arm]:
            self.histories[other], self.since[other] = [], now + 1
        self.origin, self.episode = now + 1, self.episode + 1
        return found


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("restart", ["global", "local"])
@pytest.mark.parametrize(("every", "spacing"), [(1, 1), (10, 5)])
def test_runs_as_the_naive_version_does(kind, restart, every, spacing):
    settings = {"divergence": kind, "restart": restart, "test_every": every, "split_every": spacing}
    policy = GLRklUCB(small_arms(), horizon=500, seed=0, exploration=0.5, scale=1.0, **settings)
    naive = Naive(4, kind, restart, 500, 0.5, every, spacing, 0.1)
    rng = np.random.default_rng(0)
    found = []
    for now in range(500):
        law = policy.law()
        forced, index = naive.forced(now), naive.index(now)
        np.testing.assert_allclose(policy._index(), index, rtol=1e-9, atol=1e-9)
        if forced is not None:
            assert law[forced] == 1.0
        else:
            assert (law[index < index.max() - 1e-9] == 0).all()
        choice = policy.ask()
        mean = 0.6 * math.cos(choice.arm + 3 * (now >= 160) + 2 * (now >= 330))
        reward = float(np.clip(mean + 0.1 * rng.standard_normal(), -1, 1))
        policy.tell(choice.id, reward)
        statistic = naive.learn(now, choice.arm, reward)
        if statistic is not None:
            found.append((now + 1, choice.arm, statistic))
    assert found
    assert [(c.round, c.arms[0]) for c in policy.changes] == [(now, arm) for now, arm, _ in found]
    assert [c.statistic for c in policy.changes] == pytest.approx([value for *_, value in found])
    assert [c.epoch for c in policy.changes] == list(range(len(found)))


def test_records_say_when_where_and_how_much():
    arms = small_arms(names=["a", "b", "c", "d"])
    policy = GLRklUCB(arms, horizon=1000, seed=0, exploration=0.0, reward_range=(0.0, 10.0))
    for now in range(70):
        policy.tell(policy.ask(allowed=["c"]).id, 8.0 if now < 65 else 2.0)
    (change,) = policy.changes
    assert change.interval == (65, 70)
    assert change.round == 70
    assert (change.arms, change.names) == ((2,), ("c",))
    assert (*change.before, *change.after) == pytest.approx((8.0, 2.0))
    assert change.statistic > change.threshold == pytest.approx(math.log(70**1.5 * math.sqrt(1000)))
    assert policy.estimate().tolist() == [5.0] * 4


def test_forced_rounds_reach_every_arm_and_start_over_after_a_restart():
    policy = GLRklUCB(small_arms(), horizon=2000, seed=0, exploration=0.3)
    cycle = math.floor(4 / (0.3 * math.sqrt(4 * math.log(2000) / 2000)))
    for now in range(3 * cycle):
        if now % cycle < 4:
            assert policy.law()[now % cycle] == 1.0
        policy.tell(policy.ask().id, 0.25)
    while not policy.changes:
        policy.tell(policy.ask().id, -0.9)
    second = math.floor(4 / (0.3 * math.sqrt(2 * 4 * math.log(2000) / 2000)))
    for now in range(second + 4):
        if now % second < 4:
            assert policy.law()[now % second] == 1.0
        policy.tell(policy.ask().id, 0.25)


def test_a_forced_arm_that_is_not_allowed_gives_way_to_the_best():
    policy = GLRklUCB(small_arms(), horizon=2000, seed=0)
    for arm, reward in enumerate((0.1, 0.9, 0.5, 0.3)):
        policy.tell(policy.ask(allowed=[arm]).id, reward)
    cycle = policy._cycle
    policy.forget(policy.ask(size=cycle - 4).ids)
    assert policy.law()[0] == 1.0
    assert policy.ask(allowed=[1, 2, 3]).arm == 1
    assert policy.ask(allowed=[1, 2]).arm == 1  # its turn anyway


def test_local_restarts_forget_one_arm_only():
    for restart, kept in (("local", 0.5), ("global", 0.0)):
        policy = GLRklUCB(small_arms(), horizon=1000, seed=0, exploration=0.0, restart=restart)
        policy.tell(policy.ask(allowed=[0]).id, 0.5)
        for now in range(60):
            policy.tell(policy.ask(allowed=[2]).id, 0.8 if now < 50 else -0.8)
        assert len(policy.changes) == 1
        assert policy.estimate()[0] == kept
        assert policy.estimate()[2] == 0.0


def test_rewards_asked_before_a_restart_are_late():
    policy = GLRklUCB(small_arms(), horizon=1000, seed=0, exploration=0.0, test_every=1, split_every=1)
    for _ in range(50):
        policy.tell(policy.ask(allowed=[2]).id, 0.8)
    batch = policy.ask(size=10, allowed=[2])
    policy.tell(batch.ids, np.full(10, -0.8))
    assert len(policy.changes) == 1
    told_before = policy.changes[0].interval[1] - 50
    assert policy.late == 10 - told_before
    assert policy.estimate()[2] == 0.0


def test_memory_is_bounded():
    """20,000 pulls of one arm: splits are thinned to below 512, evenly spaced, and the sums stay those of the pulls."""
    policy = GLRklUCB(small_arms(1), horizon=20_000, seed=0, split_every=1)
    rng = np.random.default_rng(0)
    rewards = np.round(rng.uniform(-0.1, 0.1, 20_000) * 1024) / 1024  # exact sums
    for reward in rewards.tolist():
        policy.tell(policy.ask().id, reward)
    assert policy.changes == ()
    history = policy._histories[0]
    assert len(history.sums) < MOST_SPLITS_PER_ARM
    assert history.spacing == 64
    positions = history.spacing * np.arange(1, len(history.sums) + 1)
    assert history.pulls - positions[-1] < history.spacing
    np.testing.assert_array_equal(history.sums, np.cumsum(rewards)[positions - 1])
    assert history.rounds == (positions - 1).tolist()


def test_bernoulli_index_solves_its_equation():
    mean = np.array([-1.0, -0.999, -0.3, 0.0, 0.7, 0.999, 1.0])
    for level in (0.0, 1e-6, 0.01, 0.5, 5.0, 40.0):
        upper = bernoulli_upper(mean, np.full(7, level))
        assert (upper >= mean - 1e-11).all()
        assert (upper <= 1).all()
        inner = upper < 1 - 1e-9
        np.testing.assert_allclose(bernoulli_divergence(mean, upper)[inner], level, rtol=1e-6, atol=1e-9)
        assert (bernoulli_divergence(mean, upper)[~inner] <= level + 1e-6).all()


def test_the_horizon_is_needed_for_the_defaults_only():
    assert GLRklUCB(small_arms()).needs_horizon
    free = GLRklUCB(small_arms(), exploration=0.0, failure_probability=0.01)
    assert not free.needs_horizon
    for _ in range(50):
        free.tell(free.ask().id, 0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"divergence": "poisson"},
        {"threshold": 3.0},
        {"restart": "never"},
        {"failure_probability": 1.0},
        {"exploration": -1},
        {"test_every": 0},
        {"split_every": 1.5},
        {"noise": 0.0},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError):
        GLRklUCB(small_arms(), horizon=100, **wrong)


def test_histories_that_do_not_fit_are_refused():
    policy = GLRklUCB(small_arms(), horizon=100, seed=0)
    for _ in range(60):
        policy.tell(policy.ask().id, 0.1)
    state = policy.state_dict()
    state["engine"]["splits"] = state["engine"]["splits"] + 1
    with pytest.raises(db.errors.StateError):
        GLRklUCB.restore(small_arms(), state)


def test_no_false_alarm_where_nothing_changes():
    """Ten runs of 2,000 rounds, delta = 1 / sqrt(2000) per arm and noise as declared; the seeds are fixed."""
    for seed in range(10):
        world = db.environments.create("switching/1", seed=seed, horizon=2000, switches=())
        assert db.simulate(GLRklUCB(world.arms, horizon=2000, seed=seed), world, seed=seed).changes == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_finds_the_flip(seed):
    world = db.environments.create("switching/1", seed=seed)
    trace = db.simulate(GLRklUCB(world.arms, horizon=world.horizon, seed=seed), world, seed=seed)
    assert len(trace.changes) == 1
    assert 3000 < trace.changes[0].round < 3030
    assert trace.regret.sum() < 600
