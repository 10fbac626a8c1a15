"""The network at m = 2,048, L = 3, N = 100: Gram matrix, training step, one training, a whole run.

python -m benchmarks neural            about three minutes
python -m benchmarks neural --quick    a narrow network, a short run

Every time stands beside the matrix products it cannot do without, measured in the same run: one product of
(N x m) and (m x m) forward for the Gram matrix; three for a step (forward, back, and the gradient).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg.blas
from threadpoolctl import threadpool_limits

import driftbandits as db
from driftbandits.neural import ArmsSeen, NetworkModel, tangent_gram

DEPTH, STEPS = 3, 100


def _together(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median time of each, taken in turns, so that what else the machine does falls on all of them alike."""
    times = np.empty((repeats, len(works)))
    for repeat in range(repeats):
        for number, work in enumerate(works):
            begun = time.perf_counter()
            work()
            times[repeat, number] = time.perf_counter() - begun
    return [float(value) for value in np.median(times, axis=0)]


class Products:
    """The three large products of a training step, and nothing else, through the BLAS that the network uses."""

    def __init__(self, arms: int, width: int) -> None:
        draws = np.random.default_rng(0)
        self.W = draws.standard_normal((width, width), dtype=np.float32) / np.float32(np.sqrt(width))
        self.G = np.zeros_like(self.W)
        self.H = draws.standard_normal((arms, width), dtype=np.float32)
        self.D = draws.standard_normal((arms, width), dtype=np.float32)
        self.out = np.empty_like(self.H)

    def forward(self) -> None:
        scipy.linalg.blas.sgemm(1.0, self.W.T, self.H.T, trans_a=1, c=self.out.T, overwrite_c=1)

    def steps(self) -> None:
        for _ in range(STEPS):
            self.forward()
            scipy.linalg.blas.sgemm(1.0, self.W.T, self.D.T, c=self.out.T, overwrite_c=1)
            scipy.linalg.blas.sgemm(1.0, self.H.T, self.D.T, trans_b=1, c=self.G.T, overwrite_c=1)


def _seen(points: np.ndarray) -> ArmsSeen:
    draws = np.random.default_rng(1)
    arms = draws.integers(0, len(points), 20 * len(points))
    seen = ArmsSeen.none(len(points))
    seen.add_many(arms, 0.8 * np.cos(3.0 * points[arms, 0]) + 0.1 * draws.standard_normal(len(arms)))
    return seen


def _training(world: db.environments.Environment, width: int, threads: int) -> None:
    model = NetworkModel(
        world.arms.points, seed=0, width=width, depth=DEPTH, steps=STEPS, learning_rate="auto", weight_decay=10.0
    )
    products = Products(len(world.arms), width)
    seen = _seen(model.points)
    with threadpool_limits(limits=threads):
        model.initial  # noqa: B018  (computed once, so that training is timed alone)
        forward, gram = _together([products.forward, lambda: tangent_gram(model.start, model.points)], 40)
        hundred, whole = _together([products.steps, lambda: model.train(seen)], 3)
    three = hundred / STEPS
    step = whole / STEPS
    print(
        f"| {threads} | {1e3 * forward:.1f} ms | {1e3 * gram:.1f} ms | {gram / forward:.2f} | {1e3 * three:.1f} ms "
        f"| {1e3 * step:.1f} ms | {step / three:.2f} | {whole:.2f} s |",
        flush=True,
    )


def run(*, quick: bool = False) -> None:
    width, rounds = (256, 2_000) if quick else (2048, 10_000)
    world = db.environments.create("switching/1", seed=0, horizon=rounds, switches=(3 * rounds // 10,))
    print(f"\n## The network at m = {width:,}, L = {DEPTH}, N = {len(world.arms)}, J = {STEPS}\n")
    print(
        "Allowed: Gram matrix within 3 forward products; a step within 2 times its three products; one training of "
        "100 steps within 6.5 s on two cores.\n"
    )
    print("| threads | forward product | Gram matrix | ratio | three products | step | ratio | one training |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for threads in range(1, min(2, os.cpu_count() or 1) + 1):
        _training(world, width, threads)
    print(f"\nWhole runs on environment 1, T = {rounds:,}, two threads:\n")
    print("| policy | seconds | trainings | changes found | seconds per training |")
    print("|---|---:|---:|---:|---:|")
    for name in ("AdaOPNN", "OPNN"):
        policy = db.create_policy(name, world.arms, horizon=rounds, seed=0, width=width)
        with threadpool_limits(limits=2):
            trace = db.simulate(policy, world, seed=0)
        trainings = policy.trainings  # type: ignore[attr-defined]
        print(
            f"| {name} | {trace.seconds:.1f} | {trainings} | {len(trace.changes)} | {trace.seconds / trainings:.2f} |",
            flush=True,
        )
    for name, settings in (("OPNN, never trained", {"train": False}), ("OPNN, infinite width", {"width": "infinite"})):
        policy = db.create_policy("OPNN", world.arms, horizon=rounds, seed=0, **{"width": width, **settings})
        trace = db.simulate(policy, world, seed=0)
        print(f"| {name} | {trace.seconds:.2f} | 0 | 0 | |", flush=True)
