"""Disk full, a database that may not be written to, damage, a clock set back, a newer schema: one clear word each."""

import logging

import pytest
import sqlalchemy as sa

from driftbandits import live
from driftbandits.errors import GoneError, LiveError, NotStoredError, SchemaError, StateError
from driftbandits.live import recovery
from driftbandits.live.definition import Definition
from driftbandits.state import archive
from tests.live.replicas import replica_of, require_same, snapshot_now
from tests.live.test_experiment import play


def sql(database, text, **values):
    with database.writing() as connection:
        return connection.execute(sa.text(text), values)


def made(url, clock, rounds=20, **fields):
    with live.open(url, clock=clock) as database:
        shop = database.create(
            "prices", **{"arms": ["low", "mid", "high"], "policy": "DiscountedUCB", "seed": 3, **fields}
        )
        play(shop, rounds)
        return replica_of(shop)


def test_a_full_disk_loses_nothing_and_says_so(url, clock):
    before = made(url, clock)
    with live.open(url, clock=clock) as database, database.engine.connect() as connection:
        pages = connection.execute(sa.text("PRAGMA page_count")).scalar()
    with live.open(url, clock=clock, pragmas={"max_page_count": pages}) as database:
        shop = database.experiment("prices")
        require_same(replica_of(shop), before)
        for number in range(200):
            kept = shop.view.player()
            try:
                shop.decide(100, key=f"k{number}")
            except NotStoredError as error:
                said = str(error)
                break
        assert "database or disk is full" in said
        require_same(replica_of(shop), kept)
    with live.open(url, clock=clock) as database:
        shop = database.experiment("prices")
        require_same(replica_of(shop), kept)
        assert len(shop.decide(100, key=f"k{number}")) == 100
        assert shop.view.check().fine


def test_a_database_that_may_only_be_read_can_be_looked_at(url, clock):
    before = made(url, clock)
    reading = url.replace("sqlite:///", "sqlite:///file:") + "?mode=ro&uri=true"
    with live.open(reading) as database:
        assert database.view("prices").summary().rewards == 20
        require_same(database.view("prices").player(), before)
        with pytest.raises(LiveError, match="mode=ro"):
            database.experiment("prices")
        with pytest.raises(LiveError, match="cannot be written to"):
            database.create("other", arms=["a", "b"])


def test_a_database_that_is_not_there_or_none_says_so(tmp_path):
    with pytest.raises(LiveError, match="cannot be opened"):
        live.open(f"sqlite:///{tmp_path}/no/such/folder.db")
    (tmp_path / "text.db").write_text("this is no database" * 100)
    with pytest.raises(LiveError, match="cannot be opened"):
        live.open(f"sqlite:///{tmp_path}/text.db")


def with_snapshots(url, clock):
    """An experiment with snapshots after events 21 and 41, and five more decisions."""
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], policy="DiscountedUCB", seed=3)
        for _ in range(2):
            play(shop, 10)
            snapshot_now(shop)
        play(shop, 5)
        replica_of(shop).cost = 0.0  # no snapshot at the end
        return replica_of(shop)


@pytest.mark.parametrize("broken", [1, 2])
def test_a_damaged_snapshot_is_passed_over(url, clock, broken, caplog):
    before = with_snapshots(url, clock)
    with live.open(url, clock=clock) as database:
        places = sql(database, "SELECT seq FROM snapshots ORDER BY seq DESC").scalars().all()
        assert places == [41, 21]
        for seq in places[:broken]:
            sql(database, "UPDATE snapshots SET content = substr(content, 1, 200) WHERE seq = :seq", seq=seq)
        check = database.view("prices").check()
        assert len(check.problems) == broken
        shop = database.experiment("prices")
        require_same(replica_of(shop), before)
        summary = shop.summary()
    expected = ["from the snapshot after event 21", "from the beginning"][broken - 1]
    assert summary.brought_back.endswith(expected.removeprefix("from "))
    assert len(summary.health) == broken
    assert "could not be brought back from the snapshot after event 41" in caplog.text


@pytest.mark.parametrize("change", ["reward = 0.75", "arm = 99", "kind = 'dreamt'", "payload = '{'", "decision = 2"])
def test_a_damaged_newest_event_is_left_out_and_the_rest_learned(url, clock, change, caplog):
    made(url, clock)
    with live.open(url, clock=clock) as database:
        sql(database, "DELETE FROM snapshots")
        newest = sql(database, "SELECT max(seq) FROM events").scalar()
        sql(database, f"UPDATE events SET {change} WHERE seq = :seq", seq=newest)
        assert not database.view("prices").check().fine
        shop = database.experiment("prices")
        summary = shop.summary()
        assert summary.brought_back == "learned anew from the journal"
        assert any(f"event {newest} is left out" in sentence for sentence in summary.health)
        assert (summary.decisions, summary.rewards) == (20, 19)
        play(shop, 3)
        assert shop.summary().mode == "running"
    with live.open(url, clock=clock) as database:
        assert database.experiment("prices").summary().decisions == 23
    assert f"event {newest}" in caplog.text


def test_with_segments_too_the_rest_is_learned(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], segments=["mobile", "desktop"], seed=3)
        for number in range(40):
            segment = ["mobile", "desktop"][number % 2]
            choice = shop.decide(segment=segment)
            shop.reward(choice.id, 0.9 if (choice.arm == "low") == (segment == "mobile") else 0.1)
        before = replica_of(shop).policy.estimate()
        shop.decide(segment="mobile")
        newest = replica_of(shop).seq
    with live.open(url, clock=clock) as database:
        sql(database, "DELETE FROM snapshots")
        sql(database, "UPDATE events SET arm = 1 - arm WHERE seq = :seq", seq=newest)
        shop = database.experiment("prices")
        assert shop.summary().brought_back == "learned anew from the journal"
        assert replica_of(shop).policy.estimate() == pytest.approx(before, abs=1e-9)


def test_a_policy_that_can_no_longer_be_built_leaves_the_fallback(url, clock, monkeypatch):
    made(url, clock)
    with live.open(url, clock=clock) as database:
        monkeypatch.setattr(Definition, "build_policy", _broken)
        monkeypatch.setattr(recovery, "load_snapshot", _broken)
        shop = database.experiment("prices")
        assert shop.decide().fallback
        assert shop.summary().brought_back == "not brought back: the fallback decides"
        assert (shop.summary().mode, shop.summary().rewards) == ("fallback", 20)
    monkeypatch.undo()
    with live.open(url, clock=clock) as database:
        shop = database.experiment("prices")
        assert not shop.decide().fallback
        assert shop.summary().decisions == 22
        require_same(shop.view.player(), replica_of(shop))


def _broken(*_, **__):
    raise ZeroDivisionError("a fault of the policy")


def test_a_missing_event_shows(url, clock):
    made(url, clock)
    with live.open(url, clock=clock) as database:
        sql(database, "DELETE FROM events WHERE seq = 7")
        assert "events 7 to 7 are missing" in database.view("prices").check().problems[0]


def test_a_clock_set_back_does_not_turn_time_back(url, clock, caplog):
    made(url, clock)
    clock.pass_seconds(-3600)
    with live.open(url, clock=clock) as database, caplog.at_level(logging.WARNING):
        shop = database.experiment("prices")
        play(shop, 5)
        times = [event["time"] for event in shop.events()]
        assert times == sorted(times)
        assert "3600 s behind" in shop.summary().health[0]
        clock.pass_seconds(7200)
        play(shop, 1)
        assert shop.events(after=replica_of(shop).seq - 1)[0]["time"] == clock.now
        require_same(shop.view.player(), replica_of(shop))
    assert caplog.text.count("was it set back?") == 1


def test_a_newer_or_older_schema_is_refused_and_nothing_is_changed(url, clock):
    made(url, clock, rounds=2)
    for version, says in (("9999", "a newer version wrote it"), ("0000", "driftbandits db upgrade")):
        with live.Database(url) as database:
            sql(database, "UPDATE alembic_version SET version_num = :to", to=version)
        with pytest.raises(SchemaError, match=says):
            live.open(url)
    with live.Database(url) as database:
        sql(database, "UPDATE alembic_version SET version_num = '0002'")
    with live.open(url) as database:
        assert database.view("prices").summary().decisions == 2


def test_tables_of_someone_else_are_left_alone(url):
    with live.Database(url) as database:
        sql(database, "CREATE TABLE events (x INTEGER)")
    with pytest.raises(SchemaError, match="not driftbandits'"):
        live.open(url)


def test_a_snapshot_of_another_format_is_refused(url, clock):
    replica = made(url, clock)
    state = recovery.snapshot_of(replica)
    for wrong in ({"snapshot": 2}, {"seq": -1}, {"counts": {}}, {"arms": "[]"}, {"arms": "{"}, {"paused": 1}):
        with pytest.raises(StateError):
            recovery.load_snapshot(archive.pack({**state, **wrong}), replica.definition)
    require_same(recovery.load_snapshot(archive.pack(state), replica.definition), replica)


def test_retention_deletes_only_what_no_snapshot_needs(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], policy="DiscountedUCB", seed=3)
        waiting = shop.decide()
        first = shop.decide()
        for _ in range(5):
            play(shop, 5)
            snapshot_now(shop)
            clock.pass_seconds(86_400)
        before = len(shop.events(limit=10**6))
        assert database.trim("prices", days=30) == 0
        deleted = database.trim("prices", days=1)
        assert len(shop.events(limit=10**6)) == before - deleted < before
        assert shop.view.check().fine
        with pytest.raises(GoneError):
            shop.decision(first.id)
        assert shop.reward(waiting.id, 0.5).accepted == 1
        kept = replica_of(shop)
    with live.open(url, clock=clock) as database:
        require_same(replica_of(database.experiment("prices")), kept)
