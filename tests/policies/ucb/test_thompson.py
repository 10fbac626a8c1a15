"""Thompson sampling by arm against the integral that its law is of, with weights computed from the whole history."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import driftbandits as db
from driftbandits.errors import InputError

SAMPLES = 40_000
# A share of so many samples is off by more than this in 6 of 100,000 tries.
TOLERANCE = 4.0 * 0.5 / SAMPLES**0.5
ARMS = db.ArmSet(np.arange(3.0)[:, None])


def best_of(densities):
    """The probability that each of some independent variables is the largest, by quadrature."""
    low, high = min(d.ppf(1e-9) for d in densities), max(d.ppf(1 - 1e-9) for d in densities)
    grid = np.linspace(low, high, 20_001)
    below = np.array([d.cdf(grid) for d in densities])
    shares = [
        scipy.integrate.simpson(d.pdf(grid) * np.delete(below, place, axis=0).prod(axis=0), x=grid)
        for place, d in enumerate(densities)
    ]
    return np.array(shares)


def played(policy, rounds, rewards):
    """Plays so many rounds; gives arm and reward of each."""
    history = []
    for now in range(rounds):
        choice = policy.ask()
        reward = rewards(now, choice.arm)
        policy.tell(choice, reward)
        history.append((choice.arm, reward))
    return history


def weighed(history, weights):
    """Weight and weighted sum of the rewards of every arm."""
    counts, sums = np.zeros(3), np.zeros(3)
    for (arm, reward), weight in zip(history, weights, strict=True):
        counts[arm] += weight
        sums[arm] += weight * reward
    return counts, sums


@pytest.mark.parametrize(
    ("make", "weights"),
    [
        (lambda **s: db.ThompsonSampling(ARMS, **s), lambda n: np.ones(n)),
        (lambda **s: db.ThompsonSampling(ARMS, discount=0.8, **s), lambda n: 0.8 ** np.arange(n, 0, -1.0)),
        (lambda **s: db.SlidingWindowThompson(ARMS, window=9, **s), lambda n: (np.arange(n) >= n - 9).astype(float)),
    ],
    ids=["all", "discount", "window"],
)
@pytest.mark.parametrize("prior", ["gaussian", "beta"])
def test_the_law_is_the_probability_of_being_best(make, weights, prior):
    policy = make(prior=prior, noise=0.4, samples=SAMPLES, seed=3)
    values = np.random.default_rng(0).uniform(-1.0, 1.0, 30)
    if prior == "beta":
        values = np.sign(values)
    history = played(policy, 30, lambda now, arm: float(np.clip(values[now] + 0.2 * arm, -1.0, 1.0)))
    counts, sums = weighed(history, weights(30))
    if prior == "beta":
        beliefs = [
            scipy.stats.beta(1 + (n + s) / 2, 1 + (n - s) / 2, loc=-1, scale=2)
            for n, s in zip(counts, sums, strict=True)
        ]
    else:
        beliefs = [scipy.stats.norm(s / (n + 0.16), 0.4 / (n + 0.16) ** 0.5) for n, s in zip(counts, sums, strict=True)]
    assert np.abs(policy.law() - best_of(beliefs)).max() < TOLERANCE


def test_within_a_mask_the_best_allowed_arm_is_drawn_and_the_law_is_the_same_when_asked_again():
    policy = db.ThompsonSampling(ARMS, samples=100, seed=1)
    played(policy, 20, lambda now, arm: (-0.5, 0.0, 0.5)[arm])
    law, within = policy.law(), policy.law(allowed=[0, 1])
    assert law.argmax() == 2
    assert within[2] == 0.0
    assert within[1] > 0.9
    assert policy.law().tolist() == law.tolist()


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="prior must be 'gaussian' or 'beta', got 'gamma'"):
        db.ThompsonSampling(ARMS, prior="gamma")
    with pytest.raises(InputError, match="samples"):
        db.ThompsonSampling(ARMS, samples=0)
