"""The design solver: time, in units of one 100 x 100 Cholesky, beside Frank-Wolfe and cvxpy at a stated gap.

`python -m benchmarks design [--quick]`; --quick leaves out a million arms and cvxpy.
"""

from __future__ import annotations

import importlib
import resource
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import RBF

from benchmarks.frank_wolfe import frank_wolfe
from benchmarks.timing import cholesky_seconds, median_time
from driftbandits.arms.arm_set import ArmSet
from driftbandits.design import Design, information_gain, solve_design

Floats = npt.NDArray[np.float64]

REGULARISER = 1e-2
TOLERANCE = 1e-6


@dataclass(frozen=True)
class DesignRow:
    """One line of the table; `seconds` is a median, `references` the same in 100 x 100 Cholesky factorisations."""

    case: str
    rank: int
    seconds: float
    references: float
    gap: float
    iterations: int
    support: int
    target: str


@dataclass(frozen=True)
class Case:
    """A named problem with the limit it has to keep."""

    name: str
    arms: ArmSet | Floats
    costs: Floats | None
    repeats: int
    target: str


def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    paper = rng.random((100, 10))
    square = rng.random((100, 2))
    cube = rng.random((1_000, 3))
    spread = rng.random((1_000, 2))
    return [
        Case(
            "N = 100, d = 10, RBF 0.2, costs 500 x0^2",
            ArmSet(paper, RBF(0.2)),
            500 * paper[:, 0] ** 2,
            40,
            "60 references",
        ),
        Case("N = 100, d = 10, RBF 0.2, costs 0", ArmSet(paper, RBF(0.2)), None, 40, ""),
        Case("N = 100, d = 2, RBF 0.2, costs 500 x0^2", ArmSet(square, RBF(0.2)), 500 * square[:, 0] ** 2, 40, ""),
        Case("N = 100, d = 2, RBF 0.2, costs 0", ArmSet(square, RBF(0.2)), None, 40, ""),
        Case("N = 1,000, d = 3, RBF 0.5", ArmSet(cube, RBF(0.5)), None, 5, "0.5 s"),
        Case("N = 1,000, d = 2, RBF 0.2, costs 50 x0", ArmSet(spread, RBF(0.2)), 50 * spread[:, 0], 5, ""),
        Case("N = 10,000, rank 100, normal features", rng.standard_normal((10_000, 100)) / 10, None, 3, "3 s"),
        Case("N = 10,000, d = 2, RBF 0.2", ArmSet(rng.random((10_000, 2)), RBF(0.2)), None, 3, "3 s"),
    ]


def measure(case: Case) -> DesignRow:
    # Other work on the machine comes and goes, so the reference is timed right beside each case.
    before = cholesky_seconds()
    design = solve(case)
    seconds = median_time(lambda: solve(case), case.repeats)
    unit = 0.5 * (before + cholesky_seconds())
    rank = case.arms.rank if isinstance(case.arms, ArmSet) else int(case.arms.shape[1])
    return _row(case.name, rank, seconds, unit, design, case.target)


def solve(case: Case) -> Design:
    return solve_design(case.arms, case.costs, regulariser=REGULARISER, tolerance=TOLERANCE)


def _row(name: str, rank: int, seconds: float, unit: float, design: Design, target: str) -> DesignRow:
    return DesignRow(name, rank, seconds, seconds / unit, design.gap, design.iterations, len(design.support), target)


def million() -> list[DesignRow]:
    """A million points of the unit square, once: features, then the design."""
    points = np.random.default_rng(1).random((1_000_000, 2))
    unit = cholesky_seconds()
    begun = time.perf_counter()
    arms = ArmSet(points, RBF(0.2), tolerance=1e-8)
    built = time.perf_counter()
    design = solve_design(arms, regulariser=REGULARISER, tolerance=TOLERANCE)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    name = f"N = 1,000,000, d = 2, RBF 0.2: design (features {built - begun:.1f} s, process peak {peak:.1f} GiB)"
    return [_row(name, arms.rank, done - built, unit, design, "60 s and 6 GiB with features")]


def print_rows(rows: list[DesignRow]) -> None:
    print("\n| case | rank | time | references | gap | iterations | support | required |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for row in rows:
        print(
            f"| {row.case} | {row.rank} | {_time(row.seconds)} | {row.references:,.1f} | {row.gap:.1e} "
            f"| {row.iterations} | {row.support} | {row.target} |"
        )


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def compare_frank_wolfe(cap: float) -> None:
    """Frank-Wolfe with away steps at the gap we reach, stopped after `cap` seconds."""
    print(f"\nBeside plain Frank-Wolfe with away steps, asked for the same gap, {TOLERANCE:g}, stopped at {cap:g} s:\n")
    print("| case | ours | Frank-Wolfe | its iterations | gap it reached |")
    print("|---|---:|---:|---:|---:|")
    for case in cases()[:5]:
        features = case.arms.features if isinstance(case.arms, ArmSet) else case.arms
        costs = np.zeros(len(features)) if case.costs is None else case.costs
        ours = median_time(lambda: solve(case), 5)  # noqa: B023
        other = frank_wolfe(features, costs, REGULARISER, tolerance=TOLERANCE, seconds=cap)
        print(f"| {case.name} | {_time(ours)} | {_time(other.seconds)} | {other.iterations:,} | {other.gap:.1e} |")


def compare_cvxpy() -> None:
    """Clarabel through cvxpy at N = 50, with the gap its law really has, and ours at that gap and at ours."""
    cvxpy: Any = importlib.import_module("cvxpy")  # an extra of development only, and its types are partial
    rng = np.random.default_rng(0)
    points = rng.random((50, 10))
    arms, costs = ArmSet(points, RBF(0.2)), 500 * points[:, 0] ** 2
    law = cvxpy.Variable(50, nonneg=True)
    information = arms.features.T @ cvxpy.diag(law) @ arms.features + REGULARISER * np.eye(arms.rank)
    problem = cvxpy.Problem(cvxpy.Minimize(costs @ law - cvxpy.log_det(information)), [cvxpy.sum(law) == 1])
    begun = time.perf_counter()
    problem.solve(solver=cvxpy.CLARABEL)
    seconds = time.perf_counter() - begun
    probabilities = np.maximum(law.value, 0.0)
    probabilities /= probabilities.sum()
    scaled = arms.features.T @ (probabilities[:, None] * arms.features) + REGULARISER * np.eye(arms.rank)
    gradient = costs - np.einsum("ij,ji->i", arms.features, np.linalg.solve(scaled, arms.features.T))
    gap = float(probabilities @ (gradient - gradient.min()))
    ours = solve_design(arms, costs, regulariser=REGULARISER, tolerance=TOLERANCE)
    ours_seconds = median_time(lambda: solve_design(arms, costs, regulariser=REGULARISER, tolerance=TOLERANCE), 20)
    print("\nBeside cvxpy with Clarabel, N = 50, d = 10, RBF 0.2, costs 500 x0^2:\n")
    print("| solver | time | gap |")
    print("|---|---:|---:|")
    print(f"| cvxpy, Clarabel ({problem.status}) | {_time(seconds)} | {gap:.1e} |")
    print(f"| driftbandits | {_time(ours_seconds)} | {ours.gap:.1e} |")


def run(*, quick: bool = False) -> list[DesignRow]:
    """Print every table; give the rows of the first."""
    print(f"\n## The design solver, one thread, gap {TOLERANCE:g}, regulariser {REGULARISER:g}\n")
    print(f"Reference: one 100 x 100 numpy.linalg.cholesky, {1e6 * cholesky_seconds():.0f} us, anew beside each row.")
    rows = [measure(case) for case in cases()]
    if not quick:
        rows += million()
    print_rows(rows)
    arms = ArmSet(np.random.default_rng(0).random((100, 10)), RBF(0.2))
    seconds = median_time(lambda: information_gain(arms, horizon=10_000, sigma=100.0), 20)
    print(f"\ninformation_gain at N = 100, d = 10, T = 10,000, sigma = 100: {_time(seconds)}")
    compare_frank_wolfe(cap=1.0 if quick else 20.0)
    if not quick:
        compare_cvxpy()
    return rows
