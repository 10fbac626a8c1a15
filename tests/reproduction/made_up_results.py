"""Results of runs that nobody played, for what is computed from results."""

import dataclasses

import numpy as np

from driftbandits.detection import Detection
from driftbandits.experiments.results import collect
from driftbandits.experiments.runner import CURVE_POINTS
from driftbandits.experiments.specs import cells_of
from driftbandits.experiments.stores import CellResult
from reproduction.paper import PAPER, check_claims

ROUNDS = np.unique(np.linspace(1, 10_000, CURVE_POINTS).astype(np.int64))


def fake(cell, regret):
    return CellResult(cell, ROUNDS, np.asarray(regret, dtype=float), (), Detection((), 0, 0), 0.0, 0.0)


def played(experiments, curve):
    """Results in which a policy's curve is `curve(experiment id, label, seed)`, or its final regret; None: not run."""
    runs = []
    for experiment in experiments:
        for cell in cells_of(experiment):
            value = curve(experiment.id, cell.policy.label, cell.seed)
            if value is not None:
                runs.append(fake(cell, value if np.ndim(value) else ROUNDS / ROUNDS[-1] * value))
    return collect(experiments, runs)


def all_seeds(name, seeds=None):
    experiment = PAPER[name]
    return dataclasses.replace(
        experiment,
        policies=tuple(dataclasses.replace(p, seeds=None) for p in experiment.policies),
        seeds=experiment.seeds if seeds is None else tuple(range(seeds)),
    )


def claim(results, name, sweeps=()):
    return next(c for c in check_claims(results, sweeps=sweeps) if c.id == name)


def noise(label, seed):
    """A draw that is the same for the same label and seed."""
    return float(np.random.default_rng([sum(map(ord, label)), seed]).normal())
