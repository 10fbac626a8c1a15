"""Several servers on one Postgres: requests are forwarded to whoever holds the lease, and others take over."""

import socket
import time
from contextlib import ExitStack

import httpx
import pytest
import sqlalchemy as sa

from attacks.servers import Clients, judge, process
from driftbandits import live
from driftbandits.live.connections import read_url
from driftbandits.live.definition import define
from driftbandits.service import hosting, keys
from driftbandits.service.background import serving
from driftbandits.service.hosting import HOP
from tests.postgres import postgres_server

pytestmark = pytest.mark.postgres
PATH = "/v1/experiments/prices"


@pytest.fixture(scope="module")
def postgres():
    with postgres_server() as found:
        yield found


@pytest.fixture
def database(postgres):
    engine = sa.create_engine(read_url(postgres.get_uri()))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
    with live.open(postgres.get_uri()) as opened:
        opened.make("prices", define(arms=["low", "mid", "high"], policy="DiscountedUCB", seed=2))
    return postgres.get_uri()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def advertised():
    port = free_port()
    return {"port": port, "advertise": f"http://127.0.0.1:{port}"}


def test_requests_are_forwarded_to_the_holder(database):
    with serving(database=database, **advertised()) as first, httpx.Client(timeout=30) as http:
        made = http.post(f"{first}{PATH}/decisions", json={}).json()["decisions"][0]
        with serving(database=database, **advertised()) as second:
            answer = http.post(f"{second}{PATH}/rewards", json={"id": made["id"], "reward": 1.0})
            assert answer.json()["accepted"] == 1
            again = {"idempotency-key": "one"}
            one = http.post(f"{second}{PATH}/decisions", json={"size": 2}, headers=again)
            assert one.content == http.post(f"{first}{PATH}/decisions", json={"size": 2}, headers=again).content
            assert http.get(f"{second}{PATH}/summary").json()["decisions"] == 3
            assert http.get(f"{second}{PATH}/history?points=2").status_code == 200
            assert http.post(f"{second}{PATH}/rewards", json={"id": made["id"], "reward": 0.0}).status_code == 409
            assert len(http.get(f"{second}{PATH}/events").json()["events"]) == 5
            rows = [http.get(f"{url}/v1/experiments").json()["experiments"][0]["here"] for url in (first, second)]
            assert rows == [True, False]
            hopped = http.post(f"{second}{PATH}/decisions", json={}, headers={HOP: "1"})
            assert (hopped.status_code, hopped.json()["type"]) == (503, "urn:driftbandits:other-decider")


def test_another_takes_over_when_the_holder_ends(database):
    with httpx.Client(timeout=30) as http, ExitStack() as stack:
        with serving(database=database, **advertised()) as first:
            http.post(f"{first}{PATH}/decisions", json={})
            second = stack.enter_context(serving(database=database, **advertised()))
            assert http.post(f"{second}{PATH}/decisions", json={}).status_code == 200
        assert http.post(f"{second}{PATH}/decisions", json={}).status_code == 200
        assert http.get(f"{second}{PATH}/summary").json()["decisions"] == 3
        assert http.get(f"{second}/v1/experiments").json()["experiments"][0]["here"]


def test_keys_go_with_a_forwarded_request(database):
    with live.open(database) as opened:
        key = keys.create_key(opened, "shop", "decide")
    headers = {"authorization": f"Bearer {key}"}
    with serving(database=database, **advertised()) as first, serving(database=database, **advertised()) as second:
        for url in (first, second):
            assert httpx.post(f"{url}{PATH}/decisions", json={}, headers=headers, timeout=30).status_code == 200
            assert httpx.post(f"{url}{PATH}/decisions", json={}, timeout=30).status_code == 401


def test_a_holder_without_an_address_is_named(database):
    with serving(database=database), serving(database=database, **advertised()) as second:
        answer = httpx.post(f"{second}{PATH}/decisions", json={}, timeout=30)
        assert answer.status_code == 503
        assert "--advertise" in answer.json()["detail"]


def test_a_holder_that_is_killed_under_load_is_followed(database):
    port = free_port()
    with process(database, "--port", str(port), "--advertise", f"http://127.0.0.1:{port}") as holder:
        assert httpx.post(f"{holder.url}{PATH}/decisions", json={}, timeout=30).status_code == 200  # it has the lease
        with serving(database=database, **advertised()) as survivor, Clients([holder.url, survivor]) as clients:
            clients.wait_for(40)
            holder.kill()
            assert clients.wait_for(40) < 15.0
    assert judge(database, clients) == []


def test_sessions_that_are_ended_are_503s_and_nothing_is_lost(database):
    with serving(database=database, **advertised()) as url, Clients([url], threads=2) as clients:
        clients.wait_for(20)
        engine = sa.create_engine(read_url(database))
        with engine.connect() as connection:
            connection.execute(
                sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()")
            )
        engine.dispose()
        clients.wait_for(20)
    assert judge(database, clients) == []


def test_a_server_that_lost_its_lease_forwards(database, monkeypatch):
    """Its session ends, another is faster: what it is asked next goes there, and is done once."""
    monkeypatch.setattr(hosting, "ADOPT_SECONDS", 0.1)
    with serving(database=database, **advertised()) as first, httpx.Client(timeout=30) as http:
        made = http.post(f"{first}{PATH}/decisions", json={}).json()["decisions"][0]
        with serving(database=database, **advertised()) as second:
            engine = sa.create_engine(read_url(database))
            with engine.connect() as connection:
                holders = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'"
                connection.execute(sa.text(f"SELECT pg_terminate_backend(pid) FROM ({holders}) AS found"))
            engine.dispose()
            end = time.monotonic() + 20
            while not http.get(f"{second}/v1/experiments").json()["experiments"][0]["here"]:
                assert time.monotonic() < end
                time.sleep(0.05)
            body, key = {"id": made["id"], "reward": 1.0}, {"idempotency-key": "one"}
            answers = [http.post(f"{first}{PATH}/rewards", json=body, headers=key) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [503, 200]  # the first found out, at its commit
            assert answers[0].json()["type"] == "urn:driftbandits:not-stored"
            assert answers[1].json()["accepted"] == 1
            assert not http.get(f"{first}/v1/experiments").json()["experiments"][0]["here"]
            assert http.get(f"{second}{PATH}/summary").json()["rewards"] == 1
