"""Would contexts pay: a policy that sees the columns `context.*` against the best that does not, on the same rows.

Cross-fitting: the rows are cut into `FOLDS` stretches of time. For each, both policies are learned on the others: the
arm that was best there, and for every row the arm whose ridge regression on its context promises most (rows weighed by
1 / probability, so that what the policy that logged preferred does not bend it). Both are valued on the stretch itself,
where nothing of them was chosen, by the doubly robust difference

    q(x, pi(x)) - q(x, a*) + (1[A = pi(x)] - 1[A = a*]) (R - q(x, A)) / p(A)

q    the regressions of the other stretches; whatever they are like, the mean of the difference is right

The interval is that of the central limit theorem for these terms. What is compared is what linear regressions can win:
a cleverer policy may win more, and where the world moves, so may one that follows it. Twins with contexts would need
the reward of every arm at every context, of which most logs say too little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftbandits.logs.estimators import Terms, mean_and_ends
from driftbandits.logs.log import Log
from driftbandits.types import Bools, Floats, Ints

FOLDS = 5
LEAST_ROWS = 500
_RIDGE = 10.0  # rows' worth, towards an arm's mean
_LEVEL = 0.95
_LEAST_AGREEING = 50  # rows in which the log did what the policy with contexts would do


@dataclass(frozen=True)
class ContextGain:
    """What contexts would have earned per round beyond the best policy without them; NaN where `verdict` says why."""

    gain: float
    low: float
    high: float
    rows: int
    columns: tuple[str, ...]
    verdict: str = ""

    @property
    def words(self) -> str:
        """As a sentence."""
        if self.verdict:
            return f"Whether contexts would pay: {self.verdict}."
        sure = f"95 % between {self.low:.3g} and {self.high:.3g}"
        if self.low > 0:
            more = f"{self.gain:.3g} more per round than one arm for all"
            return f"Using the contexts would have earned {more} ({sure}). AutoBandit(arms, contexts=...) uses them."
        if self.high < 0:
            less = f"{-self.gain:.3g} less per round than one arm for all"
            return f"Using the contexts would have earned {less} ({sure})."
        return f"Whether contexts would pay is open: {self.gain:+.3g} per round against one arm for all ({sure})."


def context_gain(log: Log) -> ContextGain | None:
    """What the contexts of a log, all of whose rewards are known, would have earned; None where it has none."""
    if log.contexts is None:
        return None
    size, names = len(log), tuple(name for name, _ in log.contexts.parts)
    nothing = (math.nan, math.nan, math.nan, size, names)
    if size < LEAST_ROWS:
        return ContextGain(*nothing, f"this log cannot tell, {LEAST_ROWS} rows with a reward are needed")
    contexts = _standardised(log.contexts.read_many(log.requests))
    fold = np.arange(size) * FOLDS // size
    terms, agreed = np.empty(size), 0
    for own in range(FOLDS):
        here = fold == own
        terms[here], agreeing = _differences(log, contexts, here)
        agreed += agreeing
    if agreed < _LEAST_AGREEING:
        return ContextGain(*nothing, f"this log cannot tell, it did what they ask for in {agreed} rows only")
    return ContextGain(*mean_and_ends(Terms(terms, terms, terms), level=_LEVEL), size, names)


def _standardised(context: Floats) -> Floats:
    """Columns of mean 0 and variance 1, after a column of ones; those that never change are 0."""
    centred = context - context.mean(axis=0)
    deviation = centred.std(axis=0)
    scaled = np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)
    return np.column_stack([np.ones(len(context)), scaled])


def _differences(log: Log, contexts: Floats, here: Bools) -> tuple[Floats, int]:
    """The terms of a stretch, and in how many of its rows the log did what the policy with contexts does."""
    arms = len(log.names)
    weights = 1.0 / log.probability
    rest = ~here
    slopes = np.zeros((arms, contexts.shape[1]))
    level = float(np.average(log.reward[rest], weights=weights[rest]))
    slopes[:, 0] = level
    means = np.full(arms, -math.inf)
    for arm in np.unique(log.arm[rest]).tolist():
        own = rest & (log.arm == arm)
        slopes[arm] = _ridge(contexts[own], log.reward[own], weights[own])
        total = float(weights[own].sum())
        means[arm] = float(weights[own] @ log.reward[own]) / total - _doubt(log.reward[own], weights[own])
    q = contexts[here] @ slopes.T
    allowed = None if log.allowed is None else log.allowed[here]
    able = np.isfinite(means) if allowed is None else np.isfinite(means) & allowed
    able = able | ~np.atleast_2d(able).any(axis=-1, keepdims=True)  # where nothing known is offered, anything
    rows = np.arange(len(q))
    chosen: Ints = np.where(able, q, -math.inf).argmax(axis=1)
    fixed: Ints = np.broadcast_to(np.where(able, means, -math.inf), q.shape).argmax(axis=1)
    played = log.arm[here]
    residual = (log.reward[here] - q[rows, played]) * weights[here]
    found = q[rows, chosen] - q[rows, fixed] + ((played == chosen) * 1.0 - (played == fixed)) * residual
    return found, int(np.count_nonzero(played == chosen))


def _doubt(rewards: Floats, weights: Floats) -> float:
    """A standard error of a weighted mean: an arm that was hardly played is not the best one by luck."""
    effective = float(weights.sum()) ** 2 / float(weights @ weights)
    return float(rewards.std()) / math.sqrt(effective) if effective > 1.0 else math.inf


def _ridge(contexts: Floats, rewards: Floats, weights: Floats) -> Floats:
    """Coefficients of a weighted ridge regression; the first column, of ones, is not shrunk."""
    weights = weights / weights.mean()
    level = float(weights @ rewards / weights.sum())
    penalty = _RIDGE * np.eye(contexts.shape[1])
    penalty[0, 0] = 1e-9
    system = (contexts.T * weights) @ contexts + penalty
    found = np.linalg.solve(system, (contexts.T * weights) @ (rewards - level))
    found[0] += level
    return np.asarray(found)
