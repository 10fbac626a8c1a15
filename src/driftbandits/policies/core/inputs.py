"""What callers pass to `ask`, `tell` and `forget`: sizes, allowed arms, ids and rewards, in any of their forms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.checks import check_count
from driftbandits.errors import InputError, RewardError, UnknownDecisionError
from driftbandits.memory import check_memory
from driftbandits.numeric import TEXT, as_float, as_floats
from driftbandits.showing import shown
from driftbandits.types import Bools, Floats, Ints

_DECISION = 72  # bytes of a decision asked in a batch: its row among those open, and its four columns


def check_size(size: Any) -> int:
    """How many decisions one call asks for: a count whose decisions fit into memory."""
    count = check_count("size", size)
    check_memory(_DECISION * count, f"ask(size={count})", cure="ask for them in smaller batches")
    return count


def read_allowed(arms: ArmSet, allowed: Any) -> Bools:
    """Mask from a mask, from indices or from names."""
    size = len(arms)
    if type(allowed) is np.ndarray and allowed.dtype == np.bool_ and allowed.shape == (size,) and allowed.any():
        return allowed.copy()  # of a live request
    single = not hasattr(allowed, "__len__") or getattr(allowed, "ndim", 1) == 0
    if single or isinstance(allowed, (*TEXT, Set, Mapping)):
        raise InputError(f"allowed must list arms, got {shown(allowed)}; use [{shown(allowed)}] for a single one")
    _refuse_masked("allowed", allowed, InputError, "use a boolean mask, arm indices or arm names without gaps")
    given: Sequence[Any] = list(allowed)
    if given and all(isinstance(item, str) for item in given):
        given = [arms.index(name) for name in given]
    try:
        array = np.asarray(given)
    except ValueError:  # rows of unequal length
        array = np.empty((0, 0))
    if array.dtype == np.bool_:
        if array.shape != (size,):
            raise InputError(f"a mask must have one entry an arm, shape ({size},), got {array.shape}")
        mask = array
    else:
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputError(f"allowed must be a boolean mask, arm indices or arm names, got {shown(allowed)}")
        wrong = array[(array < 0) | (array >= size)]
        if len(wrong):
            raise InputError(f"no arm has the index {wrong[0]}; indices run from 0 to {size - 1}")
        mask = np.zeros(size, dtype=np.bool_)
        mask[array.astype(np.int64)] = True
    if not mask.any():
        raise InputError("no arm is allowed; allow at least one, or do not ask this round")
    return mask


def read_ids(ids: Any) -> Ints:
    """Decision ids as an array. What is no whole number is an InputError; one beyond int64 was never given out."""
    if type(ids) is np.ndarray and ids.dtype == np.int64:  # as ask gave them
        return ids.flatten()
    _refuse_masked("ids", ids, InputError, "leave out the decisions that are masked")
    try:
        array = np.asarray(ids)
    except (TypeError, ValueError, OverflowError):
        raise _no_ids(ids) from None
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind == "i":
        return array.ravel().astype(np.int64)
    if array.dtype.kind in "uO":
        return _exact_ids(array.ravel().tolist(), ids)
    if array.dtype.kind == "f" and isinstance(ids, (list, tuple)):  # [0, 2**63] becomes floats
        return _exact_ids(ids, ids)
    raise _no_ids(ids)


def _exact_ids(values: Sequence[Any], ids: Any) -> Ints:
    """Ids one by one, for numbers that an array of int64 may not hold."""
    limits = np.iinfo(np.int64)
    for value in values:
        if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, (int, np.integer)):
            raise _no_ids(ids)
        if not limits.min <= value <= limits.max:
            raise UnknownDecisionError(f"no decision has the id {shown(int(value))}; pass the ids that ask gave")
    return np.array([int(value) for value in values], dtype=np.int64)


def _no_ids(ids: Any) -> InputError:
    return InputError(f"ids must be the whole numbers that ask gave, got {shown(ids)}")


def read_rewards(rewards: Any) -> Floats:
    """Rewards as an array of floats, in their order.

    Numbers of any kind and in any container are fine, True and False among them as 1 and 0. Text, dates, durations and
    complex numbers are refused even where NumPy would convert them. None and NaN are missing: refused further on.
    """
    _refuse_masked("rewards", rewards, RewardError, "forget() the decisions whose reward is missing")
    try:
        if isinstance(rewards, (float, int)):  # of a live request; the general way costs twice as much
            return np.array([float(rewards)])
        return as_floats(rewards).ravel()
    except (TypeError, ValueError, OverflowError):
        raise RewardError(
            f"rewards must be numbers that fit a float, one per decision, got {_first_wrong(rewards)}; convert them "
            f"first, or forget() decisions whose reward is missing"
        ) from None


def _first_wrong(rewards: Any) -> str:
    """The first entry that is no reward, or all that was given where it has no entries to speak of."""
    listed = isinstance(rewards, (list, tuple)) or (isinstance(rewards, np.ndarray) and rewards.ndim > 0)
    for place, value in enumerate(rewards if listed else ()):
        try:
            as_float(math.nan if value is None else value)
        except (TypeError, ValueError, OverflowError):
            return f"{shown(value)} at place {place}"
    return shown(rewards)


def _refuse_masked(name: str, values: Any, kind: type[InputError], cure: str) -> None:
    """Refuse a masked array, or a list, with an entry that is masked: NumPy would take what lies under the mask."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.flatnonzero(np.ma.getmaskarray(values)).tolist()
    elif isinstance(values, (list, tuple)):
        masked = np.ma.masked
        hidden = [place for place, value in enumerate(values) if value is masked]
    else:
        return
    if hidden:
        raise kind(f"{name} has no value at place {hidden[0]}, which is masked; {cure}")
