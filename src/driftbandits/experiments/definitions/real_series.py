"""Bandits from real series, with their controls; start offsets are the replicates.

What a policy gains by adapting it must lose on the shuffled copy. Nothing is tuned on these series: policies keep the
settings found on environment 1 at d = 2, where points are as few-dimensional as here.
"""

from __future__ import annotations

import pandas as pd

from driftbandits import datasets
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.autobandit import AUTO
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.definitions.tuned_settings import tuned_spec
from driftbandits.experiments.running.build import REAL_PREFIX, build_world

JUDGED = ("GPUCB", "SW-GPUCB", "WGPUCB", "TV-GP-UCB", "GPUCB+MASTER", "D-UCB (plain)", "GLR-klUCB (plain)", "Uniform")
POLICIES = (
    *AUTO,
    PolicySpec("ADA-OPKB", "AdaOPKB"),
    PolicySpec("ADA-OPKB (published)", "AdaOPKB", {"constants": "published", "variant": "published"}),
    *(PolicySpec(label, (found := tuned_spec(label, 2)).name, found.settings) for label in JUDGED),
)
TITLES = {
    "flights": "Flights: 30 destinations from New York, 2013",
    "digits": "Digits: 42 configurations of a classifier",
    "stocks": "Stocks: 36 of New York (negative control)",
}
RANGES = {"flights": [-1.0, 1.0], "digits": [0.0, 1.0], "stocks": [-1.0, 1.0]}


def _experiment(name: str, copy: str) -> Experiment:
    observed = copy == "as observed"
    # the semi-real copy adds residuals to a smoothed truth, which may leave the recorded range
    clip = {"out_of_range": "clip"} if copy == "semi-real" else {}
    return Experiment(
        id=f"{REAL_PREFIX}{name}" if observed else f"{REAL_PREFIX}{name}/{copy}",
        title=TITLES[name] if observed else f"{TITLES[name]}, {copy}",
        environment=f"{REAL_PREFIX}{name}",
        settings={"copy": copy},
        policies=POLICIES,
        seeds=tuple(range(datasets.OFFSETS)),
        common={"reward_range": RANGES[name], **clip},
    )


REAL: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (_experiment(name, copy) for name in datasets.names() for copy in datasets.COPIES)
}


def is_real(experiment: Experiment) -> bool:
    """Whether it is one of these, or one of the yardstick on the same series."""
    return experiment.id.removeprefix("yardstick/") in REAL


def reference_table(experiments: list[Experiment]) -> pd.DataFrame:
    """By how much less than the best of every round each reference earns, one row a replicate and reference.

    Columns: experiment, seed, reference, shortfall. Regret against a reference is regret less its shortfall.
    """
    rows = []
    for experiment in experiments:
        if not is_real(experiment):
            raise InputError(f"{experiment.id!r} is not made from real data; known: {', '.join(REAL)}")
        for seed in experiment.seeds:
            world = build_world(experiment.environment, experiment.settings, seed)
            totals = datasets.benchmarks_of(world)
            rows += [
                {"experiment": experiment.id, "seed": seed, "reference": name, "shortfall": totals["per step"] - total}
                for name, total in totals.items()
                if name != "per step"
            ]
    return pd.DataFrame(rows, columns=["experiment", "seed", "reference", "shortfall"])
