"""Runs cells (world x policy x seed) in parallel; the same table on any number of jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from driftbandits import environments
from driftbandits.errors import InputError
from driftbandits.experiments.catalogue import Experiment, PolicySpec
from driftbandits.policies import create_policy
from driftbandits.simulation import Detection, detections, simulate

CHECKPOINTS = 200  # points of a stored regret curve


@dataclass(frozen=True)
class Cell:
    """One run: a policy in a world, on one seed. Everything random in it follows from its fields."""

    experiment: str
    environment: str
    settings: Mapping[str, Any]
    policy: PolicySpec
    seed: int


@dataclass(frozen=True)
class CellResult:
    """What is kept of a run: the regret curve at `rounds` (number of rounds played), the changes found, the time."""

    cell: Cell
    rounds: npt.NDArray[np.int64]
    regret: npt.NDArray[np.float64]
    changes: tuple[int, ...]
    detection: Detection
    seconds: float


def cells_of(experiment: Experiment, *, seeds: int | None = None) -> list[Cell]:
    """Every cell of an experiment on its first `seeds` seeds, whole seeds first should it be interrupted."""
    return [
        Cell(experiment.id, experiment.environment, experiment.settings, policy, seed)
        for number, seed in enumerate(experiment.seeds[:seeds])
        for policy in experiment.policies
        if policy.seeds is None or number < policy.seeds
    ]


def run_cell(cell: Cell) -> CellResult:
    """Play one cell. BLAS is held at one thread: the parallelism is over cells."""
    with threadpool_limits(limits=1):
        world = environments.create(cell.environment, seed=cell.seed, **cell.settings)
        policy = create_policy(
            cell.policy.name, world.arms, horizon=world.horizon, seed=cell.seed, **cell.policy.settings
        )
        trace = simulate(policy, world, seed=cell.seed)
    rounds = np.unique(np.linspace(1, len(trace), CHECKPOINTS).astype(np.int64))
    alarms = tuple(change.round for change in trace.changes)
    return CellResult(
        cell=cell,
        rounds=rounds,
        regret=trace.cumulative_regret[rounds - 1],
        changes=alarms,
        detection=detections([int(t) for t in world.change_rounds], alarms),
        seconds=trace.seconds,
    )


def run_cells(cells: list[Cell], *, jobs: int = -1, progress: Callable[[], None] | None = None) -> list[CellResult]:
    """Play all cells on `jobs` processes (-1: one a core); results come in the order of the cells."""
    if jobs == 0:
        raise InputError("jobs must not be 0; use -1 for one process a core")
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator")
    results = []
    for result in parallel(joblib.delayed(run_cell)(cell) for cell in cells):
        results.append(result)
        if progress is not None:
            progress()
    return results


@contextmanager
def progress_bar(total: int, label: str) -> Iterator[Callable[[], None]]:
    """A bar on standard error with the time left, advanced by calling what it gives."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)
