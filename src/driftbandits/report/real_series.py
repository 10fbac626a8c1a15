"""Real data: regret against the best arm of every step, and against what could be known in hindsight."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pandas as pd

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.report.context import Block, Desk
from driftbandits.report.formats import NOTHING, with_error
from driftbandits.report.tables import Entry, Table, columns
from driftbandits.report.worlds import experiment_block

COLUMNS = ("experiment", "seed", "reference", "shortfall")


def real_blocks(desk: Desk, experiments: Sequence[Experiment]) -> list[Block]:
    """Figure and tables of each experiment on real data."""
    blocks = []
    for experiment in desk.begun(experiments):
        block = experiment_block(desk, experiment, turnover=True)
        against = reference_regret(desk.runs(experiment), desk.references)
        extra = (_reference_table(against, experiment),) if len(against) else ()
        blocks.append(dataclasses.replace(block, tables=(*block.tables, *extra)))
    return blocks


def reference_regret(runs: pd.DataFrame, references: pd.DataFrame | None) -> pd.DataFrame:
    """Mean regret of every policy against every reference: columns policy, reference, regret, standard_error.

    A reference's shortfall is what it earned less than the best arm of every step, so a run's regret against it is the
    run's regret less that. Negative: the policy earned more than the reference.
    """
    if references is None:
        return pd.DataFrame(columns=["policy", "reference", "regret", "standard_error"])
    lacking = [name for name in COLUMNS if name not in references.columns]
    if lacking:
        raise InputError(f"references have no column {lacking[0]!r}; they need {', '.join(COLUMNS)}")
    pairs = runs.merge(references[list(COLUMNS)], on=["experiment", "seed"])
    pairs = pairs.assign(against=pairs["regret"] - pairs["shortfall"])
    grouped = pairs.groupby(["policy", "reference"], sort=False)["against"].agg(["mean", "sem"]).reset_index()
    return grouped.rename(columns={"mean": "regret", "sem": "standard_error"})


def _reference_table(against: pd.DataFrame, experiment: Experiment) -> Table:
    names = list(dict.fromkeys(against["reference"]))
    found = {(row["policy"], row["reference"]): row for row in against.to_dict("records")}
    rows = []
    for policy in dict.fromkeys(against["policy"]):
        cells = [found.get((policy, name)) for name in names]
        shown = [Entry(NOTHING) if c is None else Entry(with_error(c["regret"], c["standard_error"])) for c in cells]
        rows.append((Entry(str(policy)), *shown))
    return Table(
        f"Final regret ± s.e. against references (negative: earned more than the reference): {experiment.title}",
        columns("policy", *map(str, names)),
        tuple(rows),
    )
