"""Checks of single values that a caller passes: one line where one is used, one message that names value and cure."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from typing import Any, TypeVar

from driftbandits.errors import InputError
from driftbandits.numeric import as_float
from driftbandits.showing import shown

Word = TypeVar("Word", bound=str)

EXTREME = 1e150  # squares of it, and of one part in it, are still ordinary floats
_LARGEST_COUNT = 2**62  # of anything counted: rounds and ids are whole numbers of 64 bits
MOST_WEIGHT_MATRICES = 10_000  # of a network: long before, all points look alike to it


def check_count(name: str, value: Any, *, least: int = 1, cure: str = "") -> int:
    """Give `value` as an int of at least `least` and at most 2^62.

    >>> check_count("horizon", 100)
    100
    """
    hint = f"; {cure}" if cure else ""
    try:
        number = operator.index(value)
    except TypeError:
        whole = isinstance(value, float) and value.is_integer()
        hint = f"; write {name}={shown(int(value))}" if whole and name.isidentifier() else hint
        raise InputError(f"{name} must be a whole number, got {shown(value)}{hint}") from None
    if isinstance(value, bool) or number < least:
        raise InputError(f"{name} must be at least {least}, got {shown(value)}{hint}")
    if number > _LARGEST_COUNT:
        raise InputError(f"{name} must be at most 2^62, about {_LARGEST_COUNT:.1e}, got {shown(value)}{hint}")
    return number


def check_depth(depth: Any) -> int:
    """Give `depth` as an int from 1 to 10,000."""
    number = check_count("depth", depth, cure="it is the number of weight matrices")
    if number > MOST_WEIGHT_MATRICES:
        raise InputError(
            f"depth, the number of weight matrices, must be at most {MOST_WEIGHT_MATRICES:,}, got {shown(depth)}"
        )
    return number


def check_positive(name: str, value: Any, *, zero: bool = False, cure: str = "") -> float:
    """Give `value` as a float from 1e-150 to 1e150 (or 0): its square, and what is divided by it, stay ordinary."""
    hint = f"; {cure}" if cure else ""
    try:
        number = as_float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, got {shown(value)}{hint}") from None
    if isinstance(value, bool) or not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        sign = "non-negative" if zero else "positive"
        raise InputError(f"{name} must be a finite {sign} number, got {shown(value)}{hint}")
    if number > EXTREME or 0 < number < 1.0 / EXTREME:
        raise InputError(f"{name} must be a number from {1 / EXTREME:g} to {EXTREME:g}, got {shown(value)}{hint}")
    return number


def check_probability(
    name: str, value: Any, *, zero: bool = False, one: bool = False, least: float = 1.0 / EXTREME
) -> float:
    """Give `value` as a float between 0 and 1, where `zero` and `one` say if it may be these; else not below `least`.

    >>> check_probability("false_alarm", 0.1)
    0.1
    """
    try:
        number = as_float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not (least <= number < 1.0 or (zero and number == 0.0) or (one and number == 1.0)):
        limit = f" and not below {least:g}" if 0.0 < number < least else ""
        ends = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise InputError(f"{name} must lie in {ends}{limit}, got {shown(value)}")
    return number


def check_word(name: str, value: Word, words: Sequence[str], *, cure: str = "") -> Word:
    """Give `value` back if it is one of `words`.

    >>> check_word("order", "told", ("told", "asked"))
    'told'
    """
    if not isinstance(value, str) or value not in words:
        *first, last = [repr(word) for word in words]
        known = f"{', '.join(first)} or {last}" if first else last
        raise InputError(f"{name} must be {known}, got {shown(value)}" + (f"; {cure}" if cure else ""))
    return value


def check_flag(name: str, value: Any) -> bool:
    """Give `value` back if it is True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, got {shown(value)}")
    return value


def check_path(wanted: str, path: Any) -> None:
    """Refuse what cannot be the name of a file."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{wanted}, got {shown(path)} of type {type(path).__name__}")
    name = os.fspath(path)
    if not name or "\0" in str(name):
        raise InputError(f"{wanted}, got {shown(name)}, which can be the name of no file")
