"""Wall times of calls, and the reference that they are compared with."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process.kernels import RBF


def wall_times(call: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each of so many calls."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return times


def median_time(call: Callable[[], object], repeats: int) -> float:
    """Median seconds of a call that has been made once before."""
    call()
    return float(np.median(wall_times(call, repeats)))


def cholesky_seconds() -> float:
    """Seconds of one numpy.linalg.cholesky of a 100 x 100 kernel matrix, median of many."""
    matrix = RBF(0.2)(np.random.default_rng(0).random((100, 10))) + 0.01 * np.eye(100)
    return median_time(lambda: np.linalg.cholesky(matrix), 400)
