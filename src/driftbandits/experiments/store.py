"""Finished cells on disk: one small Parquet file a cell, written whole or not at all.

A part is called by its cell's key and never changes, so a run that is killed at any moment leaves a folder that the
next run goes on from, and two runs may share a folder. Not a table to query: `results` makes tables of what is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits import __version__
from driftbandits.errors import InputError, MissingExtraError
from driftbandits.experiments.cells import CellResult
from driftbandits.experiments.specs import Cell
from driftbandits.simulation import Detection

SCHEMA_VERSION = "1"
SUFFIX = ".parquet"
LEFTOVER_SECONDS = 600.0  # writing a part takes milliseconds; an unfinished one older than this has lost its writer
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StoreError(InputError):
    """A part cannot be read or written; the message says which, and the cure."""


@dataclasses.dataclass(frozen=True)
class Store:
    """The finished cells under `folder`, which need not exist yet.

    >>> import tempfile
    >>> from driftbandits.experiments.cells import run_cell
    >>> from driftbandits.experiments.specs import PolicySpec
    >>> cell = Cell("switching/1", {"horizon": 50, "switches": [25], "size": 5}, PolicySpec("a label", "Uniform"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     print(len(store.missing([cell])))
    ...     store.write(run_cell(cell))
    ...     print(len(store.missing([cell])), store.read([cell])[0].cell.policy.label)
    1
    0 a label
    """

    folder: str | os.PathLike[str]

    @property
    def parts(self) -> Path:
        """The folder of the parts."""
        return Path(self.folder) / "cells"

    def path(self, key: str) -> Path:
        """Where the part of the cell with this key is, or will be."""
        return self.parts / f"{key}{SUFFIX}"

    def finished(self) -> set[str]:
        """Keys of all finished cells; what a killed writer left behind does not count."""
        try:
            names = [path.name for path in self.parts.iterdir()]
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StoreError(f"cannot list {self.parts}: {error.strerror}; name a folder that can be read") from error
        return {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX) and not name.startswith(".")}

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells still to be played, in their order; of those with equal keys only the first."""
        finished = self.finished()
        return [cell for key, cell in distinct(cells).items() if key not in finished]

    def read(self, cells: Iterable[Cell]) -> list[CellResult]:
        """Results of the finished ones among `cells`, in their order, each with the asked cell, and so its label."""
        finished = self.finished()
        keyed = [(cell.key, cell) for cell in cells]
        parts = {key: self._read(key, cell) for key, cell in keyed if key in finished}
        return [dataclasses.replace(parts[key], cell=cell) for key, cell in keyed if key in parts]

    def write(self, result: CellResult, *, key: str | None = None) -> None:
        """Keep a result: written under a hidden name, then renamed. `key` is the cell's, if it is known already."""
        key = result.cell.key if key is None else key
        content = _to_parquet(result, key)
        hidden = self.parts / f".{key}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
            _write_through(hidden, content)
            hidden.replace(self.path(key))
        except OSError as error:
            raise StoreError(self._cannot_write(error)) from error
        finally:
            with contextlib.suppress(OSError):
                hidden.unlink(missing_ok=True)

    def clean(self) -> None:
        """Delete what killed writers left behind."""
        with contextlib.suppress(OSError):  # another run may be cleaning too
            for hidden in self.parts.glob(".*"):
                if time.time() - hidden.stat().st_mtime > LEFTOVER_SECONDS:
                    hidden.unlink(missing_ok=True)

    def _read(self, key: str, cell: Cell) -> CellResult:
        path = self.path(key)
        try:
            return _from_parquet(path, key, cell)
        except MissingExtraError:
            raise
        except (
            OSError,
            KeyError,
            IndexError,
            TypeError,
            ValueError,
        ) as error:  # pyarrow's errors are ValueErrors, OSErrors
            cause = (str(error).splitlines() or [type(error).__name__])[0]
            raise StoreError(f"{path} is damaged ({cause}); delete it, and its cell is played again") from error

    def _cannot_write(self, error: OSError) -> str:
        cure = "make room" if error.errno in NO_ROOM else "put that right"
        try:
            safe = len(self.finished())
        except StoreError:
            safe = 0
        return (
            f"cannot write to {self.parts}: {error.strerror or error}; {safe} cells are finished and safe there: "
            f"{cure}, then go on with --resume"
        )


def distinct(cells: Iterable[Cell]) -> dict[str, Cell]:
    """The first cell of each key, in order: two experiments may ask for the same run under two labels."""
    first: dict[str, Cell] = {}
    for cell in cells:
        first.setdefault(cell.key, cell)
    return first


def _write_through(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # or a power cut could leave the name without the content


def _to_parquet(result: CellResult, key: str) -> bytes:
    pa, pq = _pyarrow()
    columns: dict[str, tuple[Any, Any]] = {
        "rounds": (pa.list_(pa.int64()), result.rounds),
        "regret": (pa.list_(pa.float64()), result.regret),
        "changes": (pa.list_(pa.int64()), result.changes),
        "delays": (pa.list_(pa.int64()), result.detection.delays),
        "missed": (pa.int64(), result.detection.missed),
        "false_alarms": (pa.int64(), result.detection.false_alarms),
        "turnover": (pa.float64(), result.turnover),
        "seconds": (pa.float64(), result.seconds),
    }
    metadata = {
        "driftbandits.schema": SCHEMA_VERSION,
        "driftbandits.version": __version__,
        "driftbandits.key": key,
        "driftbandits.cell": json.dumps(dataclasses.asdict(result.cell), sort_keys=True),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()], metadata=metadata)
    table = pa.table([pa.array([value], kind) for kind, value in columns.values()], schema=schema)
    sink = pa.BufferOutputStream()
    # One row: dictionaries and statistics would be larger than what they describe.
    pq.write_table(table, sink, use_dictionary=False, write_statistics=False)
    return bytes(sink.getvalue())


def _from_parquet(path: Path, key: str, cell: Cell) -> CellResult:
    pa, pq = _pyarrow()
    with pq.ParquetFile(pa.BufferReader(path.read_bytes())) as file:
        metadata = file.metadata.metadata or {}
        _check(metadata, key)
        row = file.read(use_threads=False)
    if row.num_rows != 1:
        raise ValueError(f"it has {row.num_rows} rows, not 1")
    return CellResult(
        cell=cell,
        rounds=_values(row, "rounds").astype(np.int64, copy=False),
        regret=_values(row, "regret").astype(np.float64, copy=False),
        changes=tuple(_values(row, "changes").tolist()),
        detection=Detection(
            delays=tuple(_values(row, "delays").tolist()),
            missed=row["missed"][0].as_py(),
            false_alarms=row["false_alarms"][0].as_py(),
        ),
        turnover=row["turnover"][0].as_py(),
        seconds=row["seconds"][0].as_py(),
    )


def _check(metadata: dict[bytes, bytes], key: str) -> None:
    schema = metadata.get(b"driftbandits.schema", b"none").decode()
    if schema != SCHEMA_VERSION:
        raise ValueError(f"its schema version is {schema}, this version of the library reads {SCHEMA_VERSION}")
    if metadata.get(b"driftbandits.key", b"").decode() != key:
        raise ValueError("it belongs to another cell")


def _values(row: Any, name: str) -> Any:
    """The list in the one row of a column, as an array of its own that cannot be written to."""
    return row[name].chunk(0).flatten().to_numpy(zero_copy_only=False)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", extra="experiments", purpose="keeping finished cells as Parquet") from None
    return pyarrow, pyarrow.parquet
