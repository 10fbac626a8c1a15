"""A slow twin of `detection/ranks.py` and `detection/wagers.py`, from their definitions."""

import itertools

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from driftbandits.detection.wagers import CUTS, ODDS, POWERS, QUICK, SLOW, STEADY, STEP


def exact_ranks(numbers, uniforms):
    """Smoothed rank of each number among all before, counted one by one."""
    return [
        (sum(earlier > x for earlier in numbers[:t]) + u * (numbers[:t].count(x) + 1)) / (t + 1)
        for t, (x, u) in enumerate(zip(numbers, uniforms, strict=True))
    ]


def evidence_of(ranks):
    """Evidence after all ranks, and the best beginning: what was bet, times the factors from there on."""
    ranks = np.array(ranks)
    powers, begun = wealth_of(power_factors(ranks), [bet[-1] for bet in POWERS], 1, 1.0)
    whole = ranks[: len(ranks) - len(ranks) % STEP].reshape(-1, STEP)
    steady, from_steady = wealth_of(
        [density(kind, size, part).prod(axis=1) for part in (whole, 1 - whole) for kind, size, _ in STEADY],
        [weight / 2 for *_, weight in STEADY] * 2,
        STEP,
        SLOW,
    )
    return max((QUICK * powers, begun), ((1 - QUICK) * steady, from_steady))


def density(kind, size, ranks):
    """Mean density of ranks between the cuts around each, if numbers rose."""
    ends = np.array([0.0, *CUTS, 1.0])
    place = np.searchsorted(ends, ranks)
    if kind == "odds":
        return np.where(ranks <= size, ODDS, 1) / (1 - size + ODDS * size)
    if kind == "power":
        means = [quad(lambda p: size * p ** (size - 1), *piece)[0] for piece in itertools.pairwise(ends)]
    else:
        means = [
            quad(lambda p: norm.pdf(norm.ppf(p) + size) / norm.pdf(norm.ppf(p)), *piece)[0]
            for piece in itertools.pairwise(ends)
        ]
    return (np.array(means) / np.diff(ends))[place - 1]


def power_factors(ranks):
    near = 2 * np.minimum(ranks, 1 - ranks)
    on = (ranks, 1 - ranks, near, 1 - near)
    return [k * on[kind] ** (k - 1) for kind, k, _ in POWERS]


def wealth_of(bets, weights, step, slow):
    """Mean wealth of bets on steps of so many numbers, plus what was not bet, and where the best one begins."""
    cash = 1 / (1 + np.log1p(step / slow * np.arange(len(bets[0]) + 1)))
    stakes, total, best = -np.diff(cash), cash[-1], (0.0, 0)
    for factors, weight in zip(bets, weights, strict=True):
        from_here = np.cumprod(factors[::-1])[::-1]
        total += weight * float(stakes @ from_here)
        best = max(best, (float(from_here.max(initial=0.0)), step * int(from_here.argmax()) if len(from_here) else 0))
    return total, best[1]
