"""What a log says of all arms over time: a Gaussian process on bins, worlds sampled from it, and how likely it moves.

symbol  name      shape     meaning
F       features  (N, R)    arms read the coordinates: f_b = level + F x_b; the last column is common to all arms
x_b               (R,)      coordinates in bin b: x_0 ~ N(0, s I), and x_b - x_{b-1} ~ N(0, q rows I)
q, s    rate, start         in units of the noise's variance
fresh                       bins in which a world begins anew: x_b ~ N(0, s I) whatever was before
m_b, P_b                    mean and covariance of x_b given the bins up to b

Arms are cells here: where there are segments, an arm in a segment. Unlike in `regression`, they learn from each other
as far as their kernel says. Hypotheses are a kernel (that of the arms,
or none), a rate, a start, and fresh bins or none; each is weighed by its evidence, with the noise at its likeliest.
Worlds are *sampled*: forward filtering, then backward sampling. The mean path would be too smooth, and a policy in it
would have too easy a life.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from driftbandits.logs.cells import cell_arms, cell_count
from driftbandits.logs.log import Log
from driftbandits.logs.regression import Bins, bin_rewards
from driftbandits.policies.length_scales import leading_features
from driftbandits.types import Floats, Ints

BINS = 300
DRIFTS = (0.1, 1.0, 10.0, 100.0, 1_000.0)  # variance of a walk over the whole log; beside 0
STARTS = (0.01, 0.3, 10.0)
LEVEL_SHARE = 0.5  # of the variance of an arm, for what all arms share
MOST_FEATURES = 80


@dataclass(frozen=True)
class Hypothesis:
    """How the world may be: `features` (N, R), `rate`, `start`, and the bins in which it begins anew."""

    kernel: str
    features: Floats
    rate: float
    start: float
    fresh: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """What it says of the world: "still", "drifts" or "switches"."""
        return "switches" if self.fresh else "drifts" if self.rate else "still"


@dataclass(frozen=True)
class Fitted:
    """A hypothesis and the log: log evidence, variance of the noise, m (bins, R) and P (bins, R, R)."""

    hypothesis: Hypothesis
    evidence: float
    noise: float
    mean: Floats
    covariance: Floats


def hypotheses(log: Log, fresh: Sequence[int]) -> list[Hypothesis]:
    """All that are tried: every rate of drift without changes, and the changes found without drift."""
    found = []
    for kernel, features in _kernels(log).items():
        for start in STARTS:
            found += [Hypothesis(kernel, features, drift / len(log), start) for drift in (0.0, *DRIFTS)]
            if fresh:
                found.append(Hypothesis(kernel, features, 0.0, start, tuple(fresh)))
    return found


def _kernels(log: Log) -> dict[str, Floats]:
    """Features of the arms' kernel, if there is one, and of independent arms, if they are few."""
    size = cell_count(log)
    kernels: dict[str, Floats] = {}
    if log.arms is not None or log.segment is not None:
        own = leading_features(cell_arms(log).features, MOST_FEATURES)
        if own is not None:
            kernels["given"] = own
    if not kernels or size <= 2 * MOST_FEATURES:
        kernels["independent"] = np.eye(size)
    return {
        name: np.hstack([math.sqrt(1.0 - LEVEL_SHARE) * phi, np.full((size, 1), math.sqrt(LEVEL_SHARE))])
        for name, phi in kernels.items()
    }


def bins_of(log: Log) -> Bins:
    """Rewards in bins."""
    return bin_rewards(log, most=BINS)


def fit(bins: Bins, hypothesis: Hypothesis, *, keep: bool = True) -> Fitted:
    """Filter forward; without `keep` only the evidence is kept."""
    features, start = hypothesis.features, hypothesis.start
    width = features.shape[1]
    level = _level(bins)
    mean, covariance = np.zeros(width), start * np.eye(width)
    means, covariances = np.zeros((len(bins), width)), np.zeros((len(bins) if keep else 0, width, width))
    logs = errors = 0.0
    for b in range(len(bins)):
        if b in hypothesis.fresh:
            mean, covariance = np.zeros(width), start * np.eye(width)
        elif b and hypothesis.rate:
            covariance = covariance + hypothesis.rate * float(bins.rows[b - 1]) * np.eye(width)
        entries = slice(bins.firsts[b], bins.firsts[b + 1])
        if entries.start < entries.stop:
            rows = features[bins.cell[entries]]
            shared = covariance @ rows.T
            system = rows @ shared + np.diag(1.0 / bins.count[entries])
            factor = cho_factor(system, lower=True)
            error = bins.mean[entries] - level - rows @ mean
            solved = cho_solve(factor, error)
            mean = mean + shared @ solved
            covariance = covariance - shared @ cho_solve(factor, shared.T)
            covariance = 0.5 * (covariance + covariance.T)
            errors += float(error @ solved)
            logs += 2.0 * float(np.log(np.diag(factor[0])).sum()) + float(np.log(bins.count[entries]).sum())
        means[b] = mean
        if keep:
            covariances[b] = covariance
    number = float(bins.count.sum())
    within = float(bins.squares.sum() - (bins.count * np.square(bins.mean)).sum())  # of rewards about their bins' means
    noise = max((errors + max(within, 0.0)) / number, 1e-12)
    changes = len(hypothesis.fresh) * math.log(len(bins))  # each might have been in any bin
    return Fitted(hypothesis, -0.5 * (logs + number * math.log(noise)) - changes, noise, means, covariances)


def _level(bins: Bins) -> float:
    return float(bins.count @ bins.mean / bins.count.sum())


def weights_of(fitted: Sequence[Fitted]) -> Floats:
    """Of hypotheses, by their evidence; those that stand still, drift and switch begin with a third each."""
    logs = np.array([one.evidence for one in fitted])
    kinds = np.array([one.hypothesis.kind for one in fitted])
    logs = logs - np.log([np.count_nonzero(kinds == kind) for kind in kinds])
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def sample(bins: Bins, fitted: Fitted, rng: np.random.Generator, number: int = 1) -> Floats:
    """Worlds that may be, as mean rewards (number, bins, N)."""
    hypothesis = fitted.hypothesis
    path = np.empty((number, *fitted.mean.shape))
    deviation = math.sqrt(fitted.noise)
    last = len(bins) - 1
    for b in range(last, -1, -1):
        mean, covariance = fitted.mean[b], fitted.covariance[b]
        if b == last or b + 1 in hypothesis.fresh:
            path[:, b] = mean + _draw(covariance, deviation, rng, number)
        elif hypothesis.rate == 0.0:
            path[:, b] = path[:, b + 1]
        else:
            step = hypothesis.rate * float(bins.rows[b]) * np.eye(len(covariance))
            back = cho_solve(cho_factor(covariance + step, lower=True), covariance)
            rest = covariance - covariance @ back
            path[:, b] = mean + (path[:, b + 1] - mean) @ back + _draw(rest, deviation, rng, number)
    return np.asarray(_level(bins) + path @ hypothesis.features.T)


def _draw(covariance: Floats, deviation: float, rng: np.random.Generator, number: int) -> Floats:
    """Deviations of normal vectors, shape (number, R); eigenvalues below zero are rounding."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    scaled = rng.standard_normal((number, len(values))) * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(deviation * (scaled @ vectors.T))


def bands(bins: Bins, fitted: Sequence[Fitted], weights: Floats, rng: np.random.Generator, number: int) -> Floats:
    """Sampled worlds (number, bins, N), hypotheses in proportion to their weights: for means and bands of figures."""
    chosen: Ints = rng.choice(len(fitted), size=number, p=weights)
    drawn = [int(np.count_nonzero(chosen == k)) for k in range(len(fitted))]
    return np.concatenate([sample(bins, one, rng, times) for one, times in zip(fitted, drawn, strict=True) if times])
