"""Growth of regret along the sweeps of Table 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from driftbandits.experiments.definitions.growth import Sweep
from driftbandits.plots.data import GrowthPanel, growth_panel
from driftbandits.plots.figures import growth_figure, growth_frame
from driftbandits.report.context import Block, Desk
from driftbandits.report.formats import NOTHING, count, listed, with_error
from driftbandits.report.pictures import make_picture
from driftbandits.report.tables import Column, Entry, Table, columns

CAPTION = (
    "Mean final regret over seeds with bars of one standard error, both axes logarithmic. Solid lines have the fitted "
    "slope, dotted ones the slope that the paper’s bound allows, drawn through the same middle: a policy within the "
    "bound rises no steeper than its dotted line. Hollow marks tell variants of an algorithm apart."
)


def growth_blocks(desk: Desk, sweeps: Sequence[Sweep]) -> list[Block]:
    """The figure of all sweeps with their slopes, and a table of regrets a sweep; nothing if none was played."""
    begun = [sweep for sweep in sweeps if desk.begun(sweep.experiments)]
    if not begun:
        return []
    panels = [growth_panel(desk.results.cells, sweep) for sweep in begun]
    drawn = [panel for panel in panels if panel.curves]
    if not drawn:
        return []
    frame = growth_frame(drawn)
    picture = make_picture(
        drawn,
        lambda some: growth_figure(some, palette=desk.palette, frame=frame),
        _describe,
        caption=CAPTION,
        folder=desk.figures,
        name="growth",
    )
    tables = [_regret_table(desk, sweep) for sweep in begun]
    return [
        Block("growth-slopes", "Slopes", _unfinished(desk, begun), picture, (_slope_table(drawn),)),
        Block("growth-regret", "Regret along each sweep", tables=tuple(tables)),
    ]


def _unfinished(desk: Desk, sweeps: Sequence[Sweep]) -> tuple[str, ...]:
    known = {e.id for e in desk.results.experiments}
    lacking = {s.title: sum(desk.missing([e for e in s.experiments if e.id in known]).values()) for s in sweeps}
    words = [f"{count(runs, 'run')} along “{title}”" for title, runs in lacking.items() if runs]
    return (f"Unfinished: missing {listed(words)}.",) if words else ()


def _describe(panel: GrowthPanel) -> str:
    slopes = "; ".join(
        f"{curve.policy} slope {curve.growth.slope.estimate:.2f}, allowed {curve.growth.allowed:.2f}"
        for curve in panel.curves
        if curve.growth is not None
    )
    return f"Log-log chart of final regret: {panel.title}. {slopes or 'Too few points for slopes'}."


def _slope_table(panels: Sequence[GrowthPanel]) -> Table:
    rows = []
    for panel in panels:
        for curve in panel.curves:
            growth = curve.growth
            if growth is None:
                continue
            slope = growth.slope
            around = NOTHING if math.isnan(slope.low) else f"{slope.low:.2f} to {slope.high:.2f}"
            rows.append(
                (
                    Entry(panel.title[:1].upper() + panel.title[1:]),
                    Entry(curve.policy),
                    Entry(f"{slope.seeds:,}"),
                    Entry(f"{len(growth.values)}"),
                    Entry(f"{slope.estimate:.2f}"),
                    Entry(around),
                    Entry(f"{growth.late:.2f}" if not math.isnan(growth.late) else NOTHING),
                    Entry(f"{growth.allowed:.2f}"),
                    Entry(f"{panel.rate:.2f}"),
                )
            )
    heads = ("seeds", "points", "slope", "95 % interval", "slope, later half", "allowed", "plain exponent")
    words = (Column("sweep over", numeric=False), Column("policy", numeric=False))
    return Table("Slopes fitted seed by seed, and what the bound allows", (*words, *map(Column, heads)), tuple(rows))


def _regret_table(desk: Desk, sweep: Sweep) -> Table:
    labels = list(dict.fromkeys(policy.label for e in sweep.experiments for policy in e.policies))
    heads = [f"{v:,g} turns" if sweep.symbol == "V_T" else f"{sweep.symbol} = {v:,g}" for v in sweep.values]
    found = {(row["experiment"], row["policy"]): row for row in desk.results.summary.to_dict("records")}
    rows = []
    for label in labels:
        cells = [found.get((e.id, label)) for e in sweep.experiments]
        shown = [Entry(NOTHING) if c is None else Entry(with_error(c["regret"], c["standard_error"])) for c in cells]
        rows.append((Entry(label), *shown))
    return Table(f"Final regret ± s.e.: {sweep.title}", columns("policy", *heads), tuple(rows))
