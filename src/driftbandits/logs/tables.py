"""Columns of a table from any source, through Arrow: no loop over rows."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import FLOAT_BYTES, check_memory
from driftbandits.errors import InputError, MissingExtraError, did_you_mean
from driftbandits.text import first_line, shown
from driftbandits.types import Bools, Floats, Ints

_SUFFIXES = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".csv": "csv",
    **dict.fromkeys((".ndjson", ".jsonl"), "json"),
}
_NANOSECONDS = 1e9
MOST_DEPTH = 20  # of brackets within brackets, in JSON
_BLOCK = 16 * 2**20  # bytes that are looked at together
_FEWER = "read fewer rows, such as those of one month"
_OPENING, _CLOSING = np.frombuffer(b"[{", dtype=np.uint8), np.frombuffer(b"]}", dtype=np.uint8)
_PLAIN = bytes(set(range(256)) - set(b'[]{}"\n'))
_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*"?')


@dataclass(frozen=True)
class Numbers:
    """A column of numbers: NaN where there is none; `dates` were turned into seconds, `flags` into 0 and 1."""

    values: Floats
    dates: bool = False
    flags: bool = False


@dataclass(frozen=True)
class Texts:
    """A column of texts as positions in `distinct`; -1 where there is none."""

    codes: Ints
    distinct: tuple[str, ...]


@dataclass(frozen=True)
class Lists:
    """A column of lists: all entries one after the other, and the row of each."""

    rows: Ints
    entries: Numbers | Texts
    size: int
    missing: Bools


Column = Numbers | Texts | Lists


def arrow_table(source: Any) -> Any:
    """A pyarrow Table of a path, a frame or a mapping of columns."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("pyarrow", extra="experiments", purpose="reading a log") from None
    if isinstance(source, (str, os.PathLike)):
        return _from_file(Path(source))
    try:
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, Mapping):
            return pa.table({str(name): pa.array(column, from_pandas=True) for name, column in source.items()})
        if hasattr(source, "to_arrow"):  # polars
            return source.to_arrow()
        if hasattr(source, "iloc") and hasattr(source, "columns"):  # pandas
            return pa.Table.from_pandas(source, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"the log cannot be read as columns of one kind each: {first_line(error)}") from None
    raise InputError(
        f"a log is a path to Parquet, CSV or NDJSON, a pandas or polars frame, a mapping of columns or a Trace, got "
        f"{shown(source)} of type {type(source).__name__}"
    )


def _from_file(path: Path) -> Any:
    import pyarrow as pa

    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"a log ends in .parquet, .csv, .ndjson or .jsonl, got {shown(str(path))}")
    if not path.is_file():
        raise InputError(f"there is no log {path}")
    try:
        if kind == "parquet":
            return _from_parquet(path)
        check_memory(path.stat().st_size, f"{path}", cure=_FEWER)
        return _from_csv(path) if kind == "csv" else _from_json(path)
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path} does not fit into memory; {_FEWER}") from None
    except (pa.ArrowException, ValueError, OSError) as error:
        raise InputError(f"{path} is no log in {kind}: {first_line(error)}") from None


def _from_parquet(path: Path) -> Any:
    """By its declared number of values, because a file of kilobytes may hold billions of equal ones."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        about = file.metadata
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        values = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
        check_memory(
            2 * FLOAT_BYTES * values, f"{path}, of {about.num_rows:,} rows,", cure=_FEWER
        )  # read, and as numbers
        return file.read()


def _from_json(path: Path) -> Any:
    import pyarrow.json

    with path.open("rb") as file:
        _check_depth(file, path)
    return pyarrow.json.read_json(path)


def _check_depth(file: BinaryIO, path: Path) -> None:
    """Refuse deeply nested brackets: the reader recurses into them until the process ends.

    It reads blocks of lines by themselves, so a string ends with its line at the latest, and what was closed without
    having been opened counts for nothing.
    """
    depth, rest = 0, b""
    while block := file.read(_BLOCK):
        end = block.rfind(b"\n") + 1
        if not end and len(rest) + len(block) > _BLOCK:
            raise InputError(f"{path} has a line of more than {_BLOCK:,} bytes; write one row per line")
        depth = _deepest(rest + block[:end], depth, path)
        rest = block[end:]
    _deepest(rest, depth, path)


def _deepest(lines: bytes, depth: int, path: Path) -> int:
    """How deep in brackets the end of these lines is; refused if they go too deep."""
    if b"\\" not in lines:  # an escaped quote ends no string
        lines = lines.translate(None, _PLAIN).replace(b'""', b"")
    marks = np.frombuffer(_STRING.sub(b"", lines), dtype=np.uint8)
    steps = np.isin(marks, _OPENING).astype(np.int64) - np.isin(marks, _CLOSING)
    level = np.cumsum(np.concatenate([[depth], steps]))
    above = level - np.minimum.accumulate(np.minimum(level, 0))
    if above.max() > MOST_DEPTH:
        raise InputError(f"{path} has more than {MOST_DEPTH} brackets within brackets; a row is {{column: value, ...}}")
    return int(above[-1])


def _from_csv(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    try:
        return csv.read_csv(path)
    except pa.ArrowInvalid:
        odd: list[Any] = []
        one = csv.ReadOptions(use_threads=False)  # only then rows have numbers

        def note(row: Any) -> str:
            odd.append(row)
            return "skip"

        csv.read_csv(path, one, csv.ParseOptions(invalid_row_handler=note))
        if not odd:
            raise
    first = odd[0]
    wrong = f"must have {first.expected_columns} fields as the first line has, got {first.actual_columns}"
    raise InputError(f"{path}: row {first.number - 2}: {wrong}: {shown(first.text)}")


def column(table: Any, name: str) -> Column:
    """The column called `name`."""
    import pyarrow as pa

    array = table.column(name)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return _read(array, name)


def missing_column(table: Any, wanted: str) -> InputError:
    """What to say where there is none of that name."""
    names = list(table.column_names)
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        return InputError(f"the log has one column, {shown(names[0])}: fields of a CSV must be separated by commas")
    near = did_you_mean(wanted, names)
    cure = f"if one has another name, say so by columns, as {wanted}=NAME"
    return InputError(f"the log has no column {wanted!r}; {near}it has {', '.join(names)}; {cure}")


def _read(array: Any, name: str) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        return _read(array.dictionary_decode(), name)
    if pa.types.is_temporal(kind):
        return Numbers(_dates(array, name), dates=True)
    if pa.types.is_boolean(kind):
        return Numbers(_floats(array.cast(pa.int8())), flags=True)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Numbers(_floats(array))
    if pa.types.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _texts(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        entries = _read(pc.list_flatten(array), name)
        if isinstance(entries, Lists):
            raise InputError(f"column {name!r} has lists of lists; one list per row is wanted")
        rows = np.asarray(pc.list_parent_indices(array), dtype=np.int64)
        return Lists(rows, entries, len(array), np.asarray(array.is_null().to_numpy(zero_copy_only=False)))
    raise InputError(f"column {name!r} is of type {kind}, which is not one of numbers, texts, dates and lists")


def _floats(array: Any) -> Floats:
    """Numbers of 64 bits; whole numbers beyond 2^53 would be rounded, but no log counts that far."""
    import pyarrow as pa

    return np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _dates(array: Any, name: str) -> Floats:
    import pyarrow as pa

    try:
        whole = array.cast(pa.timestamp("ns"), safe=False).cast(pa.int64())
    except pa.ArrowException:
        raise InputError(f"column {name!r} is of type {array.type}; give dates with times, or numbers") from None
    return _floats(whole) / _NANOSECONDS


def iso_dates(texts: Texts, zone: tzinfo = UTC) -> Floats:
    """Seconds since 1970 of ISO 8601 dates, NaN where a text is not a date; without a zone they are of this one."""
    seconds = np.array([*(_iso_seconds(text, zone) for text in texts.distinct), np.nan])
    return np.asarray(seconds[texts.codes])  # -1, no text, is the last


def _iso_seconds(text: str, zone: tzinfo) -> float:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    return (date if date.tzinfo is not None else date.replace(tzinfo=zone)).timestamp()


def _texts(array: Any) -> Texts:
    import pyarrow as pa

    coded = array.cast(pa.string()).dictionary_encode()
    codes: npt.NDArray[Any] = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    found: list[str] = coded.dictionary.to_pylist()
    there = np.array([*map(bool, found), False])  # an empty field of a CSV is no text; -1, none at all, is the last
    place = np.where(there, np.cumsum(there) - 1, -1)
    return Texts(place[codes], tuple(text for text in found if text))


def split(texts: Texts) -> Lists:
    """Texts such as "a|b|c" as lists; each distinct text is split once."""
    parts = [text.split("|") for text in texts.distinct]
    names = tuple(dict.fromkeys(part for own in parts for part in own))
    place = {name: k for k, name in enumerate(names)}
    lengths = np.array([len(own) for own in parts], dtype=np.int64)
    flat = np.array([place[part] for own in parts for part in own], dtype=np.int64)
    firsts = np.concatenate([[0], np.cumsum(lengths)])
    there = np.flatnonzero(texts.codes >= 0)
    codes = texts.codes[there]
    sizes = lengths[codes]
    rows = np.repeat(there, sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Lists(rows, Texts(flat[np.repeat(firsts[codes], sizes) + within], names), len(texts.codes), texts.codes < 0)
