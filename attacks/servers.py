"""Servers and databases as processes, to be stopped and killed; and clients that note what was answered to them."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx

from attacks.common import AttackRow
from driftbandits import live
from driftbandits.live.definition import define
from driftbandits.service.keys import create_key

ROOT = Path(__file__).parent.parent
DECISIONS = "/v1/experiments/prices/decisions"
_BETWEEN = 0.05  # seconds, before a request is sent again
_CONTROL_SECONDS = 120.0  # for Postgres to stop, on a busy machine


@dataclass(frozen=True)
class Shop:
    """A database file with the experiment `prices` and its keys, a server of it, and a client."""

    folder: Path
    url: str
    keys: list[str]
    server: Server
    http: httpx.Client


@contextlib.contextmanager
def shop(*flags: str, seed: int = 0, keys: Sequence[str] = (), made: bool = True) -> Iterator[Shop]:
    """A shop with keys of these scopes; `made=False`: without the experiment."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/shop.db"
        with live.open(url) as database:
            if made:
                database.make("prices", define(arms=["low", "mid", "high"], seed=seed))
            given = [create_key(database, "caller", scope) for scope in keys]
        with process(url, *flags) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=300) as http:
            yield Shop(Path(folder), url, given, server, http)


def expect(row: AttackRow, what: str, status: int, wanted: int) -> None:
    """Count an answer, which is a fault if it has another status."""
    row.add(f"{what}: {status}", bad=status != wanted, example=f"{what}: {status} instead of {wanted}")


@contextlib.contextmanager
def postgres(*rows: AttackRow) -> Iterator[Any]:
    """A Postgres server of its own; None where the wheel pgserver is not installed, which the rows say then."""
    try:
        import pgserver
    except ImportError:
        for row in rows:
            row.note("pgserver is not installed")
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(Path(folder))  # type: ignore[attr-defined]  # its package says nothing of exports
        try:
            yield server
        finally:
            server.cleanup()


def control(server: Any, *words: str) -> None:
    """`pg_ctl` of a Postgres server."""
    commands: Any = importlib.import_module("pgserver._commands")
    commands.pg_ctl(["-w", *words], pgdata=server.pgdata, user=server.system_user, timeout=_CONTROL_SECONDS)


@contextlib.contextmanager
def process(database: str, *flags: str, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A server of its own, in this environment or another. Whatever is left of it is killed at the end."""
    places = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    command = [sys.executable, "-m", "driftbandits", "serve", "--database", database, *flags]
    if "--port" not in flags:
        command += ["--port", "0"]
    environment = {**(environment or os.environ), "PYTHONPATH": os.pathsep.join(filter(None, places))}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as started:
        server = Server(started)
        try:
            server.wait_until_listening()
            yield server
        finally:
            server.kill()


class Server:
    """A process that serves, its URL, and the lines that it logs."""

    def __init__(self, started: subprocess.Popen[str]) -> None:
        self.process = started
        self.lines: list[str] = []
        self.url = ""
        self._listening = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stderr or ():
            self.lines.append(line)
            with contextlib.suppress(ValueError):
                found = json.loads(line)
                if found.get("message") == "listening":
                    self.url = found["url"].rstrip("/")
                    self._listening.set()
        self._listening.set()

    def wait_until_listening(self) -> None:
        """Until requests can be sent to it."""
        self._listening.wait(120)
        if not self.url:
            raise RuntimeError(f"the server did not start: {''.join(self.lines)}")

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Clients:
    """Threads that decide and reward until they are stopped; every answer is noted.

    A request that failed is sent again with the same key, to any of `urls`, until it is answered or the clients are
    stopped: that is what callers are told to do.
    """

    def __init__(self, urls: Sequence[str], name: str = "prices", threads: int = 4) -> None:
        self.urls, self._path = list(urls), f"/v1/experiments/{name}"
        self.decided: list[tuple[str, str]] = []
        self.rewarded: list[tuple[str, float]] = []
        self.statuses: list[int] = []
        self.times: list[float] = []  # of decisions that were answered
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, number: int) -> None:
        draw = random.Random(number)
        with httpx.Client(timeout=30, trust_env=False) as http:
            while not self._stop.is_set():
                made = self._send(http, "decisions", {}, draw)
                if made is not None:
                    self._reward(http, made["decisions"][0], draw)

    def _reward(self, http: httpx.Client, one: dict[str, Any], draw: random.Random) -> None:
        with self._lock:
            self.decided.append((one["id"], one["arm"]))
            self.times.append(time.monotonic())
        reward = float(one["arm"] == "high")
        answer = self._send(http, "rewards", {"id": one["id"], "reward": reward}, draw)
        if answer is not None and answer["accepted"] + answer["repeated"] == 1:
            with self._lock:
                self.rewarded.append((one["id"], reward))

    def _send(self, http: httpx.Client, what: str, body: dict[str, Any], draw: random.Random) -> Any:
        key = f"{threading.get_ident():x}-{time.monotonic_ns():x}"
        while not self._stop.is_set():
            url = self.urls[draw.randrange(len(self.urls))]
            try:
                answer = http.post(f"{url}{self._path}/{what}", json=body, headers={"idempotency-key": key})
            except httpx.TransportError:
                time.sleep(_BETWEEN)
                continue
            if answer.status_code == 200:
                return answer.json()
            with self._lock:
                self.statuses.append(answer.status_code)
            time.sleep(_BETWEEN)
        return None

    def wait_for(self, count: int, seconds: float = 60.0) -> float:
        """Until so many more decisions were answered; seconds until the first."""
        begun, before = time.monotonic(), len(self.decided)
        while len(self.decided) < before + count:
            if time.monotonic() > begun + seconds:
                raise TimeoutError(f"no answer for {seconds:g} s; statuses {self.statuses[-5:]}")
            time.sleep(0.01)
        return self.times[before] - begun


def judge(database: str, clients: Clients, name: str = "prices", *, differing: bool = False) -> list[str]:
    """What is wrong: answers that are not in the journal, ids given twice, a policy that a replay does not give.

    `differing`: a replay may draw otherwise, as where several kinds of CPU decided.
    """
    ids = [ident for ident, _ in clients.decided]
    wrong = ["an id was given twice"] if len(set(ids)) != len(ids) else []
    with live.open(database) as opened:
        view = opened.view(name)
        arms = [option.name for option in view.definition.arms]
        with view.journal() as journal:
            for ident, arm in clients.decided:
                event = journal.decision(ident)
                if event is None or arms[event.arm or 0] != arm:
                    wrong.append(f"decision {ident} is lost")
            for ident, reward in clients.rewarded:
                event = journal.decision(ident)
                closing = None if event is None else journal.closing(event.seq)
                if closing is None or closing.reward != reward:
                    wrong.append(f"the reward of {ident} is lost")
        check = view.check()
    if not check.fine or (check.differing and not differing):
        wrong.append(f"the check fails: {check}")
    return wrong
