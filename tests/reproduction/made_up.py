"""Results made up without playing: reports need numbers, not runs."""

import dataclasses

import numpy as np

from driftbandits.detection import Detection
from driftbandits.experiments.results import collect
from driftbandits.experiments.specs import Experiment, PolicySpec, cells_of
from driftbandits.experiments.stores import CellResult
from reproduction.growth import SWEEPS


def made_up(cell, place):
    """A run whose regret grows as a power of time; policies further down the list lose more."""
    horizon = cell.settings.get("horizon", 1000)
    rounds = np.unique(np.linspace(1, horizon, 20).astype(np.int64))
    regret = (1.0 + place + 0.05 * cell.seed) * rounds**0.6
    found = (horizon // 2 + 10 * (cell.seed + 1),) if cell.policy.name.startswith("Ada") else ()
    jumps = "switching" in cell.environment
    detection = Detection(delays=found if jumps else (), missed=int(jumps and not found), false_alarms=0)
    return CellResult(cell, rounds, regret, found, detection, turnover=0.25, seconds=0.125)


def results_of(experiments, *, leave_out=0):
    """Results of all cells but the last `leave_out` of every experiment."""
    runs = []
    for experiment in experiments:
        order = {policy.label: place for place, policy in enumerate(experiment.policies)}
        cells = cells_of(experiment)
        runs += [made_up(cell, order[cell.policy.label]) for cell in cells[: len(cells) - leave_out]]
    return collect(experiments, runs)


def small(experiment, seeds=3):
    return dataclasses.replace(experiment, seeds=experiment.seeds[:seeds])


def own_experiment(name="mine", policies=("Uniform", "GPUCB"), seeds=2, **changes):
    world = {"horizon": 400, "switches": [200], "size": 5, "dimension": 2}
    specs = tuple(PolicySpec(label, label) for label in policies)
    experiment = Experiment(name, "Mine", "switching", world, specs, tuple(range(seeds)))
    return dataclasses.replace(experiment, **changes)


def short_sweeps():
    """The sweeps with their first three points."""
    return tuple(
        dataclasses.replace(sweep, values=sweep.values[:3], experiments=tuple(small(e) for e in sweep.experiments[:3]))
        for sweep in SWEEPS[:2]
    )
