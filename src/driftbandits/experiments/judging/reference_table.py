"""What could have been earned on real series by those who know them: the best fixed arm and its like."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from driftbandits import datasets
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.real_series import REAL, is_real
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.running.build import build_world

REFERENCE_COLUMNS = ("experiment", "seed", "reference", "shortfall")
BEST_OF_EVERY_ROUND = "per step"
BEST_FIXED_ARM = "fixed"


def reference_table(experiments: Sequence[Experiment]) -> pd.DataFrame:
    """By how much less than the best of every round each reference earns, one row per replicate and reference.

    It has the REFERENCE_COLUMNS. Regret against a reference is regret less its shortfall.
    """
    rows = []
    for experiment in experiments:
        if not is_real(experiment):
            raise InputError(f"{experiment.id!r} is not made from real data; known: {', '.join(REAL)}")
        for seed in experiment.seeds:
            world = build_world(experiment.environment, experiment.settings, seed)
            totals = datasets.benchmarks_of(world)
            most = totals.pop(BEST_OF_EVERY_ROUND)
            rows += [(experiment.id, seed, reference, most - total) for reference, total in totals.items()]
    return pd.DataFrame(rows, columns=list(REFERENCE_COLUMNS))
