"""The same code on a real Postgres, from the wheel pgserver; its lease, and a server that goes away and comes back."""

import os
import signal
import subprocess
import sys
import time

import pytest
import sqlalchemy as sa

from driftbandits import live
from driftbandits.errors import NotStoredError, OtherDeciderError, SchemaError
from driftbandits.live import tables
from driftbandits.live.connections import read_url
from driftbandits.live.definition import define
from driftbandits.live.journal import Journal
from tests.live.replicas import replica_of, require_same
from tests.live.test_experiment import play
from tests.live.test_schema import tables_in, tables_of
from tests.postgres import postgres_server

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server():
    with postgres_server() as found:
        yield found


@pytest.fixture
def url(server):
    uri = server.get_uri()
    engine = sa.create_engine(read_url(uri))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
    return uri


def create(database):
    return database.create("prices", arms=["low", "mid", "high"], policy="DiscountedUCB", seed=3)


def test_it_decides_learns_and_comes_back(url):
    with live.open(url) as database:
        shop = create(database)
        play(shop, 10)
        first = shop.decide(3, allowed=["low", "high"], key="one")
        assert shop.decide(3, allowed=["low", "high"], key="one") == first
        assert shop.reward(first[0].id, 0.5).accepted == 1
        assert shop.reward(first[0].id, 0.5).repeated == 1
        require_same(shop.view.player(), replica_of(shop))
        before = replica_of(shop)
    with live.open(url) as database:
        require_same(replica_of(database.experiment("prices")), before)
        assert database.view("prices").check().fine


def test_one_server_decides_and_another_takes_over_when_it_is_gone(url):
    with live.open(url, address="http://first:8350") as first, live.open(url) as second:
        play(create(first), 3)
        with pytest.raises(OtherDeciderError, match="at http://first:8350"):
            second.experiment("prices")
        assert second.view("prices").summary().rewards == 3
        first.close()
        play(second.experiment("prices"), 2)
        assert second.experiment("prices").summary().rewards == 5


def test_a_session_that_was_ended_loses_nothing(url, monkeypatch):
    with live.open(url) as database:
        shop = create(database)
        play(shop, 3)
        _end_sessions(database)  # while nothing is being written: nobody notices
        shop.forget(shop.decide())
        flush = Journal.flush

        def end_then_flush(journal):
            monkeypatch.setattr(Journal, "flush", flush)
            _end_sessions(database)
            flush(journal)

        monkeypatch.setattr(Journal, "flush", end_then_flush)
        with pytest.raises(NotStoredError, match="same key"):
            shop.decide(key="one")
        again = shop.decide(key="one")
        assert shop.decide(key="one") == again
        play(shop, 2)
        summary = shop.summary()
        assert (summary.decisions, summary.rewards, summary.forgotten) == (7, 5, 1)
        require_same(shop.view.player(), replica_of(shop))


def _end_sessions(database):
    with database.engine.connect() as connection:
        connection.execute(
            sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()")
        )


@pytest.mark.parametrize("fields", [{}, {"contexts": {"device": ["mobile", "desktop"]}}], ids=["plain", "contexts"])
def test_a_holder_that_is_killed_is_followed(url, fields):
    with live.open(url) as database:
        database.make("prices", define(arms=["low", "mid", "high"], seed=2, **fields))
        command = [sys.executable, "-m", "tests.live.victim", url, "prices", "2"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
            lines = [victim.stdout.readline().split() for _ in range(20)]
            with pytest.raises(OtherDeciderError):
                database.experiment("prices")
            os.kill(victim.pid, signal.SIGKILL)
            lines += [line.split() for line in victim.stdout.read().splitlines()]
        shop = _when_free(database)
        with shop.view.journal() as journal:
            for line in lines:
                if line[0] == "decided":
                    assert journal.decision(line[1]) is not None
                elif line[0] == "rewarded":
                    assert journal.closing(journal.decision(line[1]).seq).reward == float(line[2])
        require_same(shop.view.player(), replica_of(shop))


def _when_free(database):
    """A server of which no session is left is followed after a second and a half."""
    for _ in range(50):
        try:
            return database.experiment("prices")
        except OtherDeciderError:
            time.sleep(0.1)
    raise AssertionError("the lease was not free after 5 s")


def test_an_upgrade_makes_the_tables_here_too(url):
    with live.open(url) as database, database.engine.connect() as connection:
        assert tables_in(connection) == tables_of(tables.metadata)
        assert tables.present(connection) == tables.HEAD
        assert database.upgrade() == []


def test_an_upgrade_waits_for_the_end_of_servers_that_lease_by_locks(url):
    """As versions before schema 0002 did: they would not see that another server has the row."""
    with live.open(url) as database, database.engine.connect() as older:
        older.execute(sa.text("SELECT pg_advisory_lock(:space, 1)"), {"space": tables._OLD_LEASES})
        with database.writing() as connection:
            connection.execute(sa.text("DROP TABLE servers"))
            connection.execute(sa.text("ALTER TABLE leases DROP COLUMN term"))
            connection.execute(sa.text("ALTER TABLE keys DROP COLUMN per_minute, DROP COLUMN expires"))
            connection.execute(sa.update(tables.version).values(version_num="0001"))
        with pytest.raises(SchemaError, match="stop them first"):
            database.upgrade()
        older.execute(sa.text("SELECT pg_advisory_unlock(:space, 1)"), {"space": tables._OLD_LEASES})
        assert database.upgrade() == ["0002"]
        with database.engine.connect() as connection:
            assert tables_in(connection) == tables_of(tables.metadata)
        create(database)


def test_a_lease_that_was_taken_away_stops_the_next_transaction(url):
    """By its term: not even the same server goes on with what it had before somebody else decided."""
    with live.open(url) as database:
        shop = create(database)
        play(shop, 2)
        with database.writing() as connection:
            connection.execute(sa.update(tables.leases).values(term=tables.leases.c.term + 1))
        with pytest.raises(NotStoredError):
            shop.decide(key="one")
        assert len({shop.decide(key="one"), shop.decide(key="one")}) == 1
        assert shop.summary().decisions == 3
        require_same(shop.view.player(), replica_of(shop))
