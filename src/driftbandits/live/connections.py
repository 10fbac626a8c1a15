"""Connections to a database by its URL, and the locks that decide which process may write.

SQLite: WAL, synchronous FULL, and BEGIN IMMEDIATE for transactions that write, so that none finds out at its end that
another was faster. One process decides in a file, by a flock on a side file, `<database>.lock`. Never on the database
itself: closing any descriptor of that file would drop the locks that SQLite holds on it.

Postgres: `leases` says which server decides in an experiment. A server has a bounded number of sessions, however many
experiments there are. Keepalives of 5 s on both sides, so that what a broken session has locked is free soon.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from driftbandits.errors import InputError, MissingExtraError, OtherDeciderError
from driftbandits.text import shown

WRITING = "driftbandits_writing"
BUSY_SECONDS = 10
_PRAGMAS = {"synchronous": "FULL", "busy_timeout": str(1000 * BUSY_SECONDS)}
SESSIONS = 12  # of one server in Postgres, shared by its experiments; beside them, heartbeat and keys have one each
APART = 2
WAIT_SECONDS = 10  # for a session
_SERVER_KEEPALIVES = {"tcp_keepalives_idle": 5, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 2}
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
    "connect_timeout": 10,
    "options": " ".join(f"-c {name}={value}" for name, value in _SERVER_KEEPALIVES.items()),
}


def read_url(url: Any) -> URL:
    """A URL of SQLite or Postgres; Postgres by psycopg, whatever the URL says of drivers."""
    example = "sqlite:///shop.db, or postgresql://user@host/name"
    try:
        parsed = make_url(url)
    except (sa.exc.ArgumentError, TypeError, ValueError):
        file = isinstance(url, (str, Path)) and "://" not in str(url) and str(url).strip()
        cure = f"write the file as sqlite:///{url}" if file else f"such as {example}"
        raise InputError(f"a database is given by its URL, got {shown(str(url) if file else url)}; {cure}") from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InputError(f"{shown(url)} names no file, and what is kept in memory is lost; use {example}")
        return parsed
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise InputError(f"experiments live in SQLite or Postgres, got a URL of {backend}; use {example}")


def sqlite_file(url: URL) -> Path:
    """The file of a SQLite database."""
    return Path(str(url.database).removeprefix("file:")).resolve()  # one lock, by whatever link it is reached


def identity_of(file: Path) -> tuple[int, int] | None:
    """Device and number of a file; None if there is none at that place."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_read_only(url: URL) -> bool:
    """Whether the URL says mode=ro."""
    return url.query.get("mode") == "ro"


def make_engine(
    url: URL, pragmas: Mapping[str, Any] | None = None, *, holder: str = "", sessions: int = SESSIONS
) -> sa.Engine:
    """An engine for this database; connections with the option WRITING take the write lock when they begin.

    In Postgres it has so many sessions, and `holder` is their name.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, {**_PRAGMAS, **(pragmas or {})})
    if pragmas:
        raise InputError("pragmas are SQLite's, and this database is Postgres; leave them out")
    try:
        options = f"{url.query.get('options', '')} {_KEEPALIVES['options']}".strip()
        arguments = {**_KEEPALIVES, "options": options, "application_name": holder}
        pool = {"pool_size": sessions, "max_overflow": 0, "pool_timeout": WAIT_SECONDS, "pool_pre_ping": True}
        return sa.create_engine(url, connect_args=arguments, **pool)
    except ModuleNotFoundError:
        raise MissingExtraError("psycopg", extra="postgres", purpose="a Postgres database") from None


def _sqlite(url: URL, pragmas: Mapping[str, Any]) -> sa.Engine:
    arguments = {"check_same_thread": False, "timeout": BUSY_SECONDS}
    engine = sa.create_engine(url, max_overflow=-1, connect_args=arguments)

    @sa.event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver would begin transactions by rules of its own
        cursor = connection.cursor()
        for name, value in pragmas.items():
            cursor.execute(f"PRAGMA {name}={value}")
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and not is_read_only(url):
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get(WRITING, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """The lock of all experiments in a SQLite file; released by the system however the process ends."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.path = database.with_name(database.name + ".lock")
        self._file: BinaryIO | None = None

    def acquire(self) -> None:
        """Acquire it, or raise an error that names the holder."""
        if self._file is not None:
            return
        file = self.path.open("a+b", buffering=0)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(100).decode(errors="replace").strip() or "unknown"
            file.close()
            raise OtherDeciderError(
                f"{self.path} is locked: another process (or another open() in this one) decides in this database, "
                f"process {holder}; SQLite has one decider at a time. Stop that one, or use Postgres for several"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}".encode())
        self._file = file

    def release(self) -> None:
        """Release it. The file stays: otherwise two processes could lock two files of one name."""
        if self._file is not None:
            self._file.close()
            self._file = None
