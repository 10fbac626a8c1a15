"""Whether rewards go up and down with a period: a periodogram of residuals with a permutation threshold; approximate.

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

from driftbandits.logs.amount import permuted
from driftbandits.logs.cells import cells_of
from driftbandits.logs.log import Log
from driftbandits.seeding import stream
from driftbandits.types import Floats, Ints

BINS = 4_096
LEAST_CYCLES = 4  # within the log
_PERMUTATIONS, _PERMUTATIONS_OF_MANY = 199, 49
_MANY = 50_000  # rows
_NEAR = 12  # frequencies on either side
_BEYOND = 1.5  # times the largest of all permutations
_MOST_CELLS = 50  # the most played


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
    residual, group = _residuals(log)
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


def _residuals(log: Log) -> tuple[Floats, Ints]:
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
