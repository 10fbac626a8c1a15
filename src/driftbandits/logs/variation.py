"""How much a world moves, V_T between windows of a stated length, corrected for noise; and whether it has a period.

The period is found by a periodogram of residuals with a permutation threshold, and is approximate.

symbol  meaning
e_t     reward of row t less the mean of its arm (in its segment: a changed mix of requests is no rhythm)
S(f)    sum over arms of |sum over the arm's rows of e_t exp(2 pi i f t)|^2 / sum of e_t^2, and the same for all arms
        taken together: 1 on average at every frequency f if nothing moves, whatever policy logged
R(f)    S(f) over the median of S near f: a switch or a slow drift raises all low frequencies, a rhythm only its own

A period counts if its R is half as large again as the largest at any period in permutations of the residuals within
their arms, of which there are 199, or 49 of a long log. Rhythms that matter are beyond that by far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftbandits._util.seeding import stream
from driftbandits.logs.log import Log, cell_count, cells_of
from driftbandits.types import Floats, Ints

_WINDOWS = 10
CHANCES = 19  # permutations
_LEAST_PLAYS = 5  # of an arm in a window


BINS = 4_096
LEAST_CYCLES = 4  # within the log
_PERMUTATIONS, _PERMUTATIONS_OF_MANY = 199, 49
_MANY = 50_000  # rows
_NEAR = 12  # frequencies on either side
_BEYOND = 1.5  # times the largest of all permutations
_MOST_CELLS = 50  # the most played


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
    mixed = (permuted(noise, cells, rng) for _ in range(CHANCES))
    by_chance = max(_total(rewards, cells, cell_count(log))[0] for rewards in mixed)
    return Variation(total, len(log) // _WINDOWS, seen, by_chance)


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


@dataclass(frozen=True)
class Season:
    """A period in the unit of the log's clock, between which ends it lies, its p value by permutations, and R there.

    The ends are those of whole numbers of cycles: a log of nine and a half weeks does not tell 6.6 days from 7.4.
    """

    period: float
    low: float
    high: float
    p_value: float
    peak: float


def find_season(log: Log, *, seed: int = 0) -> Season | None:
    """The strongest period, or None where there is none beyond chance, or the log is too short."""
    log = log.take(log.known)
    clock = log.clock - log.clock[0]
    length = float(clock[-1]) * (1.0 + 1.0 / max(len(log) - 1, 1))
    if len(log) < 64 or length <= 0.0:
        return None
    bins = min(BINS, 2 ** int(math.log2(len(log))))
    place = np.minimum((clock / length * bins).astype(np.int64), bins - 1)
    residual, group = _cell_residuals(log)
    rng = stream(seed, "season")
    real = _ratios(place, group, residual, bins)
    best = int(real.argmax())
    times = _PERMUTATIONS if len(log) <= _MANY else _PERMUTATIONS_OF_MANY
    chance = max(_ratios(place, group, permuted(residual, group, rng), bins).max() for _ in range(times))
    if real[best] < _BEYOND * chance:
        return None
    cycles = best + LEAST_CYCLES
    ends = (length / (cycles + 0.5), length / (cycles - 0.5))
    return Season(length / cycles, *ends, 1.0 / (1 + times), float(real[best]))


def _cell_residuals(log: Log) -> tuple[Floats, Ints]:
    """Rewards less their cells' means; the most played cells keep their numbers, the rest are one group."""
    cells = cells_of(log)
    plays = np.bincount(cells)
    means = np.bincount(cells, weights=log.reward) / np.maximum(plays, 1)
    order = np.argsort(-plays, kind="stable")
    number = np.empty(len(plays), dtype=np.int64)
    number[order] = np.minimum(np.arange(len(plays)), _MOST_CELLS)
    return log.reward - means[cells], number[cells]


def _ratios(place: Ints, group: Ints, residual: Floats, bins: int) -> Floats:
    """R at frequencies of `LEAST_CYCLES` cycles and more."""
    groups = int(group.max()) + 1
    series = np.bincount(group * bins + place, weights=residual, minlength=groups * bins).reshape(groups, bins)
    total = max(float(residual @ residual), 1e-300)
    own = np.square(np.abs(np.fft.rfft(series, axis=1))).sum(axis=0) / total
    common = np.square(np.abs(np.fft.rfft(series.sum(axis=0)))) / total
    found = [(power / _medians(power))[LEAST_CYCLES : bins // 4] for power in (own, common)]
    return np.maximum(found[0], found[1])


def _medians(power: Floats) -> Floats:
    """Median of the powers near each, itself left out."""
    padded = np.pad(power, _NEAR, mode="reflect")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1)
    return np.maximum(np.median(np.delete(around, _NEAR, axis=1), axis=1), 1e-12)
