"""Checks of what users pass to policies: one line each where it is used, one message that names the cure."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import operator
import os
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.errors import InputError, RewardError, StateError, UnknownDecisionError, did_you_mean
from driftbandits.memory import FLOAT, check_memory
from driftbandits.numeric import TEXT, as_float, as_floats
from driftbandits.showing import shown
from driftbandits.types import Bools, Change, Floats, Ints

_EXTREME = 1e150  # squares of it, and of one part in it, are still ordinary floats
_DISTINCT = 1000  # rewards a range must be able to tell apart
_MOST = 2**62  # of anything counted: rounds and ids are whole numbers of 64 bits
_DECISION = 72  # bytes of a decision asked in a batch: its row among those open, and its four columns


def check_count(name: str, value: Any, *, cure: str = "") -> int:
    """Give `value` as an int of at least 1 and at most 2^62."""
    hint = f"; {cure}" if cure else ""
    try:
        number = operator.index(value)
    except TypeError:
        whole = isinstance(value, float) and value.is_integer()
        hint = f"; write {name}={shown(int(value))}" if whole else hint
        raise InputError(f"{name} must be a whole number, got {shown(value)}{hint}") from None
    if isinstance(value, bool) or number < 1:
        raise InputError(f"{name} must be at least 1, got {shown(value)}{hint}")
    if number > _MOST:
        raise InputError(f"{name} must be at most 2^62, about {_MOST:.1e}, got {shown(value)}{hint}")
    return number


def check_size(size: Any) -> int:
    """How many decisions one call asks for: a count whose decisions fit into memory."""
    count = check_count("size", size)
    check_memory(_DECISION * count, f"ask(size={count})", cure="ask for them in smaller batches")
    return count


def check_posterior(features: Floats) -> None:
    """Refuse arms whose joint posterior cannot be held: two matrices as large as the features are many."""
    arms, rank = features.shape
    cure = "take fewer arms, or a kernel with a longer length scale or a larger tolerance"
    check_memory(2 * FLOAT * min(arms, rank) ** 2, f"a posterior over {arms:,} arms and {rank:,} features", cure=cure)


def check_path(wanted: str, path: Any) -> None:
    """Refuse what cannot be the name of a file."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{wanted}, got {shown(path)} of type {type(path).__name__}")
    name = os.fspath(path)
    if not name or "\0" in str(name):
        raise InputError(f"{wanted}, got {shown(name)}, which can be the name of no file")


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
    """Give `value` as a float from 1e-150 to 1e150 (or 0): its square, and what is divided by it, stay ordinary."""
    try:
        number = as_float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, got {shown(value)}") from None
    if isinstance(value, bool) or not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise InputError(f"{name} must be a {'non-negative' if zero else 'positive'} number, got {shown(value)}")
    if number > _EXTREME or 0 < number < 1.0 / _EXTREME:
        raise InputError(f"{name} must be a number from {1 / _EXTREME:g} to {_EXTREME:g}, got {shown(value)}")
    return number


def check_probability(name: str, value: Any, *, least: float = 0.0) -> float:
    """Give `value` as a float above 0 and below 1, and not below `least`.

    >>> check_probability("false_alarm", 0.1)
    0.1
    """
    try:
        number = as_float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not (0.0 < number < 1.0 and number >= least):
        limit = f" and not below {least:g}" if least else ""
        raise InputError(f"{name} is a probability and must lie in (0, 1){limit}, got {shown(value)}")
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


def check_range(reward_range: Any) -> tuple[float, float]:
    """Give a reward range as two floats, low < high, between which rewards can be mapped to [-1, 1] and back.

    Ends beyond 1e150 or less than 1e-150 apart are refused, so that neither the width nor a square of a reward leaves
    what floats can hold. So are ends that leave fewer than 1,000 floats between them, such as (1e16, 1e16 + 2):
    rounding would then move a reward by more than a thousandth of the range.
    """
    try:
        pair = () if isinstance(reward_range, (*TEXT, Set, Mapping)) else reward_range
        low, high = (as_float(value) for value in pair)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"reward_range must be a pair (low, high) of numbers, got {shown(reward_range)}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"reward_range must be finite with low < high, got ({low:g}, {high:g})")
    largest = max(abs(low), abs(high))
    if largest > _EXTREME or high - low < 1.0 / _EXTREME:
        raise InputError(
            f"reward_range must lie within {_EXTREME:g} of 0 and be at least {1 / _EXTREME:g} wide, got ({low!r}, "
            f"{high!r}); express rewards in another unit"
        )
    if high - low < _DISTINCT * math.ulp(largest):
        raise InputError(
            f"reward_range=({low!r}, {high!r}) is too narrow to tell rewards apart: floats of that size are "
            f"{math.ulp(largest):g} apart; subtract {low!r} from the rewards and from the range"
        )
    return low, high


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
