"""The service over HTTP, under load: servers killed, lease holders killed and frozen, the database itself killed,
servers on several kinds of CPU in turn, and a thousand experiments on one Postgres.

Clients send what failed again with the same key. Everything they were answered must be in the journal, no id twice, and
every snapshot must be what a replay from the beginning gives, byte for byte.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import sqlalchemy as sa

from attacks.common import AttackRow, Options, generator
from attacks.servers import Clients, Server, control, judge, postgres, process
from driftbandits import live
from driftbandits.live.connections import read_url
from driftbandits.live.definition import define
from driftbandits.service.keys import create_key, revoke_key

machines: Any = importlib.import_module("tests.machines")  # not for type checkers: it looks into NumPy
LONGEST_FAILOVER = 5.0  # seconds
FROZEN_SECONDS = 8.0
MOST_SESSIONS = 20  # of a server
DATABASE_SECONDS = 2.0  # without one
WAIT = 120.0  # seconds for an answer, on a busy machine


def run(options: Options) -> list[AttackRow]:
    """One row for each."""
    rows, absent = [_kills(options)], AttackRow("service: two servers on Postgres")
    with postgres(absent) as server:
        if server is None:
            return [*rows, absent]
        url = server.get_uri()
        _make(url, options.seed)
        rows += [_failovers(options, url, frozen=frozen) for frozen in (False, True)]
        rows.append(_kinds_of_cpu(options, url))
        return [*rows, _database_kills(options, server), _many(options, url)]


def _make(database: str, seed: int) -> None:
    with live.open(database) as opened:
        opened.make("prices", define(arms=["low", "mid", "high"], seed=seed))


def _kills(options: Options) -> AttackRow:
    """The same experiment served, killed at a random moment and served again; the journal grows."""
    row, draw = AttackRow("service: kill -9 under load"), generator("service", options.seed)
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/shop.db"
        _make(database, options.seed)
        for _ in range(options.tries(50, 3)):
            with process(database) as server, Clients([server.url]) as clients:
                clients.wait_for(int(draw.integers(1, 120)), WAIT)
                time.sleep(float(draw.uniform(0.0, 0.3)))
                server.kill()
            row.tries += 1
            _judge(database, clients, row)
    return row


def _failovers(options: Options, database: str, *, frozen: bool) -> AttackRow:
    """Two servers on one Postgres. The one that holds the lease is killed, and a new one takes its place.

    Or it is stopped as by a debugger, for longer than a lease lasts, and wakes up.
    """
    word = "frozen" if frozen else "killed"
    row, draw = AttackRow(f"service: two servers, lease holder {word}"), generator(word, options.seed)
    with contextlib.ExitStack() as stack:
        holder, other = (stack.enter_context(_advertised(database)) for _ in range(2))
        for _ in range(options.tries(10, 1)):
            with Clients([holder.url, other.url]) as clients:
                clients.wait_for(int(draw.integers(40, 120)), WAIT)
                if not _holds(holder):
                    holder, other = other, holder
                os.kill(holder.process.pid, signal.SIGSTOP if frozen else signal.SIGKILL)
                with Clients([other.url]) as others:  # the first ones may all be waiting for the server that is frozen
                    waited = others.wait_for(40, WAIT)
                    if frozen:
                        time.sleep(max(FROZEN_SECONDS - waited, 0.0))
                        os.kill(holder.process.pid, signal.SIGCONT)
                    else:
                        clients.urls.remove(holder.url)
                        holder = stack.enter_context(_advertised(database))
                        clients.urls.append(holder.url)
                    clients.wait_for(40, WAIT)
                    others.wait_for(20, WAIT)
            row.tries += 1
            row.took(waited)
            if waited > LONGEST_FAILOVER:
                row.note("took too long", bad=True, example=f"{waited:.1f} s")
            if _holds(holder) or not _holds(other):
                row.note("nobody took over", bad=True)
            clients.decided += others.decided
            clients.rewarded += others.rewarded
            _judge(database, clients, row)
    return row


def _kinds_of_cpu(options: Options, database: str) -> AttackRow:
    """Servers on different kinds of CPU, each killed under load and followed by the next: journals stay sound."""
    row = AttackRow("service: lease moves between kinds of CPU")
    kinds = machines.playable()
    turns = options.tries(10, 2)
    if len(kinds) < 2:
        row.note("this processor plays no other kind")
        return row
    with live.open(database) as opened:
        opened.make("kinds", define(arms=[{"name": str(n), "features": [n / 9]} for n in range(10)], seed=options.seed))
    everything = Clients([], "kinds")
    for turn in range(turns):
        environment = machines.environment_of(kinds[turn % len(kinds)])
        with _advertised(database, environment) as server, Clients([server.url], "kinds") as clients:
            clients.wait_for(60, WAIT)
            server.kill()
        row.tries += 1
        everything.decided += clients.decided
        everything.rewarded += clients.rewarded
        everything.statuses += clients.statuses
    _judge(database, everything, row, "kinds", differing=True)
    return row


def _many(options: Options, database: str) -> AttackRow:
    """A thousand experiments on one server: few sessions, and keys are read while other programs have all the rest."""
    row, count = AttackRow("service: 1,000 experiments on Postgres"), options.tries(1_000, 100)
    with live.open(database) as opened:
        for number in range(count):
            opened.make(f"no {number}", define(arms=["low", "high"], policy="DiscountedUCB", seed=number))
        admin, revoked = (create_key(opened, "attack", scope) for scope in ("admin", "decide"))
    flags = ("--most-experiments", str(2 * count))
    with process(database, *flags) as server, httpx.Client(base_url=server.url, timeout=WAIT) as http:
        http.headers["authorization"] = f"Bearer {admin}"
        begun = time.monotonic()
        while http.get("/readyz").status_code != 200:
            time.sleep(0.1)
        row.details["seconds until all were open"] = time.monotonic() - begun
        for number in range(count):
            begun = time.monotonic()
            status = http.post(f"/v1/experiments/no {number}/decisions", json={}).status_code
            row.took(time.monotonic() - begun)
            row.add(f"{status}", bad=status != 200, example=f"no {number}: {status}")
        with sa.create_engine(read_url(database)).connect() as connection:
            names = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE :name"
            name = {"name": f"%:{server.process.pid}:%"}
            sessions = int(connection.execute(sa.text(names), name).scalar_one())
        row.note(f"{sessions} sessions", bad=sessions > MOST_SESSIONS, example=str(sessions))
        _revoke_while_full(database, http, revoked, row)
    return row


def _revoke_while_full(database: str, http: httpx.Client, key: str, row: AttackRow) -> None:
    """Another program takes every session that is left; the server still hears that a key was revoked."""
    headers, path = {"authorization": f"Bearer {key}"}, "/v1/experiments/no 0/decisions"
    with live.open(database) as opened, contextlib.ExitStack() as stack:
        engine = sa.create_engine(read_url(database), pool_size=0)
        with contextlib.suppress(sa.exc.OperationalError):
            for _ in range(1_000):
                stack.enter_context(engine.connect())
        revoke_key(opened, key.split("_")[1])
        begun = time.monotonic()
        while http.post(path, json={}, headers=headers).status_code == 200 and time.monotonic() < begun + 15.0:
            time.sleep(0.1)
        waited = time.monotonic() - begun
        row.note("a revoked key is refused", bad=waited > LONGEST_FAILOVER, example=f"after {waited:.1f} s")
        row.details["seconds until a revoked key was refused"] = waited


@contextlib.contextmanager
def _advertised(database: str, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    flags = ("--port", str(port), "--advertise", f"http://127.0.0.1:{port}")
    with process(database, *flags, environment=environment) as server:
        yield server


def _holds(server: Server) -> bool:
    rows = httpx.get(f"{server.url}/v1/experiments", timeout=60).json()["experiments"]
    return bool(next(row for row in rows if row["name"] == "prices")["here"])


def _database_kills(options: Options, server: Any) -> AttackRow:
    """All processes of the database aborted, some time without it, a new start: 503s, then on."""
    row = AttackRow("service: Postgres itself killed")
    database = server.get_uri()
    with _advertised(database) as one:
        for _ in range(options.tries(5, 1)):
            with Clients([one.url]) as clients:
                clients.wait_for(60, WAIT)
                control(server, "stop", "-m", "immediate")
                time.sleep(DATABASE_SECONDS)
                server.ensure_postgres_running()
                waited = clients.wait_for(60, WAIT)
            row.tries += 1
            row.took(waited)
            if any(status != 503 for status in clients.statuses):
                row.note("another status", bad=True, example=str(sorted(set(clients.statuses))))
            _judge(database, clients, row)
    return row


def _judge(database: str, clients: Clients, row: AttackRow, name: str = "prices", *, differing: bool = False) -> None:
    row.note("answers", times=len(clients.decided) + len(clients.rewarded))
    row.note("503, sent again", times=clients.statuses.count(503))
    wrong = judge(database, clients, name, differing=differing)
    for what in wrong:
        row.note("broken", bad=True, example=what)
    if not wrong:
        row.note("all as answered, and sound" if differing else "all as answered, bit for bit")
