"""A state as one sealed zip file: `state.json`, and a `.npy` file per array, in the order in which the text names them.

The seal, in the comment of the zip file, covers every byte. It shows that a file is undamaged, not that it is harmless,
so every size is checked against a limit before anything of that size is read. Files are written whole or not at all.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from driftbandits._util import files
from driftbandits.errors import DriftbanditsError, StateError
from driftbandits.state.reader import Reader
from driftbandits.text import label
from driftbandits.version import __version__

FORMAT = 6
LIMIT = 2**30  # bytes of memory that a state read from a file may take
# What zipfile, zlib, json and NumPy raise at odd bytes, or warn of where warnings are errors.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    Warning,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
_TEXT = "state.json"
_REFERENCE = "@array"
_DEEPEST = 100  # lists and mappings inside one another; a genuine state has about ten
_MEMBER_SIGN = b"PK\x01\x02"  # once per member of a zip file
_MEMBER_BYTES = 1000  # what a member costs when the list of members is read
_LONGEST_HEAD = 2**16 + 10  # bytes before the numbers of a .npy file of version 1
_CHUNK = 2**20
# What JSON takes in memory at most once it is read: per character, and per sign that begins or separates values.
_CHARACTER_BYTES = 8
_VALUE_BYTES = {b"{": 256, b"[": 96, b",": 64, b":": 160, b'"': 16}


def pack(state: Mapping[str, Any]) -> bytes:
    """The file of a state; StateError if it has values that a file cannot keep. The same state gives the same bytes."""
    arrays: list[npt.NDArray[Any]] = []
    try:
        text = json.dumps(_without_arrays(state, arrays, depth=0), allow_nan=False)
        contents = [text.encode(), *(_packed_array(array) for array in arrays)]
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"the state cannot be saved: {error}") from error
    return files.sealed(_zipped(contents))


def unpack(content: bytes, *, limit: float, check_text: Callable[[Any], None] | None = None) -> Any:
    """The state in a file, which takes at most about `limit` bytes of memory; StateError if it is no such file.

    `check_text` is given everything but the arrays before these are read, and may refuse a file, by its format for one.
    """
    try:
        return _unpacked(content, limit, check_text)
    except (DriftbanditsError, TimeoutError):  # not about the file: the handler of a signal may raise them
        raise
    except _DAMAGE as error:
        cause = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        raise StateError(f"this is not a saved policy, or is damaged: {cause}") from error


def _unpacked(content: bytes, limit: float, check_text: Callable[[Any], None] | None) -> Any:
    if files.has_seal(content) and not files.seal_holds(content):
        raise ValueError("its content is not what was written (the SHA-256 differs)")
    check_size(content.count(_MEMBER_SIGN) * _MEMBER_BYTES, limit)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        values = _read_text(archive, limit)
        if check_text is not None:
            check_text(values)
        if not files.has_seal(content):
            raise ValueError("it has no seal")
        members = archive.infolist()
        if [member.filename for member in members] != _names(len(members) - 1):
            raise ValueError("it has members that a saved policy does not have")
        check_size(sum(member.file_size for member in members), limit)
        arrays = _Arrays(archive, members[1:])
        state = _with_arrays(values, arrays, depth=0)
        arrays.check_used()
    return state


def check_size(size: float, limit: float) -> None:
    """Refuse a state that takes more memory than is allowed."""
    if size > limit:
        raise StateError(
            f"this takes {size / 2**20:,.1f} MiB of memory, and {limit / 2**20:,.1f} MiB are allowed; if you trust the "
            f"file, pass limit={math.ceil(size)} or more"
        )


class _Arrays:
    """The arrays of an archive, to be taken one after the other: so none can be taken twice."""

    def __init__(self, archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo]) -> None:
        self._archive = archive
        self._members = members
        self._taken = 0

    def take(self, reference: Any) -> npt.NDArray[Any]:
        """The next array, if that is what `reference` names."""
        if type(reference) is not int or reference != self._taken or reference >= len(self._members):
            raise ValueError("its text names arrays that are not there, or one twice")
        self._taken += 1
        return _unpacked_array(_read_member(self._archive, self._members[reference]))

    def check_used(self) -> None:
        """Refuse arrays that nothing names."""
        if self._taken != len(self._members):
            raise ValueError("it has arrays that its text does not name")


def _names(arrays: int) -> list[str]:
    return [_TEXT, *(f"{number}.npy" for number in range(arrays))]


# --- writing --------------------------------------------------------------------------------------------------------


def _without_arrays(value: Any, arrays: list[npt.NDArray[Any]], *, depth: int) -> Any:
    """Replace arrays by references, so that the rest is JSON."""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} lists or mappings are inside one another")
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {_REFERENCE: len(arrays) - 1}
    if isinstance(value, Mapping):
        plain = {str(key): _without_arrays(item, arrays, depth=depth + 1) for key, item in value.items()}
        if len(plain) != len(value) or _REFERENCE in plain:
            raise ValueError(f"a mapping has two keys of the same text, or the key {_REFERENCE!r}")
        return plain
    if isinstance(value, (list, tuple)):
        return [_without_arrays(item, arrays, depth=depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is among its numbers")
    return value


def _zipped(contents: Sequence[bytes]) -> bytes:
    buffer = io.BytesIO()
    archive = zipfile.ZipFile(buffer, "w")
    try:
        for name, content in zip(_names(len(contents) - 1), contents, strict=True):
            member = zipfile.ZipInfo(name)  # dated 1980: a date would make equal states unequal files
            member.external_attr = 0o600 << 16
            archive.writestr(member, content, compress_type=zipfile.ZIP_DEFLATED, compresslevel=1)
        archive.comment = files.BLANK_SEAL.encode()
        archive.close()
    except BaseException:
        archive.fp = None  # closing an interrupted zip file raises an error that hides what interrupted it
        raise
    return buffer.getvalue()


def _packed_array(array: npt.NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


# --- reading --------------------------------------------------------------------------------------------------------


def _read_text(archive: zipfile.ZipFile, limit: float) -> Any:
    member = archive.getinfo(_TEXT)
    check_size(member.file_size * _CHARACTER_BYTES, limit)
    text = bytes(_read_member(archive, member))
    values = sum(text.count(sign) * cost for sign, cost in _VALUE_BYTES.items())
    check_size(len(text) * _CHARACTER_BYTES + values, limit)
    return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> memoryview:
    """Content of a member, of the declared size and no more, with little memory beside.

    The memory is not cleared before: other threads would have to wait for that.
    """
    if member.compress_type != zipfile.ZIP_DEFLATED:
        raise ValueError(f"{member.filename} is compressed in another way")
    content = np.empty(member.file_size, dtype=np.uint8).data
    start = 0
    with archive.open(member) as file:
        while chunk := file.read(min(_CHUNK, len(content) - start)):
            content[start : start + len(chunk)] = chunk
            start += len(chunk)
    if start != len(content):
        raise ValueError(f"{member.filename} is shorter than declared")
    return content


def _unpacked_array(content: memoryview) -> npt.NDArray[Any]:
    """An array from a .npy file; NumPy's own reader would trust the shape in its head and make room for it first."""
    buffer = io.BytesIO(content[:_LONGEST_HEAD])
    if np.lib.format.read_magic(buffer) != (1, 0):
        raise ValueError("an array is of another version")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(buffer)
    start = buffer.tell()
    if dtype.hasobject or by_columns or min(shape, default=0) < 0:
        raise ValueError(f"an array has the type {dtype}, the shape {shape} or an order that no state has")
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError(f"an array of shape {shape} and type {dtype} has {len(content) - start} bytes")
    flat: npt.NDArray[Any] = np.frombuffer(content, dtype=dtype, offset=start)
    return flat.reshape(shape)


def _with_arrays(value: Any, arrays: _Arrays, *, depth: int) -> Any:
    """Put the arrays back, in place: a second tree of values would take as much memory again."""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} lists or mappings are inside one another")
    if isinstance(value, dict):
        if _REFERENCE in value:
            if len(value) > 1:
                raise ValueError("its text names arrays in a way that no state does")
            return arrays.take(value[_REFERENCE])
        for key, item in value.items():
            value[key] = _with_arrays(item, arrays, depth=depth + 1)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            value[position] = _with_arrays(item, arrays, depth=depth + 1)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"its text has the number {name}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("its text has a number that is not finite")
    return number


# --- files ----------------------------------------------------------------------------------------------------------


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

    files.write_whole(path, pack(state), check=verify)


def read(path: str | os.PathLike[str], *, limit: int | None = LIMIT) -> dict[str, Any]:
    """Read a state written by `write`; a file that is damaged, or was never a state, is a StateError.

    A small file can claim to hold gigabytes: one whose state would take more than `limit` bytes of memory is refused
    before that much is read (None: no limit). A file that is missing or may not be read is the usual OSError.
    """
    name = os.fspath(path)
    bound = math.inf if limit is None else limit
    try:
        state = unpack(_content(Path(path), bound), limit=bound, check_text=_check_text)
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
        check_size(status.st_size, limit)
    return path.read_bytes()


def _check_text(values: Any) -> None:
    """Refuse a file of another format before its arrays are read, which may be laid out differently."""
    if isinstance(values, dict) and values.get("format", FORMAT) != FORMAT:
        check_format(Reader(values))
