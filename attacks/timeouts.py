"""A timer raises TimeoutError at a random moment of play, wherever Python then looks for signals."""

from __future__ import annotations

import contextlib
import signal
import time
import types
from collections.abc import Iterator
from pathlib import Path

from attacks.aftermath import count, judge_in_thread
from attacks.common import AttackRow, Options, by_family, generator, play, scratch
from attacks.snapshots import snapshots
from driftbandits.policies import Policy


def run(options: Options) -> Iterator[AttackRow]:
    """All policies, by family."""
    yield from by_family("time-out", _strike, options.tries(1_000, 20), options)


def _strike(name: str, tries: int, part: int, seed: int) -> AttackRow:
    rng = generator("timeouts", name, part, seed)
    row = AttackRow(name)
    signal.signal(signal.SIGALRM, _late)
    with scratch() as folder:
        path = folder / "policy"
        bases = snapshots(name, rng, folder)
        longest = _seconds(bases[0].policy())
        for _ in range(tries):
            base = bases[int(rng.integers(len(bases)))]
            policy = base.policy()
            path.write_bytes(base.file)
            _play_until(policy, max(float(rng.random()) * longest, 1e-6), path)
            count(row, judge_in_thread(policy, path), where=name)
    return row


def _late(_number: int, _frame: types.FrameType | None) -> None:
    raise TimeoutError("too late")


def _seconds(policy: Policy) -> float:
    begun = time.perf_counter()
    play(policy, 30)
    return time.perf_counter() - begun


def _play_until(policy: Policy, seconds: float, path: Path) -> None:
    """Play, and save now and then, until the timer strikes."""
    with contextlib.suppress(Exception):  # the time-out, or what it became on its way through a library
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for _ in range(8):
            play(policy, 20)
            policy.save(path)
        time.sleep(seconds)
