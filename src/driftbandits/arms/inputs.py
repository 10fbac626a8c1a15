"""Arms from what people have: columns of a table, numbers and words, encoded as points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits._util.checks import as_floats
from driftbandits.errors import InputError
from driftbandits.text import shown
from driftbandits.types import Floats


@dataclass(frozen=True)
class Table:
    """Numbers in rows, with the names of columns and rows where they have any."""

    values: Floats
    columns: tuple[str, ...] | None
    rows: tuple[str, ...] | None


def read_table(data: Any, what: str) -> Table:
    """Checked numbers from an array, nested lists or a DataFrame (known by its methods; pandas is not imported)."""
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        columns = tuple(str(column) for column in data.columns)
        return Table(_column_numbers(_frame_values(data, columns, what), what, columns), columns, row_names(data))
    return Table(_column_numbers(data, what, None), None, None)


def row_names(frame: Any) -> tuple[str, ...] | None:
    """The index as names; None where it only counts."""
    index = getattr(frame, "index", None)
    if index is None or list(index) == list(range(len(frame))):
        return None
    return tuple(str(name) for name in index)


def _frame_values(frame: Any, columns: tuple[str, ...], what: str) -> Any:
    text = [name for name, dtype in zip(columns, frame.dtypes, strict=True) if not _is_numeric(dtype)]
    if text:
        raise InputError(
            f"columns {text} of {what} are not numbers; encode them (for example with pandas.get_dummies), convert "
            f"them with astype(float), or leave them out"
        )
    try:
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas, whose missing integers are no floats
    except TypeError:
        return frame.to_numpy()


def _is_numeric(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)
    if kind is None:  # polars
        return bool(dtype.is_numeric()) or str(dtype) == "Boolean"
    return kind in "biuf"


def _column_numbers(data: Any, what: str, columns: tuple[str, ...] | None) -> Floats:
    if hasattr(data, "toarray"):
        raise InputError(f"{what} must be dense, got {type(data).__name__}; call its toarray() first")
    if isinstance(data, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(data)
        data = np.array(np.ma.getdata(data), dtype=object)
        data[masked] = None  # missing, which is said below with its place
    try:
        array = np.array(as_floats(data), order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} must be numbers in rows of equal length: {error}") from None
    if array.ndim == 1 and array.size:
        raise InputError(
            f"{what} must have one row per arm, got the shape {array.shape}; for {array.size} arms with one coordinate "
            f"each use numpy.reshape({what}, (-1, 1)), for a single arm [{what}]"
        )
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{what} must have shape (arms, dimensions) with at least one of each, got {array.shape}")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        where = f"row {row}, column {column}" + (f" ({columns[column]!r})" if columns else "")
        raise InputError(f"{what} at {where} is {array[row, column]}; fill or drop missing values first")
    return array


def read_names(names: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    """Names of the arms as distinct strings, one per arm."""
    if names is None:
        return None
    if isinstance(names, str):
        raise InputError(f"names must be {size} strings, one per arm, got the single string {shown(names)}; use a list")
    given = tuple(names)
    if len(given) != size:
        raise InputError(f"names must be {size} strings, one per arm, got {len(given)}: {shown(given)}")
    for name in given:
        if not isinstance(name, str):
            raise InputError(f"names must be strings, got {shown(name)}; convert them with str()")
    if len(set(given)) != size:
        twice, _ = Counter(given).most_common(1)[0]
        raise InputError(
            f"two arms are called {shown(twice)}; names must differ (a DataFrame's index names its arms: "
            f"reset_index(drop=True) numbers them anew)"
        )
    return tuple(str(name) for name in given)


def read_bounds(bounds: Any) -> Floats:
    """Ends of a box, shape (d, 2)."""
    try:
        limits = as_floats(bounds)
    except (TypeError, ValueError, OverflowError):
        limits = np.empty(0)
    usable = limits.ndim == 2 and limits.shape[1] == 2 and len(limits) > 0
    if not usable or not np.isfinite(limits).all() or (limits[:, 0] >= limits[:, 1]).any():
        raise InputError(
            f"bounds must be a list with one pair (low, high) per dimension, low < high, such as [(0, 1)], "
            f"got {shown(bounds)}"
        )
    return limits


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
