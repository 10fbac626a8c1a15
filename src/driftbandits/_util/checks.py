"""Checks of single values and of memory: an error names the value and the cure."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from driftbandits.errors import InputError
from driftbandits.text import shown
from driftbandits.types import Floats

TEXT = (str, bytes, bytearray)
_NOT_NUMBERS = (*TEXT, complex, np.complexfloating, np.datetime64, np.timedelta64, np.ma.MaskedArray)
_KIND_NAMES = {"S": "text", "U": "text", "T": "text", "c": "complex", "M": "dates", "m": "durations"}


def as_float(value: Any) -> float:
    """One number as a float: also a Decimal, a Fraction or anything else that `float` takes, but no text or date.

    Raises TypeError, ValueError or OverflowError for what is none; the caller says what it was meant for.

    >>> from fractions import Fraction
    >>> as_float(Fraction(1, 4)), as_float(True)
    (0.25, 1.0)
    """
    if isinstance(value, _NOT_NUMBERS) or np.ndim(value) != 0:
        raise TypeError(f"{type(value).__name__} is not one number")
    return float(value)


def as_floats(values: Any) -> Floats:
    """Numbers in any container as an array of floats of the same shape; None becomes NaN.

    Raises TypeError, ValueError or OverflowError, which say what was found, for values that are no numbers, rows of
    unequal length, masked entries and sparse matrices. Nothing is copied where it is an array of floats already.
    """
    if isinstance(values, TEXT):
        raise TypeError("the values are text, not real numbers")
    if hasattr(values, "toarray"):
        raise TypeError(f"a {type(values).__name__} is sparse; call its toarray() first")
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise TypeError("some values are masked")
    return _plain_floats(np.asarray(values))


def _plain_floats(array: npt.NDArray[Any]) -> Floats:
    kind = array.dtype.kind
    if kind in "fiub" and array.dtype.itemsize <= 8:
        return array.astype(np.float64, copy=False)
    if kind == "f":
        with np.errstate(over="ignore"):  # a long double beyond floats becomes infinite, as any other would
            return array.astype(np.float64)
    if kind != "O":
        raise TypeError(f"the values are {_KIND_NAMES.get(kind, f'of type {array.dtype}')}, not real numbers")
    numbers = [math.nan if value is None else as_float(value) for value in array.ravel().tolist()]
    return np.array(numbers, dtype=np.float64).reshape(array.shape)


FLOAT_BYTES = 8  # in double precision
NEVER_REFUSED_BYTES = 2**28  # importing the library takes nearly as much

# Of cgroups 2 and of cgroups 1.
_CONTAINER_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit() -> float:
    """Bytes this process may use: what the machine has, less if a container or `ulimit -v` says so.

    Infinite where the system does not tell.
    """
    return min(_of_the_machine(), _of_the_container(), _of_the_process())


def check_memory(needed: int, what: str, *, cure: str) -> None:
    """Refuse work that needs more than all the memory there is.

    `needed` is the least it can do with, in bytes: what may just fit is let through.
    """
    if needed <= NEVER_REFUSED_BYTES:
        return
    limit = memory_limit()
    if needed > limit:
        raise InputError(
            f"{what} would need {_in_words(needed)} of memory at least, and there are {_in_words(int(limit))}; {cure}"
        )


def _of_the_machine() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no such question on Windows
        return math.inf


def _of_the_container() -> float:
    for place in _CONTAINER_LIMIT_FILES:
        try:
            return float(place.read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
    return math.inf


def _of_the_process() -> float:
    try:
        import resource  # Unix only
    except ImportError:
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _in_words(count: int) -> str:
    """Bytes for a message.

    >>> _in_words(24 << 30), _in_words(5 << 20), _in_words(10**30)
    ('24.0 GiB', '5.0 MiB', '931322574615478515625 GiB')
    """
    if count < 2**30:
        return f"{count / 2**20:.1f} MiB"
    return f"{count / 2**30:.1f} GiB" if count < 2**50 else f"{shown(count >> 30)} GiB"


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
