"""The hypotheses against other filters and against regression on all rewards, in both kinds of coordinates."""

import copy
import functools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given as using
from hypothesis import settings
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet
from driftbandits.policies.auto.beliefs import TERMS_GATHERED, Beliefs
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, SIGNAL_VARIANCES
from driftbandits.policies.auto.successes import Tally
from driftbandits.policies.gp.posterior import ArmPosterior
from driftbandits.policies.gp.timevarying import DriftingPosterior
from tests.policies.auto import reference
from tests.policies.auto.reference import Told, exact, given, line, plane, play_in, some_rewards, take_in

NOISE = 0.02
ARMS = {"arms": line(), "features": plane()}


def same(beliefs, mean, variance):
    for mine, other in zip(beliefs.reading(0), (mean, variance), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)


def test_both_kinds_of_coordinates_are_tried():
    assert given(ARMS["arms"]).direct
    assert not given(ARMS["features"]).direct


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
@pytest.mark.parametrize("rate", [1e-4, 1e-2, 0.1, 0.7])
def test_a_drifting_hypothesis_is_the_drifting_posterior(arms, rate):
    """After each of 80 rewards, with gaps of up to 9 rounds between them."""
    priors = given(arms)
    beliefs, _ = exact(priors, (rate,), noise=NOISE)
    features = reference.root_of(reference.covariance_of(priors, 0))
    other, now = DriftingPosterior(features, ridge=NOISE, rate=rate), -1
    for item in some_rewards(len(arms), 80):
        beliefs.pass_time(item.round - now)
        other.forget(item.round - now)
        now = item.round
        take_in(beliefs, item.arm, item.reward)
        other.add(item.arm, item.reward)
        same(beliefs, other.mean(), other.variance())


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_one_that_never_forgets_is_the_posterior_of_gpucb(arms):
    priors = given(arms)
    beliefs, _ = exact(priors, (0.0,), noise=NOISE)
    other, now = ArmPosterior(reference.root_of(reference.covariance_of(priors, 0)), ridge=NOISE), -1
    for item in some_rewards(len(arms), 80):
        beliefs.pass_time(item.round - now)
        now = item.round
        take_in(beliefs, item.arm, item.reward)
        other.add(item.arm, item.reward)
        same(beliefs, other.mean, other.variance)


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
@pytest.mark.parametrize("rate", [0.0, 1e-2, 0.5])
def test_covariance_is_that_of_the_regression_on_all_rewards(arms, rate):
    priors, told = given(arms), some_rewards(len(arms), 70)
    beliefs, _ = exact(priors, (rate,), noise=NOISE)
    play_in(beliefs, told)
    mean, covariance = reference.regression(reference.covariance_of(priors, 0), told, rate=rate, noise=NOISE)
    same(beliefs, mean, covariance.diagonal())
    read = np.eye(len(arms), priors.width) if priors.rows is None else priors.rows.of(0)
    np.testing.assert_allclose(read @ beliefs.covariance(0) @ read.T, covariance, atol=1e-9)


def test_nothing_is_lost_over_a_long_silence():
    """The fading factor becomes 1e-40 and is multiplied out."""
    beliefs, _ = exact(given(line()), (0.1,), noise=NOISE)
    play_in(beliefs, some_rewards(10, 20))
    beliefs.pass_time(900)
    same(beliefs, np.zeros(10), reference.covariance_of(beliefs.priors, 0).diagonal())
    take_in(beliefs, 3, 0.5)
    mean, covariance = reference.regression(
        reference.covariance_of(beliefs.priors, 0), [Told(0, 3, 0.5)], rate=0.1, noise=NOISE
    )
    same(beliefs, mean, covariance.diagonal())


def test_multiplying_out_changes_nothing():
    beliefs, _ = exact(given(line()), (0.1,), noise=NOISE)
    play_in(beliefs, some_rewards(10, TERMS_GATHERED - 1))
    before = [part.copy() for part in beliefs.reading(0)]
    assert beliefs.gathered == TERMS_GATHERED - 1
    beliefs.flush()
    beliefs.settle()
    assert beliefs.gathered == 0
    same(beliefs, *before)


@pytest.mark.parametrize("arms", ARMS)
def test_what_is_due_is_multiplied_out_in_any_order(arms):
    """A row at a time, as they are read, or all at once: the same to the bit, also when it is saved between."""
    found = []
    for order in ((), (2, 0), (1,)):
        beliefs, _ = exact(given(ARMS[arms]), (0.0, 0.1, 0.3), noise=NOISE)  # one fades within these rounds
        play_in(beliefs, some_rewards(10, TERMS_GATHERED - 1))
        beliefs.flush()
        if not order:
            beliefs.settle()
        for row in order:
            beliefs.covariance(row)
            beliefs.expects(row, 3)
        again = copy.deepcopy(beliefs)
        again.pass_time(1)
        take_in(again, 3, 0.5)
        found.append((beliefs.export(), again.export()))
        assert beliefs.gathered == 0
    for parts in zip(*found, strict=True):
        for name in ("mean", "learned", "recent", "fade"):
            first, *others = (part[name] for part in parts)
            assert all(first.tobytes() == other.tobytes() for other in others), name


def test_those_not_able_learn_nothing():
    beliefs, _ = exact(given(line()), (0.0, 0.1), noise=NOISE)
    play_in(beliefs, some_rewards(10, 20))
    row = beliefs.count - 1
    before = [part.copy() for part in beliefs.reading(row)]
    beliefs.observe(beliefs.forecast(2), 0.9, np.arange(beliefs.count) != row)
    for mine, other in zip(beliefs.reading(row), before, strict=True):
        np.testing.assert_array_equal(mine, other)


def estimating(**settings):
    beliefs = Beliefs(given(line()), 1, **settings)
    beliefs.write(0, kind=0, birth=0, noise=0.01)
    return beliefs


def test_the_noise_is_learned():
    """1,500 rewards with noise 0.3, of which some 400 are remembered: 10 % of the deviation are 3 standard errors."""
    beliefs, rng = estimating(), np.random.default_rng(0)
    for _ in range(1500):
        arm = int(rng.integers(10))
        take_in(beliefs, arm, float(0.4 * np.sin(arm) + 0.3 * rng.standard_normal()))
    assert math.sqrt(beliefs.noise[0]) == pytest.approx(0.3, rel=0.1)


@using(st.lists(st.sampled_from([-1.0, -0.99, 0.0, 0.7, 1.0]), min_size=40, max_size=80), st.integers(0, 2**31 - 1))
@settings(deadline=None, max_examples=25)
def test_what_is_believed_of_an_arm_is_the_mean_of_its_rewards(values, seed):
    """With known noise and one hypothesis: the closed form, sum / (n + noise / prior), whatever the distribution."""
    arms = ArmSet(np.arange(2.0)[:, None], np.eye(2))
    beliefs = Beliefs(given(arms), 1, known_noise=0.5)
    beliefs.write(0, kind=0, birth=0, noise=0.5)
    rewards = np.random.default_rng(seed).permutation(values)
    for reward in rewards.tolist():
        beliefs.observe(beliefs.forecast(0), reward)
    prior = SIGNAL_VARIANCES[0] + LEVEL_VARIANCE
    assert beliefs.reading(0)[0][0] == pytest.approx(rewards.sum() / (len(rewards) + 0.5 / prior), abs=1e-9)


def test_a_copy_is_wider_by_what_was_asked():
    beliefs = Beliefs(given(line()), 2, known_noise=NOISE)
    beliefs.write(0, kind=0, birth=0, rate=0.1, noise=NOISE)
    play_in(beliefs, some_rewards(10, 20))
    beliefs.copy(0, 1, birth=7, breadth=0.5, level=0.0, origin=2)
    wider = beliefs.covariance(1) - beliefs.covariance(0)
    np.testing.assert_allclose(wider[:-1, :-1], 0.5 * reference.covariance_of(beliefs.priors, 0), atol=1e-12)
    assert beliefs.rate[1] == 0.0
    beliefs.copy(0, 1, birth=7, breadth=0.0, level=1.0, origin=3)
    wider = beliefs.covariance(1) - beliefs.covariance(0)
    np.testing.assert_allclose(wider, reference.priors_module.LEVEL_VARIANCE, atol=1e-12)


@st.composite
def problems(draw):
    """Few distinct points many times over, or a linear kernel; rewards of some arms, rounds apart."""
    kind = draw(st.sampled_from(["copies", "linear"]))
    seed, distinct = draw(st.integers(0, 2**20)), draw(st.integers(1, 4))
    points = np.random.default_rng(seed).standard_normal((distinct, 2))
    if kind == "copies":
        arms = ArmSet(np.tile(points, (5, 1)), RBF(0.7))
    else:
        arms = ArmSet(np.random.default_rng(seed).standard_normal((14, 3)), {"name": "linear"})
    gaps = draw(st.lists(st.integers(1, 6), min_size=1, max_size=40))
    played = draw(st.lists(st.integers(0, len(arms) - 1), min_size=len(gaps), max_size=len(gaps)))
    rewards = draw(st.lists(st.floats(-1, 1), min_size=len(gaps), max_size=len(gaps)))
    told = [Told(*item) for item in zip((np.cumsum(gaps) - 1).tolist(), played, rewards, strict=True)]
    return arms, told, draw(st.sampled_from([0.0, 1e-3, 0.1]))


@using(problem=problems())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_features_say_what_arms_say(problem):
    """Means, variances and likelihoods in features, in arms and by regression."""
    arms, told, rate = problem
    priors = given(arms)
    assert not priors.direct
    few, _ = exact(priors, (rate,), noise=NOISE)
    full, _ = exact(reference.in_arm_coordinates(priors), (rate,), noise=NOISE)
    for mine, other in zip(play_in(few, told), play_in(full, told), strict=True):
        np.testing.assert_allclose(mine.likelihood, other.likelihood, atol=1e-7)
    mean, covariance = reference.regression(reference.covariance_of(priors, 0), told, rate=rate, noise=NOISE)
    for beliefs in (few, full):
        same(beliefs, mean, covariance.diagonal())


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_what_is_absorbed_at_once_is_what_is_absorbed_one_by_one(arms):
    """Two priors with three hypotheses each, and enough tallies to be multiplied out."""
    tallies = [Tally(told.arm, told.reward, 0.1 + 0.01 * place) for place, told in enumerate(some_rewards(9, 40))]
    at_once, in_turn = (exact(given(arms), (0.0, 0.1, 0.01), noise=0.02)[0] for _ in range(2))
    density = np.zeros(in_turn.count)
    for tally in tallies:
        density += in_turn.absorb(*tally)
    # stacks of different heights round differently
    agree = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12)
    agree(at_once.absorb_all(tallies), density)
    assert at_once.gathered == in_turn.gathered
    for row in range(in_turn.count):
        agree(at_once.mean[row], in_turn.mean[row])
        agree(at_once.covariance(row), in_turn.covariance(row))
