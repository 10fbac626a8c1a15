"""Experiments in a database: a million events in SQLite, and group commit against one commit per request.

Synchronous FULL throughout: a commit is on the disk. What a disk takes for that differs by a factor of a hundred
between machines, so read the ratios.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

from driftbandits import live
from driftbandits.live import snapshots, writer
from driftbandits.live.definition import define
from driftbandits.live.handlers import Handlers
from driftbandits.live.journal import Journal
from driftbandits.live.player import Player
from driftbandits.live.requests import Request
from driftbandits.live.views import View

ARMS = [f"arm {number}" for number in range(20)]
PER_TRANSACTION = 256
SECONDS = 5.0  # per measurement of group commit


def run(*, quick: bool) -> None:
    """All of it."""
    print("\n## Experiments in a database\n")
    print("| policy | events | bytes per event | open | replay from the beginning |\n|---|---:|---:|---:|---:|")
    _million("DiscountedUCB", 20_000 if quick else 1_000_000)
    _million("AutoBandit", 4_000 if quick else 100_000)
    print(
        "\n| threads | decisions a second | one commit each | ratio | requests per commit |\n|---|---:|---:|---:|---:|"
    )
    seconds = 1.0 if quick else SECONDS
    for threads in (1, 4, 16):
        _group_commit(threads, seconds)


def _million(policy: str, events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        url = f"sqlite:///{path}"
        with live.open(url) as database:
            database.make("shop", define(arms=ARMS, policy=policy, seed=0))
            view = database.view("shop")
            _fill(database, view, events)
        size = path.stat().st_size  # the write-ahead log is gone: everything is closed
        begun = time.perf_counter()
        with live.open(url) as database:
            database.experiment("shop").decide()
            opened = time.perf_counter() - begun
            begun = time.perf_counter()
            replayed = database.view("shop").player().seq
            rate = replayed / (time.perf_counter() - begun)
        print(f"| {policy} | {events:,} | {size / events:.0f} | {opened:.2f} s | {rate:,.0f} events a second |")


def _fill(database: live.Database, view: View, events: int) -> None:
    """Decisions and rewards through the handlers, without threads; a snapshot where the writer would make one."""
    player = Player(view.definition)
    with database._writing.connect() as connection:
        journal = Journal(connection, view.experiment, view.token)
        with connection.begin():
            player.replay(journal.events())
        handlers = Handlers(player, journal)
        while player.seq < events:
            with connection.begin():
                for _ in range(PER_TRANSACTION):
                    made = handlers.serve(Request("decide", {"size": 1, "allowed": None, "segment": None}))
                    number = ARMS.index(made[0]["arm"])
                    handlers.serve(Request("reward", {"id": made[0]["id"], "reward": number % 7 / 7}))
                journal.flush()
                if player.cost > snapshots.SECONDS:
                    content = snapshots.pack(snapshots.export(player))
                    journal.keep_snapshot(player.seq, player.time, content)
                    player.cost = 0.0


def _group_commit(threads: int, seconds: float) -> None:
    together, size = _rate(threads, seconds, writer.MOST_TOGETHER)
    apart, _ = _rate(threads, seconds, 1)
    print(f"| {threads} | {together:,.0f} | {apart:,.0f} | {together / apart:.1f} | {size:.1f} |")


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
            return sum(counts) / seconds, sum(counts) / max(shop._writer.commits, 1)
    finally:
        writer.MOST_TOGETHER = usual
