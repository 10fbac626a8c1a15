"""The service under load: clients that keep their connections, AutoBandit, 20 arms, SQLite with synchronous FULL.

Beside it, in the same run, the same load on handlers that only commit a row: a bare one, as one writes it with FastAPI
and SQLite, and one with the service's group commit. Generator, server and whatever else runs share the machine: read
the ratios.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.live_journal import fill
from benchmarks.service_load import ARMS
from driftbandits import live
from driftbandits.live.definition import define

CLIENTS = (1, 4, 16)
SECONDS, QUICK_SECONDS = 20.0, 8.0
LONG_SECONDS = 300.0
TURNS, QUICK_TURNS = 3, 2
STARTS = 5


def run(*, quick: bool) -> None:
    """All of it."""
    print("\n## The service under load\n")
    seconds, turns = (QUICK_SECONDS, QUICK_TURNS) if quick else (SECONDS, TURNS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = {"service": stack.enter_context(_service(folder))}
        for kind in ("bare", "together"):
            servers[kind] = stack.enter_context(_row_handler(kind, f"{folder}/{kind}.db"))
        print("| clients | batch | handler | decisions a second | part | p50 | p95 | p99 | processor per decision |")
        print("|---:|---:|---|---:|---:|---:|---:|---:|---:|")
        for clients, size in (*((clients, 1) for clients in CLIENTS), (CLIENTS[-1], 100)):
            beside = "bare" if size == 1 else "together"
            found = {
                name: _measure(server, seconds, clients, size, turns)
                for name, server in servers.items()
                if size == 1 or name != "bare"  # which takes one reward at a time
            }
            for name, rates in found.items():
                part = rates["decisions"] / found[beside]["decisions"]
                waits = " | ".join(f"{rates[quantile]:.1f} ms" for quantile in ("p50", "p95", "p99"))
                line = f"| {clients} | {size} | {name} | {rates['decisions']:,.0f} | {part:.2f} | {waits}"
                print(f"{line} | {rates['processor']:.2f} ms |", flush=True)
        if not quick:
            _grow(servers["service"])
    _start(4_000 if quick else 100_000)


def _measure(server: Running, seconds: float, clients: int, size: int, turns: int) -> dict[str, float]:
    """Rates and quantiles in the middle of so many turns."""
    found = []
    for _ in range(turns):
        before = server.cpu()
        load = _load(server.port, seconds / turns, clients, size)
        load["processor"] = 1e3 * (server.cpu() - before) / max(load["decisions"] * seconds / turns, 1.0)
        if load["other"]:
            print(f"  other statuses: {load.pop('other')}")
        found.append({name: value for name, value in load.items() if name != "other"})
    return {name: median(one[name] for one in found) for name in found[0]}


def _grow(server: Running) -> None:
    """Five minutes: the memory of the server at the beginning of each."""
    sizes = [server.memory()]
    rates = []
    for _ in range(5):
        load = _load(server.port, LONG_SECONDS / 5, CLIENTS[-1], 1)
        rates.append(load["pairs"])
        sizes.append(server.memory())
    shown = ", ".join(f"{size:.0f}" for size in sizes)
    print(f"\nfive minutes: {sum(rates) / 5:,.0f} pairs a second; memory of the server {shown} MB, minute by minute")


def _start(events: int) -> None:
    """From the start of a server to its first decision, with so many events in the journal: the fastest of five."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/load.db"
        with live.open(url) as database:
            database.make("load", define(arms=ARMS, seed=0))
            fill(database, database.view("load"), events)
        seconds, replays, processor = [], [], []
        for _ in range(STARTS):
            begun = time.perf_counter()
            with _started([sys.executable, "-m", "driftbandits", "serve", "--port", "0", "--database", url]) as server:
                where = f"http://127.0.0.1:{server.port}"
                httpx.post(f"{where}/v1/experiments/load/decisions", json={}, timeout=120).raise_for_status()
                seconds.append(time.perf_counter() - begun)
                processor.append(server.cpu())
                text = httpx.get(f"{where}/metrics", timeout=120).text
                replays.append(float(text.split('driftbandits_replay_seconds{experiment="load"} ')[1].split("\n")[0]))
    print(
        f"\n{events:,} events in the journal: first decision {min(seconds):.1f} s after the start of the process, with "
        f"{min(processor):.1f} s of processor, of which {min(replays):.2f} s were the replay; the fastest of {STARTS}, "
        f"the slowest {max(seconds):.1f} s"
    )


def _load(port: int, seconds: float, clients: int, size: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.service_load", str(port), str(seconds), str(clients), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Running:
    """A server process."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def cpu(self) -> float:
        """Seconds of processor that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Megabytes that it holds."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def _service(folder: str) -> Iterator[Running]:
    command = [
        sys.executable,
        "-m",
        "driftbandits",
        "serve",
        "--port",
        "0",
        "--database",
        f"sqlite:///{folder}/load.db",
    ]
    with _started(command) as server:
        made = {"name": "load", "arms": ARMS, "seed": 1}
        httpx.post(f"http://127.0.0.1:{server.port}/v1/experiments", json=made, timeout=60).raise_for_status()
        yield server


@contextmanager
def _row_handler(kind: str, file: str) -> Iterator[Running]:
    with _started([sys.executable, "-m", "benchmarks.service_row", kind, file]) as server:
        yield server


@contextmanager
def _started(command: list[str]) -> Iterator[Running]:
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr or ():
                if "listening" in line:
                    yield Running(process, int(json.loads(line)["url"].rstrip("/").rsplit(":", 1)[1]))
                    return
            raise RuntimeError("the server did not start")
        finally:
            process.kill()
