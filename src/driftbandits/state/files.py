"""Saved states as files: written whole or not at all, read with checks."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from driftbandits import files
from driftbandits.errors import StateError
from driftbandits.showing import label
from driftbandits.state import archive
from driftbandits.state.reader import Reader
from driftbandits.version import __version__

FORMAT = 6
LIMIT = 2**30  # bytes of memory that a state read from a file may take


def check_format(reader: Reader) -> None:
    """Refuse a state of another format, naming both formats and both versions of the library."""
    number = reader.integer("format")
    if number == FORMAT:
        reader.text("library")
        return
    writer = f"driftbandits {label(reader.text('library'))}" if reader.has("library") else "an unknown driftbandits"
    raise StateError(
        f"state has format {number}, written by {writer}; this is driftbandits {__version__}, which reads format "
        f"{FORMAT}; load it with the version that wrote it"
    )


def write(
    path: str | os.PathLike[str],
    state: Mapping[str, Any],
    *,
    check: Callable[[dict[str, Any]], object] | None = None,
) -> None:
    """Write a state to one file (a zip of state.json and .npy arrays), whole or not at all.

    The file is read back before it takes the name. `check` is given what was read and may refuse it by a StateError;
    then, as after any other error, the file that was there stays.
    """

    def verify(side: Path) -> None:
        try:
            found = read(side, limit=None)
            if check is not None:
                check(found)
        except StateError as error:
            raise StateError(f"{os.fspath(path)} was not written, for the state does not load: {error}") from error

    files.write_whole(path, archive.pack(state), check=verify)


def read(path: str | os.PathLike[str], *, limit: int | None = LIMIT) -> dict[str, Any]:
    """Read a state written by `write`; a file that is damaged, or was never a state, is a StateError.

    A small file can claim to hold gigabytes: one whose state would take more than `limit` bytes of memory is refused
    before that much is read (None: no limit). A file that is missing or may not be read is the usual OSError.
    """
    name = os.fspath(path)
    bound = math.inf if limit is None else limit
    try:
        state = archive.unpack(_content(Path(path), bound), limit=bound, look=_check_text)
    except StateError as error:
        raise StateError(f"{name}: {error}") from error
    if not isinstance(state, dict):
        raise StateError(f"{name} is not a saved policy")
    return state


def _content(path: Path, limit: float) -> bytes:
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):  # reading a pipe may never end
        raise StateError("this is not a file")
    if stat.S_ISREG(status.st_mode):
        archive.check_size(status.st_size, limit)
    return path.read_bytes()


def _check_text(values: Any) -> None:
    """Refuse a file of another format before its arrays are looked at, which may be laid out in another way."""
    if isinstance(values, dict) and values.get("format", FORMAT) != FORMAT:
        check_format(Reader(values))
