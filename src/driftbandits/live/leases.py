"""Who decides in an experiment, and how a writer gets at its rows.

In a Postgres database every experiment is leased by one server, in a row of `leases`. Once a second a server notes in
its row of `servers`, by the database's clock, that it runs. Where that has not happened for three seconds (the process
is frozen, its machine is gone), or none of its sessions is left (it was killed), another server takes over: it ends the
sessions of the other, so that nothing is still being written, and raises the `term` of the lease.

Every transaction that writes locks the row of its lease first, and goes on only if the term is still its own. So a
server that wakes up after it was taken for dead can commit nothing, and finds that out before it answers; and nobody
takes over while a transaction is under way.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from driftbandits.errors import OtherDeciderError
from driftbandits.live import tables
from driftbandits.live.journal import Journal
from driftbandits.text import first_line

log = logging.getLogger("driftbandits.live")
BEAT_SECONDS = 1.0  # between two heartbeats
LOST_SECONDS = 3.0  # without one, after which others take over
GONE_SECONDS = 1.5  # the same where no session of that server is left
_LOCK_SECONDS = 2  # to wait for the end of a transaction that another session has begun
_FREE = ""  # in place of a holder
_NOW = sa.literal_column("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint", sa.BigInteger)
_END = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = :holder AND pid != pg_backend_pid()"
)


def new_holder() -> str:
    """A name for this server, which its sessions have too; Postgres keeps 63 characters of ASCII."""
    host = socket.gethostname().encode("ascii", "replace").decode()[:30]
    return f"{host}:{os.getpid()}:{secrets.token_hex(4)}"


def _is_alive() -> sa.ColumnElement[bool]:
    beat = tables.servers.c.beat
    sessions = sa.table("pg_stat_activity", sa.column("application_name"))
    has_session = sa.exists().where(sessions.c.application_name == tables.servers.c.holder)
    fresh, old = (beat > _NOW - round(1e6 * seconds) for seconds in (GONE_SECONDS, LOST_SECONDS))
    return sa.or_(fresh, sa.and_(old, has_session))


class Leases:
    """The leases of one server, and its heartbeat.

    `engine` is for writing; the heartbeat has a connection of `apart` to itself.
    """

    def __init__(self, engine: sa.Engine, apart: sa.Engine, holder: str, address: str | None) -> None:
        self._engine, self._apart = engine, apart
        self._holder, self._address = holder, address
        self._sure_until = float("-inf")
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._guard, self._ended = threading.Lock(), threading.Event()

    # --- the heartbeat ------------------------------------------------------------------------------------------

    @property
    def is_sure(self) -> bool:
        """Whether nobody can have taken over: the last heartbeat is not old. It counts while a process is frozen."""
        return time.monotonic() < self._sure_until

    def _begin(self) -> None:
        with self._guard:
            if self._thread is None:
                self._beat()
                self._thread = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)
                self._thread.start()

    def _keep_beating(self) -> None:
        failed = ""
        while not self._ended.wait(BEAT_SECONDS):
            try:
                self._beat()
                failed = ""
            except sa.exc.SQLAlchemyError as error:
                if first_line(error) != failed:
                    log.warning("no heartbeat: the database is away: %s", first_line(error))
                failed = first_line(error)

    def _beat(self) -> None:
        begun, servers = time.monotonic(), tables.servers
        row = insert(servers).values(holder=self._holder, address=self._address, beat=_NOW)
        with self._apart.begin() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=[servers.c.holder], set_={"beat": _NOW}))
        self._sure_until = begun + LOST_SECONDS

    def close(self) -> None:
        """Stop the heartbeat. Its row goes, and those of servers that ended a day ago without a word."""
        with self._guard:
            self._ended.set()
            if self._thread is None or os.getpid() != self._process:  # a forked child has no heartbeat to take back
                return
            self._thread.join()
        servers = tables.servers
        try:
            with self._apart.begin() as connection:
                old = servers.c.beat < _NOW - 86_400_000_000
                connection.execute(sa.delete(servers).where((servers.c.holder == self._holder) | old))
        except sa.exc.SQLAlchemyError as error:
            log.warning("a heartbeat could not be taken back, and ends by itself: %s", first_line(error))

    # --- leases -------------------------------------------------------------------------------------------------

    def take(self, experiment: int, name: str) -> int:
        """Take the lease of an experiment, or raise an error that names its holder; its term."""
        self._begin()
        lease = tables.leases
        with self._engine.begin() as connection:
            row = self._row(connection, experiment)
            if row is None:
                new = insert(lease).values(experiment=experiment, holder=_FREE, since=_NOW, term=0)
                connection.execute(new.on_conflict_do_nothing())
                row = self._row(connection, experiment)
            if row is None or (row.alive and row.holder != self._holder):
                raise _other(name, row)
            if row.holder not in (_FREE, self._holder):
                log.warning("server %s does not answer any more; its sessions are ended", row.holder)
                connection.execute(_END, {"holder": row.holder})
            connection.execute(sa.text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
            taken = connection.execute(
                sa.update(lease)
                .where(lease.c.experiment == experiment, lease.c.holder == row.holder, lease.c.term == row.term)
                .values(holder=self._holder, since=_NOW, term=row.term + 1)
            )
            if taken.rowcount == 0:  # another server was quicker
                raise _other(name, self._row(connection, experiment))
            return int(row.term) + 1

    def check(self, connection: sa.Connection, experiment: int, name: str, term: int) -> None:
        """Refuse a transaction unless the lease is still of this term; nobody takes it over before that has ended."""
        lease = tables.leases
        mine = (lease.c.experiment == experiment) & (lease.c.holder == self._holder) & (lease.c.term == term)
        if connection.execute(sa.select(lease.c.term).where(mine).with_for_update(read=True)).scalar() is None:
            raise _other(name, self._row(connection, experiment))

    def free(self, experiment: int, term: int) -> None:
        """Give a lease back; if that fails, others take over when the heartbeat has ended."""
        lease = tables.leases
        mine = (lease.c.experiment == experiment) & (lease.c.holder == self._holder) & (lease.c.term == term)
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.update(lease).where(mine).values(holder=_FREE))
        except sa.exc.SQLAlchemyError as error:
            log.warning("a lease could not be given back: %s", first_line(error))

    def elsewhere(self) -> dict[str, str | None]:
        """Experiments in which other servers decide, and the addresses of these."""
        made, lease, servers = tables.experiments, tables.leases, tables.servers
        wanted = (
            sa.select(made.c.name, servers.c.address)
            .join(lease, lease.c.experiment == made.c.id)
            .join(servers, servers.c.holder == lease.c.holder)
            .where(lease.c.holder != self._holder, _is_alive())
        )
        with self._engine.connect() as connection:
            return {row.name: row.address for row in connection.execute(wanted)}

    def _row(self, connection: sa.Connection, experiment: int) -> Any:
        """A lease: its holder, term and address, and whether that server lives."""
        lease, servers = tables.leases, tables.servers
        alive = sa.func.coalesce(_is_alive(), sa.false()).label("alive")
        wanted = sa.select(lease.c.holder, lease.c.term, servers.c.address, alive).select_from(
            lease.outerjoin(servers, servers.c.holder == lease.c.holder)
        )
        return connection.execute(wanted.where(lease.c.experiment == experiment)).one_or_none()


def _other(name: str, row: Any) -> OtherDeciderError:
    where = "" if row is None else f" ({row.holder}{'' if row.address is None else ' at ' + row.address})"
    error = OtherDeciderError(
        f"another server{where} decides in experiment {name!r}; send requests there, or try again when it is gone"
    )
    error.address = None if row is None else row.address
    return error


@dataclass(slots=True)
class Link:
    """A writer's way to the rows of its experiment."""

    name: str
    experiment: int
    writing: Callable[[], contextlib.AbstractContextManager[sa.Connection]]  # a transaction
    reading: Callable[[], contextlib.AbstractContextManager[Journal]]  # for recovery: nobody need wait for it
    check: Callable[[], None]  # raises where what is committed would be lost
    leases: Leases | None = None  # None in SQLite, where one process decides in a file
    term: int = 0

    def take(self) -> None:
        """Become the one that decides; what others have begun to write has ended then."""
        if self.leases is not None:
            self.term = self.leases.take(self.experiment, self.name)

    def release(self) -> None:
        """Let another one decide."""
        if self.leases is not None:
            self.leases.free(self.experiment, self.term)

    @property
    def is_sure(self) -> bool:
        """Whether nobody else can have become the one that decides."""
        return self.leases is None or self.leases.is_sure

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """A transaction that writes events, refused if another one decides now."""
        with self.writing() as connection:
            if self.leases is not None:
                self.leases.check(connection, self.experiment, self.name, self.term)
            yield connection
