"""Rewards taken in at once against the same rewards one after the other."""

import copy

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given as using
from hypothesis import settings

from driftbandits import ArmSet
from driftbandits.policies.auto.beliefs import LEAST_VARIANCE, TERMS_GATHERED, Beliefs
from driftbandits.policies.auto.joint import observe_all
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.priors import Priors
from driftbandits.policies.auto.rate_units import RateUnits
from driftbandits.policies.auto.samples import Samples
from driftbandits.policies.auto.together import LONGEST_GAP, MOST_SAID, MOST_WAITING, NOISE_SAID
from tests.policies.auto.reference import line, plane

ARMS = {"arms": line(), "features": plane()}
RATES = (0.0, 1e-4, 1e-2, 0.1)


def some_beliefs(arms, *, seed=0, known_noise=None, shrunk_beyond=3.0):
    """Hypotheses of two priors that have learned a little, one of them wider and one doubted."""
    priors = Priors(arms, auto=False, rank=100)
    beliefs = Beliefs(priors, 16, known_noise=known_noise, shrunk_beyond=shrunk_beyond)
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
