"""Several servers on one Postgres: requests are forwarded to whoever holds the lease, and others take over."""

import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest
import sqlalchemy as sa

from attacks.servers import Clients, judge, process
from driftbandits import live
from driftbandits.errors import LiveError
from driftbandits.live.connections import APART, SESSIONS, read_url
from driftbandits.live.definition import define
from driftbandits.service import keys
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


def test_a_frozen_holder_is_followed_and_finds_out_before_it_answers(database):
    """Stopped as by a debugger, with a request that it had not read; woken, it answers nothing of its own."""
    ports = [free_port() for _ in range(2)]
    flags = [("--port", str(port), "--advertise", f"http://127.0.0.1:{port}") for port in ports]
    with process(database, *flags[0]) as holder, httpx.Client(timeout=30) as http:
        made = http.post(f"{holder.url}{PATH}/decisions", json={}).json()["decisions"][0]
        body, key = {"id": made["id"], "reward": 1.0}, {"idempotency-key": "one"}
        with process(database, *flags[1]) as other, ThreadPoolExecutor(2) as threads:
            assert http.post(f"{other.url}{PATH}/decisions", json={}).status_code == 200  # forwarded
            os.kill(holder.process.pid, signal.SIGSTOP)
            begun = time.monotonic()
            early = threads.submit(httpx.post, f"{holder.url}{PATH}/rewards", json=body, headers=key, timeout=60)
            answer = http.post(f"{other.url}{PATH}/rewards", json=body, headers=key)  # to the holder first
            assert (answer.status_code, answer.json()["accepted"]) == (200, 1)
            assert time.monotonic() - begun < 20.0  # 3 to 5 where cores are idle: see the attack
            assert http.post(f"{other.url}{PATH}/decisions", json={}).status_code == 200
            os.kill(holder.process.pid, signal.SIGCONT)
            late = early.result()
            assert late.status_code in (200, 409, 503)  # 409: the forwarded one with the same key is being refused
            if late.status_code == 200:
                assert late.content == answer.content
            summaries = [http.get(f"{server.url}{PATH}/summary").json() for server in (holder, other)]
            assert [(one["decisions"], one["rewards"]) for one in summaries] == [(3, 1), (3, 1)]
            rows = [http.get(f"{one.url}/v1/experiments").json()["experiments"][0]["here"] for one in (holder, other)]
            assert rows == [False, True]


def test_many_experiments_share_sessions_and_keys_have_their_own(database):
    with live.open(database) as opened:
        for number in range(60):
            opened.make(f"no {number}", define(arms=["low", "high"], policy="DiscountedUCB", seed=number))
        key = keys.create_key(opened, "shop", "admin")
    headers = {"authorization": f"Bearer {key}"}
    engine = sa.create_engine(read_url(database))
    with serving(database=database) as url, httpx.Client(timeout=60, headers=headers) as http:
        for number in range(60):
            assert http.post(f"{url}/v1/experiments/no {number}/decisions", json={}).status_code == 200
        with engine.connect() as connection:
            counted = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%:%:%'"
            assert connection.execute(sa.text(counted)).scalar() <= SESSIONS + APART
    engine.dispose()


def test_a_postgres_with_too_few_sessions_is_refused(database, monkeypatch):
    monkeypatch.setattr(live.database, "SESSIONS", 200)
    with pytest.raises(LiveError, match="max_connections = 100"):
        live.open(database)
