"""Connections to a database by its URL, and the locks that decide which process may write.

SQLite: WAL, synchronous FULL, and BEGIN IMMEDIATE for transactions that write, so that none finds out at its end that
another was faster. One process decides in a file, by a flock on a side file, `<database>.lock`. Never on the database
itself: closing any descriptor of that file would drop the locks that SQLite holds on it.

Postgres: one session decides in an experiment, by an advisory lock of the session that commits, so that a server that
has lost the lock cannot commit either. Keepalives of 5 s on both sides, since a lease lasts as long as its session.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from driftbandits.errors import InputError, MissingExtraError, OtherDeciderError
from driftbandits.live import tables
from driftbandits.text import first_line, shown

WRITING = "driftbandits_writing"
BUSY_SECONDS = 10
_PRAGMAS = {"synchronous": "FULL", "busy_timeout": str(1000 * BUSY_SECONDS)}
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


def identity_of(url: URL) -> tuple[int, int] | None:
    """Device and number of a SQLite file; None if there is none at that place."""
    try:
        found = os.stat(sqlite_file(url))  # noqa: PTH116  # before every transaction
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_read_only(url: URL) -> bool:
    """Whether the URL says mode=ro."""
    return url.query.get("mode") == "ro"


def make_engine(url: URL, pragmas: Mapping[str, Any] | None = None) -> sa.Engine:
    """An engine for this database; connections with the option WRITING take the write lock when they begin."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, {**_PRAGMAS, **(pragmas or {})})
    if pragmas:
        raise InputError("pragmas are SQLite's, and this database is Postgres; leave them out")
    try:
        options = f"{url.query.get('options', '')} {_KEEPALIVES['options']}".strip()
        arguments = {**_KEEPALIVES, "options": options}
        return sa.create_engine(url, pool_pre_ping=True, max_overflow=-1, connect_args=arguments)
    except ModuleNotFoundError:
        raise MissingExtraError("psycopg", extra="postgres", purpose="a Postgres database") from None


def _sqlite(url: URL, pragmas: Mapping[str, Any]) -> sa.Engine:
    # Every experiment that is open holds a connection: a limit of the pool would be one of their number.
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

log = logging.getLogger("driftbandits.live")
_SPACE = 0x64726966  # "drif": advisory locks have two numbers, and others may use the same database


class FileLock:
    """The lock of all experiments in a SQLite file; released by the system however the process ends."""

    def __init__(self, database: Path) -> None:
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


def take_lease(connection: sa.Connection, experiment: int, name: str, holder: str, address: str | None) -> None:
    """Take the advisory lock of an experiment for this session, or raise an error that names the holder."""
    taken = connection.execute(sa.text("SELECT pg_try_advisory_lock(:a, :b)"), {"a": _SPACE, "b": experiment}).scalar()
    lease = tables.leases
    if not taken:
        row = connection.execute(sa.select(lease).where(lease.c.experiment == experiment)).one_or_none()
        connection.rollback()
        where = "" if row is None else f" ({row.holder}{'' if row.address is None else ' at ' + row.address})"
        error = OtherDeciderError(
            f"another server{where} decides in experiment {name!r}; send requests there, or try again when it is gone"
        )
        error.address = None if row is None else row.address
        raise error
    connection.execute(sa.delete(lease).where(lease.c.experiment == experiment))
    connection.execute(
        sa.insert(lease).values(experiment=experiment, holder=holder, address=address, since=time.time_ns() // 1000)
    )
    connection.commit()


def free_lease(connection: sa.Connection, experiment: int) -> None:
    """Release the advisory lock; if that fails, end the session, which releases it too."""
    try:
        connection.execute(sa.delete(tables.leases).where(tables.leases.c.experiment == experiment))
        connection.execute(sa.text("SELECT pg_advisory_unlock(:a, :b)"), {"a": _SPACE, "b": experiment})
        connection.commit()
    except sa.exc.SQLAlchemyError as error:
        log.warning("a lease could not be given back, so its session is ended: %s", first_line(error))
        connection.invalidate()
