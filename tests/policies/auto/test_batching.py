"""Rewards taken in at once against the same rewards one after the other.

Rewards that wait, against a twin that learns each at once: what is believed in the end is the same.
"""

import copy

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given as using
from hypothesis import settings
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits import ArmSet
from driftbandits.policies.auto import policy as policy_module
from driftbandits.policies.auto.batching import (
    LONGEST_GAP,
    MOST_DOUBTED,
    MOST_SAID,
    MOST_WAITING,
    NOISE_SAID,
    RewardBatch,
    observe_all,
)
from driftbandits.policies.auto.beliefs import LEAST_VARIANCE, NOISE_MEMORY, TERMS_GATHERED, Beliefs, moments
from driftbandits.policies.auto.hypotheses import Priors
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.samples import Samples
from driftbandits.policies.auto.successes import RateUnits
from tests.policies.auto.reference import WHITE_ALONE, line, plane

ARMS = {"arms": line(), "features": plane()}
RATES = (0.0, 1e-4, 1e-2, 0.1)


def some_beliefs(arms, *, seed=0, known_noise=None):
    """Hypotheses of two priors that have learned a little, one of them wider and one doubted."""
    priors = Priors(arms, auto=False, rank=100)
    beliefs = Beliefs(priors, 16, known_noise=known_noise)
    for kind in range(priors.count):
        for rate in RATES:
            beliefs.write(beliefs.count, kind=kind, birth=0, rate=rate, noise=beliefs.first_noise)
    rng = np.random.default_rng(seed)
    for _ in range(7):
        beliefs.pass_time(int(rng.integers(1, 4)))
        beliefs.observe(beliefs.forecast(int(rng.integers(len(arms)))), float(0.3 * rng.standard_normal()))
    beliefs.copy(0, beliefs.count, birth=5, breadth=0.3, level=0.0, origin=2)
    beliefs.copy(0, beliefs.count, birth=5, breadth=0.0, level=1.0, origin=3)
    beliefs.doubt(beliefs.count - 1, 2)
    return beliefs


def one_by_one(beliefs, arms, passed, rewards):
    """The slow road; gives the log likelihoods."""
    likelihoods = []
    for arm, rounds, reward in zip(arms.tolist(), passed.tolist(), rewards.tolist(), strict=True):
        beliefs.pass_time(rounds)
        likelihoods.append(beliefs.observe(beliefs.forecast(arm), reward).likelihood)
    return np.array(likelihoods).T


def agree(mine, other, *, atol):
    n = other.count
    np.testing.assert_allclose(mine.mean[:n], other.mean[:n], atol=atol)
    for row in range(n):
        np.testing.assert_allclose(mine.covariance(row), other.covariance(row), atol=atol)
    assert mine.gathered <= other.gathered


def rewards_of(seed, arms, count, distinct):
    """Rewards of few arms, now and then a wild one, with gaps between them."""
    rng = np.random.default_rng(seed)
    offered = rng.choice(len(arms), size=min(distinct, len(arms)), replace=False)
    rewards = 0.3 * rng.standard_normal(count) + np.where(rng.random(count) < 0.1, 3.0, 0.0)
    return rng.choice(offered, count), rng.integers(1, 6, count), rewards


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
@using(seed=st.integers(0, 10**6), count=st.integers(1, 16), distinct=st.integers(1, 6))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_at_once_is_one_by_one(arms, seed, count, distinct):
    """Mean, covariance and likelihoods, wild rewards among them, where the noise is known: to rounding."""
    beliefs = some_beliefs(arms, seed=seed, known_noise=0.02)
    twin = copy.deepcopy(beliefs)
    told = rewards_of(seed, arms, count, distinct)
    expected = one_by_one(twin, *told)
    np.testing.assert_allclose(observe_all(beliefs, *told).likelihood, expected, atol=1e-8)
    agree(beliefs, twin, atol=1e-9)


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_a_single_reward_is_a_single_reward_where_the_noise_is_learned_too(arms):
    beliefs = some_beliefs(arms)
    twin = copy.deepcopy(beliefs)
    told = rewards_of(3, arms, 1, 1)
    np.testing.assert_allclose(observe_all(beliefs, *told).likelihood, one_by_one(twin, *told), atol=1e-10)
    agree(beliefs, twin, atol=1e-11)
    np.testing.assert_allclose(beliefs.noise, twin.noise, rtol=1e-12)
    assert beliefs.told == twin.told


@pytest.mark.parametrize("told", [64, 400])
def test_the_noise_that_is_learned_is_nearly_that_of_one_by_one(told):
    """It stands still meanwhile; no more rewards wait than leave its estimate within two hundredths."""
    beliefs = some_beliefs(ARMS["arms"])
    beliefs.told = float(told)
    twin = copy.deepcopy(beliefs)
    count = min(int(MOST_SAID * told / NOISE_SAID), MOST_WAITING)
    rewards = np.full(count, 3), np.ones(count, dtype=np.int64), 0.1 * np.random.default_rng(5).standard_normal(count)
    one_by_one(twin, *rewards)
    observe_all(beliefs, *rewards)
    np.testing.assert_allclose(beliefs.noise, twin.noise, rtol=0.02)
    assert beliefs.told == twin.told


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_successes_and_failures_are_weighed_as_chances(arms):
    units = RateUnits(0.1, np.full(len(arms), 1.5))
    beliefs = some_beliefs(arms)
    beliefs.units, beliefs.noise[:] = units, units.noise
    twin = copy.deepcopy(beliefs)
    rng = np.random.default_rng(1)
    coordinates = np.array([units.coordinate(float(success)) for success in rng.random(12) < 0.2])
    told = rng.integers(0, 3, 12), np.ones(12, dtype=np.int64), coordinates
    np.testing.assert_allclose(observe_all(beliefs, *told).likelihood, one_by_one(twin, *told), atol=1e-8)
    agree(beliefs, twin, atol=1e-8)
    np.testing.assert_array_equal(beliefs.noise, twin.noise)


def test_many_rewards_of_one_arm_are_few_terms():
    beliefs = some_beliefs(ARMS["arms"])
    before = beliefs.gathered
    observe_all(beliefs, np.full(16, 4), np.ones(16, dtype=np.int64), np.zeros(16))
    assert beliefs.gathered == before + 2


def test_terms_for_which_there_is_no_room_multiply_out_the_others():
    beliefs = some_beliefs(ARMS["arms"], known_noise=0.02)
    twin = copy.deepcopy(beliefs)
    for seed in range(8):
        told = rewards_of(seed, ARMS["arms"], 16, 10)
        one_by_one(twin, *told)
        observe_all(beliefs, *told)
        assert beliefs.gathered <= TERMS_GATHERED
    for row in range(beliefs.count):
        np.testing.assert_allclose(beliefs.covariance(row), twin.covariance(row), atol=1e-8)


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
@pytest.mark.parametrize("row", range(10))
def test_what_one_hypothesis_expects_is_what_the_forecast_says(arms, row):
    beliefs = some_beliefs(arms)
    forecast = beliefs.forecast(3)
    mean, variance = beliefs.expects(row, 3)
    assert mean == pytest.approx(forecast.mean[row], abs=1e-12)
    assert variance == pytest.approx(max(forecast.variance[row], LEAST_VARIANCE), abs=1e-10)


def test_likelihoods_count_as_one_by_one():
    """A reward counts by at most four nats against a hypothesis, however many are weighed together."""
    beliefs = some_beliefs(ARMS["arms"])
    likelihoods = np.random.default_rng(0).normal(0.0, 6.0, (beliefs.count, 9))
    at_once, singly = Mixture(beliefs), Mixture(beliefs)
    for mixture in (at_once, singly):
        mixture.log_weight[: beliefs.count] = np.linspace(-1.0, 0.0, beliefs.count)
    at_once.update_all(likelihoods)
    for likelihood in likelihoods.T:
        singly.update(likelihood)
    np.testing.assert_allclose(at_once.weights(), singly.weights(), rtol=1e-10)


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_samples_moved_at_once_have_the_moments_of_the_posterior(arms):
    """4,000 samples of two hypotheses; means and covariances within five standard errors, which 1e-3 of seeds miss."""
    beliefs = some_beliefs(arms, known_noise=0.02)
    samples = Samples(beliefs, 4000, np.random.default_rng(7))
    weights = np.zeros(beliefs.count)
    weights[[0, 8]] = 0.5
    samples.choose(weights, anew=True)
    told = rewards_of(11, arms, 12, 3)
    samples.follow_all(told[0], observe_all(beliefs, *told))
    assert sorted(samples.rows.tolist()) == [0, 8]
    for row, values in zip(samples.rows.tolist(), samples.values, strict=True):
        mean, variance = beliefs.reading(row)
        np.testing.assert_allclose(values[0], mean, atol=1e-9)
        error = np.sqrt(variance / 4000)
        assert (np.abs(values[1:].mean(axis=0) - mean) < 5.0 * error + 1e-6).all()
        assert (np.abs(values[1:].var(axis=0) - variance) < 5.0 * np.sqrt(2.0 / 4000) * variance + 1e-6).all()


def test_two_copies_of_an_arm_are_taken_in_like_one():
    """Arms that are alike to the last bit make the covariance of the rewards singular but for the noise."""
    arms = ArmSet([[0.0], [0.0], [1.0]])
    beliefs = some_beliefs(arms, known_noise=0.02)
    twin = copy.deepcopy(beliefs)
    told = np.array([0, 1, 0, 1, 2]), np.ones(5, dtype=np.int64), np.array([0.1, 0.2, 0.1, 0.0, -0.3])
    one_by_one(twin, *told)
    observe_all(beliefs, *told)
    agree(beliefs, twin, atol=1e-9)


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
@pytest.mark.parametrize("distinct", [1, 3])
def test_rewards_so_far_apart_that_all_is_forgotten_between_them(arms, distinct):
    """A hypothesis that forgets a tenth per round has 1e-94 of its covariance left then."""
    beliefs = some_beliefs(arms, known_noise=0.02)
    twin = copy.deepcopy(beliefs)
    numbers, _, rewards = rewards_of(2, arms, MOST_WAITING, distinct)
    told = numbers, np.full(MOST_WAITING, LONGEST_GAP), rewards
    expected = one_by_one(twin, *told)
    np.testing.assert_allclose(observe_all(beliefs, *told).likelihood, expected, atol=1e-7)
    agree(beliefs, twin, atol=1e-8)


POINTS = np.linspace(0.0, 1.0, 12)[:, None]
MEANS = 0.6 * np.exp(-np.square((POINTS[:, 0] - 0.3) / 0.2))


class White(Mixture):
    """All noise is new: otherwise no reward waits until moods are ruled out."""

    def __init__(self, beliefs):
        super().__init__(beliefs, models=WHITE_ALONE)


@pytest.fixture
def white(monkeypatch):
    monkeypatch.setattr(policy_module, "Mixture", White)


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
        waited += len(policy._batch) > 0
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


def largest_difference(policy, twin):
    """Of two weights of the same hypothesis."""
    mine, other = weights_of(policy), weights_of(twin)
    return max(abs(mine.get(name, 0.0) - other.get(name, 0.0)) for name in mine.keys() | other.keys())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounds", [300, 396])
@pytest.mark.usefixtures("white")
def test_hypotheses_weigh_what_they_weigh_where_no_reward_waits(seed, rounds):
    """The noise stands still while rewards wait, so weights agree to a tenth or so only."""
    policy, twin = play_both(seed, rounds, change=398)
    assert largest_difference(policy, twin) < 0.15
    assert policy._mixture._due == pytest.approx(twin._mixture._due, rel=0.05, abs=0.01)


@pytest.mark.usefixtures("white")
def test_hypotheses_weigh_so_just_after_a_change_too():
    """What had been due for births decides then. Who is surprised by a reward at the very limit may differ: 8 of 16."""
    agree = []
    for seed in range(12):
        policy, twin = play_both(seed, 404, change=398)
        agree.append(largest_difference(policy, twin) < 0.15)
        assert policy._mixture._due == pytest.approx(twin._mixture._due, rel=0.05, abs=0.01)
    assert sum(agree) >= 5


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("white")
def test_what_is_believed_of_the_arms_is_what_is_believed_where_no_reward_waits(seed):
    """By all hypotheses together: of two that are equally likely, either may lead."""
    policy, twin = play_both(seed, 400, change=200)
    found = [moments(one._beliefs, one._mixture.weights()) for one in (policy, twin)]
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, atol=0.06)


@pytest.mark.parametrize(
    ("doubt", "most"),
    [(0.0, MOST_WAITING), (MOST_DOUBTED / 100, MOST_WAITING), (MOST_DOUBTED / 5.5, 5), (MOST_DOUBTED, 1), (1.0, 1)],
)
def test_the_more_is_in_doubt_the_fewer_rewards_wait(doubt, most):
    together = RewardBatch()
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
    while len(policy._batch) < 4:
        choice = policy.ask()
        policy.tell(choice, float(0.5 - grid[choice.arm, 0] + 0.1 * rng.standard_normal()))
    told = min(policy._beliefs.told + len(policy._batch), NOISE_MEMORY)
    wider = policy.with_arms(policy.arms.extended(1.0 + np.linspace(0.001, 0.1, 100)[:, None]))
    assert len(policy._batch) >= 4
    assert not wider._standing.everyone
    assert len(wider._batch) == 0
    assert wider._beliefs.told == told
    for _ in range(5):
        wider.tell(wider.ask(), 0.1)
    assert wider.law().sum() == pytest.approx(1.0)
