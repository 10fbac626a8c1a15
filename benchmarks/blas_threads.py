"""What the threads of BLAS cost a loop of ask and tell: processor time with nothing set, over that with one thread set.

python -m benchmarks blas_threads            about four minutes
python -m benchmarks blas_threads --quick    some twenty seconds

Each loop is a process of its own, the two kinds in turns, first with nothing else to do and then while as many
processes as there are cores compute without end. Microseconds are those of holding and giving back the setting in a
round, beside rounds whose `hold` and `release` do nothing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from unittest import mock

import numpy as np

import driftbandits as db
from driftbandits._util import guard

NAMES = ("GPUCB", "CalibratedOPKB", "AutoBandit")
ARMS = 100
MOST_RATIO, MOST_MICROSECONDS = 1.2, 1.0
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def play(name: str, rounds: int) -> float:
    """Processor seconds of all threads of this process, for a loop whose rewards change their sign halfway."""
    rng = np.random.default_rng(0)
    arms = db.ArmSet(rng.random((ARMS, 2)))
    means, noise = 0.5 * np.sin(3 * arms.points[:, 0]), 0.1 * rng.standard_normal(rounds)
    policy = getattr(db, name)(arms, seed=0)
    start = time.process_time()
    for now in range(rounds):
        choice = policy.ask()
        mean = float(means[choice.arm]) * (1.0 if now < rounds // 2 else -1.0)
        policy.tell(choice, min(max(mean + float(noise[now]), -1.0), 1.0))
    return time.process_time() - start


def _seconds(name: str, rounds: int, set_threads: dict[str, str]) -> float:
    """The same in a process of its own, with no threads set but these."""
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    code = f"from benchmarks.blas_threads import play; print(play({name!r}, {rounds}))"
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**environment, **set_threads}
    )
    return float(told.stdout)


def ratio(name: str, rounds: int, turns: int) -> tuple[float, float, float]:
    """Medians over turns: seconds with nothing set, with one thread set, and of the ratio of the two."""
    one = dict.fromkeys(VARIABLES, "1")
    pairs = np.array([(_seconds(name, rounds, {}), _seconds(name, rounds, one)) for _ in range(turns)])
    free, single = np.median(pairs, axis=0)
    return float(free), float(single), float(np.median(pairs[:, 0] / pairs[:, 1]))


@contextlib.contextmanager
def busy_cores() -> Iterator[None]:
    """As many processes that compute without end as there are cores."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def overhead(rounds: int = 4_000, repeats: int = 25) -> float:
    """Microseconds of a round of Uniform, the cheapest policy, that go into the setting; fastest of several."""
    arms = db.ArmSet(np.random.default_rng(0).random((10, 2)))
    spent: dict[str, list[float]] = {"set": [], "left alone": []}
    for _ in range(repeats):
        for kind, times in spent.items():
            with contextlib.ExitStack() as stack:
                if kind == "left alone":
                    stack.enter_context(mock.patch.object(guard, "hold", _nothing))
                    stack.enter_context(mock.patch.object(guard, "release", _nothing))
                policy = db.Uniform(arms, seed=0)
                start = time.process_time()
                for _ in range(rounds):
                    policy.tell(policy.ask(), 0.1)
                times.append(time.process_time() - start)
    return 1e6 * (min(spent["set"]) - min(spent["left alone"])) / rounds


def _nothing(_holder: object) -> None:
    """In place of `hold` and `release`."""


def microseconds(threads: str) -> float:
    """`overhead` in a process of its own with so many threads set."""
    code = "from benchmarks.blas_threads import overhead; print(overhead())"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return float(told.stdout)


def run(*, quick: bool = False) -> None:
    """Print a row per policy and kind of machine, and what a round pays."""
    rounds, turns = (500, 3) if quick else (2_000, 9)
    print(f"\n## Threads of BLAS: ask and tell, {ARMS} arms, {rounds:,} rounds\n")
    print(f"Processor time, medians of {turns} pairs. Load of the machine before: {os.getloadavg()[0]:.1f}.\n")
    print(f"| policy | cores | nothing set | one thread set | ratio (at most {MOST_RATIO}) |")
    print("|---|---|---:|---:|---:|")
    for kind, others in (("as they are", contextlib.nullcontext()), ("busy", busy_cores())):
        with others:
            for name in NAMES:
                free, single, share = ratio(name, rounds, turns)
                print(f"| {name} | {kind} | {free:.3f} s | {single:.3f} s | {share:.2f} |", flush=True)
    two, one = microseconds("2"), microseconds("1")
    print(f"\nA round pays {two:.2f} us with two threads set, {one:.2f} with one (at most {MOST_MICROSECONDS:g}).")
