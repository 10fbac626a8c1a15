"""Checked access to the values of a saved state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg.lapack

from driftbandits.errors import StateError
from driftbandits.text import shown
from driftbandits.types import Floats, Ints

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


FARTHEST = 2**53  # rounds, laws and other things counted one by one: no run gets there
ROUNDING = 1e-6  # relative


def check_phase(*, rounds: int, start: int, length: int, horizon: int | None, first: int | None) -> None:
    """Refuse a stretch of play, `length` rounds from round `start` on, that a policy cannot be in after `rounds`.

    Length 0 is before the first. A known `horizon` is one stretch. Where it is unknown, stretches double from `first`
    on, or (None) there is a single one without end, whose length is not checked.
    """
    if length == 0:
        fine = rounds == start == 0
    elif horizon is not None or first is None:
        fine = start == 0 and (horizon is None or length == horizon)
    else:
        fine = start == length - first and length % first == 0 and (length // first).bit_count() == 1
    check(fine and (length == 0 or rounds <= start + length), "stretch of rounds")


def told_at_most(rounds: int, pending: npt.NDArray[np.void], *, since: int = 0) -> int:
    """How many rewards of rounds from `since` on can have been told: those of open decisions have not."""
    return rounds - since - int(np.count_nonzero(pending["id"] >= since))


@np.errstate(all="ignore")
def check_whole(counts: Floats | Ints, most: int, what: str) -> None:
    """Counts of things of which there are at most `most` in all."""
    inside = bool(((counts >= 0) & (counts <= most)).all()) and bool((counts == np.floor(counts)).all())
    check(inside and counts.sum() <= most, what)


@np.errstate(all="ignore")
def check_sums(weights: Floats, sums: Floats, what: str, *, largest: float = 1.0, slack: float = 0.0) -> None:
    """Sums of numbers of at most `largest` in size with these weights; `slack` where some were taken away again."""
    inside = np.abs(sums) <= (1.0 + ROUNDING) * largest * weights + slack
    check(bool((weights >= 0.0).all() and inside.all()), what)


@np.errstate(all="ignore")
def check_covariance(covariance: Floats, *, largest: float, slack: float, what: str) -> None:
    """Covariances of things of variance `largest` at most: symmetric, and no variance below -`slack`."""
    lopsided = np.abs(covariance - covariance.T).max(initial=0.0)
    check(bool(lopsided <= ROUNDING * largest and is_positive(covariance, slack)), what)


@np.errstate(all="ignore")
def is_positive(matrix: Floats, slack: float) -> bool:
    """Whether a symmetric matrix has no eigenvalue below -`slack`, which is positive."""
    if not len(matrix):
        return True
    raised = 0.5 * (matrix + matrix.T)
    raised[np.diag_indices_from(raised)] += slack
    return int(scipy.linalg.lapack.dpotrf(raised, lower=1, overwrite_a=1)[1]) == 0
