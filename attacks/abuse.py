"""Callers of the service that mean harm, and files that do: nobody is locked out, nothing is run, nothing is lost."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from attacks.common import AttackRow, Options, generator
from attacks.servers import DECISIONS, Server, expect, process, shop
from driftbandits import live
from driftbandits.errors import LiveError, UnknownDecisionError
from driftbandits.live.definition import define
from driftbandits.live.requests import GuardedClock

LONGEST_ANSWER = 5.0  # seconds, on a busy machine
LONGEST_BESIDE = 0.5  # seconds of a decision beside a backlog, which may take 0.1 of them, on a busy machine


def run(options: Options) -> Iterator[AttackRow]:
    """One row for each kind of harm."""
    yield _unfinished_headers(options)
    yield _backlog(options)
    yield _code_in_folders(options)
    yield _logs(options)
    yield _deleted_file(options)
    yield _clock_ahead(options)
    yield _journal_ahead(options)
    yield _first_decision(options)
    yield _lying_guest(options)
    yield _misleading_names(options)


def _unfinished_headers(options: Options) -> AttackRow:
    """Connections whose headers never end, more than the server takes: others are answered all the while."""
    row = AttackRow("abuse: headers that never end")
    with shop() as one:
        host, port = one.server.url.removeprefix("http://").split(":")
        held = []
        for _ in range(options.tries(2_100, 2_100)):
            held.append(socket.create_connection((host, int(port)), timeout=30))
            held[-1].sendall(b"GET / HTTP/1.1\r\nx: ")
        for path in ("/healthz", "/readyz", "/v1/experiments"):
            _ask(one.server, path, row)
        time.sleep(12.0)  # headers have ten seconds
        for each in held:
            each.settimeout(LONGEST_ANSWER)
            row.tries += 1
            try:
                while each.recv(4096):
                    pass
            except ConnectionError:
                pass
            except TimeoutError:
                row.note("still open", bad=True)
            each.close()
    return row


def _ask(server: Server, path: str, row: AttackRow) -> None:
    try:
        status = httpx.get(f"{server.url}{path}", timeout=LONGEST_ANSWER, trust_env=False).status_code
    except httpx.TransportError as error:
        row.add("no answer", bad=True, example=f"{path}: {error!r}")
        return
    row.add(f"{status}", bad=status != 200, example=path)


def _backlog(options: Options) -> AttackRow:
    """Very many decisions run out of patience at once: neither their experiment nor another one waits long."""
    row, now = AttackRow("abuse: a backlog runs out of patience"), [10**15]
    with (
        tempfile.TemporaryDirectory() as folder,
        live.open(f"sqlite:///{folder}/shop.db", clock=lambda: now[0]) as opened,
    ):
        names = [f"arm {number}" for number in range(20)]
        shop = opened.create("prices", arms=names, patience=60, missing=0.0, seed=options.seed)
        other = opened.create("other", arms=["low", "high"], seed=options.seed)
        many = options.tries(300_000, 30_000)
        for _ in range(many // 1000):
            shop.decide(size=1000)
        now[0] += 10**9
        while shop.summary().expired < many:
            for one in (shop, other):
                begun = time.monotonic()
                one.decide()
                took = time.monotonic() - begun
                row.add("answered", bad=took > LONGEST_BESIDE, example=f"after {took:.2f} s")
                row.took(took)
    return row


_TRAP = """import pathlib
pathlib.Path({mark!r}).touch()
from driftbandits.policies import Uniform
class Mine(Uniform): pass
"""


def _code_in_folders(options: Options) -> AttackRow:
    """A folder of results whose record names Python: writing its report must not run it."""
    row = AttackRow("abuse: code named by a folder of results")
    forms = ("mine.py:Mine", "{folder}/mine.py:Mine", "mine:Mine", "package.mine:Mine")
    with tempfile.TemporaryDirectory() as name:
        folder, mark = Path(name), Path(name) / "ran"
        (folder / "package").mkdir()
        for place in ("mine.py", "package/__init__.py", "package/mine.py"):
            (folder / place).write_text(_TRAP.format(mark=str(mark)))
        for number, form in enumerate(forms[: options.tries(4, 4)]):
            out, policy = folder / f"out {number}", form.format(folder=folder)
            words = [
                "--environment",
                "switching/1",
                "--set",
                "horizon=60",
                "--set",
                "switches=[30]",
                "--policy",
                f"{policy},label=own",
            ]
            _command(folder, "run", *words, "--seeds", "1", "--jobs", "1", "--out", str(out))
            mark.unlink()  # playing it runs it, as it should
            _command(folder, "report", str(out))
            row.add("run" if mark.exists() else "not run", bad=mark.exists(), example=policy)
            mark.unlink(missing_ok=True)
    return row


def _command(folder: Path, *words: str) -> None:
    places = [str(Path(live.__file__).parents[2]), str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-m", "driftbandits", *words]
    subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True, timeout=300)


def _logs(options: Options) -> AttackRow:
    """Small logs that would end the process that reads them: deep JSON, and very many equal values in Parquet."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = AttackRow("abuse: logs that end their reader")
    with tempfile.TemporaryDirectory() as name:
        deep, many = Path(name) / "deep.ndjson", Path(name) / "many.parquet"
        reading = "import sys; from driftbandits.logs import Log; Log.read(sys.argv[1])"
        for depth in (30, 1_000, 20_000, 1_000_000)[: options.tries(4, 3)]:
            deep.write_text("[" * depth + "]" * depth + "\n")
            _read_limited(reading, deep, row)
        part = pa.table({name: np.ones(10**6) for name in ("round", "arm", "reward", "probability")})
        with pq.ParquetWriter(many, part.schema) as writer:
            for _ in range(60):
                writer.write_table(part)
        _read_limited(reading, many, row)
    return row


def _read_limited(program: str, log: Path, row: AttackRow) -> None:
    """In a process of its own with limited memory: what is wanted is an InputError."""
    most = 3 * 2**30
    command = [
        sys.executable,
        "-c",
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))\n{program}",
    ]
    done = subprocess.run([*command, str(log)], capture_output=True, text=True, timeout=300)
    last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
    refused = done.returncode == 1 and "InputError" in last
    row.add("refused" if refused else "ended", bad=not refused, example=f"{log.name}: {done.returncode}: {last}")


def _deleted_file(options: Options) -> AttackRow:
    """The database file deleted under a server: it answers 503 and says that it is not ready, and loses nothing."""
    row = AttackRow("abuse: database file deleted under a server")
    for _ in range(options.tries(5, 1)):
        with shop(seed=options.seed) as one:
            expect(row, "decide", one.http.post(DECISIONS, json={}).status_code, 200)
            (one.folder / "shop.db").unlink()
            expect(row, "decide", one.http.post(DECISIONS, json={}).status_code, 503)
            expect(row, "readyz", one.http.get("/readyz").status_code, 503)
    return row


def _clock_ahead(options: Options) -> AttackRow:
    """A clock put a month ahead and back: nothing open is closed by it, and patience ends as before."""
    row, wall, steady = AttackRow("abuse: clock put a month ahead"), [10**18], [10**12]
    clock = GuardedClock(lambda: wall[0], lambda: steady[0])
    with tempfile.TemporaryDirectory() as folder, live.open(f"sqlite:///{folder}/shop.db", clock=clock) as opened:
        shop = opened.create("prices", arms=["low", "high"], patience=60, missing=0.0, seed=options.seed)
        for _ in range(options.tries(20, 3)):
            choice, closed = shop.decide(), shop.summary().expired
            for seconds, jump in ((30, 30 * 86_400), (1, 0), (1, -30 * 86_400)):
                wall[0] += (seconds + jump) * 10**9
                steady[0] += seconds * 10**9
                shop.decide()
            early = shop.summary().expired - closed
            kept = early == 0 and shop.reward(choice.id, 1.0).accepted == 1
            wall[0] += 61 * 10**9
            steady[0] += 61 * 10**9
            shop.forget(shop.decide().id)
            later = shop.summary().expired - closed
            row.add("as without the jump" if kept and later == 3 else "not", bad=not kept or later != 3)
    return row


def _journal_ahead(options: Options) -> AttackRow:
    """Decisions made while the clock was a month ahead, before the process began: put back, patience ends as usual."""
    row, now, month = AttackRow("abuse: journal a month ahead"), [0], 30 * 86_400 * 10**6
    for number in range(options.tries(10, 1)):
        with tempfile.TemporaryDirectory() as folder:
            url, now[0] = f"sqlite:///{folder}/shop.db", time.time_ns() // 1000 + month
            with live.open(url, clock=lambda: now[0]) as ahead:
                early = ahead.create("prices", arms=["low", "high"], patience=600, missing=0.0, seed=number).decide(2)
            _command(Path(folder), "db", "repair-clock", url)
            now[0] = time.time_ns() // 1000 + 300 * 10**6
            with live.open(url, clock=lambda: now[0]) as opened:
                prices = opened.experiment("prices")
                taken = prices.reward(early[0], 1.0).accepted
                now[0] += 400 * 10**6
                prices.decide()
                found = (taken, prices.summary().expired, opened.view("prices").check().fine)
            row.add("put back" if found == (1, 1, True) else "not", bad=found != (1, 1, True), example=str(found))
    return row


def _lying_guest(options: Options) -> AttackRow:
    """A fifth of all decisions are a guest's who lies: the others lose no more than 5 % of the best arm's rounds by it.

    A caller with a `decide` key who does the same, with arms of its choice, is counted beside it: that is not defended.
    """
    row, shares = AttackRow("abuse: a guest who lies"), {}
    rounds = options.tries(4_000, 600)
    for caller in ("nobody", "guest", "decide"):
        draw = generator("lies", options.seed)
        with tempfile.TemporaryDirectory() as folder, live.open(f"sqlite:///{folder}/shop.db") as database:
            shop = database.create("prices", arms=["worst", "middle", "best"], seed=options.seed)
            played = []
            for number in range(rounds):
                one = shop.decide()
                chance = {"worst": 0.3, "middle": 0.5, "best": 0.7}[one.arm]
                if caller == "guest":  # who knows the ids of others
                    lie = {"id": one.id, "reward": float(one.arm != "best"), "guest": True}
                    with contextlib.suppress(UnknownDecisionError):
                        row.note("rewards of others taken", bad=bool(shop.submit("reward", lie).result()))
                        continue
                shop.reward(one, float(draw.random() < chance))
                played.append(one.arm == "best")
                if number % 4 == 0 and caller != "nobody":
                    values: dict[str, Any] = {"size": 1, "allowed": None, "segment": None, "guest": True}
                    if caller == "decide":
                        values = {"size": 1, "allowed": [("worst", "best")[number // 4 % 2]], "segment": None}
                    made = shop.submit("decide", values).result()[0]
                    shop.reward(made["id"], float(made["arm"] != "best"))
            shares[caller] = sum(played[rounds // 4 :]) / len(played[rounds // 4 :])
            row.tries += 1
    row.details |= {f"share of the best arm, {caller}": share for caller, share in shares.items()}
    lost = shares["nobody"] - shares["guest"]
    row.note(f"{100 * lost:.0f} % of rounds lost to a guest", bad=lost > 0.05, example=str(shares))
    row.note(f"{100 * (shares['nobody'] - shares['decide']):.0f} % to a key of scope decide")
    return row


def _misleading_names(options: Options) -> AttackRow:
    """Names that look like others, and a database file under a second name: refused."""
    row = AttackRow("abuse: names that mislead")
    odd = ("\u200b", "\u200d", "\u2060", "\ufeff", "\u202e")
    with shop(made=False) as one:
        for sign in odd[: options.tries(5, 2)]:
            for made in (
                {"name": f"pri{sign}ces", "arms": ["low", "high"]},
                {"name": "a", "arms": ["low", f"lo{sign}w"]},
            ):
                expect(row, "invisible", one.http.post("/v1/experiments", json=made).status_code, 422)
        one.server.kill()
        Path(one.folder, "link.db").hardlink_to(Path(one.folder, "shop.db"))
        try:
            with live.open(one.url) as database:
                database.hold()
            row.add("hard link: decided", bad=True, example=one.url)
        except LiveError:
            row.add("hard link: refused")
    return row


def _first_decision(options: Options) -> AttackRow:
    """A server that is ready decides at once: what an experiment with features needs was opened and imported before."""
    row = AttackRow("abuse: the first decision after a start")
    arms = [{"name": f"arm {number}", "features": [number / 10]} for number in range(10)]
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/shop.db"
        with live.open(url) as database:
            database.make("prices", define(arms=arms, kernel={"name": "rbf", "length_scale": 0.5}, seed=options.seed))
        for _ in range(options.tries(10, 1)):
            with process(url) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http:
                while http.get("/readyz").status_code != 200:
                    time.sleep(0.02)
                begun = time.monotonic()
                expect(row, "decide", http.post(DECISIONS, json={}).status_code, 200)
                took = time.monotonic() - begun
                row.took(took)
                if took > LONGEST_BESIDE:
                    row.note("late", bad=True, example=f"after {took:.2f} s")
    return row
