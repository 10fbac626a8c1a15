"""Thompson sampling on a kernel against Gaussian posteriors computed from the whole history."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import KernelError
from driftbandits.policies.rivals.thompson import correlated

SAMPLES = 40_000
# Shares of so many samples here and so many there differ by more than this in 6 of 100,000 tries.
TOLERANCE = 4.0 * (2.0 * 0.25 / SAMPLES) ** 0.5
RIDGE, ROUNDS = 0.3, 12
POINTS = np.random.default_rng(5).uniform(-1.0, 1.0, (9, 2))
REWARDS = np.random.default_rng(6).uniform(-0.8, 0.8, ROUNDS)
DENSE = db.ArmSet(POINTS, kernel={"name": "rbf", "length_scale": 0.9})
FEW = db.ArmSet.from_features(POINTS / 2)  # of rank 2 for 9 arms: the posterior is kept in their coordinates


def regression(arms, history, weights, squared):
    """Mean and covariance from V = sum w f f' + lambda I and V2, in dense algebra."""
    features = arms.features
    rows = features[[arm for arm, _ in history]]
    first = rows.T @ (weights[:, None] * rows) + RIDGE * np.eye(rows.shape[1])
    second = rows.T @ (squared[:, None] * rows) + RIDGE * np.eye(rows.shape[1])
    inverse = np.linalg.inv(first)
    mean = features @ inverse @ rows.T @ (weights * np.array([reward for _, reward in history]))
    return mean, RIDGE * features @ inverse @ second @ inverse @ features.T


def drifting(arms, history, rate):
    """The next round's posterior of f with covariance k(a, b) (1 - rate)^(|s - t| / 2), by the textbook's formula."""
    kernel, played = arms.features @ arms.features.T, np.array([arm for arm, _ in history])
    rounds = np.arange(len(history))
    keep = (1.0 - rate) ** 0.5
    told = kernel[np.ix_(played, played)] * keep ** np.abs(rounds[:, None] - rounds)
    cross = kernel[:, played] * keep ** (len(history) - rounds)
    solved = np.linalg.solve(told + RIDGE * np.eye(len(history)), cross.T).T
    return solved @ np.array([reward for _, reward in history]), kernel - solved @ cross.T


CASES = {
    "GP": (db.GPThompson, {}, DENSE, lambda h: regression(DENSE, h, np.ones(ROUNDS), np.ones(ROUNDS))),
    "GP, low rank": (db.GPThompson, {}, FEW, lambda h: regression(FEW, h, np.ones(ROUNDS), np.ones(ROUNDS))),
    "linear": (db.LinThompson, {}, FEW, lambda h: regression(FEW, h, np.ones(ROUNDS), np.ones(ROUNDS))),
    "weighted": (
        db.WeightedGPThompson,
        {"discount": 0.8},
        DENSE,
        lambda h: regression(DENSE, h, 0.8 ** np.arange(ROUNDS, 0, -1.0), 0.8 ** np.arange(ROUNDS, 0, -1.0)),
    ),
    "two matrices": (
        db.DiscountedLinThompson,
        {"discount": 0.8},
        FEW,
        lambda h: regression(FEW, h, 0.8 ** np.arange(ROUNDS - 1, -1, -1.0), 0.64 ** np.arange(ROUNDS - 1, -1, -1.0)),
    ),
    "drifting": (db.TimeVaryingGPThompson, {"rate": 0.05}, DENSE, lambda h: drifting(DENSE, h, 0.05)),
    "drifting, low rank": (db.TimeVaryingGPThompson, {"rate": 0.05}, FEW, lambda h: drifting(FEW, h, 0.05)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_law_is_that_of_the_joint_posterior(case):
    kind, settings, arms, posterior = CASES[case]
    policy = kind(arms, ridge=RIDGE, beta=0.7, samples=SAMPLES, seed=2, **settings)
    history = []
    for reward in REWARDS:
        choice = policy.ask()
        policy.tell(choice, reward)
        history.append((choice.arm, reward))
    mean, covariance = posterior(history)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = mean + 0.7 * np.random.default_rng(9).standard_normal((SAMPLES, len(mean))) @ root.T
    shares = np.bincount(drawn.argmax(axis=1), minlength=len(mean)) / SAMPLES
    assert policy.estimate() == pytest.approx(mean, abs=1e-8)
    assert np.abs(policy.law() - shares).max() < TOLERANCE


def test_arms_that_are_alike_can_be_sampled_and_what_is_no_covariance_is_refused():
    alike = db.ArmSet(np.zeros((3, 1)), kernel={"name": "rbf", "length_scale": 1.0})
    assert db.GPThompson(alike, seed=0).law().sum() == pytest.approx(1.0)
    with pytest.raises(KernelError, match="its covariance is not one"):
        correlated(np.random.default_rng(0), 1, -np.eye(2), None)
