"""Real data: regret against the best arm of every step, and against what could be known in hindsight."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pandas as pd

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.report.context import ReportContext
from driftbandits.report.sections import Block
from driftbandits.report.tables import ReportTable, TableEntry, columns, regret_entry
from driftbandits.report.worlds import experiment_block

REFERENCE_COLUMNS = ("experiment", "seed", "reference", "shortfall")


def real_series_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """Figure and tables of each experiment on real data."""
    blocks = []
    for experiment in context.begun(experiments):
        block = experiment_block(context, experiment, turnover=True)
        against = reference_regret(context.runs(experiment), context.results.references)
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
    lacking = [name for name in REFERENCE_COLUMNS if name not in references.columns]
    if lacking:
        raise InputError(f"references have no column {lacking[0]!r}; they need {', '.join(REFERENCE_COLUMNS)}")
    pairs = runs.merge(references[list(REFERENCE_COLUMNS)], on=["experiment", "seed"])
    pairs = pairs.assign(against=pairs["regret"] - pairs["shortfall"])
    grouped = pairs.groupby(["policy", "reference"], sort=False)["against"].agg(["mean", "sem"]).reset_index()
    return grouped.rename(columns={"mean": "regret", "sem": "standard_error"})


def _reference_table(against: pd.DataFrame, experiment: Experiment) -> ReportTable:
    names = list(dict.fromkeys(against["reference"]))
    found = {(row["policy"], row["reference"]): row for row in against.to_dict("records")}
    rows = []
    for policy in dict.fromkeys(against["policy"]):
        rows.append((TableEntry(str(policy)), *(regret_entry(found.get((policy, name))) for name in names)))
    return ReportTable(
        f"Final regret ± s.e. against references (negative: earned more than the reference): {experiment.title}",
        columns("policy", *map(str, names)),
        tuple(rows),
    )
