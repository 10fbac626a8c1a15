"""Keys of the service: none is copied, shared, sent in the clear, or works after it was revoked.

Rows that need a Postgres server say so where the wheel pgserver is not installed.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import sqlalchemy as sa

from attacks.common import AttackRow, Options
from attacks.servers import DECISIONS, control, expect, postgres, process, shop
from driftbandits import live
from driftbandits.live import tables
from driftbandits.live.connections import read_url
from driftbandits.live.definition import define
from driftbandits.service.keys import FRESH_SECONDS, STALE_SECONDS, create_key

LONGEST_STALE = STALE_SECONDS + FRESH_SECONDS + 3.0  # seconds, on a busy machine
FEW = 12  # sessions of a Postgres, fewer than one server may need


def run(options: Options) -> Iterator[AttackRow]:
    """One row for each kind of harm."""
    yield _same_idempotency_key(options)
    yield _sessions(options)
    rows = [AttackRow(f"keys: {what}") for what in ("plain HTTP", "table locked", "Postgres with few sessions")]
    with postgres(*rows) as server:
        if server is not None:
            url = server.get_uri()
            with live.open(url) as database:
                database.make("prices", define(arms=["low", "mid", "high"], seed=options.seed))
                key = create_key(database, "shop", "admin")
            _plain_http(options, url, key, rows[0])
            _locked_table(options, url, key, rows[1])
            _few_sessions(server, rows[2])
    yield from rows


def _same_idempotency_key(options: Options) -> AttackRow:
    """Two callers with the same idempotency key and body: each gets a decision of its own."""
    row = AttackRow("abuse: idempotency key of another caller")
    with shop(seed=options.seed, keys=("decide", "decide")) as one:
        for number in range(options.tries(200, 20)):
            ids = []
            for key in one.keys * 2:
                headers = {"authorization": f"Bearer {key}", "idempotency-key": str(number)}
                ids.append(one.http.post(DECISIONS, json={}, headers=headers).json()["decisions"][0]["id"])
            own = ids[:2] == ids[2:] and ids[0] != ids[1]
            row.add("a decision of its own" if own else "shared", bad=not own, example=str(ids))
    return row


def _sessions(options: Options) -> AttackRow:
    """A cookie of the page that somebody copied: it holds no key, and is worth nothing after logging out."""
    row = AttackRow("abuse: a copied cookie")
    with shop(seed=options.seed, keys=("admin",)) as one:
        for _ in range(options.tries(20, 3)):
            with httpx.Client(base_url=one.server.url, trust_env=False, timeout=60) as browser:
                browser.post("/login", data={"key": one.keys[0]})
                session = browser.cookies["driftbandits_session"]
                row.add("no key" if one.keys[0] not in session else "the key", bad=one.keys[0] in session)
                theirs = {"cookie": f'other={{"a": [1]}}; driftbandits_session={session}'}
                expect(row, "before", one.http.get("/v1/experiments", headers=theirs).status_code, 200)
                browser.post("/logout")
                expect(row, "after", one.http.get("/v1/experiments", headers=theirs).status_code, 401)
    return row


def _plain_http(options: Options, url: str, key: str, row: AttackRow) -> None:
    """The holder of a lease has another machine's address, in plain HTTP: no key goes there, unless that was said."""
    headers = {"authorization": f"Bearer {key}"}
    with _trap() as (address, heard):
        if address is None:
            row.note("this machine has no other address")
            return
        with process(url, "--advertise", address):
            for flags, keys in (((), 0), (("--forward-plain",), 1)):
                with process(url, *flags) as other, httpx.Client(base_url=other.url, timeout=60) as http:
                    for _ in range(options.tries(5, 1)):
                        heard.clear()
                        answer = http.post(DECISIONS, json={}, headers=headers)
                        expect(row, "asked elsewhere", answer.status_code, 503)
                        said = keys or "plain HTTP" in answer.text.replace("\\n", " ")
                        row.note("says why" if said else "does not say why", bad=not said, example=answer.text)
                        sent = sum(key.encode() in part for part in heard)
                        row.note(
                            f"{'told to' if keys else 'not told to'}: {min(sent, 1)} keys sent",
                            bad=min(sent, 1) != keys,
                        )


@contextlib.contextmanager
def _trap() -> Iterator[tuple[str | None, list[bytes]]]:
    """An address of this machine that is not loopback, and all that is sent there, which is not answered."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found, socket.socket() as listening:
        try:
            found.connect(("192.0.2.1", 9))  # sends nothing
            listening.bind((found.getsockname()[0], 0))
        except OSError:
            yield None, heard
            return
        listening.listen()

        def listen() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65_536))

        threading.Thread(target=listen, daemon=True).start()
        host, port = listening.getsockname()
        yield (None if host.startswith("127.") else f"http://{host}:{port}"), heard
        listening.shutdown(socket.SHUT_RDWR)


def _locked_table(options: Options, url: str, key: str, row: AttackRow) -> None:
    """Nobody can read which keys were revoked: after a stated time none works, and all do when it can be read again."""
    engine = sa.create_engine(read_url(url))
    with process(url) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        http.headers["authorization"] = f"Bearer {key}"
        for _ in range(options.tries(3, 1)):
            expect(row, "before", http.post(DECISIONS, json={}).status_code, 200)
            with engine.begin() as connection:
                connection.execute(sa.text(f"LOCK TABLE {tables.keys.name} IN ACCESS EXCLUSIVE MODE"))
                waited = _wait_for(http, 503)
                row.took(waited)
                late = waited > LONGEST_STALE
                row.add("refused" if not late else "still admitted", bad=late, example=f"after {waited:.0f} s")
                if not late:
                    kind = http.post(DECISIONS, json={}).json()["type"]
                    row.note("for its keys", bad=not kind.endswith("keys"), example=kind)
            row.add("admitted again", bad=_wait_for(http, 200) > LONGEST_STALE)
    engine.dispose()


def _wait_for(http: httpx.Client, status: int) -> float:
    """Seconds until decisions have this answer, or too many."""
    begun = time.monotonic()
    while http.post(DECISIONS, json={}).status_code != status and time.monotonic() < begun + 2 * LONGEST_STALE:
        time.sleep(0.1)
    return time.monotonic() - begun


def _few_sessions(server: Any, row: AttackRow) -> None:
    """A Postgres that has fewer sessions than a server may need: it does not start, and says what to set."""
    engine = sa.create_engine(read_url(server.get_uri()), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"ALTER SYSTEM SET max_connections = {FEW}"))
    engine.dispose()
    control(server, "stop", "-m", "fast")
    server.ensure_postgres_running()
    try:
        with process(server.get_uri()):
            row.add("served", bad=True, example=f"with {FEW} sessions")
    except RuntimeError as error:
        named = "set max_connections to" in str(error)
        row.add("refused, with what to set" if named else "refused otherwise", bad=not named, example=str(error)[-300:])
