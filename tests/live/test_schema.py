"""The tables of a new database, of one that a release made, and the steps between versions."""

import sqlalchemy as sa

from driftbandits import live
from driftbandits.live import tables
from tests.live.released import RELEASES, unpacked


def tables_of(metadata):
    """Columns with their types, what may be empty, primary keys, and indexes."""
    return {
        table.name: (
            {(column.name, column.type._type_affinity, column.nullable) for column in table.columns},
            [column.name for column in table.primary_key.columns],
            {(index.name, *index.columns.keys()) for index in table.indexes},
        )
        for table in metadata.tables.values()
    }


def tables_in(connection):
    found = sa.MetaData()
    found.reflect(connection)
    return tables_of(found)


def statements(connection):
    """How SQLite was told to make its tables and indexes, whatever the spaces."""
    found = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")).all()
    return {row.name: "".join(row.sql.split()) for row in found}


def test_a_new_database_has_the_tables(url):
    with live.open(url) as database, database.engine.connect() as connection:
        assert tables_in(connection) == tables_of(tables.metadata)
        assert tables.present(connection) == tables.HEAD


def test_a_new_database_is_made_as_a_release_made_it(url, tmp_path):
    unpacked(RELEASES[0], tmp_path / "released.db")
    found = []
    for where in (url, f"sqlite:///{tmp_path}/released.db"):
        with live.Database(where) as database:
            database.upgrade()
            with database.engine.connect() as connection:
                found.append((tables_in(connection), statements(connection)))
    assert found[0][0] == found[1][0]
    altered = {name for name, text in found[0][1].items() if found[1][1].get(name) != text}
    assert altered <= {"keys"}  # to which columns were added, where the version of SQLite likes them


def test_an_upgrade_of_what_is_up_to_date_does_nothing(url):
    with live.Database(url) as database:
        assert database.upgrade() == [tables.HEAD]
        assert database.upgrade() == []


def test_an_older_schema_is_brought_up_by_the_steps_it_lacks(url, monkeypatch):
    done = []
    with live.open(url) as database:
        monkeypatch.setattr(tables, "HEAD", "0004")
        monkeypatch.setattr(tables, "STEPS", tuple((name, done.append) for name in ("0002", "0003", "0004")))
        assert database.upgrade() == ["0003", "0004"]
        assert database.upgrade() == []
        with database.engine.connect() as connection:
            assert tables.present(connection) == "0004"
    assert len(done) == 2


def test_sqlite_is_set_up_for_commits_that_last(url, durable):
    with live.open(url) as database, database.engine.connect() as connection:
        found = {
            name: connection.execute(sa.text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2}
