"""A process forks while another of its threads is inside a policy: the child must not wait for a thread it lacks."""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from attacks.aftermath import Outcome, count, judge
from attacks.common import AttackRow, Options, every_policy, generator, make, play, scratch
from driftbandits.policies import Policy

HANG_SECONDS = 20.0


def run(options: Options) -> Iterator[AttackRow]:
    """Every policy."""
    yield every_policy("fork while a thread is inside tell", forks, options.tries(60, 4), options)


def forks(name: str, tries: int, seed: int) -> AttackRow:
    """Fork at random moments of another thread's play."""
    rng = generator("forks", name, seed)
    row = AttackRow(name)
    with scratch() as folder:
        for _ in range(tries):
            policy = make(name, horizon=None, seed=int(rng.integers(1000)))
            play(policy, int(rng.integers(1, 80)))
            path = folder / "policy"
            policy.save(path)
            stop = threading.Event()
            thread = threading.Thread(target=_play_until, args=(policy, stop), daemon=True)
            thread.start()
            time.sleep(float(rng.random()) * 0.003)
            outcome = _in_child(policy, path)
            stop.set()
            thread.join(HANG_SECONDS)
            count(row, outcome, where=name)
    return row


def _play_until(policy: Policy, stop: threading.Event) -> None:
    while not stop.is_set():
        play(policy, 1)


def _in_child(policy: Policy, path: Path) -> Outcome:
    """Judge the policy in a forked child, which is killed if it does not answer."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            faulthandler.dump_traceback_later(HANG_SECONDS / 2, file=writer)
            outcome = judge(policy, path)
            faulthandler.cancel_dump_traceback_later()
            os.write(writer, json.dumps([outcome.verdict, outcome.detail[:500]]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    select.select([reader], [], [], HANG_SECONDS)
    text = os.read(reader, 4096).decode()  # at least where it hangs
    os.close(reader)
    if text.startswith("["):
        os.waitpid(child, 0)
        return Outcome(*json.loads(text))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    where = [line.strip() for line in text.splitlines() if "File" in line]
    return Outcome("child hangs" if text else "child died", " < ".join(where[:3]))
