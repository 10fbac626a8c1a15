"""Parts of chapters that several topics share: targets and ratios, rankings, slopes along sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from driftbandits.experiments.specs import Experiment
from driftbandits.policies.algorithm import Family
from driftbandits.report.blocks import (
    NOTHING,
    Block,
    ReportTable,
    TableColumn,
    TableEntry,
    columns,
    count,
    experiment_blocks,
    experiment_note,
    listed,
    number,
    policy_table,
    with_error,
)
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.text import counted
from reproduction.claims import TargetVerdict
from reproduction.figures import (
    GrowthPanel,
    RankedRegret,
    RatioRow,
    growth_panel,
    ranked_regret,
    ranking_figure,
    ranking_frame,
    ranking_key,
    ratio_figure,
    ratio_key,
    slopes_figure,
    slopes_frame,
    slopes_key,
)
from reproduction.sweeps import Sweep
from reproduction.topic import StudyContext


def regret_entry(row: Mapping[Any, Any] | None) -> TableEntry:
    """Mean regret with its standard error; a dash where nothing was played.

    >>> regret_entry({"regret": 3721.4, "standard_error": 155.6}).text, regret_entry(None).text
    ('3,721 ± 156', '–')
    """
    return TableEntry(NOTHING if row is None else with_error(row["regret"], row["standard_error"]))


def ratio_picture(
    context: StudyContext, rows: Sequence[RatioRow], *, limit: float, subject: str, rival: str, caption: str, name: str
) -> Picture | None:
    """The figure of the rows, in files called `name`; none without rows."""
    if not rows:
        return None
    return make_picture(
        [rows],
        lambda panels, *, legend: ratio_figure(panels[0], limit=limit, subject=subject, rival=rival, legend=legend),
        _describe_ratios,
        key=ratio_key(rows, limit=limit),
        caption=caption,
        folder=context.figures,
        name=name,
    )


def _describe_ratios(rows: Sequence[RatioRow]) -> str:
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
    """The rows of a `ratio_table`; `heads` has the head of each rival's column."""
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


CAPTION = (
    "Mean final regret with bars of one standard error, best on top, on a logarithmic axis. Marks say which family a "
    "policy belongs to; colours are those of all figures."
)


def rankings_named(name: str, context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One figure of all rankings with one table per experiment; `name` begins the names of file and anchors."""
    begun = context.begun(experiments)
    if not begun:
        return []
    families = _families(context, begun)
    panels = [ranked_regret(context.results.cells, e.id, title=e.title) for e in begun]
    frame = ranking_frame(panels)
    picture = make_picture(
        panels,
        lambda some, *, legend: ranking_figure(
            some, families=families, palette=context.palette, frame=frame, legend=legend
        ),
        _describe_ranking,
        key=ranking_key(families),
        caption=CAPTION,
        folder=context.figures,
        name=name,
    )
    tables = tuple(policy_table(context, e) for e in begun)
    notes = tuple(note for e in begun for note in experiment_note(context, e, named=True))
    return [Block(f"{name}-ranking", "Ranking", notes, picture, tables)]


def _families(context: StudyContext, experiments: Sequence[Experiment]) -> dict[str, str]:
    """The family of every label, in the order of legends; those a user has made up come last."""
    found = {p.label: str(context.kind(e, p).family) for e in experiments for p in e.policies}
    order = dict.fromkeys([*Family, *found.values()])
    places = {family: place for place, family in enumerate(order)}
    return dict(sorted(found.items(), key=lambda entry: places[entry[1]]))


def _describe_ranking(panel: RankedRegret) -> str:
    best = "; ".join(f"{p} {number(float(m))}" for p, m in list(zip(panel.policies, panel.mean, strict=True))[:5])
    return f"Ranking of {counted(len(panel.policies), 'policy')} by final regret: {panel.title}. Best five: {best}."


SLOPES_CAPTION = (
    "How fast regret grows along each sweep: the slope of log regret, mean over seeds with 95 % intervals. A policy "
    "whose mark lies inside its green bar grows no faster than its bound."
)


def sweep_blocks(
    context: StudyContext,
    sweeps: Sequence[Sweep],
    experiments: Sequence[Experiment],
    *,
    name: str,
    rate: str,
    lines: Callable[[StudyContext, Sequence[Sweep], Sequence[GrowthPanel]], Picture | None] = lambda *_: None,
) -> list[Block]:
    """The sweeps that were measured: slopes, and regrets with a figure of `lines`; `rate` heads the plain exponents.

    Experiments that no sweep holds are shown one by one. Files and anchors are called by `name`.
    """
    swept = {e.id for sweep in sweeps for e in sweep.experiments}
    single = experiment_blocks(context, [e for e in experiments if e.id not in swept])
    begun = [sweep for sweep in sweeps if context.begun(sweep.experiments)]
    drawn = [panel for sweep in begun if (panel := growth_panel(context.results.cells, sweep)).curves]
    if not drawn:
        return single
    frame = slopes_frame(drawn)
    picture = make_picture(
        drawn,
        lambda some, *, legend: slopes_figure(some, palette=context.palette, frame=frame, legend=legend),
        describe_slopes,
        key=slopes_key(),
        caption=SLOPES_CAPTION,
        folder=context.figures,
        name=name,
    )
    slopes = (slope_table(drawn, rate=rate),)
    return [
        Block(f"{name}-slopes", "Slopes, and what the bounds allow", unfinished(context, begun), picture, slopes),
        Block(
            f"{name}-regret",
            "Regret along each sweep",
            picture=lines(context, begun, drawn),
            tables=tuple(regret_table(context, sweep) for sweep in begun),
        ),
        *single,
    ]


def unfinished(context: StudyContext, sweeps: Sequence[Sweep]) -> tuple[str, ...]:
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


def slope_table(panels: Sequence[GrowthPanel], *, rate: str) -> ReportTable:
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


def regret_table(context: StudyContext, sweep: Sweep) -> ReportTable:
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
