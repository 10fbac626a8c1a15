"""For which requests rewards have changed: a part of them, named by one column of their contexts.

Of each reward, the residual is known from what the leading hypothesis expected of it then. For a set of values of a
column, the gain is that in log likelihood if every arm's residuals have a mean of their own there, less a penalty per
arm. The set of the largest gain names the part, unless residuals of the other requests are off as well. So a column can
be named that did not matter before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from driftbandits.arms.contexts import Contexts
from driftbandits.types import Bools, Floats, Ints

LARGEST_PART = 0.6  # of the requests; beyond, the change is one of all
LEAST_REWARDS = 8  # of the part, and of the others
_LEAST_GAIN = 6.0  # nats: there are many sets to choose from
_OTHERS_GAIN = 0.35  # of the others, over that of the part, at most
_LEAST_MOVE = 2.0  # standard errors of an arm's mean residual, for it to be named
_BINS = 10


class Part(NamedTuple):
    """What has moved: in words, and arms with their mean rewards before and after, within the part."""

    words: str
    arms: Ints
    before: Floats
    after: Floats


class Told(NamedTuple):
    """Rewards since a change, (n,) each: codes of their requests (n, width), residuals, and variances of these."""

    codes: Floats
    arms: Ints
    rewards: Floats
    residuals: Floats
    variances: Floats


def find_part(told: Told, latest: Floats, contexts: Contexts) -> Part | None:
    """The part of the requests for which rewards are off; None if it is most of them, or cannot be told."""
    best, found = _LEAST_GAIN, None
    for number, (_, place) in enumerate(contexts.parts):
        for chosen in _choices(told.codes[:, place]):
            size = np.count_nonzero(chosen)
            if min(size, len(chosen) - size) >= LEAST_REWARDS:
                gain = _gain(told, chosen)
                if gain > best and _gain(told, ~chosen) < _OTHERS_GAIN * gain:
                    best, found = round(gain, 9), (number, place, chosen)
    if found is None:
        return None
    number, place, chosen = found
    low, high = told.codes[chosen][:, place].min(axis=0), told.codes[chosen][:, place].max(axis=0)
    within = (latest[:, place] >= low - 1e-9) & (latest[:, place] <= high + 1e-9)
    share = float(within.all(axis=1).mean())
    if share > LARGEST_PART:
        return None
    arms = [arm for arm in np.unique(told.arms[chosen]).tolist() if _has_moved(told, chosen & (told.arms == arm))]
    mine = [chosen & (told.arms == arm) for arm in arms]
    after = np.array([told.rewards[some].mean() for some in mine])
    before = after - np.array([told.residuals[some].mean() for some in mine])
    words = f"{100 * share:.0f} % of the requests, mostly {contexts.tell(number, low, high)}"
    return Part(words, np.array(arms, dtype=np.int64), before, after)


def _gain(told: Told, chosen: Bools) -> float:
    """Log likelihood of the residuals with a mean per arm over that without, less half a log of their number each."""
    weights = chosen / told.variances
    sums, precisions = np.bincount(told.arms, weights * told.residuals), np.bincount(told.arms, weights)
    played = np.bincount(told.arms, chosen) > 0
    gains = 0.5 * np.square(sums[played]) / precisions[played] - 0.5 * math.log(max(int(np.count_nonzero(chosen)), 2))
    return float(np.maximum(gains, 0.0).sum())


def _has_moved(told: Told, mine: Bools) -> bool:
    error = math.sqrt(float(told.variances[mine].mean()) / np.count_nonzero(mine))
    return abs(float(told.residuals[mine].mean())) > _LEAST_MOVE * error


def _choices(column: Floats) -> Iterator[Bools]:
    """Some sets of values of a column, as masks over the rewards."""
    values = np.unique(column, axis=0)
    if len(values) <= 2 * _BINS:  # categories, and others of which there are few
        yield from ((column == value).all(axis=1) for value in values)
    elif column.shape[1] > 1:  # a cycle, in sectors
        angle = np.arctan2(column[:, 1], column[:, 0]) * _BINS / np.pi
        for first in range(2 * _BINS):
            for width in (2, 5, 8):
                yield (angle - first) % (2 * _BINS) < width
    else:
        ends = np.unique(np.quantile(column[:, 0], np.linspace(0.0, 1.0, _BINS + 1)))
        for first, low in enumerate(ends[:-1]):
            for high in ends[first + 1 :]:
                yield (column[:, 0] >= low) & (column[:, 0] <= high)
