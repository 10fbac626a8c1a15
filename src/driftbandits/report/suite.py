"""The suite: worlds by policies, each regret beside the best one in its world."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import NOTHING, number
from driftbandits.report.sections import Block
from driftbandits.report.tables import ReportTable, TableEntry, columns
from driftbandits.report.worlds import experiment_note

# A regret up to so many times the best one has the mark heat-0, heat-1, ...; more than the last has heat-6.
HEAT_STEPS = (1.1, 1.5, 2.0, 4.0, 8.0, 16.0)


def suite_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One table per dimension, the best policy over all worlds first."""
    blocks = []
    for part in dict.fromkeys(_dimension(e.id) for e in experiments):
        here = context.begun([e for e in experiments if _dimension(e.id) == part])
        if not here:
            continue
        notes = tuple(note for e in here for note in experiment_note(context, e, named=True))
        title = f"d = {part.removeprefix('d')}" if part else "Worlds"
        blocks.append(
            Block(
                f"suite-{part or 'worlds'}", title, notes, tables=(_suite_table(context, here, title),), unfolded=True
            )
        )
    return blocks


def regret_matrix(summary: pd.DataFrame, experiments: Sequence[Experiment]) -> pd.DataFrame:
    """Mean final regret, one row per experiment and one column per policy, the least geometric mean first."""
    ids = [experiment.id for experiment in experiments]
    here = summary[summary["experiment"].isin(ids)]
    table = here.pivot(index="experiment", columns="policy", values="regret").reindex(ids)
    order = geometric_means(table).sort_values(kind="stable", na_position="last").index
    return table[order]


def geometric_means(table: pd.DataFrame) -> pd.Series[float]:
    """Geometric mean of every column, over the rows in which all columns have a positive number."""
    whole = table.dropna()
    whole = whole[(whole > 0).all(axis=1)]
    return np.exp(np.log(whole).mean()) if len(whole) else pd.Series(math.nan, index=table.columns)


def heat(ratio: float) -> int:
    """Which step of the colour scale a regret has that is `ratio` times the best one.

    >>> [heat(x) for x in (1.0, 1.2, 3.0, 100.0)]
    [0, 1, 3, 6]
    """
    return sum(ratio > step for step in HEAT_STEPS)


def _suite_table(context: ReportContext, experiments: Sequence[Experiment], title: str) -> ReportTable:
    table = regret_matrix(context.results.summary, experiments)
    best = table.min(axis=1)
    rows = []
    for experiment in experiments:
        regrets = table.loc[experiment.id].to_numpy(dtype=np.float64)
        name = experiment.title.removesuffix(f", {title}")
        rows.append((TableEntry(name), *(_entry(float(r), float(np.nanmin(regrets))) for r in regrets)))
    means = geometric_means(table)
    relative = geometric_means(table.div(best, axis=0))
    foot = (
        (TableEntry("geometric mean over worlds"), *(TableEntry(number(float(m))) for m in means)),
        (
            TableEntry("… of regret over the best"),
            *(TableEntry(_times(float(r)), marks=_mark(float(r))) for r in relative),
        ),
    )
    steps = ", ".join(f"{step:g}" for step in HEAT_STEPS)
    caption = f"Mean final regret, {title}; darker in steps at × {steps}"
    return ReportTable(caption, columns("world", *map(str, table.columns)), tuple(rows), foot)


def _entry(regret: float, best: float) -> TableEntry:
    if math.isnan(regret):
        return TableEntry(NOTHING)
    ratio = regret / best if best > 0 else math.nan
    lead = " best" if regret == best else ""
    return TableEntry(number(regret), "" if lead else _times(ratio), _mark(ratio) + lead)


def _times(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"× {ratio:.2f}" if ratio < 10 else f"× {ratio:,.0f}"


def _mark(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"heat-{heat(ratio)}"


def _dimension(name: str) -> str:
    last = name.rpartition("/")[2]
    return last if last[:1] == "d" and last[1:].isdigit() else ""
