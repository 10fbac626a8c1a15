"""Estimators of what a target would have earned, and the regression of rewards over time that two of them rest on.

symbol  meaning
pi, p   probability of the arm played under the target and under the policy that logged
w       pi / p, the weight of a row: 1 on average
r       its reward
m_a     predicted reward of arm a from earlier rows (`predict`)

name      value                                          what it is bad at
ips       mean of w r                                    rare arms: large weights, and a large level of the rewards
snips     sum of w r / sum of w                          slightly biased; rewards' level does not matter
clipped   middle + mean of min(w, c) (r - middle)        biased by at most R (1 - mean of min(w, c)), which is added to
                                                         its interval; R half the range of the rewards
dr        mean of sum_a pi_a m_a + w (r - m)             nothing to speak of: unbiased as ips, with less variance the
                                                         better m is
direct    posterior mean of sum_a pi_a f_a(t)            a wrong model: its interval is the model's own

Terms of `ips` and `dr` are unbiased given the rows before, whatever the world does and however the policy that logged
learned. Their sum less what it estimates is a martingale, and its central limit theorem gives the interval: the
variance is that of the terms (of w (r - m) for `dr`) about a *local* mean. A variance about the overall mean would
count the drift of the values as noise.

The regression: Gaussian processes on bins of time that use earlier rows only, or all.

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

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri, zeta

from driftbandits.logs.log import Log, cell_count, cells_of
from driftbandits.logs.requests import RequestModel
from driftbandits.logs.targets import Shares
from driftbandits.types import Bools, Floats, Ints

MOST_BINS = 20_000
RATES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
STARTS = (0.003, 0.1, 3.0, 100.0)
_FIRST_DEGREES = 2.0  # what the variance of the rewards so far counts beside a hypothesis's own errors
_LEAST_VARIANCE = 1e-18


Estimator = Literal["ips", "snips", "clipped", "dr", "direct"]
ESTIMATORS = ("ips", "snips", "clipped", "dr", "direct")
_NEIGHBOURS = 10  # rows around a row whose mean is its local mean; with 50, what `dr` learns at first counts as noise


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

    mean : (bins, cells), of `bins`; rate, start : (H,), q and s; evidence : (H,), log likelihoods; noise : (H,),
        variances
    """

    bins: Bins
    mean: Floats
    rate: Floats
    start: Floats
    evidence: Floats
    noise: Floats


def predict(bins: Bins) -> Predictions:
    """Predict every bin from those before it."""
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
    return Predictions(bins, predicted, rate, start, logs, noise)


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


@dataclass(frozen=True)
class Terms:
    """One term per row: `values`, whose mean is the estimate; `noise`, their random part; `weights`, w.

    `kept` is what `clipped` left of the weights; the mean of what it took, times `reach`, bounds its bias.
    """

    values: Floats
    noise: Floats
    weights: Floats
    kept: Floats | None = None
    reach: float = 0.0

    def take(self, rows: Bools) -> Terms:
        """Those of some rows."""
        kept = None if self.kept is None else self.kept[rows]
        return Terms(self.values[rows], self.noise[rows], self.weights[rows], kept, self.reach)

    def __sub__(self, other: Terms) -> Terms:
        """Terms of the difference of two targets on the same rows; the larger weights stand for both."""
        weights = np.maximum(self.weights, other.weights)
        return Terms(self.values - other.values, self.noise - other.noise, weights)


def weights_of(log: Log, shares: Shares) -> Floats:
    """w, shape (n,)."""
    return np.ones(len(log)) if shares.own else shares.of(log.arm) / log.probability


def terms_of(
    log: Log,
    shares: Shares,
    estimator: Estimator,
    predictions: Floats | None,
    requests: RequestModel | None = None,
) -> Terms:
    """The terms of an estimator; `snips` has those of `ips`, `dr` needs the predictions of every bin (bins, cells).

    `requests` says what contexts add to these.
    """
    weights = weights_of(log, shares)
    if estimator == "clipped":
        return _clipped(log, weights)
    if shares.own or predictions is None:
        values = weights * log.reward
        return Terms(values, values, weights)
    table, place = by_place(log, predictions)
    own, expected = table[place, log.arm], shares.mean_of(table, place)
    if requests is not None:
        own, expected = own + requests.of(log.arm), expected + requests.mean_of(shares)
    residual = weights * (log.reward - own)
    return Terms(expected + residual, residual, weights)


def residuals(log: Log, predictions: Floats) -> Floats:
    """What rewards differ from the predictions of every bin, shape (n,)."""
    table, place = by_place(log, predictions)
    return np.asarray(log.reward - table[place, log.arm])


def by_place(log: Log, predictions: Floats) -> tuple[Floats, Ints]:
    """Predictions with a row per bin and segment, and the row of each entry of the log."""
    bins = np.arange(len(log)) * len(predictions) // len(log)  # as `bin_rewards` has them
    table = predictions.reshape(-1, len(log.names))
    return table, bins if log.segment is None else bins * len(log.segment_names) + log.segment


def _clipped(log: Log, weights: Floats) -> Terms:
    low, high = log.reward_range or (float(log.reward.min()), float(log.reward.max()))
    middle, reach = 0.5 * (low + high), 0.5 * (high - low)
    kept = np.minimum(weights, max(math.sqrt(len(log)), 1.0))
    values = middle + kept * (log.reward - middle)
    return Terms(values, values, weights, kept, reach)


def mean_and_ends(terms: Terms, *, level: float) -> tuple[float, float, float]:
    """The mean of the terms, and the ends of its interval."""
    value, half = float(terms.values.mean()), _half_width(terms.noise, level)
    if terms.kept is not None:
        left = 1.0 - float(terms.kept.mean()) + _half_width(terms.kept, level)
        half += terms.reach * max(left, 0.0)
    return value, value - half, value + half


def self_normalised(
    rewards: Floats, weights: Floats, others: Floats | None = None, *, level: float
) -> tuple[float, float, float]:
    """The estimate of `snips`, and the ends of its interval, by the derivative of the ratio.

    With the weights of `others`, the difference of two targets on the same rows.
    """
    value, noise = _ratio(rewards, weights)
    if others is not None:
        other_value, other_noise = _ratio(rewards, others)
        value, noise = value - other_value, noise - other_noise
    half = _half_width(noise, level)
    return value, value - half, value + half


def _ratio(rewards: Floats, weights: Floats) -> tuple[float, Floats]:
    """Weighted mean of the rewards, and the linearised noise of each; NaN where all weights are 0."""
    total = float(weights.sum())
    if total == 0.0:
        return math.nan, np.full(len(weights), math.nan)
    value = float(weights @ rewards) / total
    return value, weights * (rewards - value) * (len(weights) / total)


def _half_width(noise: Floats, level: float) -> float:
    """Half the interval of the mean of terms with this noise: the normal quantile times the standard error."""
    return float(ndtri(0.5 + 0.5 * level)) * math.sqrt(local_variance(noise)) / len(noise)


def local_variance(terms: Floats) -> float:
    """Sum of the variances of terms about a mean that may move: squares about the mean of neighbours.

    >>> drifting = np.linspace(0.0, 100.0, 2_000)  # no noise at all
    >>> bool(local_variance(drifting) < 0.001 * drifting.var() * 2_000)
    True
    """
    size = len(terms)
    width = min(_NEIGHBOURS + 1, size)
    if width < 2:
        return math.inf
    sums = np.concatenate([[0.0], np.cumsum(terms)])
    first = np.clip(np.arange(size) - width // 2, 0, size - width)
    around = (sums[first + width] - sums[first] - terms) / (width - 1)
    return float(np.square(terms - around).sum()) * (width - 1) / width  # a mean of k others adds 1 / k


def effective_size(weights: Floats) -> float:
    """How many rows of equal weight would tell as much.

    >>> effective_size(np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares else 0.0


def anytime_ends(log: Log, weights: Floats, *, level: float) -> tuple[float, float]:
    """Ends that hold at every length of the log at once, by `ips` (NaN where no range of rewards is declared).

    Empirical-Bernstein confidence sequences for the running mean of values that may move (Howard, Ramdas, McAuliffe,
    Sekhon 2021, theorem 4 and equation 10): w r is at least 0 on rewards scaled to [0, 1], which is all the lower
    end needs, and the upper end is that of w (1 - r) turned around. No bound on the weights is needed.
    """
    if log.reward_range is None:
        return math.nan, math.nan
    low, high = log.reward_range
    scaled = (log.reward - low) / (high - low)
    least, most = (_lower_end(weights * part, 0.5 * (1.0 - level)) for part in (scaled, 1.0 - scaled))
    return low + (high - low) * least, high - (high - low) * most


def _lower_end(terms: Floats, alpha: float) -> float:
    """Lower end for the mean of what non-negative terms are on average, given those before."""
    size = np.arange(1, len(terms) + 1)
    before = np.minimum((0.5 + np.concatenate([[0.0], np.cumsum(terms)[:-1]])) / size, 1.0)  # at most 1: c = 1 below
    spread = float(np.square(terms - before).sum())
    return max(float(terms.mean()) - _boundary(spread, alpha) / len(terms), 0.0)


def _boundary(spread: float, alpha: float) -> float:
    """Polynomial stitched boundary, sub-gamma with c = 1, eta = 2, s = 1.4, m = 1."""
    eta, s = 2.0, 1.4
    first, second = (eta**0.25 + eta**-0.25) / math.sqrt(2.0), (math.sqrt(eta) + 1.0) / 2.0
    spread = max(spread, 1.0)
    logs = s * math.log(math.log(eta * spread)) + math.log(float(zeta(s)) / (alpha * math.log(eta) ** s))
    return math.sqrt(first**2 * spread * logs + (second * logs) ** 2) + second * logs


def direct_ends(predictions: Predictions, weights: Floats, rows: int, *, level: float) -> tuple[float, float, float]:
    """Posterior mean, and interval, of a weighted sum of rewards divided by `rows`; weights: (bins, cells)."""
    best = int(predictions.evidence.argmax())
    rate, start, noise = (float(part[best]) for part in (predictions.rate, predictions.start, predictions.noise))
    mean, variance = posterior_total(predictions.bins, weights, rate=rate, start=start, noise=noise)
    half = float(ndtri(0.5 + 0.5 * level)) * math.sqrt(variance) / rows
    return mean / rows, mean / rows - half, mean / rows + half


def bin_weights(log: Log, shares: Shares, bins: Bins, rows: Bools) -> Floats:
    """Probabilities of a target added up over the rows of every bin, by cell: shape (bins, cells)."""
    segments = max(len(log.segment_names), 1)
    group = bins.of_row if log.segment is None else bins.of_row * segments + log.segment
    summed = shares.take(rows).summed(group[rows], len(bins) * segments, len(log.names))
    return summed.reshape(len(bins), bins.cells)
