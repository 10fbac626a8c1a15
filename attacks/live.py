"""Experiments in a database: processes killed by SIGKILL under load, at random points; the database itself, too.

What was answered must be in the journal, no id twice, and the policy brought back must be, bit for bit, one that
replays the journal from its beginning. `live_postgres` has the rows that need a Postgres server.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from attacks import live_postgres
from attacks.common import AttackRow, Options, generator, said, same
from driftbandits import DriftbanditsError, live
from driftbandits.errors import OtherDeciderError
from driftbandits.live.definition import define
from driftbandits.live.replica import Replica

THREADS = 4
TAKE_OVER_SECONDS = 15.0
START_SECONDS = 300.0  # to wait for a victim on a busy machine


def run(options: Options) -> list[AttackRow]:
    """Kill the same experiment again and again: the journal grows."""
    row = AttackRow("live: kill -9 under load, opened again")
    draw = generator("live", options.seed)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder)}/shop.db"
        with live.open(url) as database:
            database.make("prices", define(arms=["low", "mid", "high"], seed=options.seed))
        for _ in range(options.tries(50, 5)):
            kill_once(url, row, answers=int(draw.integers(1, 200)), seconds=float(draw.uniform(0.0, 0.3)))
    return [row, *live_postgres.run(options)]


def kill_once(url: str, row: AttackRow, *, answers: int, seconds: float) -> None:
    """Start a process that decides, kill it after so many answers and seconds, and look at what is left."""
    root = Path(__file__).parent.parent
    places = [str(root), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.live.victim", url, "prices", str(THREADS)],
        stdout=subprocess.PIPE,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
    ) as victim:
        said_lines = _listen(victim, answers, seconds)
    row.tries += 1
    _judge(url, said_lines, row)


def _listen(victim: subprocess.Popen[bytes], answers: int, seconds: float) -> list[list[str]]:
    """Lines of a victim that is killed after so many of them, and so many seconds more."""
    if victim.stdout is None:
        return []
    descriptor, content = victim.stdout.fileno(), b""
    patience = time.monotonic() + START_SECONDS
    while content.count(b"\n") <= answers and time.monotonic() < patience:
        if select.select([descriptor], [], [], 1.0)[0]:
            content += os.read(descriptor, 65536)
    time.sleep(seconds)
    victim.kill()
    while part := os.read(descriptor, 65536):
        content += part
    whole = content.decode().splitlines() if content.endswith(b"\n") else content.decode().splitlines()[:-1]
    return [line.split() for line in whole if line != "ready"]


def _judge(url: str, lines: list[list[str]], row: AttackRow) -> None:
    """Everything answered is journaled, no id twice, and what is brought back is what a replay gives."""
    row.note("answers", times=len(lines))
    with live.open(url) as database:
        view = database.view("prices")
        judge_answers(view, lines, row)
        begun = time.monotonic()
        experiment = _when_free(database)
        columns = view.definition.contexts
        context = None if columns is None else {"device": columns["device"][0]}
        experiment.forget(experiment.decide(context=context))
        row.details["longest seconds"] = max(row.details.get("longest seconds", 0.0), time.monotonic() - begun)
        replica = experiment.submit("inspect", {"inspect": lambda _, found: found}).result()
        if not _equal(view.player(), replica):
            row.note("not what a replay gives", bad=True, example=str(experiment.summary()))
        else:
            row.note("brought back bit for bit")
        try:
            experiment.reward(experiment.decide(context=context).id, 1.0)
        except DriftbanditsError as error:
            row.note("does not go on", bad=True, example=said(error))
        check = view.check()
        if not check.fine or check.differing:
            row.note("the check fails", bad=True, example=str(check))


def _when_free(database: live.Database) -> live.Experiment:
    """The experiment, as soon as nobody else decides in it: Postgres takes a moment to see that a session is gone."""
    end = time.monotonic() + TAKE_OVER_SECONDS
    while True:
        try:
            return database.experiment("prices")
        except OtherDeciderError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def judge_answers(view: live.View, lines: list[list[str]], row: AttackRow) -> None:
    ids = Counter(words[1] for words in lines if words[0] == "decided")
    twice = [name for name, times in ids.items() if times > 1]
    if twice:
        row.note("id given twice", bad=True, example=twice[0])
    with view.journal() as journal:
        for kind, name, value in lines:
            event = journal.decision(name)
            closing = None if event is None else journal.closing(event.seq)
            if event is None or (kind == "decided" and view.definition.arms[event.arm or 0].name != value):
                row.note("decision lost", bad=True, example=name)
            elif kind == "rewarded" and (closing is None or closing.reward != float(value)):
                row.note("reward lost", bad=True, example=name)


def _equal(left: Replica, right: Replica) -> bool:
    if left.policy is None or right.policy is None:
        return False
    books = left.plain_values() == right.plain_values() and left.open == right.open
    return books and same(left.policy.state_dict(), right.policy.state_dict())
