"""A slow twin of `detection.urn` and of `detection.wagers`, from their definitions."""

import numpy as np

from driftbandits.detection.wagers import POWERS, STEPS


def exact_ranks(numbers, ties, uniforms):
    """Smoothed rank of each pair (number, tie) among all before, counted one by one."""
    pairs = list(zip(numbers, ties, strict=True))
    return [
        (sum(earlier > pair for earlier in pairs[:t]) + u) / (t + 1)
        for t, (pair, u) in enumerate(zip(pairs, uniforms, strict=True))
    ]


def urn_ranks(numbers, ties, uniforms, kept):
    """As `exact_ranks` for the first `kept`; then every gap between these is given its whole mass."""
    pairs = list(zip(numbers, ties, strict=True))
    ranks = exact_ranks(numbers[:kept], ties[:kept], uniforms[:kept])
    cuts = sorted(pairs[:kept])
    masses = np.ones(kept + 1)
    for t in range(kept, len(pairs)):
        gap = sum(cut < pairs[t] for cut in cuts)
        ranks.append((masses[gap + 1 :].sum() + uniforms[t] * masses[gap]) / (t + 1))
        masses[gap] += 1
    return ranks


def evidence_of(ranks):
    """Wealth after all ranks: what was bet at each number, times the factors from there on; and the best beginning."""
    ranks = np.array(ranks)
    near = 2 * np.minimum(ranks, 1 - ranks)
    on = (ranks, 1 - ranks, near, 1 - near)
    cash = 1 / (1 + np.log1p(np.arange(len(ranks) + 1)))
    stakes, total = -np.diff(cash), cash[-1]
    best = (0.0, 0)
    bets = [(power * on[kind] ** exponent, weight) for kind, power, exponent, weight in POWERS]
    bets += [(np.where(ranks <= cut, inside, outside), weight) for _, cut, inside, outside, weight in STEPS]
    for factors, weight in bets:
        from_here = np.cumprod(factors[::-1])[::-1]
        total += weight * float(stakes @ from_here)
        best = max(best, (float(from_here.max()), int(from_here.argmax())))
    return total, best[1]
