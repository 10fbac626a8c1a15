"""Playing one cell, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from driftbandits.experiments.definitions.specs import Cell
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.policies import Policy
from driftbandits.simulation import Detection, detections, simulate

CHECKPOINTS = 200  # points of a stored regret curve


@dataclass(frozen=True)
class CellResult:
    """What is kept of a run.

    `regret` is cumulative, after `rounds` rounds played; `changes` are the rounds at which changes were found;
    `turnover` is the share of rounds in which another arm was played than in the round before; `seconds` is the time
    of the run itself.
    """

    cell: Cell
    rounds: npt.NDArray[np.int64]
    regret: npt.NDArray[np.float64]
    changes: tuple[int, ...]
    detection: Detection
    turnover: float
    seconds: float


def _note_changes(policy: Policy, alarms: list[int]) -> None:
    """Add the changes found since the last look: a policy remembers only the latest, and here all are counted."""
    if new := policy.changes_found - len(alarms):
        alarms.extend(change.round for change in policy.changes[-new:])


def run_cell(cell: Cell) -> CellResult:
    """Play one cell. BLAS is held at one thread: the parallelism is over cells."""
    with threadpool_limits(limits=1):
        world = build_world(cell.environment, cell.settings, cell.seed)
        policy = build_policy(cell.policy, world, cell.seed)
        alarms: list[int] = []
        trace = simulate(policy, world, seed=cell.seed, progress=lambda _: _note_changes(policy, alarms))
    rounds = np.unique(np.linspace(1, len(trace), CHECKPOINTS).astype(np.int64))
    return CellResult(
        cell=cell,
        rounds=rounds,
        regret=trace.cumulative_regret[rounds - 1],
        changes=tuple(alarms),
        detection=detections([int(t) for t in world.change_rounds], alarms),
        turnover=float(np.mean(trace.arm[1:] != trace.arm[:-1])) if len(trace) > 1 else 0.0,
        seconds=trace.seconds,
    )
