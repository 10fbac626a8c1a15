"""A slow twin of `detection/ranks.py` and `detection/wagers.py`, from their definitions."""

import numpy as np

from driftbandits.detection.wagers import BETS, POWERS, STEP


def exact_ranks(numbers, uniforms):
    """Smoothed rank of each number among all before, counted one by one."""
    return [
        (sum(earlier > x for earlier in numbers[:t]) + u * (numbers[:t].count(x) + 1)) / (t + 1)
        for t, (x, u) in enumerate(zip(numbers, uniforms, strict=True))
    ]


def evidence_of(ranks):
    """Evidence after all ranks, and the best beginning: what was bet, times the factors from there on."""
    ranks = np.array(ranks)
    powers = wealth_of(power_factors(ranks), [bet[-1] for bet in POWERS], 1)
    whole = ranks[: len(ranks) - len(ranks) % STEP].reshape(-1, STEP)
    shares = wealth_of(
        [
            np.where(whole <= cut, odds / (1 - cut + odds * cut), 1 / (1 - cut + odds * cut)).prod(axis=1)
            for cut, odds in BETS
        ],
        np.full(len(BETS), 1 / len(BETS)),
        STEP,
    )
    total, begun = max(powers, shares)
    return total / 2, begun


def power_factors(ranks):
    near = 2 * np.minimum(ranks, 1 - ranks)
    on = (ranks, 1 - ranks, near, 1 - near)
    return [k * on[kind] ** (k - 1) for kind, k, _ in POWERS]


def wealth_of(bets, weights, step):
    """Mean wealth of bets on steps of so many numbers, plus what was not bet, and where the best one begins."""
    cash = 1 / (1 + np.log1p(step * np.arange(len(bets[0]) + 1)))
    stakes, total, best = -np.diff(cash), cash[-1], (0.0, 0)
    for factors, weight in zip(bets, weights, strict=True):
        from_here = np.cumprod(factors[::-1])[::-1]
        total += weight * float(stakes @ from_here)
        best = max(best, (float(from_here.max(initial=0.0)), step * int(from_here.argmax()) if len(from_here) else 0))
    return total, best[1]
