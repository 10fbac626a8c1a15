"""A judgement as the page shows it: targets, every world beside its rivals, and the ratio in every world."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from driftbandits.experiments.judging.verdicts import TargetVerdict
from driftbandits.plots.ratios import RatioRow, ratio_figure, ratio_key
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import NOTHING, number, with_error
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.report.tables import ReportTable, TableColumn, TableEntry, columns


def ratio_picture(
    context: ReportContext, rows: Sequence[RatioRow], *, limit: float, subject: str, rival: str, caption: str, name: str
) -> Picture | None:
    """The figure of the rows, in files called `name`; none without rows."""
    if not rows:
        return None
    return make_picture(
        [rows],
        lambda panels, *, legend: ratio_figure(panels[0], limit=limit, subject=subject, rival=rival, legend=legend),
        _describe,
        key=ratio_key(rows, limit=limit),
        caption=caption,
        folder=context.figures,
        name=name,
    )


def _describe(rows: Sequence[RatioRow]) -> str:
    worst = rows[0]
    lost = sum(ratio > 1 for row in rows for ratio in row.ratios.values())
    of = sum(len(row.ratios) for row in rows)
    return f"Dots: {lost} of {of} ratios lie above 1; the largest is {max(worst.ratios.values()):.2f}, {worst.world}."


def verdict_table(verdicts: Sequence[TargetVerdict]) -> ReportTable:
    """Every target."""
    rows = tuple(
        (
            TableEntry(v.target),
            TableEntry(_ratio(v.value)),
            TableEntry(_ratio(v.limit)),
            TableEntry(v.status),
            TableEntry(v.note),
        )
        for v in verdicts
    )
    words = (TableColumn("verdict", numeric=False), TableColumn("of", numeric=False))
    return ReportTable("Targets", (*columns("target", "measured", "at most"), *words), rows)


def world_table(worlds: pd.DataFrame, heads: Mapping[str, str], *, subject: str) -> ReportTable:
    """The rows of a `targets.ratio_table`; `heads` has the head of each rival's column."""
    rows = tuple(
        (
            TableEntry(str(row["world"])),
            TableEntry(with_error(row["regret"], row["standard_error"])),
            *(TableEntry(number(row[rival]), f"× {_ratio(row[f'over_{rival}'])}") for rival in heads),
        )
        for row in worlds.to_dict("records")
    )
    caption = f"Mean final regret; below each rival’s: {subject}’s over it"
    return ReportTable(caption, columns("world", subject, *heads.values()), rows)


def _ratio(value: float) -> str:
    return NOTHING if math.isnan(value) else number(value) if abs(value) >= 100 else f"{value:.2f}".replace("-", "−")
