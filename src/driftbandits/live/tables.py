"""The tables of a database of experiments, and the version of this schema.

table             row
experiments       one experiment: its name, and what it was created with
events            one event of its journal; primary key (experiment, seq); appended to, never changed
snapshots         the state after event seq, so that only later events need be replayed
answers           the answer to a request that came with an idempotency key
leases            which server decides in an experiment, in Postgres
servers           the address and the last heartbeat of a server
keys              API keys of the service: the hash of a key, its scope, and its limits
alembic_version   the version of the schema; the name dates from the first release, which used Alembic

Times are whole microseconds since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from driftbandits.errors import SchemaError
from driftbandits.version import __version__

HEAD = "0002"  # the schema that this version reads and writes
_UPGRADING = 0x6472696674  # "drift": the number of an advisory lock

metadata = sa.MetaData()

version = sa.Table(
    "alembic_version",
    metadata,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("token", sa.Text, nullable=False),  # part of every decision id, so that none fits two experiments
    sa.Column("definition", sa.Text, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("decision", sa.BigInteger),  # the seq of the decision it is about
    sa.Column("arm", sa.Integer),
    sa.Column("probability", sa.Double),
    sa.Column("reward", sa.Double),
    sa.Column("key", sa.Text),
    sa.Column("payload", sa.Text),
    sa.Column("seal", sa.BigInteger, nullable=False),  # CRC-32 of the row and of the previous seal
    sqlite_with_rowid=False,
)

closes = events.c.kind.in_(("rewarded", "forgotten"))
sa.Index(
    "events_by_decision",
    events.c.experiment,
    events.c.decision,
    sqlite_where=sa.text("kind IN ('rewarded', 'forgotten')"),
    postgresql_where=sa.text("kind IN ('rewarded', 'forgotten')"),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("library", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),  # SHA-256 of the request
    sa.Column("answer", sa.Text, nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("holder", sa.Text, nullable=False),  # empty where nobody has it
    sa.Column("since", sa.BigInteger, nullable=False),
    sa.Column("term", sa.BigInteger, nullable=False),  # raised whenever it is taken
)

servers = sa.Table(
    "servers",
    metadata,
    sa.Column("holder", sa.Text, primary_key=True),
    sa.Column("address", sa.Text),
    sa.Column("beat", sa.BigInteger, nullable=False),  # by the database's clock
)

keys = sa.Table(
    "keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),  # SHA-256 of the secret, which is random and long
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("revoked", sa.BigInteger),
    sa.Column("per_minute", sa.Integer),  # decisions, at most
    sa.Column("expires", sa.BigInteger),
)

_OLD_LEASES = 0x64726966  # the first number of the advisory locks that were leases before schema 0002


def _lease_rows(connection: sa.Connection) -> None:
    """0002: leases are rows, with heartbeats; keys have limits. A server of an older version would not see the rows."""
    if connection.dialect.name == "postgresql":
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = :space AND granted"
        if connection.execute(sa.text(locks), {"space": _OLD_LEASES}).scalar():
            raise SchemaError("servers of an older version decide in this database; stop them first, then upgrade")
    leases.drop(connection)
    metadata.create_all(connection, tables=[leases, servers])
    for column in (keys.c.per_minute, keys.c.expires):
        kind = column.type.compile(connection.dialect)
        connection.execute(sa.text(f"ALTER TABLE {keys.name} ADD COLUMN {column.name} {kind}"))


# How older databases are upgraded: each step leads to the version it names. A new database gets the tables above.
STEPS: tuple[tuple[str, Callable[[sa.Connection], None]], ...] = (("0002", _lease_rows),)


def has_time(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether the time of an event is a number: SQLite stores any value in any column, and casts a text to 0."""
    return sa.cast(table.c.time, sa.BigInteger) > 0


def present(connection: sa.Connection) -> str | None:
    """The schema version of a database; None for an empty one."""
    inspector = sa.inspect(connection)
    if not inspector.has_table(version.name):
        if inspector.has_table(events.name):
            raise SchemaError("this database has a table 'events' that is not driftbandits'; take another database")
        return None
    return connection.execute(sa.select(version.c.version_num)).scalar()


def check(connection: sa.Connection) -> None:
    """Refuse a database whose schema is not the one that this version reads, and say what to do."""
    found = present(connection)
    if found == HEAD:
        return
    if found is None:
        raise SchemaError("this database has no experiments' tables yet; make them with: driftbandits db upgrade URL")
    if found > HEAD:
        raise SchemaError(
            f"this database has schema {found}, and driftbandits {__version__} knows up to {HEAD}: a newer version "
            f"wrote it; install that one. Nothing was changed"
        )
    raise SchemaError(
        f"this database has schema {found}, and driftbandits {__version__} reads {HEAD}; take a backup, then run: "
        f"driftbandits db upgrade URL. Nothing was changed"
    )


def upgrade(connection: sa.Connection) -> list[str]:
    """Bring a database to the schema of this version, in the current transaction; the steps that were made."""
    if connection.dialect.name == "postgresql":  # two servers that start at once take turns; SQLite does so by itself
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": _UPGRADING})
    found = present(connection)
    if found is None:
        metadata.create_all(connection)
        connection.execute(sa.insert(version).values(version_num=HEAD))
        return [HEAD]
    done = []
    for name, step in STEPS:
        if found < name:
            step(connection)
            done.append(name)
    if done:
        connection.execute(sa.update(version).values(version_num=done[-1]))
    check(connection)
    return done
