"""A whole run of every policy on environment 1 through `simulate`, beside a bare loop of rank-one updates."""

from __future__ import annotations

import numpy as np
import scipy.linalg.blas

import driftbandits as db
from benchmarks.rounds import bookkeeping
from benchmarks.timing import cholesky_seconds, wall_times

REQUIRED_SECONDS = {
    "GPUCB": 0.3,
    "SlidingWindowGPUCB": 0.3,
    "WeightedGPUCB": 2.5,
    "TimeVaryingGPUCB": 0.4,
    "Master": 1.0,
    "LinUCB": 0.3,
    "RestartLinUCB": 0.3,
    "SlidingWindowLinUCB": 0.3,
    "DiscountedLinUCB": 0.3,
}


def _bare_loop(arms: db.ArmSet, rounds: int) -> None:
    """GP-UCB's arithmetic and nothing else: index, argmax, one rank-one update."""
    covariance = np.asfortranarray(arms.features @ arms.features.T)
    mean, variance = np.zeros(len(arms)), covariance.diagonal().copy()
    for _ in range(rounds):
        arm = int((mean + np.sqrt(np.maximum(variance, 0.0))).argmax())
        column = covariance[:, arm].copy()
        gain = 1.0 / (0.05 + column[arm])
        mean += gain * (0.1 - mean[arm]) * column
        variance -= gain * column * column
        scipy.linalg.blas.dger(-gain, column, column, a=covariance, overwrite_a=1)


def run(*, quick: bool = False) -> None:
    rounds = 2_000 if quick else 10_000
    world = db.environments.create("switching/1", seed=0, horizon=rounds, switches=(rounds // 3,))
    bare = min(wall_times(lambda: _bare_loop(world.arms, rounds), 3))
    print(f"\n## Every policy on environment 1, N = 100, T = {rounds:,}, one thread, best of three\n")
    print(
        f"References: one 100 x 100 Cholesky {1e6 * cholesky_seconds():.0f} us; a bare loop of {rounds:,} rank-one "
        f"updates and argmax {bare:.3f} s.\n"
    )
    print("| policy | seconds | microseconds per round | bare loops | required |")
    print("|---|---:|---:|---:|---:|")
    for name in db.POLICIES:
        if name in ("OPNN", "AdaOPNN"):  # a minute per run: `benchmarks.neural`
            continue

        def play(name: str = name) -> None:
            db.simulate(db.create_policy(name, world.arms, horizon=rounds, seed=0), world, seed=0)

        seconds = min(wall_times(play, 3))
        required = "" if quick or name not in REQUIRED_SECONDS else f"{REQUIRED_SECONDS[name]} s"
        print(
            f"| {name} | {seconds:.3f} | {1e6 * seconds / rounds:.1f} | {seconds / bare:.1f} | {required} |", flush=True
        )
    bookkeeping(rounds=300 if quick else 2_000)
