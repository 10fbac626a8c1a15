"""The remark on regression-based estimates, measured: under drift they are off by sqrt(d) V, IPS estimates by nothing.

The arms are the d unit vectors and a Hadamard basis, all of norm 1. No arm's mean reward ever changes by more than V,
and it changes once. In the first half of the rounds the laws favour the unit vectors on which the sum of the change
weighed with the first Hadamard vector h is largest, in the second half the others:

    regression   theta-hat = (sum_t S(P_t))^-1 sum_t S(P_t) theta_t: the changed reward of one half of the unit vectors
                 and the unchanged one of the other, which add up for h
    IPS          the mean of S(P_t)^-1 S(P_t) theta_t: the mean reward of the interval, whatever the laws

These are what the estimates are with ever more rounds; a run with noise follows.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from driftbandits.design.blocks import Sums, ips_estimate, law_factor
from tests.design.expected import expected_estimate

DIMENSIONS = (4, 16, 64, 256)
MIXING = 0.1  # the share of the uniform design in every law
V = 0.01
REGULARISER = 1e-9


def trap(dimension):
    """Features (2 d, r), the laws of both halves, the mean rewards of both halves."""
    basis = scipy.linalg.hadamard(dimension) / np.sqrt(dimension)
    features = np.vstack([np.eye(dimension), basis])
    bent = np.array([1.0])
    while len(bent) < dimension:  # a change of size V at every unit vector and at every Hadamard vector
        bent = np.kron(bent, [1.0, 1.0, 1.0, -1.0])
    change = V * bent
    aligned = change * basis[0] > 0
    laws = []
    for favoured in (aligned, ~aligned):
        law = np.zeros(2 * dimension)
        law[:dimension] = (1 - MIXING) * favoured / favoured.sum() + MIXING / dimension
        laws.append(law)
    later = np.zeros(dimension)
    return features, laws, [features @ (later + change), features @ later]


def regression(features, laws, means):
    """The limit of ridge regression on both halves."""
    shares = np.array(laws) / 2
    information = features.T @ (shares.sum(axis=0)[:, None] * features) + REGULARISER * np.eye(features.shape[1])
    seen = sum(features.T @ (law * mean) for law, mean in zip(shares, means, strict=True))
    return features @ np.linalg.solve(information, seen)


def propensities(features, laws, means):
    """The limit of the IPS estimate on both halves."""
    pairs = zip(laws, means, strict=True)
    return np.mean([expected_estimate(features, law, REGULARISER, mean) for law, mean in pairs], axis=0)


def largest_error(estimate, dimension):
    features, laws, means = trap(dimension)
    return float(np.abs(estimate(features, laws, means) - np.mean(means, axis=0)).max()) / V


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_no_arm_changes_by_more_than_the_variation(dimension):
    features, laws, (first, second) = trap(dimension)
    assert np.abs(first - second).max() == pytest.approx(V)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0)
    np.testing.assert_allclose([law.sum() for law in laws], 1.0)


def test_regression_is_off_by_the_root_of_the_dimension_times_the_variation():
    """The additional factor sqrt(d) of V in the rivals' bounds is attained up to a constant: slope 1/2 in d.

    So is the corrected bound, sqrt(d) V, kept: it cannot be improved but by a constant.
    """
    errors = np.array([largest_error(regression, dimension) for dimension in DIMENSIONS])
    slope = np.polyfit(np.log(DIMENSIONS), np.log(errors), 1)[0]
    assert 0.45 < slope < 0.6
    assert errors[-1] > 5  # times V: the bound with a constant factor, which the erratum withdrew, is false
    assert (errors <= np.sqrt(DIMENSIONS)).all()


def test_inverse_propensities_are_off_by_nothing():
    """Lemma 3 has V with the factor 1, and the mean of the estimate is that of the interval to the regulariser."""
    assert all(largest_error(propensities, dimension) < 1e-5 for dimension in DIMENSIONS)


def test_regression_is_right_where_the_laws_stay():
    """It is the drift together with the changing laws: under one law both estimates are the interval's mean."""
    features, (one, other), means = trap(64)
    mixed = (one + other) / 2
    for estimate in (regression, propensities):
        found = estimate(features, [mixed, mixed], means)
        np.testing.assert_allclose(found, np.mean(means, axis=0), atol=1e-6)


@pytest.mark.statistical
def test_the_same_in_a_run_with_noise():
    """4 x 10^8 rounds at d = 64, rewards of -1 and 1, V = 0.01: regression is off by over 2 V, IPS by less than V.

    The counts are drawn at once. V is 10 standard deviations of the IPS estimate of any arm: a wrong alarm in 1e-20.
    """
    dimension, rounds, rng = 64, 2 * 10**8, np.random.default_rng(0)
    features, laws, means = trap(dimension)
    sums, counts = [], []
    for law, mean in zip(laws, means, strict=True):
        drawn = rng.multinomial(rounds, law)
        sums.append(2.0 * rng.binomial(drawn, (1 + mean) / 2) - drawn)
        counts.append(drawn)
    truth = np.mean(means, axis=0)
    factors = [law_factor(features, law, REGULARISER) for law in laws]
    by_propensity = ips_estimate(features, factors, Sums(np.array(sums), np.array([rounds, rounds])))
    information = features.T @ (np.sum(counts, axis=0)[:, None] * features) + np.eye(dimension)
    by_regression = features @ np.linalg.solve(information, features.T @ np.sum(sums, axis=0))
    leverage = np.mean([np.square(factor.half_solve(features.T)).sum(axis=0) for factor in factors], axis=0)
    assert 10 * np.sqrt(leverage.max() / (2 * rounds)) < V  # the variance of one round is at most its leverage
    assert np.abs(by_propensity - truth).max() < V
    assert np.abs(by_regression - truth).max() > 2 * V
