"""More of everything than is usual: arms, readers, headers, connections of one address, and no room on the disk."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from attacks.common import AttackRow, Options
from attacks.servers import DECISIONS, Clients, Server, expect, judge, shop

LONGEST_REFUSAL = 5.0  # seconds, on a busy machine
LONGEST_DECISION = 0.5  # of 99 in 100, on a busy machine; 0.05 on an idle one
READERS = 8
NOBODY = "127.0.0.2"  # this machine by another address


def run(options: Options) -> Iterator[AttackRow]:
    """One row for each of them."""
    yield _many_names(options)
    yield _readers(options)
    yield _large_headers(options)
    yield _one_address(options)
    yield _full_disk(options)


def _many_names(options: Options) -> AttackRow:
    """5,000 arms that have names alone: refused at once where the policy cannot learn from them, else served."""
    row = AttackRow("capacity: 5,000 arms with names alone")
    names = [f"arm {number}" for number in range(5_000)]
    with shop("--most-arms", "10000", made=False) as one:
        for policy, wanted in (("AutoBandit", 422), ("DiscountedUCB", 201)):
            made = {"name": policy, "arms": names, "policy": policy}
            _timed(one.http, "/v1/experiments", made, wanted, row)
        path = "/v1/experiments/DiscountedUCB"
        for number in range(options.tries(50, 5)):
            _timed(one.http, f"{path}/arms", {"retire": [f"arm {number}"]}, 200, row)
            _timed(one.http, f"{path}/decisions", {}, 200, row)
    return row


def _timed(http: httpx.Client, path: str, body: object, wanted: int, row: AttackRow) -> None:
    begun = time.monotonic()
    status = http.post(path, json=body).status_code
    took = time.monotonic() - begun
    row.took(took)
    late = took > LONGEST_REFUSAL
    row.add("late" if late else f"{status}", bad=late or status != wanted, example=f"{path}: {status} in {took:.1f} s")


def _readers(options: Options) -> AttackRow:
    """1,000 arms and eight readers of the summary without a pause: decisions are made beside them."""
    row = AttackRow("capacity: 1,000 arms, eight readers")
    with shop(made=False) as one:
        made = {"name": "prices", "arms": [f"arm {number}" for number in range(1_000)], "seed": options.seed}
        one.http.post("/v1/experiments", json=made).raise_for_status()
        stop, seconds = threading.Event(), []
        readers = [threading.Thread(target=_read, args=(one.server, stop, row)) for _ in range(READERS)]
        for reader in readers:
            reader.start()
        for _ in range(options.tries(2_000, 300)):
            begun = time.monotonic()
            choice = one.http.post(DECISIONS, json={}).json()["decisions"][0]
            seconds.append(time.monotonic() - begun)
            one.http.post("/v1/experiments/prices/rewards", json={"id": choice["id"], "reward": 0.5})
            time.sleep(0.005)
        stop.set()
        for reader in readers:
            reader.join()
    slow = sorted(seconds)[int(0.99 * len(seconds))]
    row.details["p99 milliseconds"] = 1e3 * slow
    row.add(f"decisions, p99 {1e3 * slow:.0f} ms", bad=slow > LONGEST_DECISION, example=f"{slow:.2f} s")
    row.took(max(seconds))
    return row


def _read(server: Server, stop: threading.Event, row: AttackRow) -> None:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        while not stop.is_set():
            status = http.get("/v1/experiments/prices/summary").status_code
            row.note("summaries" if status == 200 else f"summary {status}", bad=status != 200, example=str(status))


def _large_headers(options: Options) -> AttackRow:
    """Headers beyond 64 kB, in one line or in many: 431, and the next request is served."""
    row = AttackRow("capacity: headers of 70 kB")
    with shop() as one:
        for number in range(options.tries(50, 4)):
            headers = {"x": "a" * 70_000} if number % 2 else {f"x-{k}": "a" * 700 for k in range(100)}
            status = one.http.get("/v1/experiments", headers=headers).status_code
            row.add(f"{status}", bad=status != 431, example=f"{status} instead of 431")
            row.note("then served", bad=one.http.get("/healthz").status_code != 200)
    return row


def _one_address(options: Options) -> AttackRow:
    """More connections of one address than it may have: others, and health, are served."""
    row = AttackRow("capacity: connections of one address")
    with shop("--most-per-address", "200") as one:
        host, port = one.server.url.removeprefix("http://").split(":")
        held = []
        for _ in range(options.tries(400, 300)):
            held.append(socket.create_connection((host, int(port)), 30, source_address=(NOBODY, 0)))
            held[-1].sendall(b"GET /v1/experiments HTTP/1.1\r\nhost: localhost\r\nx: ")
        for path in ("/healthz", "/v1/experiments"):
            expect(row, "others", one.http.get(path).status_code, 200)
        refused = sum(map(_is_refused, held))
        row.add(f"{refused} of {len(held)} refused", bad=refused < len(held) - 200, example=f"{refused}")
        for each in held:
            each.close()
    return row


def _is_refused(connection: socket.socket) -> bool:
    connection.settimeout(0.01)
    try:
        found = connection.recv(4096)
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return not found or b" 503 " in found


def _full_disk(options: Options) -> AttackRow:
    """No byte more can be written, under load: 503, not ready, said in health and counted; nothing answered is lost."""
    row = AttackRow("capacity: a full disk")
    for _ in range(options.tries(5, 1)):
        with shop(seed=options.seed) as one:
            with Clients([one.server.url]) as clients:
                clients.wait_for(40)
                written = Path(one.folder, "shop.db-wal").stat().st_size
                _limit_files(one.server, min(written, 30_000))
                time.sleep(2.0)
                expect(row, "decide", one.http.post(DECISIONS, json={}).status_code, 503)
                expect(row, "readyz", one.http.get("/readyz").status_code, 503)
                health = " ".join(one.http.get("/v1/experiments/prices/summary").json()["health"])
                row.add("health says so", bad="nothing can be stored" not in health, example=health)
                counted = 'refusals_total{reason="not-stored"}' in one.http.get("/metrics").text
                row.add("refusals are counted", bad=not counted)
                _limit_files(one.server, resource.RLIM_INFINITY)
                clients.wait_for(40)
                expect(row, "readyz afterwards", one.http.get("/readyz").status_code, 200)
            one.server.kill()
            wrong = judge(one.url, clients)
            row.add("all as answered" if not wrong else "broken", bad=bool(wrong), example=str(wrong[:1]))
    return row


def _limit_files(server: Server, size: int) -> None:
    """How long a file of this server may become."""
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, hard))
