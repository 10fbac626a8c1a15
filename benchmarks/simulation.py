"""Whole runs of the block policies: time with all solves, beside the same policy asked round by round, and memory.

The authors' code takes 52 to 97 s for the first row on the machine the figures in docs/performance.md were made on.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import driftbandits as db
from benchmarks.timing import cholesky_seconds
from driftbandits.environments import Environment
from driftbandits.policies import Policy


def _steady(policy: Policy, world: Environment) -> None:
    db.simulate(policy, world, seed=0)


def _round_by_round(policy: Policy, world: Environment) -> None:
    for now in range(world.horizon):
        choice = policy.ask()
        policy.tell(choice.id, float(world.rewards(now, [choice.arm], 0)[0]))


def _median(make: Callable[[], Policy], world: Environment, play: Callable[..., None], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        policy = make()
        begun = time.perf_counter()
        play(policy, world)
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


def run(*, quick: bool = False) -> None:
    reference = cholesky_seconds()
    print("\n## Whole runs, one thread, all solves included\n")
    print(f"Reference: one 100 x 100 numpy.linalg.cholesky, {1e6 * reference:.0f} us.\n")
    print("| run | seconds | microseconds per round | in references | round by round |")
    print("|---|---:|---:|---:|---:|")
    world = db.environments.create("switching/1", seed=0)
    policies: dict[str, Callable[..., Policy]] = {
        "AdaOPKB": db.AdaOPKB,
        "AdaOPKB.published": db.AdaOPKB.published,
        "OPKB": db.OPKB,
    }
    horizons = (10_000,) if quick else (10_000, 1_000_000)
    for horizon in horizons:
        world = db.environments.create("switching/1", seed=0, horizon=horizon)
        for label, build in policies.items():
            steady = _median(lambda: build(world.arms, horizon=world.horizon, seed=0), world, _steady, 5)  # noqa: B023
            single = "–"
            if horizon == 10_000:
                slow = _median(lambda: build(world.arms, horizon=world.horizon, seed=0), world, _round_by_round, 1)  # noqa: B023
                single = f"{slow:.2f} s ({slow / steady:.0f} times)"
            print(
                f"| {label}, N = 100, T = {horizon:,} | {steady:.3f} | {1e6 * steady / horizon:.1f} "
                f"| {steady / reference:,.0f} | {single} |"
            )
    _memory(horizons)


def _memory(horizons: tuple[int, ...]) -> None:
    print("\nPeak memory of the policy alone (allocations while playing, the trace not kept):\n")
    print("| run | peak | a (T, N) array of floats would be |")
    print("|---|---:|---:|")
    for horizon in horizons:
        world = db.environments.create("switching/1", seed=0, horizon=horizon)
        policy = db.AdaOPKB(world.arms, horizon=horizon, seed=0)
        tracemalloc.start()
        while policy.rounds < horizon:
            batch = policy.ask(size=min(policy.steady_rounds(), 4096, horizon - policy.rounds))
            policy.tell(batch.ids, world.rewards(int(batch.ids[0]), batch.arms, 0))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"| AdaOPKB, N = 100, T = {horizon:,} | {peak / 2**20:.1f} MiB | {horizon * 800 / 2**20:,.0f} MiB |")
