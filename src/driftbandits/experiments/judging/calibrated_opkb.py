"""CalibratedOPKB judged by its group: regret over ADA-OPKB in every world, false alarms with intervals, delays.

Policies are compared in a world by their mean final regret over the seeds that all of them have played there. A run
with a false alarm is one with at least one change found in a stationary world, however many; the interval of their
share is Clopper and Pearson's, which covers at least 95 %. A change counts as found if anything was reported after it,
so false alarms after it count too; a delay is that of the first report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from driftbandits.escaping import markdown
from driftbandits.experiments.definitions.autobandit import LABEL as AUTO_LABEL
from driftbandits.experiments.definitions.calibrated_opkb import (
    ADA_OPKB_THEORY,
    ALARMS,
    DELAYS,
    LABEL,
    PREFIX,
    THEORY_MODE,
)
from driftbandits.experiments.definitions.yardstick import ADA_OPKB, ADA_OPKB_PUBLISHED
from driftbandits.experiments.judging.targets import (
    Verdict,
    ratio_table,
    shared_runs,
    table_columns,
    typical,
    verdict_lines,
    worst,
)

STILL = "stationary/"
# Set before anything was played.
MOST_OF_ADA_OPKB = 0.5
MOST_FALSE_ALARMS = 0.1  # the default of `false_alarm`
COVERAGE = 0.95
RIVALS = {
    "ada_opkb": ADA_OPKB.label,
    "published": ADA_OPKB_PUBLISHED.label,
    "auto": AUTO_LABEL,
    "theory_constants": ADA_OPKB_THEORY.label,
    "theory_mode": THEORY_MODE.label,
}
WORLD_COLUMNS = table_columns(tuple(RIVALS))
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


@dataclass(frozen=True, eq=False)  # tables have no single truth value to compare by
class CalibrationJudgement:
    """What became of the targets.

    `worlds` has the WORLD_COLUMNS, the largest regret over ADA-OPKB first; `alarms` the ALARM_COLUMNS, one row a
    condition and policy; `delays` the DELAY_COLUMNS, one row a change and policy, of those found alone.
    """

    worlds: pd.DataFrame
    alarms: pd.DataFrame
    delays: pd.DataFrame
    verdicts: tuple[Verdict, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing of it was played."""
        return self.worlds.empty and self.alarms.empty and self.delays.empty


def judge_calibration(cells: pd.DataFrame, *, subject: str = LABEL) -> CalibrationJudgement:
    """Judge the policy called `subject` by the cells of results."""
    played = shared_runs(cells[~cells["experiment"].str.startswith((ALARMS, DELAYS))], PREFIX, subject)
    worlds = ratio_table(played, RIVALS, prefix=PREFIX, subject=subject)
    alarms = alarm_table(cells)
    return CalibrationJudgement(worlds, alarms, delay_table(cells), (*_over_worlds(worlds), *_false_alarms(alarms)))


def alarm_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row a condition and policy: the share of runs with a false alarm, and its interval."""
    still = cells[cells["experiment"].str.startswith(ALARMS)]
    rows = []
    for (name, policy), group in still.groupby(["experiment", "policy"], sort=False):
        runs, alarmed = len(group), int((group["false_alarms"] > 0).sum())
        low, high = share_interval(alarmed, runs)
        rows.append((str(name).removeprefix(ALARMS), policy, runs, alarmed, alarmed / runs, low, high))
    return pd.DataFrame(rows, columns=list(ALARM_COLUMNS))


def share_interval(hits: int, runs: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share.

    >>> low, high = share_interval(0, 200)
    >>> low, round(high, 4)
    (0.0, 0.0183)
    """
    interval = stats.binomtest(hits, runs).proportion_ci(confidence_level=COVERAGE, method="exact")
    return float(interval.low), float(interval.high)


def delay_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row a change and policy: how many runs found it, and quartiles of the delay of those; NaN where none has."""
    changing = cells[cells["experiment"].str.startswith(DELAYS)]
    rows = []
    for (name, policy), group in changing.groupby(["experiment", "policy"], sort=False):
        kind, _, size = str(name).removeprefix(DELAYS).partition("-")
        delays = [delay for run in group["delays"] for delay in run]
        quartiles = np.quantile(delays, (0.25, 0.5, 0.75)) if delays else (math.nan,) * 3
        change = f"{kind} by {size}" if size else kind
        found = (len(group), len(delays), len(delays) / len(group))
        rows.append((change, kind, float(size or "nan"), policy, *found, *map(float, quartiles)))
    return pd.DataFrame(rows, columns=list(DELAY_COLUMNS))


def _over_worlds(worlds: pd.DataFrame) -> list[Verdict]:
    still = worlds["world"].str.startswith(STILL)
    reported = math.nan
    return [
        worst("worst world with changes, over ADA-OPKB", worlds[~still], "over_ada_opkb", MOST_OF_ADA_OPKB),
        worst("worst stationary world, over ADA-OPKB", worlds[still], "over_ada_opkb", reported),
        worst("worst world with changes, over ADA-OPKB (published)", worlds[~still], "over_published", reported),
        *(
            Verdict(
                f"over {RIVALS[rival]}",
                typical(worlds[f"over_{rival}"].dropna()),
                reported,
                f"geometric mean over {worlds[rival].count()} worlds",
            )
            for rival in ("ada_opkb", "published", "auto", "theory_mode")
        ),
    ]


def _false_alarms(alarms: pd.DataFrame) -> list[Verdict]:
    return [
        Verdict(
            f"share of runs with a false alarm, {row['condition']}, {row['policy']}",
            row["share"],
            MOST_FALSE_ALARMS,
            f"{row['with_alarm']} of {row['runs']} runs; 95 % interval {row['low']:.3f} to {row['high']:.3f}",
        )
        for row in alarms.to_dict("records")
    ]


def calibration_markdown(judgement: CalibrationJudgement, *, subject: str = LABEL) -> str:
    """Verdicts, then delays, then every world, as tables to read; those with nothing in them are left out."""
    lines = verdict_lines(judgement.verdicts)
    if not judgement.delays.empty:
        lines += ["", *_delay_lines(judgement.delays)]
    if not judgement.worlds.empty:
        lines += ["", *_world_lines(judgement.worlds, subject)]
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
        error = "" if math.isnan(row["standard_error"]) else f" ± {row['standard_error']:.0f}"
        rivals = " | ".join(_beside(row[rival], row[f"over_{rival}"]) for rival in RIVALS)
        lines.append(f"| {markdown(row['world'])} | {row['regret']:,.0f}{error} | {rivals} |")
    return lines


def _beside(regret: float, ratio: float) -> str:
    return "–" if math.isnan(regret) else f"{regret:,.0f} ({ratio:.2f})"
