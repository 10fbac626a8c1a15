"""What chapters of a page are made of: numbers as text, tables, and the figure and table of one experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from driftbandits.configuration.references import is_reference, loaded
from driftbandits.experiments.building import build_world
from driftbandits.experiments.results import MOST_COUNTED_CHANGES_PER_RUN, Results
from driftbandits.experiments.specs import Experiment, PolicySpec, cells_of, policy_class
from driftbandits.plots.frame import LineStyle, line_styles
from driftbandits.plots.regret import (
    ChangesPanel,
    RegretPanel,
    changes_panels,
    regret_curves,
    regret_figure,
    regret_frame,
    regret_key,
    regret_panels,
)
from driftbandits.policies import Policy
from driftbandits.report.pictures import Picture, file_name, make_picture

NOTHING = "–"


def number(value: float) -> str:
    """Thousands apart, and three digits or so.

    >>> [number(x) for x in (12345.6, 99.96, 3.14159, 0.01234, 0.0, float("nan"))]
    ['12,346', '100', '3.1', '0.012', '0', '–']
    """
    if math.isnan(value):
        return NOTHING
    if value == 0:
        return "0"
    size = abs(value)
    text = f"{value:,.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 1 else f"{value:.2g}"
    return text.replace("-", "−", 1)


def with_error(mean: float, error: float) -> str:
    """A mean with its standard error, to the digits that the error leaves; one run has none.

    >>> with_error(3721.4, 155.6), with_error(0.5312, 0.0123), with_error(42.0, float("nan"))
    ('3,721 ± 156', '0.531 ± 0.012', '42.0')
    """
    if math.isnan(mean):
        return NOTHING
    if math.isnan(error):
        return number(mean)
    places = min(decimals(error), most_decimals(mean))
    return f"{mean:,.{places}f} ± {error:,.{places}f}".replace("-", "−")


def decimals(error: float) -> int:
    """Decimal places that show two digits of an error, and no more than four."""
    if not error > 0 or math.isinf(error):
        return 0
    return min(4, max(0, 1 - math.floor(math.log10(error))))


def most_decimals(mean: float) -> int:
    """Decimal places beyond which nobody reads a number of this size.

    >>> [most_decimals(x) for x in (12_345.0, -260.3, 26.0, 0.26)]
    [0, 1, 2, 4]
    """
    size = abs(mean)
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 4


def interval(estimate: float, low: float, high: float, unit: str) -> tuple[str, str]:
    """An estimate and its interval, slopes to two places and signed regret to whole numbers.

    >>> interval(-1200.4, -1500.2, -900.1, "regret"), interval(0.512, 0.48, 0.55, "slope")
    (('−1,200', '−1,500 to −900'), ('0.51', '0.48 to 0.55'))
    """

    def form(value: float) -> str:
        return (f"{value:.2f}" if unit == "slope" else f"{value:,.0f}").replace("-", "−")

    if math.isnan(estimate):
        return NOTHING, ""
    return form(estimate), "" if math.isnan(low) else f"{form(low)} to {form(high)}"


def duration(seconds: float) -> str:
    """A time in the units one would say.

    >>> [duration(x) for x in (0.0234, 5.21, 250, 4000, 90_000)]
    ['0.023 s', '5.2 s', '4 min 10 s', '1 h 6 min', '25 h']
    """
    if math.isnan(seconds):
        return NOTHING
    if seconds < 99.5:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 10 and minutes else f"{hours} h"


def count(amount: int, one: str, many: str = "") -> str:
    """An amount with its noun.

    >>> count(1, "seed"), count(1200, "run")
    ('1 seed', '1,200 runs')
    """
    return f"{amount:,} {one if amount == 1 else many or one + 's'}"


def listed(items: list[str], limit: int = 0) -> str:
    """Words with commas, the last after "and"; beyond `limit` (if any) only how many more.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d"], 2)
    ('a, b and c', 'a, b and 2 more')
    """
    if limit and len(items) > limit + 1:
        items = [*items[:limit], f"{len(items) - limit} more"]
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" and {items[-1]}" if items else ""


LETTERS_ON_A_PHONE, LETTERS_BETWEEN_COLUMNS = 48, 3


@dataclass(frozen=True)
class TableEntry:
    """One place of a table: its text, the smaller text below it, and the marks (CSS classes) it has."""

    text: str
    small: str = ""
    marks: str = ""


@dataclass(frozen=True)
class TableColumn:
    """A column: its head, and whether it holds numbers, which stand to the right."""

    head: str
    numeric: bool = True


@dataclass(frozen=True)
class ReportTable:
    """Columns, rows whose first entry names them, and a last row apart from the others if there is one."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableEntry, ...], ...]
    foot: tuple[tuple[TableEntry, ...], ...] = ()

    @property
    def wide(self) -> bool:
        """Whether it is wider than a phone, so that a reader has to be told that it scrolls."""
        across = zip(*self.rows, *self.foot, strict=True)
        letters = [max(len(entry.text) for entry in entries) + LETTERS_BETWEEN_COLUMNS for entries in across]
        return sum(letters) > LETTERS_ON_A_PHONE


def columns(*heads: str) -> tuple[TableColumn, ...]:
    """The first column in words, all others in numbers."""
    return tuple(TableColumn(head, numeric=number > 0) for number, head in enumerate(heads))


@dataclass(frozen=True)
class Block:
    """A part of a section with a heading of its own: notes, a figure, tables; in that order, each if there is one.

    Tables are folded, because readers start with the figures; not if they are `unfolded`, because they are the figure.
    """

    id: str
    title: str
    notes: tuple[str, ...] = ()
    picture: Picture | None = None
    tables: tuple[ReportTable, ...] = ()
    unfolded: bool = False


@dataclass(frozen=True)
class Section:
    """A chapter of the page."""

    id: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, eq=False)
class ReportContext:
    """Results, the folder for figures, and what is computed once for all chapters."""

    results: Results
    figures: Path

    @property
    def reserved_names(self) -> frozenset[str]:
        """Names of figures and anchors that experiments may not take."""
        return frozenset()

    def apart(self, experiment: Experiment) -> tuple[frozenset[str], frozenset[str]]:
        """Labels that a figure of regret shows in panels of their own, and those that its title calls newer."""
        del experiment
        return frozenset(), frozenset()

    @cached_property
    def palette(self) -> Mapping[str, LineStyle]:
        """How the line of every policy is drawn."""
        return line_styles(*([policy.label for policy in e.policies] for e in self.results.experiments))

    @cached_property
    def detecting(self) -> frozenset[str]:
        """Names of policies that report changes: those that say so, and any that has reported one."""
        runs = self.results.cells
        reported = set(
            runs.loc[runs["changes"].map(len) > 0, ["experiment", "policy"]].itertuples(index=False, name=None)
        )
        return frozenset(
            p.name
            for e in self.results.experiments
            for p in e.policies
            if self.kind(e, p).reports_changes or (e.id, p.label) in reported
        )

    @cached_property
    def _with_runs(self) -> frozenset[tuple[str, str]]:
        return frozenset(self.results.cells[["experiment", "policy"]].itertuples(index=False, name=None))

    def kind(self, experiment: Experiment, policy: PolicySpec) -> type[Policy]:
        """The class of a policy, for its facts; `Policy` itself where it has played nothing.

        A user's own class counts only where this process has played it: a page of finished runs, which may be a
        stranger's, runs no code that they name.
        """
        if (experiment.id, policy.label) not in self._with_runs:
            return Policy
        if is_reference(policy.name):
            found = loaded(policy.name)
            return found if isinstance(found, type) and issubclass(found, Policy) else Policy
        return policy_class(policy.name)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """A name for files and anchors, different for every experiment."""
        taken = set(self.reserved_names)
        names = {}
        for experiment in self.results.experiments:
            wish = name = file_name(experiment.id)
            number = 1
            while name in taken:
                number += 1
                name = f"{wish}-{number}"
            taken.add(name)
            names[experiment.id] = name
        return names

    @cached_property
    def played(self) -> Mapping[str, int]:
        """Finished runs by experiment."""
        return {str(name): int(runs) for name, runs in self.results.cells["experiment"].value_counts().items()}

    @cached_property
    def wanted(self) -> Mapping[str, int]:
        """Runs that each experiment asks for."""
        return {experiment.id: len(cells_of(experiment)) for experiment in self.results.experiments}

    def missing(self, experiments: Sequence[Experiment]) -> dict[str, int]:
        """Runs not finished, by experiment; those that are complete are left out."""
        lacking = {e.id: self.wanted[e.id] - self.played.get(e.id, 0) for e in experiments}
        return {name: runs for name, runs in lacking.items() if runs > 0}

    def begun(self, experiments: Sequence[Experiment]) -> list[Experiment]:
        """Experiments with at least one finished run."""
        return [e for e in experiments if self.played.get(e.id, 0)]

    def runs(self, experiment: Experiment) -> pd.DataFrame:
        """Finished runs of an experiment, one per row."""
        cells = self.results.cells
        return cells[cells["experiment"] == experiment.id]

    def summary(self, experiment: Experiment) -> pd.DataFrame:
        """One row per policy that has finished runs."""
        summary = self.results.summary
        return summary[summary["experiment"] == experiment.id]

    def spec(self, experiment: Experiment, label: str) -> PolicySpec:
        """What a label of the experiment stands for."""
        return next(policy for policy in experiment.policies if policy.label == label)


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
    ours, beyond = context.apart(experiment)
    of_regret = regret_panels(curves, true_changes=changes or (), ours=ours, beyond=beyond)
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
