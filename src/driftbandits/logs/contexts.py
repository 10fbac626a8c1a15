"""Would contexts pay: a policy that sees the columns `context.*` against one that does not, on the same rows.

Both follow changes, and are chosen row by row from earlier rows alone: one plays the arm of the highest predicted
reward over time (`estimators.predict`), the other adds regressions on the context (`requests.regress`), those that
forget or those that do not, as either predicted better so far. From the second fifth of the log on, the terms of the
doubly robust difference are

    q(x, pi(x)) - q(x, b) + (1[A = pi(x)] - 1[A = b]) (R - q(x, A)) / p(A)

pi(x), b  the arms of the two policies
q         the predictions of the one with contexts; whatever they are like, the mean of the difference is right

The interval is that of the central limit theorem for these terms. What is compared is what linear regressions can win:
a cleverer policy may win more. Twins with contexts would need the reward of every arm at every context, of which most
logs say too little.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driftbandits.logs.estimators import Terms, bin_rewards, by_place, mean_and_ends, predict, residuals
from driftbandits.logs.log import Log
from driftbandits.logs.requests import RequestModel, regress
from driftbandits.types import Floats, Ints

LEAST_ROWS = 500
KEPT = (1.0, 0.8)  # of a regression's rows from block to block
_LEVEL, _BINS = 0.95, 300
_LEAST_AGREEING = 50  # rows in which the log did what the policy with contexts would do


@dataclass(frozen=True)
class ContextGain:
    """What contexts would have earned per round beyond the same policy without them; NaN where `verdict` says why."""

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
            more = f"{self.gain:.3g} more per round than without them"
            return f"Using the contexts would have earned {more} ({sure}). AutoBandit(arms, contexts=...) uses them."
        if self.high < 0:
            less = f"{-self.gain:.3g} less per round than without them"
            return f"Using the contexts would have earned {less} ({sure})."
        return f"Whether contexts would pay is open: {self.gain:+.3g} per round against doing without ({sure})."


def context_gain(log: Log) -> ContextGain | None:
    """What the contexts of a log, all of whose rewards are known, would have earned; None where it has none."""
    if log.contexts is None:
        return None
    size, names = len(log), tuple(name for name, _ in log.contexts.parts)
    nothing = (math.nan, math.nan, math.nan, size, names)
    if size < LEAST_ROWS:
        return ContextGain(*nothing, f"this log cannot tell, {LEAST_ROWS} rows with a reward are needed")
    predicted = predict(bin_rewards(log, most=_BINS)).mean
    left = residuals(log, predicted)
    model = _best_so_far([regress(log, log.contexts.scaled, left, keep=keep) for keep in KEPT], log.arm, left)
    table, place = by_place(log, predicted)
    played, first = np.unique(log.arm, return_index=True)
    since = np.full(len(log.names), size)  # row of an arm's first play
    since[played] = first
    terms, agreed = np.zeros(0), 0
    for rows in model.rows():
        if rows.start < size // 5:
            continue
        plain, arm = table[place[rows]], log.arm[rows]
        q = plain + model.table(rows)
        able = np.broadcast_to(since < rows.start, q.shape)
        if log.allowed is not None:
            able = able & log.allowed[rows]
            able = able | ~able.any(axis=1, keepdims=True)  # where nothing known is offered, anything
        chosen: Ints = np.where(able, q, -math.inf).argmax(axis=1)
        blind: Ints = np.where(able, plain, -math.inf).argmax(axis=1)
        here = np.arange(len(q))
        residual = (log.reward[rows] - q[here, arm]) / log.probability[rows]
        found = q[here, chosen] - q[here, blind] + ((arm == chosen) * 1.0 - (arm == blind)) * residual
        terms, agreed = np.append(terms, found), agreed + int(np.count_nonzero(arm == chosen))
    if agreed < _LEAST_AGREEING:
        return ContextGain(*nothing, f"this log cannot tell, it did what they ask for in {agreed} rows only")
    return ContextGain(*mean_and_ends(Terms(terms, terms, terms), level=_LEVEL), size, names)


def _best_so_far(models: Sequence[RequestModel], arm: Ints, left: Floats) -> RequestModel:
    """In every block the model with the least squared errors in earlier ones, the latest of which count most."""
    errors = np.array([np.bincount(one.block, np.square(left - one.of(arm))) for one in models])
    blocks = errors.shape[1]
    scores = np.zeros_like(errors)
    for number in range(1, blocks):
        scores[:, number] = KEPT[-1] * scores[:, number - 1] + errors[:, number - 1]
    slopes = np.stack([one.slopes for one in models])[scores.argmin(axis=0), np.arange(blocks)]
    return dataclasses.replace(models[0], slopes=slopes)
