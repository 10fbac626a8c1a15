"""LinearExp3 against multi-precision arithmetic, finite sums and its formulas.

Exp3.S against its recursion in 50 digits, late rewards, masks, settings.
"""

import math
from decimal import Decimal, getcontext, localcontext
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.decisions import Row
from driftbandits.policies.rivals.exp3 import Exp3S, LinearExp3, exp3s_exploration, restart_period, span_coordinates
from driftbandits.testing import POLICY_CHECKS
from tests.policies.states import engine_of


def kernel(arms, **settings):
    return LinearExp3(arms, kernel=True, **settings)


def short(arms, **settings):
    return LinearExp3(arms, restart=17, **settings)


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", [kernel, short], ids=lambda f: f.__name__)
def test_conforms(make, check):
    check(make)


@pytest.fixture
def points():
    return np.random.default_rng(0).integers(-8, 9, size=(7, 2)) / 8.0


def linear_reward(points, t):
    return 0.4 * points @ np.array([1.0, -0.5]) * (1 if t % 3 else -0.5)


def play(policy, points, rounds):
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, float(linear_reward(points, choice.id)[choice.arm]))


# --- the law ----------------------------------------------------------------------------------------------------


def test_the_law_agrees_with_sixty_digits(points):
    """The same run in decimal arithmetic, in the points' own coordinates, law by law."""
    getcontext().prec = 60
    policy = LinearExp3(db.ArmSet(points), horizon=300, restart=300, seed=0)
    rows = [[Decimal(x) for x in row] for row in points.tolist()]
    design = [Decimal(x) for x in policy.design.tolist()]
    total = sum(design)
    rate, mix = Decimal(policy.rate), Decimal(policy.exploration)
    losses = [Decimal(0)] * len(rows)
    for _ in range(300):
        weights = [(-rate * loss).exp() for loss in losses]
        law = [(1 - mix) * w / sum(weights) + mix * p / total for w, p in zip(weights, design, strict=True)]
        assert np.abs(policy.law() - np.array([float(p) for p in law])).max() < 1e-12
        choice = policy.ask()
        reward = float(linear_reward(points, choice.id)[choice.arm])
        q = [[sum(p * r[i] * r[j] for p, r in zip(law, rows, strict=True)) for j in range(2)] for i in range(2)]
        det = q[0][0] * q[1][1] - q[0][1] * q[1][0]
        x, y = rows[choice.arm]
        theta = ((q[1][1] * x - q[0][1] * y) / det, (q[0][0] * y - q[1][0] * x) / det)
        losses = [
            loss - Decimal(reward) * (r[0] * theta[0] + r[1] * theta[1]) for loss, r in zip(losses, rows, strict=True)
        ]
        policy.tell(choice.id, reward)


def test_a_constant_added_to_all_losses_changes_nothing(points):
    policy = LinearExp3(db.ArmSet(points), horizon=300, seed=0)
    play(policy, points, 100)
    law = policy.law().copy()
    for shift in (1.0, -1e3, 1e6):
        moved = LinearExp3.restore(db.ArmSet(points), policy.state_dict())
        moved._losses += shift
        assert np.abs(moved.law() - law).max() < 1e-9


def test_huge_losses_do_not_overflow(points):
    policy = LinearExp3(db.ArmSet(points), horizon=300, seed=0)
    policy.law()
    for scale in (1e6, -1e6, 1e300):
        policy._losses, policy._present = scale * np.arange(7.0), None
        law = policy.law()
        assert np.isfinite(law).all()
        assert law.sum() == pytest.approx(1.0)
        assert (law >= 0.999 * policy.exploration * policy.design).all()


# --- the design -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_the_design_s_largest_leverage_is_the_dimension_of_the_span(rank):
    """Kiefer and Wolfowitz: g = d at the optimum, also where the points span less than their coordinates."""
    rng = np.random.default_rng(rank)
    points = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, 6)) * 100.0
    policy = LinearExp3(db.ArmSet(points), horizon=1000)
    assert policy.design_leverage == pytest.approx(rank, abs=1e-4)
    assert policy.design.sum() == pytest.approx(1.0)
    assert span_coordinates(points).shape == (40, rank)


def test_the_kernel_s_dimension_is_effective():
    arms = db.ArmSet(np.linspace(0, 1, 30)[:, None], RBF(0.2))
    policy = LinearExp3(arms, horizon=1000, kernel=True)
    effective = db.effective_dimension(arms, regulariser=0.05 / 1000)
    assert policy.design_leverage == pytest.approx(effective, rel=1e-4)
    assert policy.rate == pytest.approx(math.sqrt(math.log(30) / (3 * effective * policy.restart)), rel=1e-4)


def test_rate_and_exploration_follow_the_formulas(points):
    policy = LinearExp3(db.ArmSet(points), horizon=5000, restart=500)
    assert policy.rate == pytest.approx(math.sqrt(math.log(7) / (3 * 2 * 500)), rel=1e-6)
    assert policy.exploration == pytest.approx(2 * policy.rate, rel=1e-6)
    tiny = LinearExp3(db.ArmSet(points), horizon=5000, restart=1)  # asks for gamma > 1
    assert tiny.exploration == pytest.approx(1.0)
    assert tiny.rate == pytest.approx(0.5, rel=1e-6)


def test_no_step_of_the_exponent_is_above_one(points):
    policy = LinearExp3(db.ArmSet(points), horizon=400, restart=400, seed=0)
    policy.law()
    for _ in range(400):
        before = engine_of(policy)["losses"]
        choice = policy.ask()
        policy.tell(choice.id, 1.0 if choice.arm == 3 else -1.0)
        assert policy.rate * np.abs(engine_of(policy)["losses"] - before).max() <= 1.0 + 1e-9


@pytest.mark.parametrize("horizon", [100, 10_000])
def test_the_period_minimises_the_bound(horizon):
    variation, d, n = 1.6, 5, 50
    found = restart_period(horizon=horizon, variation=variation, dimension=d, arms=n)
    sizes = np.arange(1, horizon + 1)
    bound = 2 * horizon * np.sqrt(3 * d * np.log(n) / sizes) + 2 * sizes * variation
    assert abs(sizes[bound.argmin()] - found) <= 1
    assert restart_period(horizon=horizon, variation=0.0, dimension=d, arms=n) == horizon
    assert restart_period(horizon=horizon, variation=1e9, dimension=d, arms=n) == 1
    with pytest.raises(db.errors.InputError):
        restart_period(horizon=0, variation=1.0, dimension=d, arms=n)


# --- the estimate -----------------------------------------------------------------------------------------------


def learned(policy, arm, number, reward):
    """What one reward adds to the losses."""
    before = engine_of(policy)["losses"]
    policy._learn_one(Row(policy.rounds - 1, arm, number, 0, 1.0), reward)
    return engine_of(policy)["losses"] - before


def test_the_estimate_is_unbiased_by_finite_sums(points):
    """Sum over arms of P(a) times the estimate if a is drawn: the reward, if it is linear in the points."""
    arms = db.ArmSet(points)
    policy = LinearExp3(arms, horizon=300, seed=0)
    play(policy, points, 120)
    policy.ask()
    state, law = policy.state_dict(), engine_of(policy)["open"]["laws"][0]
    rewards = points @ np.array([0.3, -0.4])
    mean = np.zeros(7)
    for arm in range(7):
        again = LinearExp3.restore(arms, state)
        mean -= law[arm] * learned(again, arm, again._stamp()[0], rewards[arm])
    assert np.abs(mean - rewards).max() < 1e-12


def test_the_kernel_estimate_has_the_bias_of_its_regulariser():
    arms = db.ArmSet(np.linspace(0, 1, 9)[:, None], RBF(0.3))
    policy = LinearExp3(arms, horizon=300, kernel=True, seed=0)
    policy.ask()
    state, law = policy.state_dict(), engine_of(policy)["open"]["laws"][0]
    rewards = np.sin(5 * np.linspace(0, 1, 9)) / 2
    mean = np.zeros(9)
    for arm in range(9):
        again = LinearExp3.restore(arms, state)
        mean -= law[arm] * learned(again, arm, again._stamp()[0], rewards[arm])
    phi = arms.features
    q = phi.T @ (law[:, None] * phi) + 0.05 / 300 * np.eye(phi.shape[1])
    assert np.allclose(mean, phi @ np.linalg.solve(q, phi.T @ (law * rewards)), atol=1e-9)
    assert np.abs(mean - rewards).max() < 0.02


# --- late rewards -----------------------------------------------------------------------------------------------


def open_laws(policy):
    return len(engine_of(policy)["open"]["laws"])


def by_hand(points, law, arm, reward):
    q = points.T @ (law[:, None] * points)
    return -reward * points @ np.linalg.solve(q, points[arm])


def test_late_rewards_use_the_law_they_were_asked_under(points):
    policy = LinearExp3(db.ArmSet(points), horizon=300, restart=300, seed=0)
    play(policy, points, 50)
    first_law = policy.law().copy()
    batch = policy.ask(size=10)
    assert open_laws(policy) == 1  # one law, whatever the size of the batch
    policy.tell(int(batch.ids[4]), 1.0)
    second_law = policy.law().copy()
    assert np.abs(first_law - second_law).max() > 1e-4
    late = policy.ask()
    assert open_laws(policy) == 2
    expected = engine_of(policy)["losses"]
    expected += by_hand(points, second_law, late.arm, -0.5)
    expected += by_hand(points, first_law, int(batch.arms[0]), 0.25)
    policy.tell(late.id, -0.5)
    policy.tell(int(batch.ids[0]), 0.25)
    assert np.abs(engine_of(policy)["losses"] - expected).max() < 1e-9
    policy.forget(batch.ids[[1, 2, 3]])
    policy.tell(batch.ids[5:], np.zeros(5))
    assert open_laws(policy) == 0


def test_laws_are_dropped_with_their_decisions(points):
    policy = LinearExp3(db.ArmSet(points), horizon=1000, restart=1000, seed=0, pending_limit=5)
    for _ in range(100):
        policy.ask()
        choice = policy.ask()
        policy.tell(choice.id, 0.1)
    assert policy.dropped >= 95
    assert open_laws(policy) <= 5


def test_a_restart_forgets_and_makes_the_rest_late(points):
    policy = LinearExp3(db.ArmSet(points), horizon=300, restart=20, seed=0)
    play(policy, points, 18)
    batch = policy.ask(size=3)  # the third belongs to the next block
    policy.tell(batch.ids[:2], [0.5, 0.5])
    assert policy.late == 2
    assert not policy.estimate().any()
    policy.tell(int(batch.ids[2]), 0.5)
    assert policy.late == 2
    assert policy.estimate().any()


def test_masked_rounds_are_answered_but_not_counted(points):
    policy = LinearExp3(db.ArmSet(points), horizon=300, restart=20, seed=0)
    for _ in range(50):
        policy.tell(policy.ask(allowed=[0, 1]).id, 1.0)
    assert not policy.estimate().any()
    assert policy.late == 0
    assert engine_of(policy)["position"] == 0
    assert open_laws(policy) == 0


# --- building ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"restart": 0}, {"variation": -1.0}, {"kernel": 1}, {"ridge": 0.0}])
def test_wrong_settings_are_refused(points, wrong):
    with pytest.raises(db.errors.InputError):
        LinearExp3(db.ArmSet(points), horizon=100, **wrong)


def test_unfit_open_laws_are_refused(points):
    arms = db.ArmSet(points)
    policy = LinearExp3(arms, horizon=100, seed=0)
    policy.ask()
    state = policy.state_dict()
    for wrong in ({"counts": np.array([0])}, {"laws": np.full((1, 7), 0.3)}):
        engine = {**state["engine"], "open": {**state["engine"]["open"], **wrong}}
        with pytest.raises(db.errors.StateError):
            LinearExp3.restore(arms, {**state, "engine": engine})


@pytest.mark.statistical
def test_it_learns_a_linear_reward():
    """The last of 6,000 rounds earn at least half of what the best arm does; uniform play about nothing."""
    rng = np.random.default_rng(3)
    points = rng.standard_normal((20, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    means = 0.8 * points @ np.array([0.6, -0.64, 0.48])
    for make in (LinearExp3, kernel):
        arms = db.ArmSet(points, {"name": "linear"})
        policy = make(arms, horizon=6000, restart=6000, seed=0)
        earned = []
        for _ in range(6000):
            choice = policy.ask()
            earned.append(means[choice.arm])
            policy.tell(choice.id, float(np.clip(means[choice.arm] + 0.1 * rng.standard_normal(), -1, 1)))
        assert np.mean(earned[-1000:]) > 0.5 * means.max()


# With some of these settings nothing can be learned: a window of one, exploration only.
WHATEVER_ITS_SETTINGS = [check for check in POLICY_CHECKS if check.__name__ != "learns"]
MAKERS = {
    "default": Exp3S,
    "given": partial(Exp3S, exploration=0.3, share=0.01),
    "no share": partial(Exp3S, exploration=0.05, share=0.0),
}


@pytest.mark.parametrize("check", WHATEVER_ITS_SETTINGS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_exp3s_conforms(make, check):
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
def test_wrong_settings_of_exp3s_are_refused(wrong):
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
