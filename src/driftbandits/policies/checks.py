"""Checks of what users pass to policies: one line each where it is used, one message that names the cure."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.policies import state as states
from driftbandits.types import Bools, Change, Floats, Ints


def check_count(name: str, value: Any, cure: str) -> int:
    """Give `value` as an int of at least 1."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}; use {cure}") from None
    if isinstance(value, bool) or number < 1:
        raise InputError(f"{name} must be at least 1, got {value!r}; use {cure}")
    return number


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Give `value` as a finite float above 0 (or at least 0)."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}") from None
    if isinstance(value, (bool, str)) or not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise InputError(f"{name} must be a {'non-negative' if zero else 'positive'} number, got {value!r}")
    return number


def restrict(law: Floats, mask: Bools) -> tuple[Floats, bool]:
    """Law given that the arm is allowed, and whether the mask took any mass away.

    >>> restrict(np.array([0.5, 0.25, 0.25]), np.array([False, True, True]))
    (array([0. , 0.5, 0.5]), True)
    """
    kept = np.where(mask, law, 0.0)
    if not law[~mask].any():
        return law, False
    total = kept.sum()
    return (kept / total if total > 0 else mask / mask.sum()), True


def read_allowed(arms: ArmSet, allowed: Any) -> Bools:
    """Mask from a mask, from indices or from names."""
    size = len(arms)
    if isinstance(allowed, (str, bytes)):
        raise InputError(f"allowed must list arms, got the single string {allowed!r}; use [{allowed!r}]")
    given: Sequence[Any] = list(allowed)
    if given and all(isinstance(item, str) for item in given):
        given = [arms.index(name) for name in given]
    array = np.asarray(given)
    if array.dtype == np.bool_:
        if array.shape != (size,):
            raise InputError(f"a mask must have one entry an arm, shape ({size},), got {array.shape}")
        mask = array
    else:
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"allowed must be a boolean mask, arm indices or arm names, got {allowed!r}")
        wrong = array[(array < 0) | (array >= size)]
        if len(wrong):
            raise InputError(f"no arm has the index {wrong[0]}; indices run from 0 to {size - 1}")
        mask = np.zeros(size, dtype=np.bool_)
        mask[array.astype(np.int64)] = True
    if not mask.any():
        raise InputError("no arm is allowed; allow at least one, or do not ask this round")
    return mask


def check_range(reward_range: Any) -> tuple[float, float]:
    """Give a reward range as two finite floats, low < high."""
    try:
        low, high = (float(value) for value in reward_range)
    except (TypeError, ValueError):
        raise InputError(f"reward_range must be a pair (low, high), got {reward_range!r}") from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InputError(f"reward_range must be finite with low < high, got ({low:g}, {high:g})")
    return low, high


def read_ids(ids: Any) -> Ints:
    """Decision ids as an array."""
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InputError(f"ids must be the whole numbers that ask gave, got {ids!r}")
    return array.ravel().astype(np.int64)


def read_change(reader: states.Reader) -> Change:
    """A change record from a saved state."""
    for name in ("round", "epoch", "block", "compared_with"):
        reader.integer(name)
    for name in ("statistic", "threshold"):
        reader.number(name)
    return Change.from_dict({field.name: reader.raw(field.name) for field in dataclasses.fields(Change)})
