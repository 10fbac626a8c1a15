"""The GP and linear family against independent computations, and against each other where they must agree."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.gp import forgetting
from driftbandits.policies.gp.forgetting import RestartGPUCB, RestartLinUCB, SlidingWindowGPUCB, SlidingWindowLinUCB
from driftbandits.policies.gp.gpucb import GPUCB, LinUCB
from driftbandits.policies.gp.posterior import ArmPosterior
from driftbandits.policies.gp.weighted import DiscountedLinUCB, WeightedGPUCB
from tests.policies.states import engine_of

RNG = np.random.default_rng(0)
POINTS = RNG.random((30, 2))
SMOOTH = db.ArmSet(POINTS, RBF(0.7))  # low rank: feature coordinates
ROUGH = db.ArmSet(RNG.standard_normal((30, 8)), RBF(0.4))  # full rank: arm coordinates
RIDGE = 0.05


def history(size, seed=1, arms=30):
    rng = np.random.default_rng(seed)
    return rng.integers(arms, size=size), rng.uniform(-1, 1, size=size)


def feed(posterior, arms, rewards):
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        posterior.add(arm, reward)


def play(policy, rounds=300):
    """Decisions on a drifting reward; deterministic, so that two policies can be compared."""
    chosen = []
    for now in range(rounds):
        choice = policy.ask()
        chosen.append(choice.arm)
        policy.tell(choice.id, float(0.6 * np.sin(0.7 * choice.arm + now / 90) + 0.1 * np.cos(31.0 * now)))
    return chosen


@pytest.mark.parametrize("arms", [SMOOTH, ROUGH], ids=["features", "arms"])
class TestPosterior:
    def test_against_scikit_learn(self, arms):
        chosen, rewards = history(60)
        posterior = ArmPosterior(arms.features, ridge=RIDGE)
        feed(posterior, chosen, rewards)
        reference = GaussianProcessRegressor(arms.kernel, alpha=RIDGE, optimizer=None)
        mean, sd = reference.fit(arms.points[chosen], rewards).predict(arms.points, return_std=True)
        np.testing.assert_allclose(posterior.mean, mean, atol=1e-7)
        np.testing.assert_allclose(np.sqrt(posterior.variance), sd, atol=1e-6)

    def test_gain_is_half_the_log_determinant(self, arms):
        chosen, rewards = history(80)
        posterior = ArmPosterior(arms.features, ridge=RIDGE)
        feed(posterior, chosen, rewards)
        gram = arms.features @ arms.features.T
        reference = 0.5 * np.linalg.slogdet(np.eye(80) + gram[np.ix_(chosen, chosen)] / RIDGE)[1]
        assert posterior.information_gain == pytest.approx(reference, rel=1e-10)

    def test_adding_then_removing_restores(self, arms):
        chosen, rewards = history(50)
        posterior = ArmPosterior(arms.features, ridge=RIDGE)
        feed(posterior, chosen, rewards)
        before = {name: np.copy(value) for name, value in posterior.export().items()}
        extra = history(40, seed=2)
        feed(posterior, *extra)
        for arm, reward in zip(*(part.tolist() for part in extra), strict=True):
            posterior.remove(arm, reward)
        for name in ("mean", "variance", "covariance", "weights", "sums"):
            np.testing.assert_allclose(posterior.export()[name], before[name], atol=1e-10)
        assert posterior.information_gain == pytest.approx(float(before["information_gain"]), abs=1e-10)

    def test_refresh_changes_nothing_but_rounding(self, arms):
        posterior = ArmPosterior(arms.features, ridge=RIDGE)
        feed(posterior, *history(500))
        before = {name: np.copy(value) for name, value in posterior.export().items()}
        posterior.refresh()
        for name in ("mean", "variance", "covariance"):
            np.testing.assert_allclose(posterior.export()[name], before[name], atol=1e-9)

    def test_two_thousand_slides_stay_exact(self, arms):
        chosen, rewards = history(2100)
        posterior = ArmPosterior(arms.features, ridge=RIDGE)
        feed(posterior, chosen[:100], rewards[:100])
        for now in range(100, 2100):
            posterior.add(int(chosen[now]), float(rewards[now]))
            posterior.remove(int(chosen[now - 100]), float(rewards[now - 100]))
        fresh = ArmPosterior(arms.features, ridge=RIDGE)
        feed(fresh, chosen[2000:], rewards[2000:])
        np.testing.assert_allclose(posterior.mean, fresh.mean, atol=1e-10)
        np.testing.assert_allclose(posterior.variance, fresh.variance, atol=1e-10)

    def test_replacing_a_reward(self, arms):
        posterior, other = (ArmPosterior(arms.features, ridge=RIDGE) for _ in range(2))
        feed(posterior, *history(30))
        feed(other, *history(30))
        posterior.add(3, 0.5)
        posterior.replace(3, 0.5, -0.25)
        other.add(3, -0.25)
        np.testing.assert_allclose(posterior.mean, other.mean, atol=1e-12)

    def test_removing_everything_is_the_prior(self, arms):
        posterior = ArmPosterior(arms.features, ridge=RIDGE)
        posterior.add(4, 0.7)
        posterior.remove(4, 0.7)
        np.testing.assert_allclose(posterior.mean, 0.0, atol=1e-12)
        np.testing.assert_allclose(posterior.variance, np.einsum("ij,ij->i", arms.features, arms.features), atol=1e-12)


def test_both_coordinates_agree():
    padded = np.hstack([SMOOTH.features, np.zeros((30, 30 - SMOOTH.rank))])
    small, large = ArmPosterior(SMOOTH.features, ridge=RIDGE), ArmPosterior(padded, ridge=RIDGE)
    feed(small, *history(100))
    feed(large, *history(100))
    np.testing.assert_allclose(small.mean, large.mean, atol=1e-9)
    np.testing.assert_allclose(small.variance, large.variance, atol=1e-9)
    assert small.information_gain == pytest.approx(large.information_gain)


@pytest.mark.parametrize(
    "build",
    [
        lambda: SlidingWindowGPUCB(ROUGH, horizon=300, window=300),
        lambda: RestartGPUCB(ROUGH, horizon=300, period=300),
        lambda: WeightedGPUCB(ROUGH, horizon=300, discount=1.0),
        lambda: WeightedGPUCB(ROUGH, horizon=300, discount=1.0, width="two_matrix"),
    ],
    ids=["window", "period", "discount", "two_matrix"],
)
def test_forms_that_never_forget_are_gpucb(build):
    assert play(build()) == play(GPUCB(ROUGH, horizon=300))


@pytest.mark.parametrize(
    "build",
    [
        lambda arms: SlidingWindowLinUCB(arms, horizon=300, window=300),
        lambda arms: RestartLinUCB(arms, horizon=300, period=300),
        lambda arms: DiscountedLinUCB(arms, horizon=300, discount=1.0),
        lambda arms: GPUCB(arms, horizon=300),
    ],
    ids=["window", "period", "discount", "linear kernel"],
)
def test_forms_that_never_forget_are_linucb(build):
    points = RNG.standard_normal((30, 4)) / 6.0
    arms = db.ArmSet(points, DotProduct(sigma_0=0.0, sigma_0_bounds="fixed"))
    assert arms.scale == 1.0
    assert play(build(arms)) == play(LinUCB(arms, horizon=300))


def test_linucb_is_oful_by_its_formulas():
    points = RNG.standard_normal((30, 4)) / 6.0
    arms = db.ArmSet(points, {"name": "linear"})
    policy = LinUCB(arms, horizon=100, ridge=0.5, noise=0.2, bound=0.9, failure_probability=0.05, beta="ridge")
    chosen, rewards = history(40)
    for arm, reward in zip(chosen.tolist(), rewards.tolist(), strict=True):
        choice = policy.ask(allowed=[arm])
        policy.tell(choice.id, reward)
    gram = 0.5 * np.eye(4) + points[chosen].T @ points[chosen]
    theta = np.linalg.solve(gram, points[chosen].T @ rewards)
    radius = np.sqrt(0.5) * 0.9 + 0.2 * np.sqrt(2 * np.log(1 / 0.05) + np.linalg.slogdet(gram / 0.5)[1])
    widths = np.sqrt(np.einsum("ij,ji->i", points, np.linalg.solve(gram, points.T)))
    np.testing.assert_allclose(policy._index(), points @ theta + radius * widths, rtol=1e-9)
    optimism = policy._optimism(7)
    assert optimism.value == pytest.approx(policy._index()[7])
    assert optimism.width == pytest.approx(radius * widths[7])


def test_sliding_window_equals_regression_on_the_window():
    policy = SlidingWindowGPUCB(ROUGH, horizon=400, window=37)
    told = []
    for now in range(400):
        choice = policy.ask()
        reward = float(np.sin(0.3 * choice.arm + now / 50))
        policy.tell(choice.id, reward)
        told.append((choice.arm, reward))
        if now % 50 == 49:
            fresh = ArmPosterior(ROUGH.features, ridge=policy.ridge)
            for arm, value in told[-37:]:
                fresh.add(arm, value)
            policy.law()
            np.testing.assert_allclose(policy.estimate(), fresh.mean, atol=1e-9)
            np.testing.assert_allclose(engine_of(policy)["posterior"]["variance"], fresh.variance, atol=1e-9)
            assert policy.information_gain == pytest.approx(fresh.information_gain, abs=1e-8)


def test_rewards_that_left_the_window_are_late():
    policy = SlidingWindowGPUCB(ROUGH, horizon=100, window=10)
    first = policy.ask()
    for _ in range(12):
        policy.tell(policy.ask().id, 0.1)
    before = policy.estimate()
    policy.tell(first.id, 0.9)
    assert policy.late == 1
    assert np.array_equal(policy.estimate(), before)


def test_restarts_forget_everything():
    policy = RestartGPUCB(ROUGH, horizon=100, period=25)
    held = policy.ask()
    for _ in range(24):
        policy.tell(policy.ask().id, 0.4)
    policy.law()
    assert policy.ask().id == 25
    assert not policy.estimate().any()
    policy.tell(held.id, 0.5)
    assert policy.late == 1


@pytest.mark.parametrize("arms", [SMOOTH, ROUGH], ids=["features", "arms"])
@pytest.mark.parametrize("width", ["one_matrix", "two_matrix"])
def test_weighted_regression_by_its_growing_weights(arms, width):
    """The source's own form, weights eta^-s and ridge lambda eta^-t, on a short run where nothing overflows."""
    eta, rounds = 0.97, 60
    policy = WeightedGPUCB(arms, horizon=rounds, discount=eta, width=width, ridge=RIDGE, noise=0.1, bound=1.0)
    chosen, rewards = [], []
    for now in range(rounds):
        choice = policy.ask()
        rewards.append(float(np.sin(choice.arm + now / 20)))
        chosen.append(choice.arm)
        policy.tell(choice.id, rewards[-1])
    # at the last decision the newest of its rewards has been faded once
    state = policy.state_dict()
    fresh = WeightedGPUCB.restore(arms, {**state, "horizon": rounds + 1, "phase_length": rounds + 1})
    fresh.law()
    fresh._turn() if fresh._due() else None
    ages = rounds - np.arange(rounds)
    weight = eta ** -np.arange(rounds, dtype=float)
    now_ridge, squared_ridge = RIDGE * eta ** -float(rounds), RIDGE * eta ** (-2.0 * rounds)
    played = arms.features[chosen]
    identity = np.eye(arms.rank)
    first = played.T @ (played * weight[:, None]) + now_ridge * identity
    second = played.T @ (played * weight[:, None] ** 2) + squared_ridge * identity
    mean = arms.features @ np.linalg.solve(first, played.T @ (weight * np.array(rewards)))
    np.testing.assert_allclose(fresh._believe().mean, mean, atol=1e-8)
    solved = np.linalg.solve(first, arms.features.T)
    if width == "one_matrix":
        variance = now_ridge * np.einsum("ij,ji->i", arms.features, solved)
    else:
        variance = RIDGE * np.einsum("ji,jk,ki->i", solved, second, solved)
    np.testing.assert_allclose(fresh._believe().sd, np.sqrt(variance), atol=1e-7)
    doubled = played * (eta**ages)[:, None]
    gain = 0.5 * np.linalg.slogdet(identity + doubled.T @ doubled / RIDGE)[1]
    assert fresh.information_gain == pytest.approx(gain, rel=1e-8)


def test_no_horizon_overflows():
    policy = WeightedGPUCB(ROUGH, discount=0.5)
    batch = policy.ask(size=1)
    policy.tell(batch.ids, [0.5])
    for _ in range(3):
        batch = policy.ask(size=2000)
        policy.forget(batch.ids)
    policy.tell(policy.ask().id, 0.25)
    assert np.isfinite(policy.estimate()).all()
    assert np.isfinite(policy.law()).all()


def test_late_rewards_are_weighted_by_their_age():
    on_time, late = (WeightedGPUCB(ROUGH, horizon=100, discount=0.9, seed=0) for _ in range(2))
    first = [policy.ask(allowed=[5]) for policy in (on_time, late)]
    on_time.tell(first[0].id, 0.8)
    for policy in (on_time, late):
        for arm in (1, 2, 3):
            policy.tell(policy.ask(allowed=[arm]).id, 0.1)
    late.tell(first[1].id, 0.8)
    np.testing.assert_allclose(on_time.estimate(), late.estimate(), atol=1e-12)
    np.testing.assert_allclose(on_time._weights, late._weights, atol=1e-12)


def test_masks_take_the_best_allowed_arm():
    policy = GPUCB(ROUGH, horizon=100)
    for arm, reward in ((3, 0.9), (4, 0.7), (5, -0.9)):
        for _ in range(10):
            policy.tell(policy.ask(allowed=[arm]).id, reward)
    index = policy._index()
    allowed = [4, 5, 9]
    choice = policy.ask(allowed=allowed)
    assert index[choice.arm] == index[allowed].max()
    assert choice.probability == 1.0


def test_ties_are_broken_by_the_draw():
    first = {GPUCB(ROUGH, horizon=10, seed=seed).ask().arm for seed in range(40)}
    assert len(first) > 10


def test_sizes_come_from_the_variation_by_default():
    policy = SlidingWindowGPUCB(ROUGH, horizon=5000, variation=2.0)
    assert policy.window is None
    policy.law()
    gain = 0.5 * db.information_gain(ROUGH, horizon=5000, sigma=policy.ridge)
    assert policy.window == forgetting.kernel_window(horizon=5000, variation=2.0, gain=gain)
    linear = SlidingWindowLinUCB(ROUGH, horizon=5000, variation=2.0)
    linear.law()
    assert linear.window == forgetting.linear_window(horizon=5000, variation=2.0, dimension=8)


@pytest.mark.parametrize(
    ("build", "wrong"),
    [
        (GPUCB, {"ridge": 0}),
        (GPUCB, {"ridge": float("nan")}),
        (GPUCB, {"scale": -1}),
        (GPUCB, {"failure_probability": 1.0}),
        (GPUCB, {"beta": "best"}),
        (GPUCB, {"noise": "loud"}),
        (SlidingWindowGPUCB, {"window": 0}),
        (RestartGPUCB, {"period": 2.5}),
        (WeightedGPUCB, {"discount": 1.01}),
        (WeightedGPUCB, {"width": "three"}),
        (SlidingWindowGPUCB, {"variation": -1}),
    ],
)
def test_wrong_settings_are_refused(build, wrong):
    with pytest.raises(InputError):
        build(ROUGH, horizon=100, **wrong)
