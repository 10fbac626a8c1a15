"""Who may decide: one process per SQLite file, one session per experiment in Postgres.

SQLite: a flock on a side file, `<database>.lock`. Never on the database itself: closing any descriptor of that file
would drop the locks that SQLite holds on it. Postgres: an advisory lock of the session that commits, so that whoever
has lost the lock cannot commit either.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import BinaryIO

import sqlalchemy as sa

from driftbandits.errors import OtherDeciderError
from driftbandits.live import tables
from driftbandits.showing import first_line

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("driftbandits.live")
_SPACE = 0x64726966  # "drif": advisory locks have two numbers, and others may use the same database


class FileLock:
    """The lock of all experiments in a SQLite file; freed by the system however the process ends."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._file: BinaryIO | None = None

    def acquire(self) -> None:
        """Take it, or say who has it."""
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
        """Give it back; the file stays, or two could hold two files of one name."""
        if self._file is not None:
            self._file.close()
            self._file = None


def take_lease(connection: sa.Connection, experiment: int, name: str, holder: str, address: str | None) -> None:
    """Take the advisory lock of an experiment for this session, or say who has it."""
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
    """Give the advisory lock back; where that fails the session is ended, which does it too."""
    try:
        connection.execute(sa.delete(tables.leases).where(tables.leases.c.experiment == experiment))
        connection.execute(sa.text("SELECT pg_advisory_unlock(:a, :b)"), {"a": _SPACE, "b": experiment})
        connection.commit()
    except sa.exc.SQLAlchemyError as error:
        log.warning("a lease could not be given back, so its session is ended: %s", first_line(error))
        connection.invalidate()
