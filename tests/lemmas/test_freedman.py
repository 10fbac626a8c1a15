"""Freedman's inequality as the paper states it, and its form for sub-Gaussian noise, by exact probabilities.

Both say that a martingale's sum exceeds xi V + log(1 / delta) / xi with probability delta (2 delta) at most. Their
proofs rest on E exp(xi X - xi^2 E X^2) <= 1 for one step, which is a finite sum here. Two-valued steps make the sum of
n of them a binomial variable, so its tail is known to all digits: no sampling, no error rate, but in the one test that
says so.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from driftbandits import solve_design

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)
shares = st.floats(0.001, 0.999)


def two_valued(p):
    """Mean 0: the upper value 1 - p with probability p, else -p; its largest value and variance."""
    return 1.0 - p, p * (1.0 - p)


def exponential_moment(p, xi, *, cap=math.inf):
    """E exp(xi min(X, cap) - xi^2 E X^2) of the two-valued variable."""
    upper, variance = two_valued(p)
    moment = p * math.exp(xi * min(upper, cap)) + (1 - p) * math.exp(-xi * p)
    return moment * math.exp(-(xi**2) * variance)


def exceeds(p, steps, xi, delta):
    """Probability that the sum of `steps` two-valued variables exceeds the bound."""
    bound = xi * steps * p * (1 - p) + math.log(1 / delta) / xi
    # the sum is (number of upper values) - steps p
    return float(binom.sf(math.floor(bound + steps * p + 1e-12), steps, p))


# --- Freedman: X <= R, xi <= 1 / R ----------------------------------------------------------------------------------


@PROPERTY
@given(p=shares, share=st.floats(0.01, 1.0), steps=st.integers(1, 5000), log_delta=st.floats(-30.0, -0.01))
def test_freedman_for_two_valued_steps(p, share, steps, log_delta):
    """Lemma "(Freedman)": X_i <= R, xi in [0, 1/R], then sum X_i <= xi V + log(1 / delta) / xi but for delta."""
    delta, xi = math.exp(log_delta), share / two_valued(p)[0]
    assert exponential_moment(p, xi) <= 1.0 + 1e-12
    assert exceeds(p, steps, xi, delta) <= delta * (1 + 1e-9)


def test_freedman_needs_xi_below_one_over_the_range():
    """With xi = 4 / R rare large steps break both the step of the proof and the statement."""
    p, steps, delta = 0.001, 1_000, math.exp(-20)
    upper = two_valued(p)[0]
    assert exponential_moment(p, 4.0 / upper) > 1.0
    assert exceeds(p, steps, 4.0 / upper, delta) > 10 * delta
    assert exceeds(p, steps, 1.0 / upper, delta) <= delta


@PROPERTY
@given(seed=st.integers(0, 2**32 - 1), arms=st.integers(1, 10), rank=st.integers(1, 5), block=st.integers(0, 12))
def test_one_round_of_ips_keeps_the_step_of_the_proof(seed, arms, rank, block):
    """Lemma on the concentration of reward estimates: z = R_t(x) - E R_t(x), xi_j = mu_j / (4 gamma), for all arms x.

    P = (1 - mu_j) Q + mu_j pi(X), rewards of -1 and 1 with mean r, ||r||_H <= 1: sums over arms and both rewards.
    """
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((arms, rank))
    features /= np.linalg.norm(features, axis=1).max()
    regulariser, mu = 10.0 ** rng.uniform(-4, 0), 0.5 * 2.0 ** (-block / 2)
    design = solve_design(features, regulariser=regulariser)
    gamma = design.log_det - rank * math.log(regulariser) + design.gap
    law = (1 - mu) * rng.dirichlet(np.full(arms, 0.2)) + mu * design.probabilities
    theta = rng.standard_normal(rank)
    means = features @ (theta / np.linalg.norm(theta))

    information = features.T @ (law[:, None] * features) + regulariser * np.eye(rank)
    weights = features @ np.linalg.solve(information, features.T)  # of the reward of arm a for arm x, [x, a]
    deviations = np.stack([weights, -weights]) - (weights @ (law * means))[None, :, None]
    chances = law * np.stack([(1 + means) / 2, (1 - means) / 2])[:, None, :]
    leverage, xi = weights.diagonal(), mu / (4 * gamma)

    assert np.abs(deviations[:, :, law > 0]).max() <= 2 * gamma / mu * (1 + 1e-6)  # R of the proof
    second = (chances * deviations**2).sum(axis=(0, 2))
    assert (second <= leverage * (1 + 1e-8) + 1e-9).all()
    for sign in (1.0, -1.0):
        moments = (chances * np.exp(sign * xi * deviations)).sum(axis=(0, 2))
        assert (moments <= np.exp(xi**2 * second) * (1 + 1e-9)).all()


# --- the form for sub-Gaussian steps: probability 1 - 2 delta -------------------------------------------------------


def proxy(p):
    """Smallest sigma for which the two-valued variable is sub-Gaussian (Kearns and Saul 1998)."""
    if abs(p - 0.5) < 1e-6:
        return 0.5
    return math.sqrt((1 - 2 * p) / (2 * math.log((1 - p) / p)))


@PROPERTY
@given(p=shares, share=st.floats(0.01, 1.0), steps=st.integers(1, 5000), log_delta=st.floats(-20.0, -0.01))
def test_modified_freedman_for_two_valued_steps(p, share, steps, log_delta):
    """Lemma with "X_i are sigma-subgaussian", xi <= 1 / sqrt(2 sigma^2 log(n / delta)): fails in 2 delta at most.

    Skewed variables, whose variance is far below sigma^2: V has the variance, so the lemma says more than Hoeffding.
    """
    delta = math.exp(log_delta)
    largest = proxy(p) * math.sqrt(2 * math.log(steps / delta))
    assume(largest > 0.0)
    xi = share / largest
    assert exponential_moment(p, xi, cap=largest) <= 1.0 + 1e-12  # the proof's step, on min(X, B)
    assert exceeds(p, steps, xi, delta) <= 2 * delta * (1 + 1e-9)


@PROPERTY
@given(
    sd=st.floats(0.01, 10.0), share=st.floats(0.01, 1.0), steps=st.integers(1, 10**6), log_delta=st.floats(-20, -0.01)
)
def test_modified_freedman_for_normal_steps(sd, share, steps, log_delta):
    """The same for normal steps, where the sum is normal; and the truncation: all steps below B but for delta."""
    delta = math.exp(log_delta)
    largest = sd * math.sqrt(2 * math.log(steps / delta))
    assume(largest > 0.0)
    xi = share / largest
    bound = xi * steps * sd**2 + math.log(1 / delta) / xi
    assert norm.sf(bound / (sd * math.sqrt(steps))) <= 2 * delta
    assert -math.expm1(steps * norm.logcdf(largest / sd)) <= delta * (1 + 1e-9)
    # E exp(xi min(X, B)) in closed form
    z, s = largest / sd, xi * sd
    moment = math.exp(s**2 / 2) * norm.cdf(z - s) + math.exp(xi * largest) * norm.sf(z)
    assert moment <= math.exp(s**2) * (1 + 1e-12)


@pytest.mark.statistical
def test_modified_freedman_for_a_martingale_that_reacts():
    """Steps whose size depends on the sum so far, sigma-sub-Gaussian throughout, V as it came out on each path.

    20,000 paths of 200 steps, delta = 0.05: at most 2 delta = 0.1 of them may exceed the bound, and 0.11 would be 4.7
    standard errors above that, a wrong alarm in 2e-6 of cases. A quarter of the bound is exceeded in many.
    """
    rng = np.random.default_rng(0)
    paths, steps, sigma, delta = 20_000, 200, 1.0, 0.05
    xi = 1.0 / math.sqrt(2 * sigma**2 * math.log(steps / delta))
    total, variance = np.zeros(paths), np.zeros(paths)
    for _ in range(steps):
        size = sigma * np.where(total > 0.0, 1.0, 0.3)  # bold when ahead
        total += size * rng.choice([-1.0, 1.0], paths)
        variance += size**2
    bound = xi * variance + math.log(1 / delta) / xi
    assert (total > bound).mean() <= 0.11
    assert (total > bound / 4).mean() > 0.05
