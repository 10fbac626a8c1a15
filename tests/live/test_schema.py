"""Migrations make what the tables say, in SQLite, and are in the wheel."""

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from driftbandits import live
from driftbandits.live import migrations, schema, tables


def test_the_steps_make_the_tables(url):
    with live.open(url) as database, database._reading.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []
        assert schema.present(connection) == schema.HEAD


def test_the_newest_step_is_the_schema_that_is_read():
    script = ScriptDirectory(next(iter(migrations.__path__)))
    assert script.get_current_head() == schema.HEAD


def test_an_upgrade_of_what_is_up_to_date_does_nothing(url):
    with live.Database(url) as database:
        assert database.upgrade() == [schema.HEAD]
        assert database.upgrade() == []


def test_sqlite_is_set_up_for_commits_that_last(url, durable):
    with live.open(url) as database, database._reading.connect() as connection:
        found = {
            name: connection.execute(sa.text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2}
