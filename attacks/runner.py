"""Runs of experiments are killed early: their workers end with them, and --resume finishes the work.

Processes of a run are known by a variable in their environment, wherever they end up in the tree.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from attacks.common import AttackRow, Options, generator, scratch, spread, total

MARK_VARIABLE = "DRIFTBANDITS_ATTACK"
GRACE_SECONDS = 10.0  # in which workers may notice that their run is gone
HANG_SECONDS = 300.0
LATEST_HIT_SECONDS = 4.0  # after the first worker
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
RUN = [
    *("run", "--environment", "switching/1", "--set", "horizon=1500", "--set", "switches=[700]"),
    *("--policy", "AdaOPKB", "--policy", "Uniform", "--seeds", "10", "--jobs", "2", "--json"),
]
REPRODUCE = ["reproduce", "switching/1", "--seeds", "1", "--jobs", "2", "--json"]


def run(options: Options) -> Iterator[AttackRow]:
    """Each signal at many moments."""
    tries = options.tries(8, 1)
    tasks = [
        (number.name, "reproduce" if trial % 4 == 3 else "run", trial, options.seed)
        for trial in range(tries)
        for number in SIGNALS
    ]
    rows = list(spread(hit, tasks, options))
    for number in SIGNALS:
        yield total(f"{number.name} to a run", (row for row in rows if row.attack == number.name))


def hit(name: str, command: str, trial: int, seed: int) -> AttackRow:
    """Start a run, hit it early, look for what is left of it, and go on."""
    rng = generator("runner", name, command, trial, seed)
    row = AttackRow(name)
    with scratch(disk=True) as folder:
        mark = uuid.uuid4().hex
        words = [*(RUN if command == "run" else REPRODUCE), "--out", str(folder / "out")]
        with subprocess.Popen(
            [sys.executable, "-m", "driftbandits", *words],
            env={**os.environ, MARK_VARIABLE: mark},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            _wait_for_worker(process, mark)
            delay = float(rng.random()) * LATEST_HIT_SECONDS
            time.sleep(delay)
            row.note("finished before" if process.poll() is not None else "hit while it ran")
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.Signals[name])
            ended = _ends(process)
        row.tries += 1
        if not ended:
            row.note("run did not end", bad=True, example=f"{command}, {delay:.2f} s after its first worker")
        alive = _outlive(mark)
        row.note("workers outlive it" if alive else "no worker left", bad=bool(alive), example=f"{command}: {alive}")
        _end(mark)
        if command == "run":
            _resume(row, words, mark)
        _end(mark)
    return row


def _wait_for_worker(process: subprocess.Popen[bytes], mark: str) -> None:
    end = time.monotonic() + HANG_SECONDS
    while process.poll() is None and len(_alive(mark)) < 2 and time.monotonic() < end:
        time.sleep(0.02)


def _ends(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(HANG_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return False
    return True


def _resume(row: AttackRow, words: list[str], mark: str) -> None:
    again = subprocess.run(
        [sys.executable, "-m", "driftbandits", *words, "--resume"],
        env={**os.environ, MARK_VARIABLE: mark},
        capture_output=True,
        timeout=HANG_SECONDS,
        check=False,
        text=True,
    )
    fine = again.returncode == 0
    row.note("resumed and finished" if fine else "resume failed", bad=not fine, example=again.stderr[-300:])


def _outlive(mark: str) -> list[str]:
    """What still runs of a marked run after the time of grace."""
    end = time.monotonic() + GRACE_SECONDS
    while (alive := _alive(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return [_command(process) for process in alive]


def _alive(mark: str) -> list[int]:
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is not ours
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def _command(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "gone"
    return " ".join(words)[:120]


def _end(mark: str) -> None:
    """End what we started and is still there, process by process."""
    for process in _alive(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
