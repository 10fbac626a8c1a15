"""CalibratedOPKB judged by its group: regret over ADA-OPKB in every world, false alarms with intervals, delays.

Policies are compared in a world by their mean final regret over the seeds that all of them have played there. A run
with a false alarm is one with at least one change found in a stationary world, however many; the interval of their
share is Clopper and Pearson's, which covers at least 95 %. A change counts as found if anything was reported after it,
so false alarms after it count too; a delay is that of the first report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftbandits.escaping import csv, markdown
from driftbandits.experiments.definitions.ids import (
    CALIBRATED_ALARMS_PREFIX,
    CALIBRATED_DELAYS_PREFIX,
    CALIBRATED_PREFIX,
    STATIONARY_PREFIX,
)
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_THEORY,
    AUTOBANDIT,
    CALIBRATED_OPKB,
    CALIBRATED_OPKB_THEORY,
)
from driftbandits.experiments.definitions.targets import (
    CALIBRATED_OPKB_MOST_OVER_ADA_OPKB,
    CALIBRATED_OPKB_MOST_RUNS_WITH_FALSE_ALARM,
)
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.ratios import geometric_mean, ratio_columns, ratio_table, shared_runs
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.verdicts import (
    REPORTED_ONLY,
    TargetVerdict,
    judge_worst_world,
    verdict_lines,
    with_standard_error,
)
from driftbandits.intervals import share_interval

# The labels of rivals by the columns they have.
RIVALS = {
    "ada_opkb": ADA_OPKB.label,
    "published": ADA_OPKB_PUBLISHED.label,
    "auto": AUTOBANDIT.label,
    "theory_constants": ADA_OPKB_THEORY.label,
    "theory_mode": CALIBRATED_OPKB_THEORY.label,
}
WORLD_COLUMNS = ratio_columns(tuple(RIVALS))
ALARM_COLUMNS = ("condition", "policy", "runs", "with_alarm", "share", "low", "high")
DELAY_COLUMNS = (
    "change",
    "kind",
    "size",
    "policy",
    "runs",
    "found",
    "share_found",
    "lower_quartile",
    "median",
    "upper_quartile",
)


@dataclass(frozen=True, eq=False)
class CalibratedOPKBJudgement(Judgement):
    """What became of the targets.

    `worlds` has the WORLD_COLUMNS, the largest regret over ADA-OPKB first; `alarms` the ALARM_COLUMNS, one row per
    condition and policy; `delays` the DELAY_COLUMNS, one row per change and policy, of those found alone.
    """

    subject: str
    worlds: pd.DataFrame
    alarms: pd.DataFrame
    delays: pd.DataFrame

    def markdown(self) -> str:
        """Verdicts, then delays, then every world, as tables to read."""
        return calibrated_opkb_markdown(self)

    @property
    def files(self) -> Mapping[str, str]:
        """The tables to read, and every table that has rows."""
        tables = {"": self.worlds, "-alarms": self.alarms, "-delays": self.delays}
        texts = {f"calibrated{ending}.csv": "" if table.empty else csv(table) for ending, table in tables.items()}
        return {"calibrated.md": self.markdown(), **texts}

    @property
    def empty(self) -> bool:
        """Whether nothing of it was played."""
        return self.worlds.empty and self.alarms.empty and self.delays.empty


def judge_calibrated_group(results: Results) -> CalibratedOPKBJudgement | None:
    """CalibratedOPKB in what was played of its group; None where that is nothing."""
    judgement = judge_calibrated_opkb(results.cells)
    return None if judgement.empty else judgement


def judge_calibrated_opkb(cells: pd.DataFrame, *, subject: str = CALIBRATED_OPKB.label) -> CalibratedOPKBJudgement:
    """Judge the policy called `subject` by the cells of results."""
    played = shared_runs(
        cells[~cells["experiment"].str.startswith((CALIBRATED_ALARMS_PREFIX, CALIBRATED_DELAYS_PREFIX))],
        CALIBRATED_PREFIX,
        subject,
    )
    worlds = ratio_table(played, RIVALS, prefix=CALIBRATED_PREFIX, subject=subject)
    alarms = alarm_table(cells)
    verdicts = (*_over_worlds(worlds), *_false_alarms(alarms))
    return CalibratedOPKBJudgement(subject, worlds, alarms, delay_table(cells), verdicts=verdicts)


def alarm_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per condition and policy: the share of runs with a false alarm, and its interval."""
    stationary = cells[cells["experiment"].str.startswith(CALIBRATED_ALARMS_PREFIX)]
    rows = []
    for (name, policy), group in stationary.groupby(["experiment", "policy"], sort=False):
        runs, alarmed = len(group), int((group["false_alarms"] > 0).sum())
        share = share_interval(alarmed, runs)
        condition = str(name).removeprefix(CALIBRATED_ALARMS_PREFIX)
        rows.append((condition, policy, runs, alarmed, share.estimate, share.low, share.high))
    return pd.DataFrame(rows, columns=list(ALARM_COLUMNS))


def delay_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per change and policy: how many runs found it, and quartiles of their delays; NaN where none has."""
    changing = cells[cells["experiment"].str.startswith(CALIBRATED_DELAYS_PREFIX)]
    rows = []
    for (name, policy), group in changing.groupby(["experiment", "policy"], sort=False):
        kind, _, size = str(name).removeprefix(CALIBRATED_DELAYS_PREFIX).partition("-")
        delays = [delay for run in group["delays"] for delay in run]
        quartiles = np.quantile(delays, (0.25, 0.5, 0.75)) if delays else (math.nan,) * 3
        change = f"{kind} by {size}" if size else kind
        found = (len(group), len(delays), len(delays) / len(group))
        rows.append((change, kind, float(size or "nan"), policy, *found, *map(float, quartiles)))
    return pd.DataFrame(rows, columns=list(DELAY_COLUMNS))


def _over_worlds(worlds: pd.DataFrame) -> list[TargetVerdict]:
    stationary = worlds["world"].str.startswith(STATIONARY_PREFIX)
    still, changing = worlds[stationary], worlds[~stationary]
    most = CALIBRATED_OPKB_MOST_OVER_ADA_OPKB
    return [
        judge_worst_world("worst world with changes, over ADA-OPKB", changing, "over_ada_opkb", most),
        judge_worst_world("worst stationary world, over ADA-OPKB", still, "over_ada_opkb", REPORTED_ONLY),
        judge_worst_world(
            f"worst world with changes, over {ADA_OPKB_PUBLISHED.label}", changing, "over_published", REPORTED_ONLY
        ),
        *(
            TargetVerdict(
                f"over {RIVALS[rival]}",
                geometric_mean(worlds[f"over_{rival}"].dropna()),
                REPORTED_ONLY,
                f"geometric mean over {worlds[rival].count()} worlds",
            )
            for rival in ("ada_opkb", "published", "auto", "theory_mode")
        ),
    ]


def _false_alarms(alarms: pd.DataFrame) -> list[TargetVerdict]:
    return [
        TargetVerdict(
            f"share of runs with a false alarm, {row['condition']}, {row['policy']}",
            row["share"],
            CALIBRATED_OPKB_MOST_RUNS_WITH_FALSE_ALARM,
            f"{row['with_alarm']} of {row['runs']} runs; 95 % interval {row['low']:.3f} to {row['high']:.3f}",
        )
        for row in alarms.to_dict("records")
    ]


def calibrated_opkb_markdown(judgement: CalibratedOPKBJudgement) -> str:
    """Verdicts, then delays, then every world, as tables to read; those with nothing in them are left out."""
    lines = verdict_lines(judgement.verdicts)
    if not judgement.delays.empty:
        lines += ["", *_delay_lines(judgement.delays)]
    if not judgement.worlds.empty:
        lines += ["", *_world_lines(judgement.worlds, judgement.subject)]
    return "\n".join(lines) + "\n"


def _delay_lines(delays: pd.DataFrame) -> list[str]:
    lines = ["| change | policy | found | median delay of those, rounds | quartiles |", "|---|---|---:|---:|---:|"]
    for row in delays.to_dict("records"):
        quartiles = f"{row['median']:,.0f} | {row['lower_quartile']:,.0f} to {row['upper_quartile']:,.0f}"
        delay = quartiles if row["found"] else "– | –"
        lines.append(
            f"| {markdown(row['change'])} | {markdown(row['policy'])} | {row['found']} of {row['runs']} | {delay} |"
        )
    return lines


def _world_lines(worlds: pd.DataFrame, subject: str) -> list[str]:
    lines = [
        f"Mean final regret, and in brackets that of {subject} over it.",
        "",
        f"| world | {subject} ± s.e. | {' | '.join(RIVALS.values())} |",
        f"|---|---:|{'---:|' * len(RIVALS)}",
    ]
    for row in worlds.to_dict("records"):
        own = with_standard_error(row["regret"], row["standard_error"])
        rivals = " | ".join(_beside(row[rival], row[f"over_{rival}"]) for rival in RIVALS)
        lines.append(f"| {markdown(row['world'])} | {own} | {rivals} |")
    return lines


def _beside(regret: float, ratio: float) -> str:
    return "–" if math.isnan(regret) else f"{regret:,.0f} ({ratio:.2f})"
