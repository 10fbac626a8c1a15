"""What callers pass: sizes, allowed arms, ids and rewards of calls, and settings of constructors.

Whole lists of settings in the docstrings of policies, each setting described in one place.

A class describes the settings that are its own and writes `others : see ...` for the rest. Here the rest is filled in,
in the words of the nearest base that describes it, so that `help(GPUCB)` and the reference show every setting.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np

from driftbandits._util.checks import TEXT, as_float, as_floats, check_count, check_memory, check_word
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError, RewardError, UnknownDecisionError, did_you_mean
from driftbandits.policies.rewards import RewardScale
from driftbandits.text import shown
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


class CommonSettings(TypedDict, total=False):
    """Settings that every policy takes; those with settings of their own hand them on to `Policy`."""

    horizon: int | None
    seed: int | None
    reward_range: tuple[float, float]
    out_of_range: Literal["error", "clip"]
    pending_limit: int
    order: Literal["told", "asked"] | None
    patience: int | None
    missing: float | Literal["forget"] | None


COMMON_SETTINGS = tuple(CommonSettings.__annotations__)


def check_settings(policy: type, given: Sequence[Any], settings: Mapping[str, Any]) -> None:
    """Refuse what no constructor of `policy` takes: too much by position, or a name, with the nearest that exists."""
    parameters = inspect.signature(policy).parameters.values()
    by_position = [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    if len(given) > len(by_position):
        raise InputError(
            f"{policy.__name__} takes {' and '.join(p.name for p in by_position)} by position and all settings by "
            f"name, got {shown(given[len(by_position)])} too; write for example horizon=1000"
        )
    known = known_settings(policy)
    unknown = [name for name in settings if name not in known]
    if unknown:
        kind, valid = policy.__name__, ", ".join(sorted(known))
        lines = [f"{kind} has no setting {name!r}; {did_you_mean(name, known)}known: {valid}" for name in unknown]
        raise InputError("\n".join(lines))


@functools.cache
def known_settings(policy: type) -> frozenset[str]:
    """Names of all settings of a class, its own and those it hands on, and `arms`."""
    return frozenset(signature_of(policy).parameters)


def own_settings(policy: type) -> list[str]:
    """Names of the settings that not every policy has."""
    return [name for name in inspect.signature(policy).parameters if name not in ("arms", *COMMON_SETTINGS)]


def signature_of(policy: type) -> inspect.Signature:
    """The constructor as a user calls it: `arms`, the settings of the class, and those it hands on to its bases.

    A constructor that takes `**settings` passes them on to the next one, so the valid names are declared in several
    places; help and editors want it in one. The first constructor may take more than the arms by position; in those
    after it, such parameters are how bases are told of their parts.
    """
    found: dict[str, inspect.Parameter] = {}
    for kind in policy.__mro__:
        if "__init__" not in vars(kind) or kind is object:
            continue
        _, *parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
        first = not found
        for parameter in parameters:
            named = parameter.kind is parameter.KEYWORD_ONLY
            if named or (first and parameter.kind is parameter.POSITIONAL_OR_KEYWORD):
                found.setdefault(parameter.name, parameter)
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
    ordered = sorted(found.values(), key=lambda parameter: parameter.kind)
    return inspect.Signature(ordered)


HEADING = "Parameters\n----------\n"
_ITEM = re.compile(r"(\w[\w, ]*) : .*(?:\n +.*)*\n?")  # a name or several, their words, and lines that go on
_OTHERS = "others"  # see there
_RAISES = re.compile(r"\nRaises\n------\n(?:\w+\n(?: +.*\n)+)+")


class Parts(NamedTuple):
    """A docstring, taken apart: the text before the list of parameters, its items by their names, and what follows."""

    before: str
    items: dict[str, str]
    after: str

    @property
    def errors(self) -> str:
        """The section on errors."""
        found = _RAISES.search(self.after)
        return found[0] if found else ""


def whole_docstring(policy: type, settings: Iterable[str]) -> str | None:
    """The docstring of a class with an item for each of these settings, as far as it or a base describes them."""
    if not policy.__doc__:  # also what `python -OO` leaves
        return policy.__doc__
    own, *bases = [taken_apart(base.__dict__.get("__doc__") or "") for base in policy.__mro__]
    words = {name: text for part in (*reversed(bases), own) for name, text in part.items.items()}
    listed = dict.fromkeys(words[name] for name in settings if name in words)  # one of several names stands there once
    if not listed:
        return policy.__doc__
    errors = "" if own.errors else next((base.errors for base in bases if base.errors), "")
    return f"{own.before}{HEADING}{''.join(listed | dict.fromkeys(own.items.values()))}{errors}{own.after}"


@cache
def taken_apart(docstring: str) -> Parts:
    """The parts of a docstring; without a list of parameters, the examples are what would follow it.

    >>> taken_apart("Keeps a window.\\n\\nParameters\\n----------\\nwindow : rounds kept\\n\\nSlow.")
    Parts(before='Keeps a window.\\n\\n', items={'window': 'window : rounds kept\\n'}, after='\\nSlow.\\n')
    """
    text = inspect.cleandoc(docstring) + "\n"
    before, heading, rest = text.partition(HEADING)
    if not heading:
        before, mark, examples = text.partition("\n>>> ")
        return Parts(f"{before.rstrip()}\n\n", {}, f"{mark}{examples}")
    items: dict[str, str] = {}
    position = 0
    while item := _ITEM.match(rest, position):
        items |= {name.strip(): item[0] for name in item[1].split(",")}
        position = item.end()
    items.pop(_OTHERS, None)
    return Parts(before, items, rest[position:])


FORGET: Literal["forget"] = "forget"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Checked settings. `value` is the reward of what is missing on the internal scale, None where it has none."""

    order: Literal["told", "asked"]
    patience: int | None
    missing: float | Literal["forget"] | None
    value: float | None


def read_waiting(order: Any, patience: Any, missing: Any, scale: RewardScale, *, open_is_data: bool = False) -> Waiting:
    """The settings `order`, `patience` and `missing`; patience implies the order asked.

    Not for a policy that learns from open decisions where these count as the low end of the range (`open_is_data`): it
    needs no order, unless it is told to keep one.

    >>> read_waiting("told", 600, 0, RewardScale(0.0, 2.0))
    Waiting(order='asked', patience=600, missing=0.0, value=-1.0)
    >>> read_waiting(None, 600, 0, RewardScale(0.0, 2.0), open_is_data=True).order
    'told'
    """
    order = None if order is None else check_word("order", order, ("told", "asked"))
    kept = _read_missing(missing, scale)
    if patience is not None:
        patience = check_count("patience", patience, cure="it is a number of rounds; None waits for ever")
        if kept is None:
            raise InputError(
                f"patience={patience} needs missing: say what a decision whose reward has not come by then is worth, "
                f"such as missing={scale.low:g}, or missing='forget' if that says nothing about the reward; there is "
                f"no safe default, for where only successes are reported, forgetting the rest teaches that all succeed"
            )
    value = None if kept is None or kept == FORGET else scale.inward(float(kept))
    if patience is not None and not (open_is_data and value == -1.0 and order != "asked"):
        order = "asked"
    return Waiting(order=order or "told", patience=patience, missing=kept, value=value)


def _read_missing(missing: Any, scale: RewardScale) -> float | Literal["forget"] | None:
    if missing is None:
        return None
    if isinstance(missing, str):
        return check_word("missing", missing, (FORGET,), cure="or a number within reward_range")  # type: ignore[return-value]
    try:
        value = math.nan if isinstance(missing, bool) else as_float(missing)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not scale.low <= value <= scale.high:
        raise InputError(
            f"missing must be 'forget' or a number within reward_range=({scale.low:g}, {scale.high:g}), got "
            f"{shown(missing)}"
        )
    return value


def shown_waiting(order: str, patience: int | None, missing: float | str | None) -> dict[str, Any]:
    """What of these settings is to be shown: what is not usual, and not implied.

    >>> shown_waiting("asked", 600, 0.0), shown_waiting("told", None, None)
    ({'patience': 600, 'missing': 0.0}, {})
    """
    given = {"order": None if order == "told" or patience is not None else order, "patience": patience}
    return {name: value for name, value in {**given, "missing": missing}.items() if value is not None}
