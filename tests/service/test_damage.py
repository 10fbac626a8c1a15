"""Damaged rows: whoever asks for something else is answered, and what is damaged says so."""

import io
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from driftbandits.service.background import serving
from tests.service.conftest import Sender


def execute(database, statement):
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()


def damage(database, statement, **values):
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement), values).rowcount == 1
    engine.dispose()


@pytest.fixture
def database(tmp_path):
    return f"sqlite:///{tmp_path}/shop.db"


def played(database, *names):
    """Experiments with six decisions and rewards each, in a database whose server has ended."""
    with serving(database=database) as where:
        send = Sender(where)
        for name in names:
            path = send.make(name)
            made = send.decide(path, 6)
            send.post(f"{path}/rewards", {"rewards": [{"id": one["id"], "reward": 0.5} for one in made]})
        send.http.close()


def test_a_damaged_definition_stops_no_other_experiment(database):
    played(database, "good", "bad")
    damage(database, "UPDATE experiments SET definition = '{garbage' WHERE name = 'bad'")
    with serving(database=database) as where:
        send = Sender(where)
        rows = {row["name"]: row for row in send.get("/v1/experiments")[1]["experiments"]}
        assert rows["good"]["policy"] == "DiscountedUCB"
        assert rows["bad"]["mode"] == "damaged"
        assert "the definition of the experiment is damaged" in rows["bad"]["trouble"]
        assert len(send.decide("/v1/experiments/good", 2)) == 2
        status, answer = send.post("/v1/experiments/bad/decisions", {})
        assert (status, answer["type"]) == (500, "urn:driftbandits:journal")
        send.http.close()


@pytest.mark.parametrize("change", ["time = 'noon'", "payload = '{garbage'", "payload = '[1]'", "seal = 'x'"])
def test_a_damaged_newest_event_stops_no_decision(database, change):
    played(database, "shop")
    damage(database, f"UPDATE events SET {change} WHERE seq = 13")
    with serving(database=database) as where:
        send = Sender(where)
        path = "/v1/experiments/shop"
        made = send.decide(path, 3)
        assert send.post(f"{path}/rewards", {"id": made[0]["id"], "reward": 1.0})[0] == 200
        assert send.get(f"{path}/summary")[0] == 200
        events = send.get(f"{path}/events")[1]["events"]
        assert [event["seq"] for event in events] == list(range(1, 18))
        if "seal" not in change:
            assert "is" in events[12]["damaged"]
        assert send.get("/v1/experiments")[0] == 200
        send.http.close()


def test_a_damaged_decision_is_marked_and_left_out_of_the_log(database):
    played(database, "shop")
    damage(database, "UPDATE events SET payload = :text WHERE seq = 3", text=json.dumps("no object"))
    with serving(database=database) as where:
        send = Sender(where)
        path = "/v1/experiments/shop"
        events = send.get(f"{path}/events")[1]["events"]
        assert events[2] == {"seq": 3, "kind": "decided", "damaged": "its payload is not JSON"}
        table = pq.read_table(io.BytesIO(send.http.get(f"{path}/export.parquet").content))
        assert table.column("round").to_pylist() == [0, 2, 3, 4, 5]
        send.http.close()


def test_a_full_disk_makes_the_server_unready(database):
    played(database, "shop")
    with serving(database=database) as where, Sender(where) as send:
        send.wait_until_ready()
        path = "/v1/experiments/shop"
        send.decide(path)
        execute(database, "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
        assert send.post(f"{path}/decisions", {})[0] == 503
        status, answer = send.get("/readyz")
        assert status == 503
        assert "disk is full" in answer["detail"]
        assert any("nothing can be stored" in sentence for sentence in send.get(f"{path}/summary")[1]["health"])
        assert 'driftbandits_refusals_total{reason="not-stored"} 1.0' in send.http.get("/metrics").text
        execute(database, "DROP TRIGGER full")
        send.decide(path)
        assert send.http.get("/readyz").status_code == 200
        assert not any("nothing can be stored" in sentence for sentence in send.get(f"{path}/summary")[1]["health"])


@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_file_is_not_written_to(database, replaced):
    played(database, "shop")
    file = Path(database.removeprefix("sqlite:///"))
    with serving(database=database) as where, Sender(where) as send:
        path = "/v1/experiments/shop"
        send.decide(path)
        moved = file.rename(file.with_name("away.db"))
        if replaced:
            shutil.copy(moved, file)
        status, answer = send.post(f"{path}/decisions", {})
        assert (status, answer["type"]) == (503, "urn:driftbandits:not-stored")
        assert "deleted or replaced" in answer["detail"]
        assert send.get("/readyz")[0] == 503
        assert any("nothing can be stored" in sentence for sentence in send.get(f"{path}/summary")[1]["health"])
        assert send.post("/v1/experiments", {"name": "new", "arms": ["a"]})[0] == 503
        moved.rename(file)
        send.decide(path)  # the file is back
        assert send.http.get("/readyz").status_code == 200
