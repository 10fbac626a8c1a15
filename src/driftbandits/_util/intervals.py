"""Intervals of a mean over seeds and of a share of runs, and what follows from one about a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

CONFIDENCE_LEVEL = 0.95


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
