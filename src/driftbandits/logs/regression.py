"""Rewards of every arm over time, by Gaussian processes on bins of time that use earlier rows only, or all.

symbol  name     shape    meaning
b                         bin of rows; dt_b rows have passed since the bin before
f_a(b)                    mean reward of cell a (an arm, in a segment of requests): a random walk
q       rates    (H,)     variance of a step of it per row, in units of the noise's
s       starts   (H,)     variance of f before any reward, likewise
y, c                      mean of the rewards of a cell in a bin, and how many they are
m, P             (H, A)   mean and variance of f given the bins so far
w_h                       weight of hypothesis (q, s): by how well it predicted the bins so far

P grows by q per row. A bin's rewards move m by P / (P + 1 / c) of what they differ from it. The noise's variance of
every hypothesis comes from its own errors so far, so that each bin's prediction is a function of earlier bins alone:
doubly robust estimates are unbiased by that, whatever the world does. Cells do not learn from each other; one without
rewards is expected to be as all rewards so far were on average.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from driftbandits.logs.cells import cell_count, cells_of
from driftbandits.logs.log import Log
from driftbandits.types import Floats, Ints

MOST_BINS = 20_000
RATES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
STARTS = (0.003, 0.1, 3.0, 100.0)
_FIRST_DEGREES = 2.0  # what the variance of the rewards so far counts beside a hypothesis's own errors
_LEAST_VARIANCE = 1e-18


@dataclass(frozen=True)
class Bins:
    """Rewards of a log added up by bin and cell; sorted by bin.

    of_row : (n,), the bin of every row; `rows`: how many each has; `firsts`: where its entries begin, and the last end
    cell, count, mean : per entry; `squares`: sum of the squared rewards per bin
    """

    of_row: Ints
    rows: Ints
    cells: int
    firsts: Ints
    cell: Ints
    count: Floats
    mean: Floats
    squares: Floats

    def __len__(self) -> int:
        return len(self.rows)


def bin_rewards(log: Log, *, most: int | None = None) -> Bins:
    """Bins of equally many rows."""
    number = min(len(log), MOST_BINS if most is None else most)
    of_row = np.arange(len(log)) * number // len(log)
    cells = cells_of(log)
    size = cell_count(log)
    known = log.known
    key = of_row[known] * size + cells[known]
    reward = log.reward[known]
    distinct, inverse = np.unique(key, return_inverse=True)
    count = np.bincount(inverse).astype(np.float64)
    sums = np.bincount(inverse, weights=reward)
    bins = distinct // size
    return Bins(
        of_row=of_row,
        rows=np.bincount(of_row, minlength=number),
        cells=size,
        firsts=np.searchsorted(bins, np.arange(number + 1)),
        cell=distinct % size,
        count=count,
        mean=sums / count,
        squares=np.bincount(of_row[known], weights=np.square(reward), minlength=number).astype(np.float64),
    )


@dataclass(frozen=True)
class Predictions:
    """What earlier bins say of every bin, and how well each hypothesis (q, s) did.

    mean : (bins, cells); rate, start : (H,), q and s; evidence : (H,), log likelihoods; noise : (H,), variances
    """

    mean: Floats
    rate: Floats
    start: Floats
    evidence: Floats
    noise: Floats

    @property
    def weights(self) -> Floats:
        """Of the hypotheses, (H,), adding up to 1."""
        shares = np.exp(self.evidence - self.evidence.max())
        return np.asarray(shares / shares.sum())

    @property
    def best(self) -> int:
        """The hypothesis that predicted best."""
        return int(self.evidence.argmax())


def predict(bins: Bins, *, fresh: Collection[int] = ()) -> Predictions:
    """Predict every bin from those before it; at bins `fresh` a world begins of which only the level is known."""
    rate, start = (grid.ravel() for grid in np.meshgrid(RATES, STARTS, indexing="ij"))
    mean = np.zeros((len(rate), bins.cells))
    variance = np.broadcast_to(start[:, None], mean.shape).copy()
    seen = np.zeros(bins.cells, dtype=bool)
    last = np.zeros(bins.cells)  # rows passed when a cell was last seen
    logs, errors = np.zeros(len(rate)), np.zeros(len(rate))
    predicted = np.empty((len(bins), bins.cells))
    total = squares = number = passed = degrees = 0.0
    weights = np.full(len(rate), 1.0 / len(rate))
    for b in range(len(bins)):
        level = total / number if number else 0.0
        if b in fresh:
            seen[:] = False
            variance[:] = start[:, None]
        predicted[b] = np.where(seen, weights @ mean, level)
        entries = slice(bins.firsts[b], bins.firsts[b + 1])
        cell, count, reward = bins.cell[entries], bins.count[entries], bins.mean[entries]
        if len(cell):
            spread = max(squares / number - level**2, _LEAST_VARIANCE) if number > 1 else None
            new = cell[~seen[cell]]
            mean[:, new] = level
            last[new] = passed
            own = variance[:, cell] + rate[:, None] * (passed - last[cell])
            gain = own + 1.0 / count
            error = reward - mean[:, cell]
            if spread is not None:
                noise = (_FIRST_DEGREES * spread + errors) / (_FIRST_DEGREES + degrees)
                logs += _surprise(error, gain, noise, _FIRST_DEGREES + degrees)
                weights = np.exp(logs - logs.max())
                weights /= weights.sum()
                errors += (np.square(error) / gain).sum(axis=1)
                degrees += len(cell)
            share = own / gain
            mean[:, cell] += share * error
            variance[:, cell] = own * (1.0 - share)
            seen[cell], last[cell] = True, passed
            total += float(count @ reward)
            squares += float(bins.squares[b])
            number += float(count.sum())
        passed += float(bins.rows[b])
    spread = max(squares / max(number, 1.0) - (total / max(number, 1.0)) ** 2, _LEAST_VARIANCE)
    noise = (_FIRST_DEGREES * spread + errors) / (_FIRST_DEGREES + degrees)
    return Predictions(predicted, rate, start, logs, noise)


def _surprise(error: Floats, gain: Floats, noise: Floats, degrees: float) -> Floats:
    """Log likelihoods of a bin's rewards under Student's t, less what all hypotheses share; shape (H,)."""
    scale = gain * noise[:, None]
    terms = np.log(scale) + (degrees + 1.0) * np.log1p(np.square(error) / (degrees * scale))
    return np.asarray(-0.5 * terms.sum(axis=1))


def posterior_total(bins: Bins, weights: Floats, *, rate: float, start: float, noise: float) -> tuple[float, float]:
    """Mean and variance of the sum over bins b and cells a of weights[b, a] f_a(b), given all rewards.

    The sum is part of the state: its covariance with f is carried along, and every reward moves it too, so that no
    pass backwards is needed.
    """
    level = float(bins.count @ bins.mean / max(bins.count.sum(), 1.0))
    mean, variance = np.full(bins.cells, level), np.full(bins.cells, start)
    total, spread, shared = (np.zeros(bins.cells) for _ in range(3))  # of the sum, and its covariance with f
    for b in range(len(bins)):
        if b:
            variance += rate * bins.rows[b - 1]
        weight = weights[b]
        spread += weight * (2.0 * shared + weight * variance)
        shared += weight * variance
        total += weight * mean
        entries = slice(bins.firsts[b], bins.firsts[b + 1])
        cell, count = bins.cell[entries], bins.count[entries]
        if not len(cell):
            continue
        gain = variance[cell] + 1.0 / count
        error = bins.mean[entries] - mean[cell]
        common, share = shared[cell], variance[cell] / gain
        total[cell] += common * error / gain
        spread[cell] -= np.square(common) / gain
        shared[cell] = common * (1.0 - share)
        mean[cell] += share * error
        variance[cell] *= 1.0 - share
    return float(total.sum()), noise * max(float(spread.sum()), 0.0)
