"""Intervals of a mean over seeds and of a share of runs, and what follows from one about a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

IntervalVerdict = Literal["holds", "does not hold", "undecided"]

CONFIDENCE_LEVEL = 0.95
LEAST_SEEDS = 3  # two seeds give an interval, but one that rests on a single difference


@dataclass(frozen=True)
class ConfidenceInterval:
    """A mean over `seeds` seeds with the ends of its interval; the ends are NaN with fewer than two seeds."""

    estimate: float
    low: float
    high: float
    seeds: int


def t_interval(values: npt.ArrayLike, *, level: float = CONFIDENCE_LEVEL) -> ConfidenceInterval:
    """Student's interval of the mean, `mean ± t_{n-1} s / sqrt(n)`.

    It covers the true mean with probability `level` if the values are normal. Regrets are skewed where some runs miss
    a change, and with few seeds the interval then covers less often than it says.

    >>> interval = t_interval([1.0, 2.0, 3.0])
    >>> round(interval.low, 3), interval.estimate, round(interval.high, 3)
    (-0.484, 2.0, 4.484)
    """
    given = np.asarray(values, dtype=np.float64)
    size = len(given)
    if size < 2:
        return ConfidenceInterval(float(given[0]) if size else math.nan, math.nan, math.nan, size)
    mean = float(given.mean())
    half = float(stdtrit(size - 1, (1.0 + level) / 2.0) * given.std(ddof=1) / math.sqrt(size))
    return ConfidenceInterval(mean, mean - half, mean + half, size)


def share_interval(hits: int, runs: int) -> ConfidenceInterval:
    """Clopper and Pearson's interval of the share of runs with a hit, which covers it with at least 95 %.

    >>> interval = share_interval(0, 200)
    >>> interval.low, round(interval.high, 4)
    (0.0, 0.0183)
    """
    from scipy import stats  # half a second to import

    ends = stats.binomtest(hits, runs).proportion_ci(confidence_level=CONFIDENCE_LEVEL, method="exact")
    return ConfidenceInterval(hits / runs, float(ends.low), float(ends.high), runs)


def judge_below(interval: ConfidenceInterval, bound: float = 0.0) -> IntervalVerdict:
    """Whether the mean is less than `bound`: the whole interval is, or is more, or it cannot be said.

    >>> judge_below(ConfidenceInterval(-2.0, -3.0, -1.0, seeds=25))
    'holds'
    >>> judge_below(ConfidenceInterval(-2.0, -5.0, 1.0, seeds=25))
    'undecided'
    """
    if interval.seeds < LEAST_SEEDS:
        return "undecided"
    if interval.high < bound:
        return "holds"
    return "does not hold" if interval.low > bound else "undecided"


def judge_at_most(interval: ConfidenceInterval, bound: float) -> IntervalVerdict:
    """As `judge_below`, but an interval that just reaches `bound` is within it."""
    return "holds" if interval.seeds >= LEAST_SEEDS and interval.high <= bound else judge_below(interval, bound)


def judge_within(interval: ConfidenceInterval, margin: float) -> IntervalVerdict:
    """Whether the mean lies in [-margin, margin]: the whole interval does, or lies outside, or it cannot be said.

    >>> interval = ConfidenceInterval(2.0, 1.0, 3.0, seeds=25)
    >>> judge_within(interval, 5.0), judge_within(interval, 0.5)
    ('holds', 'does not hold')
    """
    if interval.seeds < LEAST_SEEDS:
        return "undecided"
    if interval.low >= -margin and interval.high <= margin:
        return "holds"
    return "does not hold" if interval.low > margin or interval.high < -margin else "undecided"
