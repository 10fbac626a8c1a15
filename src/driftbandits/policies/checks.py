"""Checks of what users pass to policies: one line each where it is used, one message that names the cure."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError, RewardError, StateError, did_you_mean
from driftbandits.policies import state as states
from driftbandits.types import Bools, Change, Floats, Ints


def check_count(name: str, value: Any, *, cure: str = "") -> int:
    """Give `value` as an int of at least 1."""
    hint = f"; {cure}" if cure else ""
    try:
        number = operator.index(value)
    except TypeError:
        whole = isinstance(value, float) and value.is_integer()
        hint = f"; write {name}={int(value)}" if whole else hint
        raise InputError(f"{name} must be a whole number, got {value!r}{hint}") from None
    if isinstance(value, bool) or number < 1:
        raise InputError(f"{name} must be at least 1, got {value!r}{hint}")
    return number


def check_settings(policy: type, settings: Mapping[str, Any]) -> None:
    """Refuse a setting that no constructor of `policy` knows, with the nearest one that exists."""
    known = known_settings(policy)
    for name in settings:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InputError(f"{policy.__name__} has no setting {name!r}; {hint}known: {', '.join(sorted(known))}")


@functools.cache
def known_settings(policy: type) -> frozenset[str]:
    """Keyword arguments of the class's constructor and, where it passes others on, of those it inherits from."""
    names: set[str] = set()
    for kind in policy.__mro__:
        if "__init__" not in vars(kind) or kind is object:
            continue
        parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
        names |= {p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.name == "arms"}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return frozenset(names - {"size"})  # how the forgetting forms hand their window, period or discount on


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
    if isinstance(allowed, (str, bytes)) or not hasattr(allowed, "__len__") or np.ndim(allowed) == 0:
        raise InputError(f"allowed must list arms, got {allowed!r}; use [{allowed!r}] for a single one")
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
        low, high = (float(value) for value in (() if isinstance(reward_range, str) else reward_range))
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


def read_rewards(rewards: Any) -> Floats:
    """Rewards as an array of floats; text is refused, None becomes NaN and is refused with the other NaNs."""
    try:
        array = np.asarray(rewards, dtype=None if isinstance(rewards, (str, bytes)) else np.float64)
        if array.dtype.kind != "f":
            raise ValueError("text")
        if isinstance(rewards, (list, tuple)) and any(isinstance(value, (str, bytes)) for value in rewards):
            raise ValueError("text")
    except (TypeError, ValueError):
        raise RewardError(f"rewards must be numbers, got {rewards!r}") from None
    return array.ravel()


def read_change(reader: states.Reader) -> Change:
    """A change record from a saved state."""
    for name in ("round", "epoch", "block", "compared_with"):
        reader.integer(name)
    for name in ("statistic", "threshold"):
        reader.number(name)
    reader.text("forgot")
    reader.text("stream")
    change = Change.from_dict({field.name: reader.raw(field.name) for field in dataclasses.fields(Change)})
    numbers = {"interval": int, "arms": int, "before": float, "after": float, "names": str}
    for name, kind in numbers.items():
        values = getattr(change, name)
        if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
            raise StateError(f"the {name} of a change in the state are not a list of {kind.__name__} values")
    if len(change.interval) != 2 or not len(change.arms) == len(change.before) == len(change.after):
        raise StateError("a change in the state has an interval or lists of arms of the wrong length")
    return change
