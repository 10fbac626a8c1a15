"""The policies' estimate is on average M diag(P) r, by simulation. Seeds are fixed everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import OPKB, AdaOPKB, ArmSet, Constants, Variant, simulate
from driftbandits.environments import Piecewise
from driftbandits.environments.noise import TruncatedGaussianNoise, UniformNoise
from tests.design.expected import expected_estimate

pytestmark = pytest.mark.statistical
ERRORS = 5.0  # standard errors allowed; two-sided chance 6e-7 per arm


def line(size=12):
    return ArmSet(np.linspace(0, 1, size)[:, None], kernel=RBF(0.15))


def reward_function(arms, seed):
    """Means in the span of the features, largest 0.8."""
    means = arms.features @ np.random.default_rng(seed).standard_normal(arms.rank)
    return means * 0.8 / np.abs(means).max()


def columns(arms, law, regulariser):
    """phi(x)' S(P)^-1 phi(x_t) by kernel matrices, shape (N, N)."""
    kernel = arms.features @ arms.features.T
    return kernel @ np.linalg.inv(law[:, None] * kernel + regulariser * np.eye(len(arms)))


def variance(arms, law, regulariser, means, second):
    """Variance of one round's estimate of every arm; `second` is E y^2 of every arm."""
    matrix = columns(arms, law, regulariser)
    return (matrix**2) @ (law * second) - (matrix @ (law * means)) ** 2


@pytest.mark.parametrize("sigma", [1000.0, 1.0, 1e-3])
def test_mean_under_a_fixed_law_is_shrunk_by_the_regulariser(sigma):
    """One block of 200,000 rounds under pi: the estimate is M diag(P) r within 5 standard errors, arm by arm.

    36 comparisons: a wrong alarm with probability below 3e-5. sigma = 1,000 shrinks visibly, sigma = 1e-3 not at all:
    there the estimate meets r itself, so the estimate is unbiased as sigma -> 0.
    """
    arms, rounds = line(), 200_000
    means = reward_function(arms, 1)
    world = Piecewise(arms, [means], horizon=rounds, noise=UniformNoise(0.2))
    policy = OPKB(arms, horizon=rounds, seed=3, constants=Constants(sigma=sigma, c3=1e5))
    law = np.array(policy.law())
    trace = simulate(policy, world, seed=4)
    assert (trace.law == 0).all()
    regulariser = sigma / rounds
    expected = expected_estimate(arms.features, law, regulariser, means)
    np.testing.assert_allclose(expected, columns(arms, law, regulariser) @ (law * means), rtol=1e-6, atol=1e-9)
    error = np.sqrt(variance(arms, law, regulariser, means, means**2 + 0.2**2 / 3) / rounds)
    assert (np.abs(policy.estimate() - expected) <= ERRORS * error).all()
    shrunk = np.abs(expected - means).max()
    if sigma == 1000.0:
        assert shrunk > 10 * error.max()  # the test tells M diag(P) r from r
    if sigma == 1e-3:
        assert shrunk < 1e-3 * error.max()
        assert (np.abs(policy.estimate() - means) <= ERRORS * error).all()


@pytest.mark.parametrize("kind", [OPKB, AdaOPKB])
def test_mean_over_the_laws_of_a_whole_run(kind):
    """Blocks, and for ADA-OPKB replays: estimate less the mean of M(P_t) diag(P_t) r over rounds is a martingale.

    12 arms, 5 standard errors, 2 cases: a wrong alarm with probability below 2e-5 (normal tails).
    """
    arms, rounds = line(), 30_000
    means, noise = reward_function(arms, 2), TruncatedGaussianNoise(0.1)
    world = Piecewise(arms, [means], horizon=rounds, noise=noise)
    constants = Constants(sigma=100.0, c0=1e6, c1=0.5, c2=0.5, c3=0.02, c4=0.3)
    policy = kind(arms, horizon=rounds, seed=8, constants=constants, variant=Variant.paper())
    laws: dict[int, np.ndarray] = {}
    now = 0
    counts = np.zeros(64)
    while now < rounds:
        count = min(policy.steady_rounds(), rounds - now)
        law = np.array(policy.law())
        batch = policy.ask(size=count)
        laws[int(batch.laws[0])] = law
        counts[batch.laws[0]] += count
        policy.tell(batch.ids, world.rewards(now, batch.arms, 9))
        now += count
    assert policy.changes == ()
    assert len(laws) >= 8
    regulariser = 100.0 / rounds
    # |y| <= 1 keeps nearly all of the normal noise: its variance is at most 0.1^2.
    second = means**2 + 0.1**2
    expected = sum(counts[m] * expected_estimate(arms.features, law, regulariser, means) for m, law in laws.items())
    total = sum(counts[m] * variance(arms, law, regulariser, means, second) for m, law in laws.items())
    deviation = (policy.estimate() - expected / rounds) / (np.sqrt(total) / rounds)
    assert (np.abs(deviation) <= ERRORS).all()
    assert np.abs(deviation).max() > 0.1  # the errors are not grossly too large
