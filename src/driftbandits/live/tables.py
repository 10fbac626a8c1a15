"""The tables of a database of experiments.

table         row
experiments   one experiment: its name, and what it was made with
events        one event of its journal; primary key (experiment, seq); appended to, never changed
snapshots     what follows from the journal up to event seq, so that only what came since need be replayed
answers       the answer to a request that came with an idempotency key
leases        who decides in an experiment, and where to reach it
keys          who may send requests to a service: the hash of a key, and what it may do

Times are whole microseconds since 1970, UTC. `migrations` makes these tables; a test compares the two.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("token", sa.Text, nullable=False),  # goes into the ids of decisions, so that none fits two experiments
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
    sa.Column("seal", sa.BigInteger, nullable=False),  # CRC-32 of the row and of the seal before it
    sqlite_with_rowid=False,
)


def has_time(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether the time of an event is one: SQLite holds any value in any column, and counts a text as 0."""
    return sa.cast(table.c.time, sa.BigInteger) > 0


closes = events.c.kind.in_(("rewarded", "forgotten"))
closings = sa.Index(
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
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("address", sa.Text),
    sa.Column("since", sa.BigInteger, nullable=False),
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
)
