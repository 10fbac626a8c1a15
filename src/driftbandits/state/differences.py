"""How far two states are apart: whole numbers, texts and structure exactly, floats by their largest difference.

The same journal gives the same state on the same kind of machine, bit for bit. On another kind the last digits of
floats differ, and nothing else does. `docs/machines.md` says what is the same where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Between kinds of machines, of 1 or of the number itself if that is larger. Measured: 2e-11, and 5e-7 where networks
# compute in single precision; one reward in a thousand that is off by 1 % of the range makes 4e-4.
TOLERANCE = 1e-5
OF_THE_WRITER = ("library", "provenance")  # what says who wrote a state, and nothing of what is in it


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference between two states.

    Parameters
    ----------
    size : of floats, as a part of 1 or of the number itself if that is larger; infinite where anything else differs
    place : where in the state that is

    >>> compare({"rounds": 3, "mean": 0.5}, {"rounds": 3, "mean": 0.75})
    Difference(size=0.25, place='mean')
    >>> compare({"rounds": 3, "mean": 0.5}, {"rounds": 4, "mean": 0.5}).size
    inf
    """

    size: float = 0.0
    place: str = ""


def compare(one: Any, other: Any) -> Difference:
    """The largest difference between two states; who wrote them is not compared."""
    largest = Difference()
    for found in _differences(one, other, ""):
        if found.size == np.inf:
            return found
        if found.size > largest.size:
            largest = found
    return largest


def _differences(one: Any, other: Any, place: str) -> Iterator[Difference]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = [name for name in {**one, **other} if name not in OF_THE_WRITER]
        for name in names:
            here = f"{place}.{name}" if place else str(name)
            if name in one and name in other:
                yield from _differences(one[name], other[name], here)
            else:
                yield Difference(np.inf, here)
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{place}[{number}]")
    elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        yield from _between_arrays(one, other, place)
    elif isinstance(one, float) and isinstance(other, float):
        yield Difference(_largest(np.array([one]), np.array([other])), place)
    elif type(one) is not type(other) or one != other:
        yield Difference(np.inf, place)


def _between_arrays(one: npt.NDArray[Any], other: npt.NDArray[Any], place: str) -> Iterator[Difference]:
    if one.shape != other.shape or one.dtype != other.dtype:
        yield Difference(np.inf, place)
    elif one.dtype.names:
        for name in one.dtype.names:
            yield from _between_arrays(one[name], other[name], f"{place}.{name}")
    elif one.dtype.kind == "f":
        yield Difference(_largest(one, other), place)
    elif not np.array_equal(one, other):
        yield Difference(np.inf, place)


def _largest(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    """Of floats; two that are not numbers are equal."""
    left, right = one.astype(np.float64), other.astype(np.float64)
    unequal = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    if not unequal.any():
        return 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(left - right)[unequal] / np.maximum(1.0, np.abs(right[unequal]))
    return float(np.nan_to_num(sizes, nan=np.inf).max())
