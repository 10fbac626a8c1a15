"""Connections to a database by its URL: SQLite with the settings that make a commit durable, and Postgres.

SQLite: WAL, synchronous FULL, and BEGIN IMMEDIATE for what writes, so that a transaction never finds out at its end
that another was faster. Postgres: keepalives of 5 s on both sides, since a lease lasts as long as its session.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from driftbandits.errors import InputError, MissingExtraError
from driftbandits.showing import shown

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
