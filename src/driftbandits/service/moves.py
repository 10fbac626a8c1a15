"""What a policy expected of arms before and after a change, where the change itself names none."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandits.types import ARMS_CHANGED, Bools, Change, Floats

SHOWN = 3


def moves(changes: Sequence[Change], history: dict[str, Any] | None) -> list[list[dict[str, Any]]]:
    """One list per change, largest moves first; empty where the change names its arms itself."""
    if history is None:
        return [[] for _ in changes]
    nexts = (change.interval[0] for change in changes[1:])
    return [
        [] if change.arms or change.stream == ARMS_CHANGED else _moves(change, end, history)
        for change, end in zip(changes, itertools.chain(nexts, [None]), strict=False)
    ]


def _moves(change: Change, end: int | None, history: dict[str, Any]) -> list[dict[str, Any]]:
    """The last look before the change began, against the last before the next one did.

    Arms whose intervals are apart, or if there are none the one that moved most: it changed by what the policy says.
    """
    rounds, estimate = history["rounds"], history["estimate"]
    before = int(np.searchsorted(rounds, change.interval[0], side="right")) - 1
    after = (len(rounds) if end is None else int(np.searchsorted(rounds, end, side="right"))) - 1
    if before < 0 or after <= before:
        return []
    distance = np.nan_to_num(np.abs(estimate[after] - estimate[before]))
    order = [int(arm) for arm in np.argsort(-distance, kind="stable") if distance[arm] > 0.0]
    apart = _apart(history["low"], history["high"], before, after)
    shown = order if apart is None else [arm for arm in order if apart[arm]] or order[:1]
    return [
        {"name": history["names"][arm], "before": float(estimate[before, arm]), "after": float(estimate[after, arm])}
        for arm in shown[:SHOWN]
    ]


def _apart(low: Floats | None, high: Floats | None, before: int, after: int) -> Bools | None:
    """Which arms' intervals of two looks have nothing in common; None in policies without intervals."""
    if low is None or high is None:
        return None
    return np.asarray((low[after] > high[before]) | (high[after] < low[before]))
