"""The service over HTTP: servers killed by SIGKILL under load, lease holders among two, and the database itself.

Clients send what failed again with the same key. Everything they were answered must be in the journal, no id twice, and
every snapshot must be what a replay from the beginning gives, byte for byte.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attacks.common import AttackRow, Options, generator
from attacks.live_postgres import _control
from attacks.servers import Clients, Server, judge, process
from driftbandits import live
from driftbandits.live.definition import define

LONGEST_FAILOVER = 15.0  # seconds
DATABASE_SECONDS = 2.0  # without one
WAIT = 120.0  # seconds for an answer, on a busy machine


def run(options: Options) -> list[AttackRow]:
    """Three rows."""
    rows = [_kills(options)]
    try:
        import pgserver
    except ImportError:
        row = AttackRow("service: two servers on Postgres")
        row.note("pgserver is not installed")
        return [*rows, row]
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(Path(folder))  # type: ignore[attr-defined]  # its package says nothing of exports
        try:
            _make(server.get_uri(), options.seed)
            return [*rows, _failovers(options, server.get_uri()), _database_kills(options, server)]
        finally:
            server.cleanup()


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


def _failovers(options: Options, database: str) -> AttackRow:
    """Two servers on one Postgres; the one that holds the lease is killed, and a new one takes its place."""
    row, draw = AttackRow("service: two servers, lease holder killed"), generator("failover", options.seed)
    with contextlib.ExitStack() as stack:
        holder, other = (stack.enter_context(_advertised(database)) for _ in range(2))
        for _ in range(options.tries(10, 1)):
            with Clients([holder.url, other.url]) as clients:
                clients.wait_for(int(draw.integers(40, 120)), WAIT)
                if not _holds(holder):
                    holder, other = other, holder
                holder.kill()
                waited = clients.wait_for(40, WAIT)
                clients.urls.remove(holder.url)
                holder, other = other, stack.enter_context(_advertised(database))
                clients.urls.append(other.url)
                clients.wait_for(40, WAIT)
            row.tries += 1
            row.details["longest seconds"] = max(row.details.get("longest seconds", 0.0), waited)
            if waited > LONGEST_FAILOVER:
                row.note("took too long", bad=True, example=f"{waited:.1f} s")
            _judge(database, clients, row)
    return row


@contextlib.contextmanager
def _advertised(database: str) -> Iterator[Server]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with process(database, "--port", str(port), "--advertise", f"http://127.0.0.1:{port}") as server:
        yield server


def _holds(server: Server) -> bool:
    import httpx

    rows = httpx.get(f"{server.url}/v1/experiments", timeout=60).json()["experiments"]
    return bool(rows[0]["here"])


def _database_kills(options: Options, postgres: Any) -> AttackRow:
    """All processes of the database aborted, some time without it, a new start: 503s, then on."""
    row = AttackRow("service: Postgres itself killed")
    database = postgres.get_uri()
    with _advertised(database) as server:
        for _ in range(options.tries(5, 1)):
            with Clients([server.url]) as clients:
                clients.wait_for(60, WAIT)
                _control(postgres, "stop", "-m", "immediate")
                time.sleep(DATABASE_SECONDS)
                postgres.ensure_postgres_running()
                waited = clients.wait_for(60, WAIT)
            row.tries += 1
            row.details["longest seconds"] = max(row.details.get("longest seconds", 0.0), waited)
            if any(status != 503 for status in clients.statuses):
                row.note("another status", bad=True, example=str(sorted(set(clients.statuses))))
            _judge(database, clients, row)
    return row


def _judge(database: str, clients: Clients, row: AttackRow) -> None:
    row.note("answers", times=len(clients.decided) + len(clients.rewarded))
    row.note("503, sent again", times=clients.statuses.count(503))
    wrong = judge(database, clients)
    for what in wrong:
        row.note("broken", bad=True, example=what)
    if not wrong:
        row.note("all as answered, bit for bit")
