"""Experiments in a database: long journals in SQLite, and group commit against one commit per request.

Synchronous FULL throughout: a commit is on the disk. What a disk takes for that differs by a factor of a hundred
between machines, so read the ratios. A start is that of a new process, the fastest of five, with as much to replay
behind the newest snapshot as there ever is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from driftbandits import live
from driftbandits.live import recovery, writer
from driftbandits.live.definition import define
from driftbandits.live.journal import Journal
from driftbandits.live.replica import Replica
from driftbandits.live.requests import Handlers, Request
from driftbandits.live.views import View
from driftbandits.state import archive

ARMS = [f"arm {number}" for number in range(20)]
PER_TRANSACTION = 64
STARTS = 5
ALMOST_DUE = 0.9  # of the cost at which a snapshot is written
SECONDS = 10.0  # per measurement of group commit, in turns with the other
TURNS = 5


def run(*, quick: bool) -> None:
    """All of it."""
    print("\n## Experiments in a database\n")
    print("| policy | events | bytes per event | snapshots | start to first decision | of it replay | all replayed |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    _long_journal("DiscountedUCB", 20_000 if quick else 1_000_000)
    _long_journal("DiscountedUCB", 4_000 if quick else 100_000)
    _long_journal("AutoBandit", 4_000 if quick else 100_000)
    print("\n| threads | decisions per second | one commit each | ratio | requests per commit |")
    print("|---:|---:|---:|---:|---:|")
    seconds = 1.0 if quick else SECONDS
    for threads in (1, 4, 16):
        _group_commit(threads, seconds)


def _long_journal(policy: str, events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        url = f"sqlite:///{path}"
        with live.open(url) as database:
            database.make("shop", define(arms=ARMS, policy=policy, seed=0))
            view = database.view("shop")
            fill(database, view, events)
            with database.engine.connect() as connection:
                stored = connection.execute(sa.text("SELECT sum(length(content)) FROM snapshots")).scalar() or 0
        size = path.stat().st_size - stored  # the write-ahead log is gone: everything is closed
        start = min(_start(path) for _ in range(STARTS))
        with live.open(url) as database:
            begun = time.perf_counter()
            whole = database.view("shop").player().seq
            rate = whole / (time.perf_counter() - begun)
        print(
            f"| {policy} | {whole:,} | {size / whole:.0f} | {stored / 2**20:.1f} MiB | {start.seconds:.1f} s, "
            f"{start.processor:.1f} s of processor | {start.replay:.2f} s for {start.events:,} events "
            f"| {rate:,.0f} events per second |"
        )


def fill(database: live.Database, view: View, events: int) -> None:
    """Decisions and rewards through the handlers, without threads; a snapshot where the writer would make one."""
    replica = Replica(view.definition)
    with view.journal() as journal:
        replica.replay(journal.events())
    while replica.seq < events or replica.cost < ALMOST_DUE * recovery.SECONDS:
        with database.writing() as connection:
            journal = Journal(connection, view.experiment, view.token)
            handlers = Handlers(replica, journal)
            if replica.cost > recovery.SECONDS:
                content = archive.pack(recovery.snapshot_of(replica))
                journal.keep_snapshot(replica.seq, replica.time, content)
                replica.cost = 0.0
            for _ in range(PER_TRANSACTION):
                made = handlers.serve(Request("decide", {"size": 1, "allowed": None, "segment": None}))
                number = ARMS.index(made[0]["arm"])
                handlers.serve(Request("reward", {"id": made[0]["id"], "reward": number % 7 / 7}))
            journal.flush()


class Start(NamedTuple):
    """Seconds from the start of a process to its first decision, those of the processor, those of the replay."""

    seconds: float
    processor: float
    replay: float
    events: int


def _start(path: Path) -> Start:
    """Start a process that decides once, on a copy: it may write a snapshot, and others would have less to replay."""
    copy = path.with_name("copy.db")
    shutil.copyfile(path, copy)
    begun = time.time()
    done = subprocess.run(
        [sys.executable, "-c", _STARTED, f"sqlite:///{copy}"], capture_output=True, text=True, check=True
    )
    decided, processor, replay, events = (float(word) for word in done.stdout.split())
    return Start(decided - begun, processor, replay, int(events))


_STARTED = """
import sys, time
from driftbandits import live

shop = live.open(sys.argv[1]).experiment("shop")
shop.decide()
recovery = shop.submit("inspect", {"inspect": lambda writer, _: writer.recovery}).result()
print(time.time(), time.process_time(), recovery.seconds, recovery.replayed)
"""


def _group_commit(threads: int, seconds: float) -> None:
    together, apart, size = np.mean([_turn(threads, seconds / TURNS) for _ in range(TURNS)], axis=0)
    print(f"| {threads} | {together:,.0f} | {apart:,.0f} | {together / apart:.1f} | {size:.1f} |")


def _turn(threads: int, seconds: float) -> tuple[float, float, float]:
    """Decisions per second with group commit and without, one after the other, and how many shared a commit."""
    together, size = _rate(threads, seconds, writer.MOST_TOGETHER)
    return together, _rate(threads, seconds, 1)[0], size


def _rate(threads: int, seconds: float, together: int) -> tuple[float, float]:
    """Decisions a second from so many threads, and how many requests shared a commit."""
    usual, writer.MOST_TOGETHER = writer.MOST_TOGETHER, together
    try:
        with tempfile.TemporaryDirectory() as folder, live.open(f"sqlite:///{folder}/shop.db") as database:
            shop = database.create("shop", arms=ARMS, policy="DiscountedUCB", seed=0)
            end = time.perf_counter() + seconds
            counts = [0] * threads

            def work(own: int) -> None:
                while time.perf_counter() < end:
                    shop.decide()
                    counts[own] += 1

            workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            commits = shop.submit("inspect", {"inspect": lambda writer, _: writer.commits}).result()
            return sum(counts) / seconds, sum(counts) / max(commits, 1)
    finally:
        writer.MOST_TOGETHER = usual
