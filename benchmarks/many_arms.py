"""AutoBandit with very many arms: start, rounds, memory, and going on from a saved state; each size in a fresh process.

GPUCB beside it, with 100,000 arms: rewards change their sign after a thousand rounds in which nothing has.

Rewards change their sign halfway. Times are processor seconds; the reference is a 100 x 100 matrix product timed in the
same process, so that what else the machine does meets both.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from benchmarks.rounds import product_seconds
from driftbandits.types import Floats

SIZES = (10_000, 100_000, 1_000_000)
LIMITS = {  # median ms, worst ms, peak GiB
    10_000: (2.0, 100.0, 0.8),
    100_000: (6.0, 100.0, 0.8),
    1_000_000: (25.0, None, 3.0),
}
ROUNDS = 600
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def _peak() -> float:
    """GiB that this process has taken at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _means(points: Floats) -> Floats:
    """Two hills in the unit square, one of them a valley; largest 0.8."""
    high, low = np.array([0.3, 0.6]), np.array([0.8, 0.2])
    hills = [np.exp(-np.square(points - place).sum(axis=1) / 0.08) for place in (high, low)]
    return np.asarray(0.8 * hills[0] - 0.4 * hills[1])


def _rounds(policy: db.Policy, means: Floats, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each round, and of the reference every fiftieth."""
    noise, spent, products = np.random.default_rng(2).standard_normal(rounds), [], []
    for now in range(rounds):
        if now % 50 == 0:
            products.append(product_seconds(20))
        start = time.process_time()
        choice = policy.ask()
        mean = float(means[choice.arm]) * (1.0 if now < rounds // 2 else -1.0)
        policy.tell(choice, min(max(mean + 0.1 * float(noise[now]), -1.0), 1.0))
        spent.append(time.process_time() - start)
    return spent, products


def measure(size: int, rounds: int) -> dict[str, Any]:
    """What one size costs; call it in a process of its own."""
    points = np.random.default_rng(0).random((size, 2))
    arms = db.ArmSet(points, RBF(0.2), tolerance=1e-4)
    own = _peak()
    start = time.process_time()
    policy = db.AutoBandit(arms, seed=0)
    policy.ask()
    begun = time.process_time() - start
    spent, products = _rounds(policy, _means(points), rounds)
    peak = _peak()
    state = policy.state_dict()
    del policy
    start = time.process_time()
    again = db.AutoBandit.restore(arms, state)
    loaded = time.process_time() - start
    start = time.process_time()
    again.ask()
    return {
        "start": begun,
        "median": 1e3 * float(np.median(spent)),
        "worst": 1e3 * max(spent[1:]),
        "products": float(np.median(spent) / np.median(products)),
        "arms": own,
        "peak": peak,
        "load": loaded,
        "first": time.process_time() - start,
    }


def measure_gpucb(tolerance: float, rounds: int) -> None:
    """A row: what rounds of GPUCB cost with 100,000 arms, the sign of all rewards changing halfway."""
    points = np.random.default_rng(0).random((100_000, 2))
    arms = db.ArmSet(points, RBF(0.2), tolerance=tolerance)
    policy = db.GPUCB(arms, seed=0)
    start = time.process_time()
    policy.forget(policy.ask().id)
    begun = time.process_time() - start
    spent, products = _rounds(policy, _means(points), rounds)
    times = 1e3 * np.array(spent)
    print(
        f"| {arms.rank} | {rounds:,} | {begun:.2f} s | {np.median(times):.2f} ms | {times.mean():.2f} ms "
        f"| {times.max():.1f} ms | {times.mean() / np.median(products) / 1e3:.0f} |"
    )


def run(*, quick: bool = False) -> None:
    """Print a row per size."""
    print("\n## AutoBandit with very many arms of the unit square, rank 100, one thread\n")
    print("| arms | start | median round | in products | worst | peak (arms alone) | load | first ask after | asked |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    for size in SIZES[: 1 if quick else None]:
        code = f"from benchmarks.many_arms import *; print(json.dumps(measure({size}, {100 if quick else ROUNDS})))"
        told = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}
        )
        found = json.loads(told.stdout.splitlines()[-1])
        median, worst, peak = LIMITS[size]
        limit = f"{median:g} ms{'' if worst is None else f', {worst:g} ms'}, {peak:g} GiB"
        print(
            f"| {size:,} | {found['start']:.2f} s | {found['median']:.1f} ms | {found['products']:.0f} "
            f"| {found['worst']:.0f} ms | {found['peak']:.2f} GiB ({found['arms']:.2f}) | {found['load']:.2f} s "
            f"| {1e3 * found['first']:.0f} ms | {limit} |",
            flush=True,
        )
    print("\n## GPUCB with 100,000 arms of the unit square; allowed: mean 1.5 ms, worst 40 ms\n")
    print("| rank | rounds | first ask | median round | mean | worst | mean in products |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for tolerance in (1e-4, 1e-10):
        measure_gpucb(tolerance, 300 if quick else 2_000)
