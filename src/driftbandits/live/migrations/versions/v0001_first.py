"""The first schema: experiments, events, snapshots, answers, leases, keys.

What `tables` says today may change; a step does not, so it names everything itself.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_CLOSES = "kind IN ('rewarded', 'forgotten')"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("decision", sa.BigInteger),
        sa.Column("arm", sa.Integer),
        sa.Column("probability", sa.Double),
        sa.Column("reward", sa.Double),
        sa.Column("key", sa.Text),
        sa.Column("payload", sa.Text),
        sa.Column("seal", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "events_by_decision",
        "events",
        ["experiment", "decision"],
        sqlite_where=sa.text(_CLOSES),
        postgresql_where=sa.text(_CLOSES),
    )
    op.create_table(
        "snapshots",
        sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("library", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("experiment", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("address", sa.Text),
        sa.Column("since", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("revoked", sa.BigInteger),
    )
