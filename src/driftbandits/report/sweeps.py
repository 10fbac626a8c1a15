"""Growth of regret along the sweeps of Table 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

from driftbandits.experiments.definitions.bounds import Sweep
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.claims_judgement import ClaimsJudgement
from driftbandits.plots.data import GrowthPanel, growth_panel
from driftbandits.plots.figures import growth_figure, growth_frame
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import NOTHING, count, listed
from driftbandits.report.pictures import make_picture
from driftbandits.report.sections import Block
from driftbandits.report.tables import ReportTable, TableColumn, TableEntry, columns, regret_entry
from driftbandits.report.worlds import experiment_blocks

CAPTION = (
    "Mean final regret over seeds with bars of one standard error, both axes logarithmic. Solid lines have the fitted "
    "slope, dotted ones the slope that the paper’s bound allows, drawn through the same middle: a policy within the "
    "bound rises no steeper than its dotted line. Hollow marks tell variants of an algorithm apart."
)


def growth_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """The sweeps that were measured; single points that no sweep holds stand for themselves."""
    judgement = context.judgements.of(ClaimsJudgement)
    sweeps = () if judgement is None else judgement.sweeps
    swept = {e.id for sweep in sweeps for e in sweep.experiments}
    return [*_sweep_blocks(context, sweeps), *experiment_blocks(context, [e for e in experiments if e.id not in swept])]


def _sweep_blocks(context: ReportContext, sweeps: Sequence[Sweep]) -> list[Block]:
    """The figure of all sweeps with their slopes, and one table of regrets per sweep; nothing if none was played."""
    begun = [sweep for sweep in sweeps if context.begun(sweep.experiments)]
    if not begun:
        return []
    panels = [growth_panel(context.results.cells, sweep) for sweep in begun]
    drawn = [panel for panel in panels if panel.curves]
    if not drawn:
        return []
    frame = growth_frame(drawn)
    picture = make_picture(
        drawn,
        lambda some: growth_figure(some, palette=context.palette, frame=frame),
        describe_slopes,
        caption=CAPTION,
        folder=context.figures,
        name="growth",
    )
    tables = [regret_table(context, sweep) for sweep in begun]
    return [
        Block("growth-slopes", "Slopes", unfinished(context, begun), picture, (slope_table(drawn),)),
        Block("growth-regret", "Regret along each sweep", tables=tuple(tables)),
    ]


def unfinished(context: ReportContext, sweeps: Sequence[Sweep]) -> tuple[str, ...]:
    """How many runs are missing along which sweeps; nothing where none is."""
    known = {e.id for e in context.results.experiments}
    lacking = {s.title: sum(context.missing([e for e in s.experiments if e.id in known]).values()) for s in sweeps}
    words = [f"{count(runs, 'run')} along “{title}”" for title, runs in lacking.items() if runs]
    return (f"Unfinished: missing {listed(words)}.",) if words else ()


def describe_slopes(panel: GrowthPanel) -> str:
    """The slopes of a panel in words."""
    slopes = "; ".join(
        f"{curve.policy} slope {curve.growth.slope.estimate:.2f}, allowed {curve.growth.allowed:.2f}"
        for curve in panel.curves
        if curve.growth is not None
    )
    return f"Log-log chart of final regret: {panel.title}. {slopes or 'Too few points for slopes'}."


def slope_table(panels: Sequence[GrowthPanel], *, rate: str = "plain exponent") -> ReportTable:
    """Every slope with its interval, what is allowed, and the rate of the sweep under this head."""
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
                    TableEntry(panel.title[:1].upper() + panel.title[1:]),
                    TableEntry(curve.policy),
                    TableEntry(f"{slope.seeds:,}"),
                    TableEntry(f"{len(growth.values)}"),
                    TableEntry(f"{slope.estimate:.2f}"),
                    TableEntry(around),
                    TableEntry(f"{growth.late:.2f}" if not math.isnan(growth.late) else NOTHING),
                    TableEntry(f"{growth.allowed:.2f}"),
                    TableEntry(f"{panel.rate:.2f}"),
                )
            )
    heads = ("seeds", "points", "slope", "95 % interval", "slope, later half", "allowed", rate)
    words = (TableColumn("sweep over", numeric=False), TableColumn("policy", numeric=False))
    return ReportTable(
        "Slopes fitted seed by seed, and what the bound allows", (*words, *map(TableColumn, heads)), tuple(rows)
    )


def regret_table(context: ReportContext, sweep: Sweep) -> ReportTable:
    """Final regret of every policy at every value of a sweep."""
    labels = list(dict.fromkeys(policy.label for e in sweep.experiments for policy in e.policies))
    heads = [f"{v:,g} turns" if sweep.symbol == "V_T" else f"{sweep.symbol} = {v:,g}" for v in sweep.values]
    found = {(row["experiment"], row["policy"]): row for row in context.results.summary.to_dict("records")}
    rows = []
    for label in labels:
        rows.append((TableEntry(label), *(regret_entry(found.get((e.id, label))) for e in sweep.experiments)))
    return ReportTable(f"Final regret ± s.e.: {sweep.title}", columns("policy", *heads), tuple(rows))
