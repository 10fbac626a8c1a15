"""Checked access to the values of a saved state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.errors import StateError
from driftbandits.showing import shown

_LARGEST = 2**63 - 1


class Reader:
    """Checked access to a state mapping: every value is asked for by name, kind and range.

    A wrong or missing value is a StateError that names its place, for example `state.engine.block`.

    Parameters
    ----------
    values : the mapping
    place : what messages call it

    Raises
    ------
    StateError
        If the values are no mapping.

    >>> state = Reader({"count": 3, "sums": np.zeros(2)})
    >>> state.integer("count", high=10), state.array("sums", np.float64, (2,)).tolist()
    (3, [0.0, 0.0])
    >>> state.text("count")
    Traceback (most recent call last):
    ...
    driftbandits.errors.StateError: state.count must be a string, got 3
    """

    def __init__(self, values: Any, place: str = "state") -> None:
        if not isinstance(values, Mapping):
            raise StateError(f"{place} must be a mapping, got {type(values).__name__}")
        self._values = values
        self._place = place

    def has(self, name: str) -> bool:
        """Whether there is such a value.

        Parameters
        ----------
        name : of the value

        Returns
        -------
        bool
        """
        return name in self._values

    def raw(self, name: str) -> Any:
        """The value, unchecked.

        Parameters
        ----------
        name : of the value

        Returns
        -------
        the value

        Raises
        ------
        StateError
            If it is missing.
        """
        if name not in self._values:
            raise StateError(f"{self._place}.{name} is missing; the state is incomplete")
        return self._values[name]

    def _wrong(self, name: str, wanted: str) -> StateError:
        return StateError(f"{self._place}.{name} must be {wanted}, got {shown(self._values[name])}")

    def integer(self, name: str, *, low: int = 0, high: int | None = None) -> int:
        """Whole number, of 64 bits at most.

        Parameters
        ----------
        name : of the value
        low, high : the least and the largest it may be; None for no limit

        Returns
        -------
        int

        Raises
        ------
        StateError
            If it is missing, of another kind, or out of its range.
        """
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -_LARGEST <= value <= _LARGEST:
            raise self._wrong(name, "a whole number of 64 bits")
        if value < low or (high is not None and value > high):
            raise self._wrong(name, f"at least {low}" + ("" if high is None else f" and at most {high}"))
        return int(value)

    def number(self, name: str) -> float:
        """Finite number.

        Parameters
        ----------
        name : of the value

        Returns
        -------
        float

        Raises
        ------
        StateError
            If it is missing, or of another kind.
        """
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise self._wrong(name, "a finite number")
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond all floats
            number = math.inf
        if not math.isfinite(number):
            raise self._wrong(name, "a finite number")
        return number

    def flag(self, name: str) -> bool:
        """True or False.

        Parameters
        ----------
        name : of the value

        Returns
        -------
        bool

        Raises
        ------
        StateError
            If it is missing, or of another kind.
        """
        value = self.raw(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def text(self, name: str) -> str:
        """A string.

        Parameters
        ----------
        name : of the value

        Returns
        -------
        str

        Raises
        ------
        StateError
            If it is missing, or of another kind.
        """
        value = self.raw(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def reader(self, name: str) -> Reader:
        """Mapping below a name.

        Parameters
        ----------
        name : of the value

        Returns
        -------
        Reader

        Raises
        ------
        StateError
            If it is missing, or of another kind.
        """
        return Reader(self.raw(name), f"{self._place}.{name}")

    def readers(self, name: str) -> Iterator[Reader]:
        """Mappings in the list below a name.

        Parameters
        ----------
        name : of the value

        Yields
        ------
        Reader

        Raises
        ------
        StateError
            If it is missing, or no list of mappings.
        """
        value = self.raw(name)
        if not isinstance(value, (list, tuple)):
            raise self._wrong(name, "a list")
        for position, item in enumerate(value):
            yield Reader(item, f"{self._place}.{name}[{position}]")

    def array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        """Array; a copy.

        Parameters
        ----------
        name : of the value
        dtype : of its numbers
        shape : one length per dimension; None for any

        Returns
        -------
        array

        Raises
        ------
        StateError
            If it is missing, of another type or shape, or has floats that are not finite.
        """
        value = self.raw(name)
        if type(value) is not np.ndarray or value.dtype != np.dtype(dtype):  # nor a masked array, or a matrix
            raise self._wrong(name, f"an array of {np.dtype(dtype)}")
        if value.ndim != len(shape) or any(s is not None and s != v for s, v in zip(shape, value.shape, strict=True)):
            raise StateError(f"{self._place}.{name} must have shape {shape}, got {value.shape}")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise StateError(f"{self._place}.{name} has values that are not finite")
        return value.copy()

    def law(self, name: str, size: int) -> npt.NDArray[np.float64]:
        """Probability vector.

        Parameters
        ----------
        name : of the value
        size : number of arms

        Returns
        -------
        array, shape (size,)

        Raises
        ------
        StateError
            If it is missing, of another length, negative somewhere, or does not sum to 1.
        """
        value = self.array(name, np.float64, (size,))
        if (value < 0).any() or abs(value.sum() - 1.0) > 1e-9:
            raise StateError(f"{self._place}.{name} is not a probability vector (sum {value.sum():.6g})")
        return value


def check(fine: bool, what: str) -> None:
    """Refuse a state whose `what` cannot be."""
    if not fine:
        raise StateError(f"the {what} in the state cannot be: it was damaged, or is that of another policy")
