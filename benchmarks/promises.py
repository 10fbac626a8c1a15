"""What the promises cost: the guard of a call, the look at a law, an ask with a full table of open decisions, a save.

Each is timed in turns with the same thing done without it, and the least of many turns is shown.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import driftbandits as db
from driftbandits._util.guard import Guard, guarded
from driftbandits.policies.algorithm import check_law
from driftbandits.state import archive

TURNS = 20


class _Bare:
    """A method with nothing in it, guarded and not."""

    def __init__(self) -> None:
        self._guard = Guard()
        self.rounds = 0

    @guarded
    def guarded(self, _number: int) -> None:
        pass

    def plain(self, _number: int) -> None:
        pass


def _microseconds(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Least time of one call of each, all in turns."""
    least = dict.fromkeys(calls, np.inf)
    for _ in range(TURNS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            least[name] = min(least[name], (time.perf_counter() - start) / repeats)
    return {name: 1e6 * seconds for name, seconds in least.items()}


def _guard() -> None:
    bare = _Bare()
    times = _microseconds({"guarded": lambda: bare.guarded(1), "plain": lambda: bare.plain(1)}, 20_000)
    print(f"| guard of a call | {times['guarded'] - times['plain']:.2f} us | 0.5 us |")


def _law() -> None:
    law = np.full(100, 0.01)
    looks = {"look": lambda: check_law(law, arms=100, policy="Uniform", now=0), "sum": lambda: law.sum()}
    times = _microseconds(looks, 5_000)
    print(f"| look at a law of 100 arms | {times['look']:.2f} us | {times['look'] / times['sum']:.1f} sums of it |")


def _full_table() -> None:
    arms = db.ArmSet(np.linspace(0, 1, 100)[:, None])
    empty, full = db.Uniform(arms), db.Uniform(arms)
    full.ask(size=1_000_000)  # the default limit
    times = _microseconds({"full": full.ask, "empty": empty.ask}, 2_000)
    ratio = times["full"] / times["empty"]
    print(f"| ask with a million open decisions, at the limit | {times['full']:.1f} us | {ratio:.2f} asks below it |")


def _save() -> None:
    arms = db.ArmSet(np.random.default_rng(0).random((100, 2)))
    for kind in (db.GPUCB, db.AutoBandit):
        policy = kind(arms)
        for _ in range(50):
            choice = policy.ask()
            policy.tell(choice, 0.01 * choice.arm - 0.5)
        with tempfile.TemporaryDirectory() as folder:
            path, bare = Path(folder) / "state", Path(folder) / "bare"

            def write_bare(policy: db.Policy = policy, bare: Path = bare) -> None:
                bare.write_bytes(archive.pack(policy.state_dict()))

            times = _microseconds({"save": lambda p=policy, f=path: p.save(f), "bare": write_bare}, 1)  # type: ignore[misc]
        ratio = times["save"] / times["bare"]
        print(f"| save {kind.__name__}, N = 100 | {times['save'] / 1e3:.1f} ms | {ratio:.1f} bare writes of the file |")


def run(*, quick: bool) -> None:
    """Print a table; `quick` leaves out the full table."""
    print("\n## What the promises cost\n\n| what | time | limit, or reference |\n|---|---:|---:|")
    _guard()
    _law()
    if not quick:
        _full_table()
    _save()
