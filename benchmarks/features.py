"""Features of many arms: time, time against a matrix product of the same size, and peak memory.

python -m benchmarks features            a million points of the unit square (about 15 s, 2 GiB)
python -m benchmarks features --quick    a hundred thousand
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from driftbandits import ArmSet

T = TypeVar("T")


@dataclass(frozen=True)
class FeaturesRow:
    """One measurement; `ratio` is against the product (N x r) (r x r), `peak` of the process, in GiB."""

    arms: int
    rank: int
    residual: float
    seconds: float
    processor: float
    ratio: float
    peak: float

    def __str__(self) -> str:
        return (
            f"{self.arms:>9,} {self.rank:>5} {self.residual:>9.1e} {self.seconds:>8.2f} {self.processor:>8.2f} "
            f"{self.ratio:>8.1f} {self.peak:>9.2f}"
        )


def measure(arms: int, *, length_scale: float = 0.2, tolerance: float = 1e-8) -> FeaturesRow:
    """Build features for random points of the unit square, then time the product they are compared with."""
    points = np.random.default_rng(0).random((arms, 2))
    made, seconds, processor = _timed(lambda: ArmSet(points, RBF(length_scale), tolerance=tolerance))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # before the product, whose result is as large
    if sys.platform == "darwin":
        peak /= 1024  # bytes there
    square = np.eye(made.rank)
    rows = made.features[: max(1, arms // 10)]
    product = min(_timed(lambda: rows @ square)[2] for _ in range(3)) * arms / len(rows)
    return FeaturesRow(arms, made.rank, made.residual, seconds, processor, processor / product, peak)


def _timed(work: Callable[[], T]) -> tuple[T, float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def run(*, quick: bool = False) -> list[FeaturesRow]:
    """Print and return the table. Processor seconds are what a machine without other work would show."""
    print("features of points of the unit square, RBF(0.2), tolerance 1e-8, one thread")
    print("     arms  rank  residual  seconds  cpu sec  x product  peak GiB")
    rows = []
    with threadpool_limits(1):
        for arms in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
            rows.append(measure(arms))
            print(rows[-1], flush=True)
    return rows
