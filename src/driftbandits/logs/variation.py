"""How much a world moves: V_T between windows of a stated length, corrected for noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftbandits._util.seeding import stream
from driftbandits.logs.log import Log, cell_count, cells_of
from driftbandits.types import Floats, Ints

_WINDOWS = 10
CHANCES = 19  # permutations
_MANY = 20_000  # rows, from which on signs are drawn instead
_LEAST_PLAYS = 5  # of an arm in a window


@dataclass(frozen=True)
class Variation:
    """Total of the largest movement of any arm from window to window; `seen`: pairs of windows compared.

    `by_chance` is the largest total of the noise alone, in 19 orders: what rewards differ by from the mean of their arm
    in their window. Without movement the total is beyond it about once in 20 times.
    """

    total: float
    window: int
    seen: int
    by_chance: float


def variation(log: Log, *, seed: int = 0) -> Variation:
    """V_T between windows of a tenth of the log.

    For every pair of neighbouring windows, the largest change of an arm's mean reward beyond what noise alone would
    show: its square less 2 log(arms) + 1 of its variance, which the largest of so many noises reaches. At full
    resolution the noise, or a prior, would set it.
    """
    log = log.take(log.known)
    cells, rng = cells_of(log), stream(seed, "variation")
    total, seen = _total(log.reward, cells, cell_count(log))
    noise = _window_residuals(log.reward, cells, cell_count(log))
    mixed = (permuted(noise, cells, rng) if len(log) <= _MANY else _normal(noise, rng) for _ in range(CHANCES))
    by_chance = max(_total(rewards, cells, cell_count(log))[0] for rewards in mixed)
    return Variation(total, len(log) // _WINDOWS, seen, by_chance)


def _normal(values: Floats, rng: np.random.Generator) -> Floats:
    """Values with signs drawn anew: their sums over many rows have the same variance as in another order."""
    return np.where(rng.integers(0, 2, len(values), dtype=np.int8) == 1, values, -values)


def permuted(values: Floats, group: Ints, rng: np.random.Generator) -> Floats:
    """Values in another order within every group."""
    order = np.argsort(group, kind="stable")
    mixed = np.lexsort((rng.random(len(group)), group))
    result = np.empty_like(values)
    result[order] = values[mixed]
    return result


def _window_residuals(rewards: Floats, cells: Ints, size: int) -> Floats:
    """Rewards less the mean of their cell in their window, as widely spread as the noise is."""
    key = np.arange(len(rewards)) * _WINDOWS // len(rewards) * size + cells
    count = np.bincount(key).astype(np.float64)
    means = np.bincount(key, weights=rewards) / np.maximum(count, 1.0)
    spread = np.sqrt(count / np.maximum(count - 1.0, 1.0))
    return np.asarray((rewards - means[key]) * spread[key])


def _total(rewards: Floats, cells: Ints, size: int) -> tuple[float, int]:
    """The sum, and how many pairs of windows were compared."""
    window = np.arange(len(rewards)) * _WINDOWS // len(rewards)
    key = window * size + cells
    count, total, squares = (
        np.bincount(key, weights=part, minlength=_WINDOWS * size).reshape(_WINDOWS, size).astype(np.float64)
        for part in (np.ones(len(rewards)), rewards, np.square(rewards))
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
    return steps, seen


def _noise(count: Floats, total: Floats, squares: Floats) -> float:
    """Variance of rewards about the mean of their arm and window."""
    within = float((squares - np.square(total) / np.maximum(count, 1)).sum())
    return max(within, 0.0) / max(float(count.sum() - np.count_nonzero(count)), 1.0)
