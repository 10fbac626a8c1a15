"""What a log can say nothing about: choices that the policy that logged would never have made.

A weight corrects for how seldom something was tried, and nothing corrects for what could not be: with the log of a
policy that never draws lots (an upper confidence bound, an A/B test after its end), weighted means are confidently
wrong. Three checks: rows whose probability is 1, or whose law has zeros where the target has none; weights, which are 1
on average if the probabilities are those that were drawn from; and whether choices so rare that the log has none of
them are much of what the target does: the weights that are there then sum to less, and look more even than they are.
"""

from __future__ import annotations

import math

import numpy as np

from driftbandits.logs.estimators import local_variance
from driftbandits.logs.log import Log
from driftbandits.logs.targets import Shares
from driftbandits.showing import counted
from driftbandits.types import Bools, Floats

MOST_UNSUPPORTED = 0.01  # share of the target's choices, which biases its value by as much of the rewards' range
LEAST_FOUND = 0.9  # of the target's choices; one standard deviation of the mean weight is allowed for
_CERTAIN = 1.0 - 1e-9
_CLEAR_DEVIATIONS, _CLEAR_SHARE = 5.0, 0.05  # of the mean weight from 1


def certain(log: Log) -> Bools:
    """Rows in which the policy that logged had no choice although more than one arm was offered, shape (n,)."""
    several = len(log.names) > 1 if log.allowed is None else log.allowed.sum(axis=1) > 1
    return np.asarray((log.probability >= _CERTAIN) & several)


def unsupported(log: Log, shares: Shares) -> Floats:
    """Probability of the target's choices that could not be in the log, in every row, as far as it says; shape (n,)."""
    if shares.own:
        return np.zeros(len(log))
    if log.law is not None:
        return shares.mean_of((log.law == 0.0).astype(np.float64), np.arange(len(log)))
    return np.where(log.probability >= _CERTAIN, 1.0 - shares.of(log.arm), 0.0)


def refusal(missing: Floats) -> str:
    """Why rows with these unsupported probabilities cannot tell; empty where they can."""
    if not len(missing) or missing.mean() <= MOST_UNSUPPORTED:
        return ""
    rows = f"{np.count_nonzero(missing):,} of {counted(len(missing), 'row')}"
    return (
        f"this log cannot tell: in {rows} the policy that logged could not have done what the target does, and only a "
        f"model ('direct') would say anything of these"
    )


def rarity(weights: Floats, effective_size: float) -> str:
    """Why rows with these weights cannot tell: they stand for too little of what the target does; empty where not.

    >>> rarity(np.full(1_000, 0.7), 100.0)
    'this log cannot tell: its rows stand for 70 % of what the target does, and the rest is too rare to be in it'
    >>> rarity(np.full(1_000, 0.85), 100.0)
    ''
    """
    found = float(weights.mean())
    if found + 1.0 / math.sqrt(effective_size) >= LEAST_FOUND:
        return ""
    return (
        f"this log cannot tell: its rows stand for {100 * found:.0f} % of what the target does, and the rest is too "
        f"rare to be in it"
    )


def doubt(weights: Floats) -> str:
    """What to say where weights are not 1 on average; empty where they are, up to chance."""
    if not len(weights):
        return ""
    away = abs(float(weights.mean()) - 1.0)
    if away <= max(_CLEAR_SHARE, _CLEAR_DEVIATIONS * math.sqrt(local_variance(weights)) / len(weights)):
        return ""
    return (
        f"weights are {weights.mean():.3g} on average and should be 1: are these the probabilities that arms were "
        f"drawn with, and could the target's arms be drawn at all?"
    )
