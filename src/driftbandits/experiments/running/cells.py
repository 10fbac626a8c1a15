"""Playing one cell."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from driftbandits.blas_threads import one_blas_thread
from driftbandits.datasets import turnover
from driftbandits.environments import Environment
from driftbandits.experiments.definitions.specs import Cell
from driftbandits.experiments.files.cell_result import CellResult
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.policies import Policy
from driftbandits.simulation import detections, simulate

CURVE_POINTS = 200


def _note_changes(policy: Policy, alarms: list[int]) -> None:
    """Add the changes found since the last look: a policy remembers only the latest, and here all are counted."""
    if new := policy.changes_found - len(alarms):
        alarms.extend(change.round for change in policy.changes[-new:])


@one_blas_thread
def run_cell(cell: Cell) -> CellResult:
    """Play one cell in one thread: the parallelism is over cells."""
    with threadpool_limits(limits=1, user_api="openmp"):  # that is torch
        world = build_world(cell.environment, cell.settings, cell.seed)
        return play_in(world, build_policy(cell.policy, world, cell.seed), cell)


def play_in(world: Environment, policy: Policy, cell: Cell) -> CellResult:
    """Play the world and the policy that were built for a cell."""
    alarms: list[int] = []
    trace = simulate(policy, world, seed=cell.seed, progress=lambda _: _note_changes(policy, alarms))
    rounds = np.unique(np.linspace(1, len(trace), CURVE_POINTS).astype(np.int64))
    return CellResult(
        cell=cell,
        rounds=rounds,
        regret=trace.cumulative_regret[rounds - 1],
        changes=tuple(alarms),
        detection=detections([int(t) for t in world.change_rounds], alarms),
        turnover=turnover(trace.arm),
        seconds=trace.seconds,
    )
