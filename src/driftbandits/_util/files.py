"""Files written whole or not at all, and seals that show every change to a file.

`write_whole` writes to a side file, reads it back, and only then gives it the name. A seal is the SHA-256 of a whole
file, kept inside it where its format has room for a text: the comment of a zip file, the metadata of a Parquet file.
A seal is no signature: it shows damage, and not who wrote the file.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from driftbandits.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

ABANDONED_SECONDS = 600.0  # where files cannot be locked, a side file not written to for so long has no writer
MOST_ATTEMPTS = 100  # to make a side file
_SIDE_FILE = re.compile(r"\.(?P<label>.+)\.[0-9]+\.[0-9a-f]{16}\.part", re.DOTALL)
_LONGEST_LABEL = 64  # bytes of a name that its side file repeats; some file systems allow names of 143
_READ_BYTES = 1 << 20  # at a time
_SEAL_MARK = b"\x1fsha256\x1f"  # JSON escapes these control codes, so no text inside a file can be taken for it
_BLANK_DIGEST = b"0" * 64
BLANK_SEAL = (_SEAL_MARK + _BLANK_DIGEST).decode()


def write_whole(
    path: str | os.PathLike[str],
    content: bytes,
    *,
    check: Callable[[Path], None] | None = None,
    tidy: bool = True,
) -> None:
    """Write a file whole or not at all: whatever happens, `path` has its old content or all of the new.

    The content is written to a file beside, on to the disk, and read back; `check` may look at that file and raise,
    which leaves the old one as it was. The new file keeps the permissions of the old one, and a symbolic link stays a
    link. Any number of threads and processes may write to one path: the last one wins, and none sees half a file.
    What killed writers of this file left behind is deleted first; `tidy=False` spares the look through a folder of
    very many files, which `clean` can do now and then. Errors of the file system are OSErrors that name `path`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "notes", b"all of it")
    ...     print([(file.name, file.read_bytes()) for file in Path(folder).iterdir()])
    [('notes', b'all of it')]
    """
    with _naming(path):
        target, former = _resolved(path)
    if tidy:
        clean(target.parent, name=target.name)
    with contextlib.ExitStack() as stack:
        with _naming(path):
            # Where there is a file already, nobody may look into the new one before it has the same permissions.
            side, file = stack.enter_context(_side_file(target, mode=0o666 if former is None else 0o600))
            _write_through(file, content)
            _read_back(side, content)
        if check is not None:
            check(side)
        with _naming(path):
            if former is not None:
                _keep_permissions(side, former)
            if fcntl is None:  # Windows cannot rename an open file; elsewhere it stays open, and so locked
                file.close()
            side.replace(target)
    _flush_folder(target.parent)


def clean(folder: str | os.PathLike[str], *, name: str | None = None) -> None:
    """Delete side files whose writers are gone, of the file `name` or of all in the folder. It never fails."""
    wanted = None if name is None else _label(name)
    with _harmless(), os.scandir(folder) as entries:  # what cannot be listed cannot be cleaned, and that harms nobody
        for entry in entries:
            found = _SIDE_FILE.fullmatch(entry.name)
            if found and wanted in (None, found["label"]):
                _delete_if_left(Path(entry.path))


def sealed(content: bytes) -> bytes:
    """`content`, which holds BLANK_SEAL once, with the seal filled in.

    >>> whole = sealed(f"some text {BLANK_SEAL} and more".encode())
    >>> seal_holds(whole), seal_holds(whole + b"!"), seal_holds(whole.replace(b"some", b"same"))
    (True, False, False)
    """
    blank = _SEAL_MARK + _BLANK_DIGEST
    if content.count(blank) != 1:
        raise InputError(f"the content must hold BLANK_SEAL once, got {content.count(blank)} times")
    start = content.find(blank) + len(_SEAL_MARK)
    return content[:start] + hashlib.sha256(content).hexdigest().encode() + content[start + len(_BLANK_DIGEST) :]


def has_seal(content: bytes) -> bool:
    """Whether there is a seal at all, true or not."""
    return _SEAL_MARK in content


def seal_holds(content: bytes) -> bool:
    """Whether every bit of `content` is as it was sealed."""
    place = content.rfind(_SEAL_MARK)
    if place < 0:
        return False
    start = place + len(_SEAL_MARK)
    view = memoryview(content)
    digest = hashlib.sha256(view[:start])
    digest.update(_BLANK_DIGEST)
    digest.update(view[start + len(_BLANK_DIGEST) :])
    return digest.hexdigest().encode() == content[start : start + len(_BLANK_DIGEST)]


@contextlib.contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors of the file system name the file that was asked for, not the one beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # not from the file system: the handler of a signal may raise TimeoutError
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextlib.contextmanager
def _harmless() -> Iterator[None]:
    """Let errors of the file system pass, and nothing else."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise


def _resolved(path: str | os.PathLike[str]) -> tuple[Path, os.stat_result | None]:
    """The file behind all links, and what is known of it if it is there."""
    try:
        former = Path(path).stat()
    except FileNotFoundError:
        return Path(os.path.realpath(path)), None
    if stat.S_ISDIR(former.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(former.st_mode):  # renaming over /dev/null would do away with it
        raise OSError(errno.EINVAL, "Not a regular file")
    return Path(os.path.realpath(path)), former


@contextlib.contextmanager
def _side_file(target: Path, *, mode: int) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside `target`, locked, and gone at the end unless it was renamed."""
    for _ in range(MOST_ATTEMPTS):
        side = target.with_name(f".{_label(target.name)}.{os.getpid()}.{secrets.token_hex(8)}.part")
        try:
            with open(side, "xb", buffering=0, opener=functools.partial(os.open, mode=mode)) as file:
                if _try_lock(file.fileno()) is not False and _has_name(file.fileno(), side):
                    yield side, cast(BinaryIO, file)
                    return
        finally:
            with _harmless():  # renamed, or else the next writer cleans it up
                side.unlink()
    raise OSError(errno.EBUSY, "other writers keep deleting the file beside it")


def _try_lock(descriptor: int) -> bool | None:
    """Lock a file without waiting: False if someone else has locked it, None if it cannot be locked at all here."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems know no locks
        return None
    return True


def _has_name(descriptor: int, path: Path) -> bool:
    """Whether `path` is still this open file: another writer may have taken it, not yet locked, for left over."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _write_through(file: BinaryIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
    os.fsync(file.fileno())  # or a power cut could leave the name without the content


def _read_back(side: Path, content: bytes) -> None:
    view = memoryview(content)
    with side.open("rb") as file:
        same = all(
            file.read(_READ_BYTES) == view[start : start + _READ_BYTES] for start in range(0, len(content), _READ_BYTES)
        )
        if not same or file.read(1):
            raise OSError(errno.EIO, "what was read back is not what was written")


def _keep_permissions(side: Path, former: os.stat_result) -> None:
    present = side.stat()
    if hasattr(os, "chown") and (present.st_uid, present.st_gid) != (former.st_uid, former.st_gid):
        with _harmless():  # a member of the group may keep that
            os.chown(side, -1, former.st_gid)
        with _harmless():  # only an administrator may give files away
            os.chown(side, former.st_uid, -1)
    with _harmless():  # some file systems have no permissions
        side.chmod(stat.S_IMODE(former.st_mode))


def _flush_folder(folder: Path) -> None:
    # A folder that cannot be flushed is no failure: the content is on the disk, and should a power cut undo the
    # renaming, the old file is there and whole.
    with _harmless():
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _delete_if_left(side: Path) -> None:
    """Delete a side file that no living writer has locked."""
    with _harmless():  # another cleaner was faster, or it belongs to someone else
        descriptor = os.open(side, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            locked = _try_lock(descriptor)
            age = time.time() - os.fstat(descriptor).st_mtime
            if locked:
                side.unlink()
        finally:
            os.close(descriptor)
        if locked is None and age > ABANDONED_SECONDS:
            side.unlink()


def _label(name: str) -> str:
    """What the side files of a file called `name` are called by: the name, or a short form of a long one."""
    raw = os.fsencode(name)
    if len(raw) <= _LONGEST_LABEL:
        return name
    return f"{raw[:40].decode('utf-8', 'ignore')}.{hashlib.sha256(raw).hexdigest()[:16]}"
