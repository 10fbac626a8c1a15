"""Finished cells on disk: one small Parquet file per cell, written whole or not at all, and sealed.

A part is called by its cell's key and never changes, so a run that is killed at any moment leaves a folder that the
next run continues from, and two runs may share a folder. Every part carries its own SHA-256: a part with a flipped bit,
of another cell or of another schema version counts as not played, so that its cell is played again and the part is
overwritten. It is not a table to query: `results` makes tables of what is read.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from driftbandits._util.files import BLANK_SEAL, clean, has_seal, seal_holds, sealed, write_whole
from driftbandits._util.machine import fingerprint
from driftbandits.errors import MissingExtraError
from driftbandits.experiments.specs import Cell
from driftbandits.experiments.stores import CellResult, StoreError, plain_result, result_of
from driftbandits.version import __version__

SCHEMA_VERSION = "2"  # 1 had no seal
PART_SUFFIX = ".parquet"
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FolderStore:
    """Finished cells in a folder, a file each: the store that `play` and the command line use.

    Parameters
    ----------
    folder : need not exist yet

    >>> import tempfile
    >>> from driftbandits.experiments.specs import PolicySpec
    >>> from driftbandits.experiments.runner import run_cell
    >>> cell = Cell("switching/1", {"horizon": 50, "switches": [25], "size": 5}, PolicySpec("a label", "Uniform"), 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     FolderStore(folder).write(cell.key, run_cell(cell))
    ...     FolderStore(folder).finished() == {cell.key}
    True
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._cleaned = False

    def __str__(self) -> str:
        """Where the parts are, as messages have it."""
        return str(self.folder)

    def __repr__(self) -> str:
        """As it is made."""
        return f"FolderStore({str(self.folder)!r})"

    @property
    def parts(self) -> Path:
        """The folder of the parts."""
        return self.folder / "cells"

    def path(self, key: str) -> Path:
        """Where the part of the cell with this key is, or will be.

        Parameters
        ----------
        key : of the cell

        Returns
        -------
        pathlib.Path
        """
        return self.parts / f"{key}{PART_SUFFIX}"

    def finished(self) -> set[str]:
        """Keys of all finished cells; parts that are damaged or half written do not count.

        Returns
        -------
        set of str
        """
        return {key for key in self._keys() if self._damage(key) is None}

    def load(self, cells: Mapping[str, Cell], *, on_damage: Callable[[str], None]) -> dict[str, CellResult]:
        """Results of the finished ones among `cells`, by key; `on_damage` hears of every file that cannot be used.

        Parameters
        ----------
        cells : by key
        on_damage : called with words for every result that cannot be used

        Returns
        -------
        dict of results by key
        """
        there = self._keys()
        results = {}
        for key, cell in cells.items():
            if key in there:
                try:
                    results[key] = _to_result(self._checked(key), cell)
                except _DamageError as damage:
                    on_damage(f"{self.path(key)} is no finished run ({damage})")
        return results

    def write(self, key: str, result: CellResult) -> None:
        """Keep a result, whole or not at all.

        Parameters
        ----------
        key : of the cell
        result : of the cell

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        content = sealed(_to_parquet(result, key))
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
            self._clean_once()
            write_whole(self.path(key), content, tidy=False)
        except OSError as error:
            raise StoreError(self._cannot_write(error)) from error

    def _clean_once(self) -> None:
        """Delete what killed writers left behind: once, for it lists the whole folder."""
        if not self._cleaned:
            clean(self.parts)
            self._cleaned = True

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
            f"{cure}, then play the same again to go on from them"
        )


class _DamageError(Exception):
    """A part counts as not played; the message says what is wrong with it."""


def _to_parquet(result: CellResult, key: str) -> bytes:
    pa, pq = _pyarrow()
    whole, number = pa.int64(), pa.float64()
    kinds = {
        "rounds": pa.list_(whole),
        "regret": pa.list_(number),
        "changes": pa.list_(whole),
        "delays": pa.list_(whole),
        "missed": whole,
        "false_alarms": whole,
        "turnover": number,
        "seconds": number,
    }
    values = plain_result(result)
    metadata = {
        "driftbandits.schema": SCHEMA_VERSION,
        "driftbandits.version": __version__,
        "driftbandits._util.machine": fingerprint(),
        "driftbandits.key": key,
        "driftbandits.cell": json.dumps(dataclasses.asdict(result.cell), sort_keys=True),
        "driftbandits.seal": BLANK_SEAL,
    }
    schema = pa.schema(list(kinds.items()), metadata=metadata)
    table = pa.table([pa.array([values[name]], kind) for name, kind in kinds.items()], schema=schema)
    sink = pa.BufferOutputStream()
    # One row: dictionaries and statistics would be larger than what they describe.
    pq.write_table(table, sink, use_dictionary=False, write_statistics=False)
    return bytes(sink.getvalue())


def _to_result(file: Any, cell: Cell) -> CellResult:
    (row,) = file.read(use_threads=False).to_pylist()
    return result_of(row, cell)


def _check(metadata: dict[bytes, bytes], key: str) -> None:
    schema = metadata.get(b"driftbandits.schema", b"none").decode()
    if schema != SCHEMA_VERSION:
        raise _DamageError(f"its schema version is {schema}, this version of the library reads {SCHEMA_VERSION}")
    if metadata.get(b"driftbandits.key", b"").decode() != key:
        raise _DamageError("it belongs to another cell")


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", extra="experiments", purpose="keeping finished cells as Parquet") from None
    return pyarrow, pyarrow.parquet
