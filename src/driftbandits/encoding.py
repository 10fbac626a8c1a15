"""Columns of a DataFrame as coordinates: numbers standardised, words one-hot. pandas is not imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.errors import InputError
from driftbandits.numeric import as_floats
from driftbandits.showing import shown
from driftbandits.types import Floats

_MOST_WORDS = 1_000  # of a column; more are texts or identifiers


@dataclass(frozen=True)
class Column:
    """How a column is read: numbers less `middle` over `spread`, or a coordinate for each of the `words`."""

    name: str
    middle: float = 0.0
    spread: float = 1.0
    words: tuple[str, ...] = ()

    def apply(self, frame: Any) -> Floats:
        """Coordinates of every row, shape (N, 1) or (N, words)."""
        if self.name not in [str(name) for name in frame.columns]:
            raise InputError(f"there is no column {shown(self.name)}, which the arms before were made with; add it")
        if not self.words:
            return ((_numbers(frame, self.name) - self.middle) / self.spread)[:, None]
        given = _words(frame, self.name)
        unknown = [word for word in given if word not in self.words]
        if unknown:
            raise InputError(
                f"column {shown(self.name)} has {shown(unknown[0])}, unknown to the arms before: its coordinate would "
                f"change what the others mean; build the arms, and the policy, anew"
            )
        return np.array([[float(word == own) for own in self.words] for word in given])


@dataclass(frozen=True)
class Encoding:
    """The columns of a frame, in its order."""

    columns: tuple[Column, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(
            name for column in self.columns for name in ([f"{column.name}={w}" for w in column.words] or [column.name])
        )

    def apply(self, frame: Any) -> Floats:
        """Points of the rows, shape (N, d)."""
        _check_frame(frame)
        return np.hstack([column.apply(frame) for column in self.columns])

    @staticmethod
    def row_names(frame: Any) -> tuple[str, ...] | None:
        """The index as names; None where it only counts."""
        index = getattr(frame, "index", None)
        if index is None or list(index) == list(range(len(frame))):
            return None
        return tuple(str(name) for name in index)


def read_encoding(frame: Any, *, onehot: bool, scale: bool) -> Encoding:
    """How to read a frame: which columns are numbers, their means and deviations, which words the others have."""
    _check_frame(frame)
    return Encoding(tuple(_read_column(frame, str(name), onehot=onehot, scale=scale) for name in frame.columns))


def _check_frame(frame: Any) -> None:
    if not hasattr(frame, "columns") or not hasattr(frame, "to_numpy"):
        raise InputError(
            f"from_frame wants a DataFrame, got {shown(frame)}; for an array of numbers use ArmSet(points)"
        )
    names = [str(name) for name in frame.columns]
    if not names or not len(frame):
        raise InputError(f"the frame has {len(frame)} rows and {len(names)} columns; give at least one of each")
    if len(set(names)) < len(names):
        raise InputError(f"two columns of the frame have the same name: {shown(names)}; rename one")


def _read_column(frame: Any, name: str, *, onehot: bool, scale: bool) -> Column:
    if _is_numeric(_column(frame, name).dtype):
        values = _numbers(frame, name)
        spread = float(values.std())
        if not scale:
            return Column(name)
        return Column(name, float(values.mean()), spread if spread > 1e-12 * float(np.abs(values).max()) else 1.0)
    if not onehot:
        raise InputError(f"column {shown(name)} is not of numbers; pass categorical='onehot', or leave it out")
    words = sorted(set(_words(frame, name)))
    if len(words) > _MOST_WORDS:
        raise InputError(
            f"column {shown(name)} has {len(words):,} words, which would be as many coordinates; leave it out, "
            f"or make it the index if it names the arms"
        )
    return Column(name, words=tuple(words))


def _column(frame: Any, name: str) -> Any:
    return next(frame[own] for own in frame.columns if str(own) == name)


def _is_numeric(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)
    if kind is None:  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return kind in "biuf"


def _numbers(frame: Any, name: str) -> Floats:
    column = _column(frame, name)
    try:
        values = as_floats(column.astype("float64").to_numpy() if hasattr(column, "astype") else column.to_numpy())
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"column {shown(name)} is not of numbers, as it was before: {error}") from None
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InputError(f"column {shown(name)} is {values[row]} in row {row}; fill or drop missing values first")
    return values


def _words(frame: Any, name: str) -> list[str]:
    values = _column(frame, name).to_list()
    for row, value in enumerate(values):
        if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):
            raise InputError(f"column {shown(name)} is empty in row {row}; fill or drop missing values first")
    return [str(value) for value in values]
