"""Finished cells on disk: one small Parquet file per cell, written whole or not at all, and sealed.

A part is called by its cell's key and never changes, so a run that is killed at any moment leaves a folder that the
next run goes on from, and two runs may share a folder. Every part carries the SHA-256 of itself: a part with a bit that
is not as it was written, of another cell or of another schema version counts as not played, so that a run plays its
cell again and overwrites it. Not a table to query: `results` makes tables of what is read.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits import __version__
from driftbandits.errors import InputError, MissingExtraError
from driftbandits.experiments.definitions.specs import Cell
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.files import BLANK_SEAL, clean, has_seal, seal_holds, sealed, write_whole
from driftbandits.simulation import Detection

SCHEMA_VERSION = "2"  # 1 had no seal
PART_SUFFIX = ".parquet"
MOST_DAMAGES_IN_MESSAGE = 5
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StoreError(InputError):
    """The parts cannot be listed, or one cannot be written; the message says which, and the cure."""


class DamagedPartWarning(UserWarning):
    """A part was left out: it is damaged, or is that of another cell or schema version."""


def damage_summary(damages: Sequence[str]) -> str:
    """What `on_damage` was called with, in one line that names the first few.

    >>> damage_summary([f"{n}.parquet is no finished run (it is damaged)" for n in range(12)])
    '0.parquet is no finished run (it is damaged); 1.parquet is ...; and 7 more'
    """
    more = [f"and {len(damages) - MOST_DAMAGES_IN_MESSAGE} more"] if len(damages) > MOST_DAMAGES_IN_MESSAGE else []
    return "; ".join([*damages[:MOST_DAMAGES_IN_MESSAGE], *more])


def _warn(damage: str) -> None:
    warnings.warn(f"{damage}; it counts as not played", DamagedPartWarning, stacklevel=3)


@dataclasses.dataclass(frozen=True)
class Store:
    """The finished cells under `folder`, which need not exist yet.

    >>> import tempfile
    >>> from driftbandits.experiments.running.cells import run_cell
    >>> from driftbandits.experiments.definitions.specs import PolicySpec
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
        return self.parts / f"{key}{PART_SUFFIX}"

    def finished(self) -> set[str]:
        """Keys of all finished cells; parts that are damaged or half written do not count."""
        return {key for key in self._keys() if self._damage(key) is None}

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells still to be played, in their order; of those with equal keys only the first."""
        there = self._keys()
        return [cell for key, cell in distinct(cells).items() if key not in there or self._damage(key) is not None]

    def read(self, cells: Iterable[Cell], *, on_damage: Callable[[str], None] = _warn) -> list[CellResult]:
        """Results of the finished ones among `cells`, in their order, each with the asked cell, and so its label.

        Parts that are damaged are left out; `on_damage` is called for each, with its file and what is wrong. By
        default that is a DamagedPartWarning.
        """
        keyed = [(cell.key, cell) for cell in cells]
        parts = self.load(dict(keyed), on_damage=on_damage)
        return [dataclasses.replace(parts[key], cell=cell) for key, cell in keyed if key in parts]

    def load(self, cells: Mapping[str, Cell], *, on_damage: Callable[[str], None] = _warn) -> dict[str, CellResult]:
        """As `read`, of cells whose keys are known already: the results by key."""
        there = self._keys()
        results = {}
        for key, cell in cells.items():
            if key in there:
                try:
                    results[key] = _to_result(self._checked(key), cell)
                except _DamageError as damage:
                    on_damage(f"{self.path(key)} is no finished run ({damage})")
        return results

    def write(self, result: CellResult, *, key: str | None = None) -> None:
        """Keep a result, whole or not at all. `key` is the cell's, if it is known already."""
        key = result.cell.key if key is None else key
        content = sealed(_to_parquet(result, key))
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
            write_whole(self.path(key), content, tidy=False)  # `clean` does it once for all
        except OSError as error:
            raise StoreError(self._cannot_write(error)) from error

    def clean(self) -> None:
        """Delete what killed writers left behind."""
        clean(self.parts)

    def _keys(self) -> set[str]:
        """Keys of all parts that are there, whole or not."""
        try:
            names = [path.name for path in self.parts.iterdir()]
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StoreError(f"cannot list {self.parts}: {error.strerror}; name a folder that can be read") from error
        parts = [name for name in names if name.endswith(PART_SUFFIX) and not name.startswith(".")]
        return {name.removesuffix(PART_SUFFIX) for name in parts}

    def _damage(self, key: str) -> str | None:
        """What is wrong with a part, None if nothing is."""
        try:
            self._checked(key)
        except _DamageError as damage:
            return str(damage)
        return None

    def _checked(self, key: str) -> Any:
        """The file of a part, opened by pyarrow after its seal, and then its schema and key, were found right."""
        pa, pq = _pyarrow()
        try:
            content = self.path(key).read_bytes()
        except OSError as error:
            raise _DamageError(f"it cannot be read: {error.strerror or error}") from error
        if not seal_holds(content):
            old = "" if has_seal(content) else ", or of schema version 1, which had no seal"
            raise _DamageError(f"it is damaged{old}")
        try:
            file = pq.ParquetFile(pa.BufferReader(content))
        except (OSError, ValueError) as error:  # pyarrow's errors are these; other files of ours have seals too
            raise _DamageError("it is a file of another kind") from error
        _check(file.metadata.metadata or {}, key)
        return file

    def _cannot_write(self, error: OSError) -> str:
        cure = "make room" if error.errno in DISK_IS_FULL else "put that right"
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


class _DamageError(Exception):
    """A part counts as not played; the message says what is wrong with it."""


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
        "driftbandits.seal": BLANK_SEAL,
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()], metadata=metadata)
    table = pa.table([pa.array([value], kind) for kind, value in columns.values()], schema=schema)
    sink = pa.BufferOutputStream()
    # One row: dictionaries and statistics would be larger than what they describe.
    pq.write_table(table, sink, use_dictionary=False, write_statistics=False)
    return bytes(sink.getvalue())


def _to_result(file: Any, cell: Cell) -> CellResult:
    row = file.read(use_threads=False)
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
        raise _DamageError(f"its schema version is {schema}, this version of the library reads {SCHEMA_VERSION}")
    if metadata.get(b"driftbandits.key", b"").decode() != key:
        raise _DamageError("it belongs to another cell")


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
