"""The IPS estimate: sums against the definition, its mean, and the lemma on one round (appendix D of the paper)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits import solve_design
from driftbandits.design import information_gain
from driftbandits.design.blocks import Sums, ips_estimate, law_factor, merge
from tests.design.expected import expected_estimate

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True)

problems = st.builds(
    lambda seed, arms, rank, log_regulariser: (seed, arms, rank, 10.0**log_regulariser),
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 6),
    st.floats(-4, 1),
)


def random_features(rng, arms, rank):
    """Feature vectors with norms up to 1, one of them exactly 1."""
    features = rng.standard_normal((arms, rank))
    return features / np.linalg.norm(features, axis=1).max()


def random_law(rng, arms):
    """A law with some arms at probability 0."""
    weights = rng.exponential(size=arms) * (rng.random(arms) < 0.7)
    weights[rng.integers(arms)] += 0.1
    return weights / weights.sum()


def per_round(features, law, regulariser):
    """The definition's matrix phi(x)' S(P)^-1 phi(x_t), shape (N, N), by an explicit inverse."""
    information = sum(p * np.outer(phi, phi) for p, phi in zip(law, features, strict=True))
    return features @ np.linalg.inv(information + regulariser * np.eye(features.shape[1])) @ features.T


def leverages(features, law, regulariser):
    return np.diag(per_round(features, law, regulariser)).copy()


@PROPERTY
@given(problem=problems, laws=st.integers(1, 4), rounds=st.integers(1, 60))
def test_sums_give_the_mean_of_the_per_round_definition(problem, laws, rounds):
    seed, arms, rank, regulariser = problem
    rng = np.random.default_rng(seed)
    features = random_features(rng, arms, rank)
    played = [random_law(rng, arms) for _ in range(laws)]
    numbers = rng.integers(laws, size=rounds)
    choices = np.array([rng.choice(arms, p=played[m]) for m in numbers])
    rewards = rng.uniform(-1, 1, rounds)
    direct = np.zeros(arms)
    for m, choice, reward in zip(numbers, choices, rewards, strict=True):
        direct += per_round(features, played[m], regulariser)[:, choice] * reward
    direct /= rounds

    factors = [law_factor(features, law, regulariser) for law in played]
    sums = Sums.empty(laws, arms)
    sums.add(numbers, choices, rewards)
    scale = 1.0 / regulariser
    np.testing.assert_allclose(ips_estimate(features, factors, sums), direct, rtol=1e-8, atol=1e-10 * scale)


def test_no_reward_told_gives_zeros():
    features = np.eye(3)
    factor = law_factor(features, np.full(3, 1 / 3), 0.1)
    assert ips_estimate(features, [factor], Sums.empty(1, 3)).tolist() == [0.0, 0.0, 0.0]


def test_one_by_one_and_all_at_once_give_the_same_bits():
    rng = np.random.default_rng(0)
    laws, arms, rewards = rng.integers(3, size=500), rng.integers(4, size=500), rng.uniform(-1, 1, 500)
    together, apart = Sums.empty(3, 4), Sums.empty(3, 4)
    together.add(laws, arms, rewards)
    for k in range(500):
        apart.add(laws[k : k + 1], arms[k : k + 1], rewards[k : k + 1])
    assert together.told == apart.told == 500
    assert (together.sums == apart.sums).all()


def test_merge_adds_intervals_that_know_different_numbers_of_laws():
    first, second = Sums.empty(1, 2), Sums.empty(3, 2)
    first.add(np.array([0, 0]), np.array([0, 1]), np.array([0.5, 0.25]))
    second.add(np.array([0, 2]), np.array([1, 1]), np.array([1.0, -0.5]))
    before = [first.sums.copy(), second.sums.copy()]
    both = merge([first, second])
    assert both.told == 4
    assert both.sums.tolist() == [[0.5, 1.25], [0.0, 0.0], [0.0, -0.5]]
    assert (first.sums == before[0]).all()
    assert (second.sums == before[1]).all()


@PROPERTY
@given(problem=problems)
def test_expected_estimate_is_the_sum_over_arms_of_the_definition(problem):
    """The mean of one round's estimate is M diag(P) r, a finite sum over arms."""
    seed, arms, rank, regulariser = problem
    rng = np.random.default_rng(seed)
    features, law, means = random_features(rng, arms, rank), random_law(rng, arms), rng.uniform(-1, 1, arms)
    direct = sum(law[a] * means[a] * per_round(features, law, regulariser)[:, a] for a in range(arms))
    scale = 1.0 / regulariser
    np.testing.assert_allclose(
        expected_estimate(features, law, regulariser, means), direct, rtol=1e-8, atol=1e-10 * scale
    )


def test_published_regulariser_shrinks_by_half_and_bias_vanishes_with_sigma():
    """K = I, N = 100, sigma / T = 1e-2: pi halves every estimate. Unbiased as sigma -> 0."""
    arms, horizon = 100, 10_000
    means = np.linspace(-1, 1, arms)
    law = np.full(arms, 1 / arms)
    np.testing.assert_allclose(expected_estimate(np.eye(arms), law, 100 / horizon, means), means / 2, rtol=1e-12)
    errors = [
        np.abs(expected_estimate(np.eye(arms), law, sigma / horizon, means) - means).max() for sigma in (100, 1, 1e-2)
    ]
    # For K = I the bias of arm x is r(x) lambda / (P(x) + lambda), here r(x) sigma / (sigma + 100).
    np.testing.assert_allclose(errors, [0.5, 1 / 101, 1e-2 / 100.01], rtol=1e-9)


@pytest.mark.parametrize("sigma", [1e-1, 1e-3, 1e-5])
def test_bias_vanishes_linearly_in_sigma_on_the_span_of_the_played_arms(sigma):
    rng = np.random.default_rng(5)
    features = random_features(rng, 12, 4)
    law = np.full(12, 1 / 12)
    means = features @ rng.standard_normal(4)  # a reward function of the space
    smallest = np.linalg.eigvalsh(features.T @ (law[:, None] * features)).min()
    bias = expected_estimate(features, law, sigma / 1000, means) - means
    assert 0 < np.abs(bias).max() <= sigma / 1000 / smallest * np.linalg.norm(features, axis=1).max() * 4


# --- the lemma on one round: range, bias, variance, exactly ----------------------------------------------------------


@PROPERTY
@given(problem=problems, mixing=st.floats(0.02, 1.0), noise=st.floats(0.0, 1.0))
def test_range_bias_and_variance_of_one_round(problem, mixing, noise):
    """Lemma of appendix D for P = (1 - mu) Q + mu pi, ||r||_H <= 1, |y| <= 1: finite sums, no sampling.

    y = r + noise with mean 0, two-valued: it reaches the ends of [-1, 1] when `noise` = 1.
    """
    seed, arms, rank, regulariser = problem
    rng = np.random.default_rng(seed)
    features = random_features(rng, arms, rank)
    theta = rng.standard_normal(rank)
    means = features @ (theta / np.linalg.norm(theta))
    design = solve_design(features, regulariser=regulariser)
    gamma = design.log_det - rank * np.log(regulariser) + design.gap
    law = (1 - mixing) * random_law(rng, arms) + mixing * design.probabilities
    matrix = per_round(features, law, regulariser)
    leverage = np.diag(matrix)

    assert np.abs(matrix[:, law > 0]).max() <= (gamma + design.gap) / mixing * (1 + 1e-9)

    bias = expected_estimate(features, law, regulariser, means) - means
    assert (np.abs(bias) <= np.sqrt(regulariser * leverage) * (1 + 1e-6) + 1e-9).all()

    # Two equally likely rewards r +- s with |r| + s <= 1: second moment r^2 + s^2.
    spread = noise * (1 - np.abs(means))
    second = (matrix**2 * (law * (means**2 + spread**2))).sum(axis=1)
    variance = second - (matrix @ (law * means)) ** 2
    assert (variance <= leverage * (1 + 1e-8) + 1e-9).all()


@PROPERTY
@given(problem=problems)
def test_mean_leverage_is_at_most_the_information_gain(problem):
    """Appendix C: sum_x P(x) ||phi(x)||^2_{S(P)^-1} <= gamma for any law P, and nearly so for some."""
    seed, arms, rank, regulariser = problem
    rng = np.random.default_rng(seed)
    features = random_features(rng, arms, rank)
    gamma = information_gain(features, horizon=1.0, sigma=regulariser)
    for law in (random_law(rng, arms), np.full(arms, 1 / arms), np.eye(arms)[0]):
        mean = float(law @ leverages(features, law, regulariser))
        own = np.linalg.slogdet(np.eye(rank) + features.T @ (law[:, None] * features) / regulariser)[1]
        assert mean <= own * (1 + 1e-9) + 1e-12  # the proof's inner step
        assert own <= gamma * (1 + 2e-6) + 1e-12


@PROPERTY
@given(problem=problems, padding=st.integers(0, 3))
def test_estimates_do_not_depend_on_the_feature_map(problem, padding):
    """Appendix I: rotating the features and padding them with zeros changes neither estimate nor leverage."""
    seed, arms, rank, regulariser = problem
    rng = np.random.default_rng(seed)
    features = random_features(rng, arms, rank)
    rotation = np.linalg.qr(rng.standard_normal((rank + padding, rank + padding)))[0]
    other = np.hstack([features, np.zeros((arms, padding))]) @ rotation
    law, sums = random_law(rng, arms), Sums.empty(1, arms)
    choices = rng.choice(arms, size=30, p=law)
    sums.add(np.zeros(30, dtype=np.int64), choices, rng.uniform(-1, 1, 30))
    estimates = [ips_estimate(phi, [law_factor(phi, law, regulariser)], sums) for phi in (features, other)]
    np.testing.assert_allclose(estimates[1], estimates[0], rtol=1e-7, atol=1e-11 / regulariser)
