"""Experiments in Postgres: whoever holds the lease is killed, and the database server itself, under load.

A real server from the wheel pgserver; where that is not installed the rows say so and count nothing.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from attacks.common import AttackRow, Options, generator, said, same
from attacks.servers import control, postgres
from driftbandits import live
from driftbandits.errors import LiveError, NotStoredError
from driftbandits.live.definition import define

THREADS = 4
SERVER_SECONDS = 120.0  # to wait for a server on a busy machine
LOAD_SECONDS = 1.0


def run(options: Options) -> list[AttackRow]:
    """Both rows on one server."""
    from attacks.live import kill_once

    rows = AttackRow("live: Postgres, lease holder killed"), AttackRow("live: Postgres itself killed")
    draw = generator("live_postgres", options.seed)
    with postgres(*rows) as server:
        if server is None:
            return list(rows)
        url = server.get_uri()
        with live.open(url) as database:
            database.make("prices", define(arms=["low", "mid", "high"], seed=options.seed))
        for _ in range(options.tries(10, 2)):
            answers, seconds = int(draw.integers(1, 200)), float(draw.uniform(0.0, 0.3))
            kill_once(url, rows[0], answers=answers, seconds=seconds)
        for _ in range(options.tries(5, 1)):
            _kill_server(server, url, rows[1])
    return list(rows)


class Load:
    """Threads that decide and reward until they are stopped; what was answered, as the victims of `live` say it."""

    def __init__(self, experiment: live.Experiment) -> None:
        self.experiment = experiment
        self.lines: list[list[str]] = []
        self.refused = 0
        self.wrong: list[str] = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after what is under way."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, own: int) -> None:
        count = 0
        while not self._stop.is_set():
            count += 1
            try:
                choice = self._settle(lambda key: self.experiment.decide(key=key), f"d {own} {count}")
                self.lines.append(["decided", choice.id, choice.arm])
                reward = 1.0 if choice.arm == "high" else 0.0
                self._settle(lambda key, c=choice, r=reward: self.experiment.reward(c.id, r, key=key), f"r {choice.id}")
                self.lines.append(["rewarded", choice.id, str(reward)])
            except LiveError as error:
                self.wrong.append(said(error))

    def _settle(self, call: Any, key: str) -> Any:
        """Send a request with one key until it is known to be stored; each run has keys of its own."""
        end = time.monotonic() + SERVER_SECONDS
        while True:
            try:
                return call(f"{id(self)} {key}")
            except NotStoredError:
                self.refused += 1
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


def _kill_server(server: Any, url: str, row: AttackRow) -> None:
    """All its processes aborted, some time without it, a new start: callers are refused meanwhile, and then go on."""
    from attacks.live import judge_answers

    row.tries += 1
    with live.open(url) as database:
        experiment = database.experiment("prices")
        load = Load(experiment)
        time.sleep(LOAD_SECONDS)
        before = len(load.lines)
        control(server, "stop", "-m", "immediate")
        time.sleep(LOAD_SECONDS)
        server.ensure_postgres_running()
        begun = time.monotonic()
        known = len(load.lines)
        while len(load.lines) == known and time.monotonic() < begun + SERVER_SECONDS:
            time.sleep(0.01)
        waited = time.monotonic() - begun
        row.took(waited)
        time.sleep(LOAD_SECONDS)
        load.stop()
        row.note("answers", times=len(load.lines))
        row.note("refused and sent again", times=load.refused)
        for error in load.wrong:
            row.note("another error", bad=True, example=error)
        if not before or len(load.lines) == known:
            row.note("did not go on", bad=True, example=f"{before} answers before, {len(load.lines) - known} after")
        judge_answers(experiment.view, load.lines, row)
        replica = experiment.submit("inspect", {"inspect": lambda _, found: found}).result()
        if not same(_state(experiment.view.player()), _state(replica)):
            row.note("not what a replay gives", bad=True, example=str(experiment.summary()))
        else:
            row.note("bit for bit what a replay gives")


def _state(replica: Any) -> Any:
    return {**replica.plain_values(), "policy": replica.policy and replica.policy.state_dict()}
