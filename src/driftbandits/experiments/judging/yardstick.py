"""AutoBandit against its yardstick: one row per world, losses first, and a verdict on every target set beforehand.

Policies are compared in a world by their mean final regret over the seeds that all of them have played there; world and
noise are the same for all. Worlds without such a seed are left out, and every verdict says how many worlds it is of.
Ratios over worlds are geometric means. The best single setting is the baseline with the least geometric mean over the
same worlds, so it is chosen on the seeds it is judged on, in its favour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftbandits.escaping import csv, markdown
from driftbandits.experiments.definitions.ids import (
    STATIONARY_PREFIX,
    YARDSTICK_PAPER_PREFIX,
    YARDSTICK_PREFIX,
    YARDSTICK_REAL_PREFIX,
)
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    AUTOBANDIT,
    ONE_SETTING_ENDING,
    TUNED_HERE_ENDING,
)
from driftbandits.experiments.definitions.targets import (
    AUTOBANDIT_MOST_FALSE_ALARMS_PER_RUN,
    AUTOBANDIT_MOST_IN_WORST_CHANGING_WORLD,
    AUTOBANDIT_MOST_IN_WORST_STATIONARY_WORLD,
    AUTOBANDIT_MOST_OVER_ADA_OPKB,
    AUTOBANDIT_MOST_OVER_BEST_SINGLE_SETTING,
    AUTOBANDIT_MOST_OVER_TUNED_DISCOUNT,
    AUTOBANDIT_MOST_OVER_TUNED_WINDOW,
)
from driftbandits.experiments.judging.judgement import Judgement
from driftbandits.experiments.judging.ratios import geometric_mean, ratio_columns, ratio_table, shared_runs
from driftbandits.experiments.judging.reference_table import BEST_FIXED_ARM
from driftbandits.experiments.judging.results import Results
from driftbandits.experiments.judging.verdicts import (
    REPORTED_ONLY,
    TargetVerdict,
    judge_worst_world,
    verdict_lines,
    with_standard_error,
)
from driftbandits.policies import SlidingWindowGPUCB, WeightedGPUCB
from driftbandits.showing import counted

# Baselines by the columns they have; the best single setting is known only when the results are.
TUNED_RIVALS = {
    "window": SlidingWindowGPUCB.label + TUNED_HERE_ENDING,
    "discount": WeightedGPUCB.label + TUNED_HERE_ENDING,
    "gpucb": f"GPUCB{TUNED_HERE_ENDING}",
}
RIVAL_COLUMNS = ("window", "discount", "single", "gpucb")
WORLD_COLUMNS = ratio_columns(RIVAL_COLUMNS)


@dataclass(frozen=True, eq=False)
class AutoBanditJudgement(Judgement):
    """What became of the targets.

    `worlds` has the WORLD_COLUMNS, the world with the largest regret over the tuned window first; `single` names the
    best single setting, empty where none was played; `references` is what `reference_table` gives.
    """

    subject: str
    worlds: pd.DataFrame
    single: str
    references: pd.DataFrame | None = None

    def markdown(self) -> str:
        """Verdicts, then every world, as tables to read."""
        return autobandit_markdown(self)

    @property
    def files(self) -> Mapping[str, str]:
        """The tables to read, every world, and the references of real series."""
        references = "" if self.references is None else csv(self.references)
        return {"yardstick.md": self.markdown(), "yardstick.csv": csv(self.worlds), "references.csv": references}


def judge_yardstick(results: Results) -> AutoBanditJudgement | None:
    """AutoBandit in the worlds of its yardstick that it has played; None where it has played none."""
    judgement = judge_autobandit(results.cells, references=results.references)
    return judgement if len(judgement.worlds) else None


def judge_autobandit(
    cells: pd.DataFrame, *, references: pd.DataFrame | None = None, subject: str = AUTOBANDIT.label
) -> AutoBanditJudgement:
    """Judge the policy called `subject` by the cells of results; `references` is what `reference_table` gives."""
    regrets = shared_runs(cells, YARDSTICK_PREFIX, subject)
    suite = regrets[~regrets["experiment"].str.startswith((YARDSTICK_PAPER_PREFIX, YARDSTICK_REAL_PREFIX))]
    single = best_single(_mean_regrets(suite))
    labels = {**TUNED_RIVALS, "single": single}
    rivals = {column: labels[column] for column in RIVAL_COLUMNS}
    worlds = ratio_table(suite, rivals, prefix=YARDSTICK_PREFIX, subject=subject)
    verdicts = (
        *_over_worlds(worlds, single),
        *_on_paper(regrets, subject),
        _false_alarms(cells, subject),
        *_on_series(regrets, references, subject),
    )
    return AutoBanditJudgement(subject, worlds, single, references, verdicts=verdicts)


def _mean_regrets(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean final regret, one row per experiment and one column per policy."""
    return runs.pivot_table(index="experiment", columns="policy", values="regret", sort=False)


def best_single(means: pd.DataFrame) -> str:
    """The baseline whose one setting has the least geometric mean regret over these worlds.

    >>> best_single(pd.DataFrame({"A (one setting)": [1.0, 9.0], "B (one setting)": [4.0, 4.0], "C": [1.0, 1.0]}))
    'A (one setting)'
    """
    singles = means[[name for name in means.columns if str(name).endswith(ONE_SETTING_ENDING)]].dropna(axis=1)
    return "" if singles.empty else str(np.log(singles).mean().idxmin())


def _over_worlds(worlds: pd.DataFrame, single: str) -> list[TargetVerdict]:
    stationary = worlds["world"].str.startswith(STATIONARY_PREFIX)
    every = f"geometric mean over {counted(len(worlds), 'world')}"
    return [
        TargetVerdict(
            "over the window tuned in each world",
            geometric_mean(worlds["over_window"]),
            AUTOBANDIT_MOST_OVER_TUNED_WINDOW,
            every,
        ),
        TargetVerdict(
            "over the discount tuned in each world",
            geometric_mean(worlds["over_discount"]),
            AUTOBANDIT_MOST_OVER_TUNED_DISCOUNT,
            every,
        ),
        TargetVerdict(
            "over the best single setting of any baseline",
            geometric_mean(worlds["over_single"]),
            AUTOBANDIT_MOST_OVER_BEST_SINGLE_SETTING,
            f"{every}; {single or 'none'}",
        ),
        judge_worst_world(
            "worst world with changes, over the tuned window",
            worlds[~stationary],
            "over_window",
            AUTOBANDIT_MOST_IN_WORST_CHANGING_WORLD,
        ),
        judge_worst_world(
            "worst stationary world, over GP-UCB tuned there",
            worlds[stationary],
            "over_gpucb",
            AUTOBANDIT_MOST_IN_WORST_STATIONARY_WORLD,
        ),
    ]


def _on_paper(cells: pd.DataFrame, subject: str) -> list[TargetVerdict]:
    """The worst of the paper's environments, over ADA-OPKB; over its published form it is only reported."""
    means = _mean_regrets(cells[cells["experiment"].str.startswith(YARDSTICK_PAPER_PREFIX)])
    limits = {ADA_OPKB.label: AUTOBANDIT_MOST_OVER_ADA_OPKB, ADA_OPKB_PUBLISHED.label: REPORTED_ONLY}
    verdicts = []
    for rival, limit in limits.items():
        ratios = pd.Series(dtype=float) if rival not in means.columns else means[subject] / means[rival]
        names = [str(name).removeprefix(YARDSTICK_PAPER_PREFIX) for name in ratios.index]
        table = pd.DataFrame({"world": names, "ratio": ratios.to_numpy()})
        verdicts.append(judge_worst_world(f"worst environment of the paper, over {rival}", table, "ratio", limit))
    return verdicts


def _false_alarms(cells: pd.DataFrame, subject: str) -> TargetVerdict:
    """A mean over the runs in stationary worlds, which have 10,000 rounds each."""
    stationary = cells["experiment"].str.startswith(YARDSTICK_PREFIX + STATIONARY_PREFIX)
    alarms = cells.loc[stationary & (cells["policy"] == subject), "false_alarms"]
    return TargetVerdict(
        "false alarms in 10,000 stationary rounds",
        float(alarms.mean()) if len(alarms) else math.nan,
        AUTOBANDIT_MOST_FALSE_ALARMS_PER_RUN,
        counted(len(alarms), "run"),
    )


def _on_series(cells: pd.DataFrame, references: pd.DataFrame | None, subject: str) -> list[TargetVerdict]:
    """In every real series: regret over that of the best baseline, and what is earned less than the best fixed arm."""
    verdicts = []
    for experiment, group in cells[cells["experiment"].str.startswith(YARDSTICK_REAL_PREFIX)].groupby(
        "experiment", sort=False
    ):
        means = group.groupby("policy", sort=False)["regret"].mean()
        others = means.drop(subject)
        name = str(experiment).removeprefix(YARDSTICK_REAL_PREFIX)
        if len(others):
            best = str(others.idxmin())
            ratio = means[subject] / others[best]
            verdicts.append(TargetVerdict(f"{name}: regret over the best baseline", ratio, 1.0, best))
        own = group[group["policy"] == subject]
        verdicts += _against_fixed(name, own, references)
    return verdicts


def _against_fixed(name: str, runs: pd.DataFrame, references: pd.DataFrame | None) -> list[TargetVerdict]:
    if references is None:
        return []
    fixed = references[references["reference"] == BEST_FIXED_ARM]
    both = runs.merge(fixed, on=["experiment", "seed"])
    if both.empty:
        return []
    value = float((both["regret"] - both["shortfall"]).mean())
    target = f"{name}: regret against the best fixed arm"
    return [TargetVerdict(target, value, REPORTED_ONLY, "negative: earns more")]


def autobandit_markdown(judgement: AutoBanditJudgement) -> str:
    """Verdicts, then every world, as tables to read."""
    single = markdown(judgement.single or "best single")
    lines = [
        *verdict_lines(judgement.verdicts),
        "",
        f"| world | {judgement.subject} ± s.e. | tuned window | tuned discount | {single} "
        "| tuned GPUCB | over window | over discount | over single | over GPUCB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in judgement.worlds.to_dict("records"):
        own = with_standard_error(row["regret"], row["standard_error"])
        regrets = " | ".join(f"{row[rival]:,.0f}" for rival in RIVAL_COLUMNS)
        ratios = " | ".join(f"{row[f'over_{rival}']:.2f}" for rival in RIVAL_COLUMNS)
        lines.append(f"| {markdown(row['world'])} | {own} | {regrets} | {ratios} |")
    return "\n".join(lines) + "\n"
