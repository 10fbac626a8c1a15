"""Reading what users give as points: arrays, lists or DataFrames, checked, with their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.errors import InputError
from driftbandits.numeric import as_floats
from driftbandits.showing import shown
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
        index = getattr(data, "index", None)
        values = _numbers(_frame_values(data, columns, what), what, columns)
        if index is None or list(index) == list(range(len(values))):
            return Table(values, columns, None)
        return Table(values, columns, tuple(str(label) for label in index))
    return Table(_numbers(data, what, None), None, None)


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


def _numbers(data: Any, what: str, columns: tuple[str, ...] | None) -> Floats:
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
