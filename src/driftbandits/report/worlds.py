"""One experiment: its regret curves, and a table of what every policy did in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.results import MOST_COUNTED_CHANGES_PER_RUN
from driftbandits.experiments.running.build import build_world
from driftbandits.plots.data import ChangesPanel, RegretPanel, changes_panels, regret_curves, regret_panels
from driftbandits.plots.figures import regret_figure, regret_frame, regret_key
from driftbandits.policies.algorithm import Family
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import NOTHING, count, duration, number, with_error
from driftbandits.report.pictures import Picture, make_picture
from driftbandits.report.sections import Block
from driftbandits.report.tables import ReportTable, TableEntry, columns

ChangePattern = Literal["jumps", "drift", "still"]


def experiment_block(
    context: ReportContext, experiment: Experiment, *, title: str = "", turnover: bool = False
) -> Block:
    """Figure and table of one experiment that has been begun."""
    return Block(
        id=context.names[experiment.id],
        title=title or experiment.title,
        notes=experiment_note(context, experiment),
        picture=regret_picture(context, experiment),
        tables=(policy_table(context, experiment, turnover=turnover),),
    )


def experiment_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One block per experiment that has been begun: the chapter of a group that says nothing else."""
    return [experiment_block(context, experiment) for experiment in context.begun(experiments)]


def experiment_note(context: ReportContext, experiment: Experiment, *, named: bool = False) -> tuple[str, ...]:
    """How many runs are missing; nothing where none is."""
    lacking = context.missing([experiment]).get(experiment.id, 0)
    if not lacking:
        return ()
    which = f"{experiment.id}: " if named else ""
    return (f"Unfinished: {which}{count(lacking, 'run')} of {context.wanted[experiment.id]:,} missing.",)


# --- the figure -----------------------------------------------------------------------------------------------------


def regret_picture(context: ReportContext, experiment: Experiment) -> Picture:
    """Mean regret over time."""
    curves = regret_curves(context.results.curves, context.results.cells, experiment.id)
    changes = true_changes(experiment)
    kinds = {policy.label: context.kind(experiment, policy) for policy in experiment.policies}
    of_regret = regret_panels(
        curves,
        true_changes=changes or (),
        ours={label for label, kind in kinds.items() if kind.of_the_paper},
        beyond={label for label, kind in kinds.items() if kind.family == Family.NOTHING_TO_SET},
    )
    panels: list[RegretPanel | ChangesPanel] = [*of_regret, *changes_panels(of_regret)]
    frame = regret_frame(panels)
    return make_picture(
        panels,
        lambda some, *, legend: regret_figure(some, palette=context.palette, frame=frame, legend=legend),
        lambda panel: _describe(panel, experiment),
        key=regret_key(panels, palette=context.palette),
        caption=_caption(panels, known=changes is not None),
        folder=context.figures,
        name=context.names[experiment.id],
    )


def true_changes(experiment: Experiment) -> list[int] | None:
    """Rounds in which the world changes; None where that differs from seed to seed, or it cannot be built here."""
    ends = {experiment.seeds[0], experiment.seeds[-1]} if experiment.seeds else set()
    try:
        found = [build_world(experiment.environment, experiment.settings, seed).change_rounds for seed in sorted(ends)]
    except (Exception, SystemExit):  # noqa: BLE001  # data or a user's file that is not here, or is another now
        return None  # the results stand without it
    rounds = [[int(t) for t in one] for one in found]
    return rounds[0] if rounds and all(one == rounds[0] for one in rounds) else None


def _caption(panels: Sequence[RegretPanel | ChangesPanel], *, known: bool) -> str:
    parts = ["Mean cumulative regret with bands of one standard error; behind each name its final mean."]
    if not known:
        parts.append("No true changes are drawn: they are not known, or differ from seed to seed.")
    if sum(isinstance(panel, RegretPanel) for panel in panels) > 1:
        parts.append("Panels share their scale.")
    return " ".join(parts)


def _describe(panel: RegretPanel | ChangesPanel, experiment: Experiment) -> str:
    if isinstance(panel, ChangesPanel):
        per_run = "; ".join(f"{c.policy} {len(c.changes) / c.seeds:.1f}" for c in panel.curves)
        return f"Ticks: rounds in which changes were reported, {experiment.title}. Reports per run: {per_run}."
    ends = sorted(panel.curves, key=lambda curve: -curve.mean[-1])
    final = "; ".join(f"{curve.policy} {number(float(curve.mean[-1]))}" for curve in ends)
    which = f" ({panel.title})" if panel.title else ""
    return (
        f"Line chart: mean cumulative regret over {panel.horizon:,} rounds, {experiment.title}{which}. "
        f"Final regret, highest first: {final}."
    )


# --- the table ------------------------------------------------------------------------------------------------------


def policy_table(context: ReportContext, experiment: Experiment, *, turnover: bool = False) -> ReportTable:
    """One row per policy: final regret, what became of the changes where there are any, time, turnover if wanted."""
    rows = context.summary(experiment).to_dict("records")
    kind = _kind(rows)
    detects = {p.label for p in experiment.policies if p.name in context.detecting}
    heads = ["policy", "seeds", "final regret ± s.e."]
    if detects:
        heads += {
            "jumps": ["changes found", "median delay (rounds)", "false alarms per run"],
            "drift": ["changes reported per run"],
            "still": ["false alarms per run"],
        }[kind]
    heads += ["turnover"] if turnover else []
    heads += ["time per run"]
    best = min((row["regret"] for row in rows), default=0.0)
    body = []
    for row in rows:
        entries = [
            TableEntry(str(row["policy"])),
            TableEntry(f"{row['seeds']:,}"),
            TableEntry(with_error(row["regret"], row["standard_error"]), marks="best" if row["regret"] == best else ""),
        ]
        if detects:
            entries += _detection(row, kind, reports=row["policy"] in detects)
        entries += [TableEntry(f"{row['turnover']:.0%}")] if turnover else []
        body.append((*entries, TableEntry(duration(row["seconds_per_run"]))))
    return ReportTable(f"What every policy did: {experiment.title}", columns(*heads), tuple(body))


def _kind(rows: list[dict[Any, Any]]) -> ChangePattern:
    changes = max(((row["changes_found"] + row["changes_missed"]) / row["seeds"] for row in rows), default=0.0)
    if changes == 0:
        return "still"
    return "drift" if changes > MOST_COUNTED_CHANGES_PER_RUN else "jumps"


def _delay(rounds: float) -> str:
    return NOTHING if math.isnan(rounds) else f"{rounds:,.1f}".removesuffix(".0")


def _detection(row: dict[Any, Any], kind: ChangePattern, *, reports: bool) -> list[TableEntry]:
    found, missed = int(row["changes_found"]), int(row["changes_missed"])
    alarms = TableEntry(f"{row['false_alarms_per_run']:.2f}" if reports else NOTHING)
    if kind == "still":
        return [alarms]
    if kind == "drift":
        reported = found / row["seeds"] + row["false_alarms_per_run"]
        return [TableEntry(f"{reported:.1f}" if reports else NOTHING)]
    if not reports:
        return [TableEntry(NOTHING)] * 3
    return [TableEntry(f"{found:,} of {found + missed:,}"), TableEntry(_delay(float(row["median_delay"]))), alarms]
