"""Logs for tests: small worlds, logged by a law that learns or does not."""

import numpy as np

from driftbandits.logs import Log


def moving_means(kind, rounds, arms, seed=0):
    """Mean rewards (rounds, arms) in [0, 1]: still, one switch, or drift."""
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(0.2, 0.8, (2, arms))
    share = np.linspace(0, 1, rounds)[:, None]
    if kind == "still":
        share = np.zeros_like(share)
    elif kind == "switch":
        share = (share > 0.5).astype(float)
    return (1 - share) * first + share * second


def logged(means, seed, *, learning=True, noise=0.1, **columns):
    """A log of a softmax policy: of running means if it learns, of random preferences if not."""
    rounds, arms = means.shape
    rng = np.random.default_rng([seed, 1])
    plays, sums = np.ones(arms), np.full(arms, 0.5)
    fixed = rng.dirichlet(np.full(arms, 5.0)) * 0.8 + 0.2 / arms
    uniforms, normals = rng.random(rounds), rng.normal(0, noise, rounds)
    arm, reward, probability = np.empty(rounds, int), np.empty(rounds), np.empty(rounds)
    law = fixed
    for t in range(rounds):
        if learning:
            law = np.exp(5 * sums / plays)
            law = 0.7 * law / law.sum() + 0.3 / arms
        a = min(int(np.searchsorted(np.cumsum(law), uniforms[t])), arms - 1)
        arm[t], probability[t] = a, law[a]
        reward[t] = min(max(means[t, a] + normals[t], 0.0), 1.0)
        plays[a] += 1
        sums[a] += reward[t]
    return Log(
        round=np.arange(rounds),
        arm=arm,
        reward=reward,
        probability=probability,
        names=tuple("abcdefghij"[:arms]),
        reward_range=(0.0, 1.0),
        **columns,
    )
