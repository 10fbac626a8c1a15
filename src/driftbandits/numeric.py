"""Numbers from what users pass: whatever is a number, and nothing that NumPy would merely turn into one.

Left to itself, NumPy reads "0.3" and a date as numbers, drops imaginary parts, and takes what lies under a mask.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

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
