"""ET-GP-UCB: the trigger against a naive posterior, its records, late rewards and false alarms.

DAL-GP-UCB: decisions and restarts against a straight transcription, forced rounds, false alarms and real ones.
"""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.errors import InputError, StateError
from driftbandits.policies.gp.detecting import DetectionAugmentedGPUCB, EventTriggeredGPUCB, trigger_threshold
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.testing import POLICY_CHECKS

TRIGGERED_MAKERS = {
    "default": EventTriggeredGPUCB,
    "nervous": partial(EventTriggeredGPUCB, ridge=0.001, failure_probability=0.9, beta=1.0),
}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", TRIGGERED_MAKERS.values(), ids=TRIGGERED_MAKERS)
def test_triggered_conforms(make, check):
    check(make)


def triggered_arms(names=None):
    return db.ArmSet(np.linspace(0, 1, 12)[:, None], kernel=RBF(0.2), names=names)


def reward_at(now, arm, rng):
    mean = 0.7 * np.sin(arm + 3.0 * (now >= 60) + 3.0 * (now >= 110))
    return float(np.clip(mean + 0.1 * rng.standard_normal(), -1, 1))


def test_fires_as_a_naive_posterior_does():
    arms = triggered_arms()
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


def test_triggered_records_are_in_the_users_units_and_name_the_arm():
    arms = triggered_arms([f"price {number}" for number in range(12)])
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
    policy = EventTriggeredGPUCB(triggered_arms(), seed=0)
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
    arms = triggered_arms()
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


MAKERS = {
    "nervous": partial(DetectionAugmentedGPUCB, cover=3, exploration=1.0, failure_probability=0.9, beta=1.0),
    "without forced rounds": partial(DetectionAugmentedGPUCB, exploration=0.0, cover=100),
}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_conforms(make, check):
    check(make)


def small_arms(names=None):
    return db.ArmSet(np.linspace(0, 1, 12)[:, None], kernel=RBF(0.2), names=names)


def cycle_of(cover, horizon, episode, exploration):
    return math.floor(cover / min(1.0, exploration * math.sqrt(episode * cover * math.log(horizon) / horizon)))


class Slow:
    """Everything from the whole history of the episode: the posterior by solving, the tests by trying all splits."""

    ridge, beta, noise, delta = 0.05, 1.0, 0.1, 0.01

    def __init__(self, kernel, cover, horizon, exploration):
        self.kernel, self.horizon, self.exploration = kernel, horizon, exploration
        self.cover = self.choose(cover)
        self.episode, self.origin, self.data = 1, 0, []

    def choose(self, size):
        cover = []
        for _ in range(size):
            known = self.kernel[np.ix_(cover, cover)]
            rest = [
                self.kernel[x, x] - self.kernel[x, cover] @ np.linalg.solve(known, self.kernel[cover, x])
                for x in range(len(self.kernel))
            ]
            cover.append(int(np.argmax(np.array(rest) >= max(rest) - 1e-9)))  # the first, where several are
        return cover

    def forced(self, now):
        position = (now - self.origin + 1) % cycle_of(len(self.cover), self.horizon, self.episode, self.exploration)
        return self.cover[position - 1] if 1 <= position <= len(self.cover) else None

    def index(self):
        played = [arm for arm, _ in self.data]
        gram = self.kernel[np.ix_(played, played)] + self.ridge * np.eye(len(played))
        solved = np.linalg.solve(gram, self.kernel[played])
        mean = solved.T @ np.array([reward for _, reward in self.data])
        variance = self.kernel.diagonal() - np.einsum("ij,ij->j", self.kernel[played], solved)
        return mean + self.beta * np.sqrt(variance)

    def learn(self, now, arm, reward):
        """The statistic, if it is an alarm."""
        self.data.append((arm, reward))
        if arm not in self.cover:
            return None
        rewards = [value for other, value in self.data if other == arm]
        n = len(rewards)
        gaps = [s * (n - s) / n * (np.mean(rewards[:s]) - np.mean(rewards[s:])) ** 2 for s in range(1, n)]
        statistic = max(gaps, default=0.0) / (2 * self.noise**2)
        if statistic <= math.log(n**1.5 * len(self.cover) / self.delta):
            return None
        self.episode, self.origin, self.data = self.episode + 1, now + 1, []
        return statistic


@pytest.mark.parametrize(("cover", "exploration"), [(4, 0.5), (2, 1.0), (12, 0.2)])
def test_runs_as_the_slow_twin_does(cover, exploration):
    arms = small_arms()
    settings = {"cover": cover, "exploration": exploration, "ridge": 0.05, "beta": 1.0, "noise": 0.1}
    policy = DetectionAugmentedGPUCB(arms, horizon=400, seed=0, **settings)
    slow = Slow(arms.features @ arms.features.T, cover, 400, exploration)
    rng = np.random.default_rng(0)
    found, forced_rounds = [], 0
    for now in range(400):
        law, forced = policy.law(), slow.forced(now)
        if forced is not None:
            assert law[forced] == 1.0
            forced_rounds += 1
        else:
            index = slow.index() if slow.data else np.ones(12)
            assert (law[index < index.max() - 1e-7] == 0).all()
        choice = policy.ask()
        assert choice.probability == law[choice.arm] > 0
        mean = 0.7 * math.sin(choice.arm / 2 + 3 * (now >= 130) + 2 * (now >= 270))
        reward = float(np.clip(mean + 0.1 * rng.standard_normal(), -1, 1))
        policy.tell(choice.id, reward)
        statistic = slow.learn(now, choice.arm, reward)
        if statistic is not None:
            found.append((now + 1, choice.arm, statistic))
    assert len(found) >= 2
    assert forced_rounds >= 4 * cover
    assert [(c.round, *c.arms) for c in policy.changes] == [(now, arm) for now, arm, _ in found]
    assert [c.statistic for c in policy.changes] == pytest.approx([value for *_, value in found])
    assert [c.epoch for c in policy.changes] == list(range(len(found)))


def test_forced_rounds_visit_the_cover_in_turn_and_start_over_after_a_restart():
    policy = DetectionAugmentedGPUCB(small_arms(), horizon=2000, seed=0, cover=4, exploration=0.5)
    cycle = cycle_of(4, 2000, 1, 0.5)
    seen = [policy.law() for _ in range(2 * cycle + 4) if policy.tell(policy.ask().id, 0.25) is None]
    starts = [cycle - 1, 2 * cycle - 1]  # `seen[n]` is the law of round n + 1
    passes = [[int(law.argmax()) for law in seen[start : start + 4]] for start in starts]
    assert passes[0] == passes[1] == policy._watched
    assert all((law.max() == 1.0) for start in starts for law in seen[start : start + 4])
    while not policy.changes:
        policy.tell(policy.ask().id, -0.9)
    second = cycle_of(4, 2000, 2, 0.5)
    assert second < cycle
    for now in range(second + 4):
        if now % second < 4:
            assert policy.law()[policy._watched[now % second]] == 1.0
        policy.tell(policy.ask().id, 0.25)


def test_a_forced_arm_that_is_not_allowed_gives_way_to_the_best():
    policy = DetectionAugmentedGPUCB(small_arms(), horizon=2000, seed=0, beta=0.01, cover=4)
    for _ in range(4):
        policy.tell(policy.ask(allowed=[5]).id, 0.9)
    policy.forget(policy.ask(size=policy._cycle - 4).ids)
    forced = int(policy.law().argmax())
    assert forced == policy._watched[0]
    others = [arm for arm in range(12) if arm != forced]
    choice = policy.ask(allowed=others)
    assert (choice.arm, choice.probability) == (5, 1.0)


def test_without_forced_rounds_and_alarms_it_is_gpucb():
    arms = small_arms()
    plain = GPUCB(arms, seed=1, horizon=120)
    watching = DetectionAugmentedGPUCB(arms, seed=1, horizon=120, exploration=0.0)
    rng = np.random.default_rng(2)
    for _ in range(120):
        a, b = watching.ask(), plain.ask()
        assert (a.arm, a.probability) == (b.arm, b.probability)
        reward = float(np.sin(a.arm) * 0.5 + 0.05 * rng.standard_normal())
        watching.tell(a.id, reward)
        plain.tell(b.id, reward)
    assert watching.changes == ()


def test_records_are_in_the_users_units_and_name_the_arm():
    arms = small_arms([f"price {number}" for number in range(12)])
    policy = DetectionAugmentedGPUCB(arms, horizon=1000, seed=0, cover=12, reward_range=(0.0, 100.0))
    for now in range(26):
        policy.tell(policy.ask(allowed=["price 3"]).id, 70.0 if now < 25 else 20.0)
    (change,) = policy.changes
    assert (change.names, change.interval, change.round) == (("price 3",), (25, 26), 26)
    assert (*change.before, *change.after) == pytest.approx((70.0, 20.0))
    # 25 * 1 / 26 (difference)^2 / (2 R^2) with R a tenth of half the range, and delta shared by 12 tests
    assert change.statistic == pytest.approx(25 / 26 * 50**2 / (2 * 5**2))
    assert change.threshold == pytest.approx(math.log(26**1.5 * 12 / 0.01))
    assert policy.estimate().tolist() == pytest.approx([50.0] * 12)


def test_rewards_asked_before_a_restart_are_late():
    policy = DetectionAugmentedGPUCB(small_arms(), horizon=1000, seed=0, cover=12)
    for _ in range(30):
        policy.tell(policy.ask(allowed=[3]).id, 0.8)
    batch = policy.ask(size=10, allowed=[3])
    policy.tell(batch.ids, np.full(10, -0.8))
    (change,) = policy.changes
    assert change.round == 40
    assert policy.late == 40 - change.interval[1] > 0
    assert policy.estimate().tolist() == [0.0] * 12


def test_arms_that_are_not_watched_raise_no_alarm():
    policy = DetectionAugmentedGPUCB(small_arms(), horizon=1000, seed=0, cover=2)
    policy.tell(policy.ask().id, 0.0)
    unwatched = next(arm for arm in range(12) if arm not in policy._watched)
    for now in range(60):
        policy.tell(policy.ask(allowed=[unwatched]).id, 0.9 if now < 30 else -0.9)
    assert policy.changes == ()


def test_an_unknown_horizon_is_doubled():
    policy = DetectionAugmentedGPUCB(small_arms(), seed=0)
    for _ in range(1100):
        policy.tell(policy.ask().id, 0.1)
    assert policy._cycle == cycle_of(len(policy._watched), 2048, 1, 0.3)
    assert policy._origin == 1024


@pytest.mark.parametrize(
    "wrong", [{"cover": 0}, {"cover": 2.5}, {"exploration": -1}, {"noise": 0.0}, {"failure_probability": 1.0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        DetectionAugmentedGPUCB(small_arms(), horizon=100, **wrong)


def a_state():
    policy = DetectionAugmentedGPUCB(small_arms(), horizon=500, seed=0, cover=4)
    for _ in range(60):
        policy.tell(policy.ask().id, 0.1)
    return policy.state_dict()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("watched", lambda value: value + 10),
        ("watched", lambda value: value * 0),
        ("watched", lambda value: value[:0]),
        ("episode", lambda value: 0),
        ("origin", lambda value: 61),
        ("origin", lambda value: 30),  # fewer rounds than rewards
        ("pulls", lambda value: value + 1),
        ("totals", lambda value: value + 0.5),
        ("arms", lambda value: value + 1),
    ],
)
def test_damaged_states_are_refused(name, change):
    state = a_state()
    DetectionAugmentedGPUCB.restore(small_arms(), state)
    state["engine"][name] = change(state["engine"][name])
    with pytest.raises(StateError):
        DetectionAugmentedGPUCB.restore(small_arms(), state)


@pytest.mark.statistical
def test_false_alarms_are_as_rare_as_promised():
    # 40 runs of 1,000 rounds in worlds that stay, noise as declared; with a chance of alarm of 0.2 per run, more than
    # 16 runs with one have probability below 1e-3
    alarms = 0
    for seed in range(40):
        world = db.environments.create("switching/1", seed=seed, dimension=2, horizon=1000, switches=())
        policy = DetectionAugmentedGPUCB(world.arms, horizon=1000, seed=seed, failure_probability=0.2, beta=1.0)
        alarms += bool(db.simulate(policy, world, seed=seed).changes)
    assert alarms <= 16


def test_no_false_alarm_with_the_defaults():
    """Ten runs of 2,000 rounds with delta 0.01: a chance of any alarm below 0.1; seeds fixed."""
    for seed in range(10):
        world = db.environments.create("switching/1", seed=seed, horizon=2000, switches=())
        policy = DetectionAugmentedGPUCB(world.arms, horizon=2000, seed=seed)
        assert db.simulate(policy, world, seed=seed).changes == ()


@pytest.mark.parametrize("dimension", [2, 10])
@pytest.mark.parametrize("seed", [0, 1])
def test_finds_the_flip_within_two_cycles_and_learns_anew(dimension, seed):
    world = db.environments.create("switching/1", seed=seed, dimension=dimension)
    policy = DetectionAugmentedGPUCB(world.arms, horizon=world.horizon, seed=seed, beta=1.0)
    trace = db.simulate(policy, world, seed=seed)
    (change,) = trace.changes
    assert 3000 < change.round <= 3000 + 2 * cycle_of(10, 10_000, 1, 0.3) + 10
    assert trace.regret[5000:].mean() < 0.08  # the forced rounds, 4 in 100, cost about half of it


def test_finds_a_change_of_arms_it_does_not_play():
    """A far arm becomes the best while the arm in play stays as it is: the trigger of ET-GP-UCB would never fire."""
    arms = db.ArmSet(np.linspace(0, 1, 12)[:, None], kernel=RBF(0.1))
    before = np.where(np.arange(12) == 0, 0.4, 0.0)
    after = np.where(np.arange(12) == 11, 0.8, before)
    noise = db.environments.TruncatedGaussianNoise(0.1)
    world = db.environments.Piecewise(arms, [before, after], horizon=4000, switches=(2000,), noise=noise)
    settings = {"horizon": 4000, "seed": 0, "beta": 0.5}
    watching = db.simulate(DetectionAugmentedGPUCB(arms, cover=12, **settings), world, seed=0)
    blind = db.simulate(db.EventTriggeredGPUCB(arms, **settings), world, seed=0)
    assert len(watching.changes) == 1
    assert len(blind.changes) == 0
    assert watching.regret[3000:].mean() < 0.1 < blind.regret[3000:].mean()
