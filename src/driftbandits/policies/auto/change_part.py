"""For which requests rewards have changed: a part of them, named by one column of their contexts.

What two hypotheses expect is compared for some of the latest requests: the one that leads after the change, and the
heaviest that was born before. A request has moved if the reward of some arm has. Where a minority has, the column is
sought whose values tell best which: by the share of the moved requests that have these values, less that of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from driftbandits.arms.contexts import Contexts
from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.types import Bools, Floats, Ints

REQUESTS_COMPARED = 128
MOST_PAIRS = 4096
_DEVIATIONS = 3.0  # of the difference, above which a reward has moved
_LEAST_MOVE = 0.03  # on the internal scale
_LARGEST_PART = 0.6  # of the requests; beyond, the change is one of all
_LEAST_PART = 0.02
_LEAST_ADVANTAGE = 0.5  # by which a column must tell
_LEAST_SHARE_OF_ARM = 0.2  # of the moved requests, for an arm to be named
_BINS = 10


class Part(NamedTuple):
    """What has moved: in words, and arms with their mean rewards before and after, over the requests that moved."""

    words: str
    arms: Ints
    before: Floats
    after: Floats


def find_part(
    beliefs: Beliefs, contexts: Contexts, codes: Floats, requests: Floats, *, leader: int, old: int
) -> Part | None:
    """The part of these requests, (n, width) as codes and standardised, that moved; None if most have, or none."""
    rows, size = beliefs.priors.rows, beliefs.priors.size
    some = slice(-max(min(REQUESTS_COMPARED, MOST_PAIRS // size), 1), None)
    codes, requests = codes[some], requests[some]
    n = len(requests)
    rows.enter(np.repeat(requests, size, axis=0), np.tile(np.arange(size), n))  # type: ignore[union-attr]
    (after, spread), (before, spread_before) = (_moments(beliefs, row) for row in (leader, old))
    limits = _DEVIATIONS * np.sqrt(spread + spread_before) + _LEAST_MOVE
    moved = (np.abs(after - before) > limits).reshape(n, size)
    those: Bools = np.asarray(moved.any(axis=1))
    share = float(those.mean())
    if not _LEAST_PART <= share <= _LARGEST_PART:
        return None
    advantage, words = max(_descriptions(contexts, codes, those), default=(0.0, ""))
    mostly = f", mostly {words}" if advantage >= _LEAST_ADVANTAGE else ""
    arms = np.flatnonzero(moved[those].mean(axis=0) >= _LEAST_SHARE_OF_ARM)
    means = [values.reshape(n, size)[those][:, arms].mean(axis=0) for values in (before, after)]
    return Part(f"{100 * share:.0f} % of the requests{mostly}", arms, *means)


def _moments(beliefs: Beliefs, row: int) -> tuple[Floats, Floats]:
    rows, kind = beliefs.priors.rows, int(beliefs.kind[row])
    covariance = beliefs.covariance(row)
    return rows.rewards(kind, beliefs.mean[row]), rows.variances(kind, covariance)  # type: ignore[union-attr]


def _descriptions(contexts: Contexts, codes: Floats, those: Bools) -> Iterator[tuple[float, str]]:
    """By how much the values of each column tell the requests that moved, and these values in words."""
    for number, (_, place) in enumerate(contexts.parts):
        column = codes[:, place]
        for chosen in _choices(column, those):
            if those[chosen].any():
                low, high = column[chosen].min(axis=0), column[chosen].max(axis=0)
                advantage = float(chosen[those].mean() - chosen[~those].mean())
                yield round(advantage, 9), contexts.tell(number, low, high)


def _choices(column: Floats, those: Bools) -> Iterator[Bools]:
    """Some sets of values of a column, as masks over the requests."""
    values = np.unique(column, axis=0)
    if column.shape[1] > 1 or len(values) <= 2:  # categories, and others of which there are few
        kinds = [(column == value).all(axis=1) for value in values[: 4 * _BINS]]
        often = [kind for kind in kinds if those[kind].mean() > max(float(those.mean()), 0.5)]
        yield from kinds if len(values) <= 4 * _BINS else ()
        if often:
            yield np.logical_or.reduce(often)
        if len(values) > 4 * _BINS:  # a cycle, in sectors
            angle = np.arctan2(column[:, 1], column[:, 0]) % (2.0 * np.pi)
            for first in range(2 * _BINS):
                for width in (1, 2, 3, 5):
                    yield (angle * _BINS / np.pi - first) % (2 * _BINS) < width
        return
    ends = np.unique(np.quantile(column[:, 0], np.linspace(0.0, 1.0, _BINS + 1)))
    for first, low in enumerate(ends[:-1]):
        for high in ends[first + 1 :]:
            yield (column[:, 0] >= low) & (column[:, 0] <= high)
