"""How much a world moves: V_T between windows of a stated length, corrected for noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftbandits.logs.cells import cell_count, cells_of
from driftbandits.logs.log import Log
from driftbandits.types import Floats

_WINDOWS = 10
_LEAST_PLAYS = 5  # of an arm in a window


@dataclass(frozen=True)
class Variation:
    """Total of the largest movement of any arm from window to window; `seen`: pairs of windows compared."""

    total: float
    window: int
    seen: int


def variation(log: Log) -> Variation:
    """V_T between windows of a tenth of the log.

    For every pair of neighbouring windows, the largest change of an arm's mean reward beyond what noise alone would
    show: its square less 2 log(arms) + 1 of its variance, which the largest of so many noises reaches. At full
    resolution the noise, or a prior, would set it.
    """
    log = log.take(log.known)
    size = cell_count(log)
    window = np.arange(len(log)) * _WINDOWS // len(log)
    key = window * size + cells_of(log)
    count, total, squares = (
        np.bincount(key, weights=part, minlength=_WINDOWS * size).reshape(_WINDOWS, size).astype(np.float64)
        for part in (np.ones(len(log)), log.reward, np.square(log.reward))
    )
    noise = _noise(count, total, squares)
    able = count >= _LEAST_PLAYS
    mean = total / np.maximum(count, 1)
    steps, seen = 0.0, 0
    for k in range(1, _WINDOWS):
        both = able[k] & able[k - 1]
        if both.any():
            seen += 1
            spread = noise * (1.0 / count[k, both] + 1.0 / count[k - 1, both])
            beyond = np.square(mean[k, both] - mean[k - 1, both]) - (2.0 * math.log(both.sum()) + 1.0) * spread
            steps += math.sqrt(max(float(beyond.max()), 0.0))
    return Variation(steps, len(log) // _WINDOWS, seen)


def _noise(count: Floats, total: Floats, squares: Floats) -> float:
    """Variance of rewards about the mean of their arm and window."""
    within = float((squares - np.square(total) / np.maximum(count, 1)).sum())
    return max(within, 0.0) / max(float(count.sum() - np.count_nonzero(count)), 1.0)
