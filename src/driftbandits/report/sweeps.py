"""Growth of regret along the sweeps of Table 1."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from driftbandits.experiments.definitions.bounds import Sweep
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.claims_judgement import ClaimsJudgement
from driftbandits.plots.data import GrowthPanel, growth_panel
from driftbandits.plots.figures import growth_figure, growth_key
from driftbandits.plots.slopes import slopes_figure, slopes_frame, slopes_key
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import NOTHING, count, listed
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.report.sections import Block
from driftbandits.report.tables import ReportTable, TableColumn, TableEntry, columns, regret_entry
from driftbandits.report.worlds import experiment_blocks

SLOPES_CAPTION = (
    "How fast regret grows along each sweep: the slope of log regret, mean over seeds with 95 % intervals. A policy "
    "whose mark lies inside its green bar grows no faster than its bound."
)
LINES_CAPTION = (
    "The paper’s algorithms along the same sweeps: mean final regret with bars of one standard error, both axes "
    "logarithmic. A policy within its bound rises no steeper than its dotted line, drawn through the same middle."
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
    tables = tuple(regret_table(context, sweep) for sweep in begun)
    slopes = slopes_picture(context, drawn, caption=SLOPES_CAPTION, name="growth")
    ours = _of_the_paper(context, begun, drawn)
    return [
        Block(
            "growth-slopes",
            "Slopes, and what the bounds allow",
            unfinished(context, begun),
            slopes,
            (slope_table(drawn),),
        ),
        Block("growth-regret", "Regret along each sweep", (), _lines_picture(context, ours) if ours else None, tables),
    ]


def slopes_picture(context: ReportContext, panels: Sequence[GrowthPanel], *, caption: str, name: str) -> Picture:
    """The slopes of all policies along all sweeps, in files called `name`."""
    frame = slopes_frame(panels)
    return make_picture(
        panels,
        lambda some, *, legend: slopes_figure(some, palette=context.palette, frame=frame, legend=legend),
        describe_slopes,
        key=slopes_key(),
        caption=caption,
        folder=context.figures,
        name=name,
    )


def _of_the_paper(context: ReportContext, sweeps: Sequence[Sweep], panels: Sequence[GrowthPanel]) -> list[GrowthPanel]:
    """The panels with the paper's own algorithms alone: with all rivals nobody could tell them apart."""
    ours = {p.label for s in sweeps for e in s.experiments for p in e.policies if context.kind(e, p).of_the_paper}
    cut = [dataclasses.replace(panel, curves=tuple(c for c in panel.curves if c.policy in ours)) for panel in panels]
    return [panel for panel in cut if panel.curves]


def _lines_picture(context: ReportContext, panels: Sequence[GrowthPanel]) -> Picture:
    return make_picture(
        panels,
        lambda some, *, legend: growth_figure(some, palette=context.palette, legend=legend),
        describe_slopes,
        key=growth_key(panels, palette=context.palette),
        caption=LINES_CAPTION,
        folder=context.figures,
        name="growth-lines",
    )


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
    heads = [_at(sweep.symbol, value) for value in sweep.values]
    found = {(row["experiment"], row["policy"]): row for row in context.results.summary.to_dict("records")}
    rows = []
    for label in labels:
        rows.append((TableEntry(label), *(regret_entry(found.get((e.id, label))) for e in sweep.experiments)))
    return ReportTable(f"Final regret ± s.e.: {sweep.title}", columns("policy", *heads), tuple(rows))


def _at(symbol: str, value: float) -> str:
    """A point of a sweep in words.

    >>> _at("L_T", 4.0), _at("V_T", 0.5), _at("log N", math.log(8)), _at("T", 2000.0)
    ('4 segments', '0.5 turns', '8 arms', 'T = 2,000')
    """
    words = {"L_T": "segment", "V_T": "turn", "log N": "arm"}
    if symbol not in words:
        return f"{symbol} = {value:,g}"
    amount = round(math.exp(value)) if symbol == "log N" else value
    return f"{amount:,g} {words[symbol]}{'' if amount == 1 else 's'}"
