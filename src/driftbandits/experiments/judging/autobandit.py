"""AutoBandit against its yardstick: one row a world, losses first, and a verdict on every target set beforehand.

Policies are compared in a world by their mean final regret over the seeds that all of them have played there; world and
noise are the same for all. Worlds without such a seed are left out, and every verdict says how many worlds it is of.
Ratios over worlds are geometric means. The best single setting is the baseline with the least geometric mean over the
same worlds, so it is chosen on the seeds it is judged on, in its favour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftbandits.escaping import markdown
from driftbandits.experiments.definitions.autobandit import LABEL
from driftbandits.experiments.definitions.oracle_settings import HERE, ONE
from driftbandits.experiments.definitions.yardstick import PAPER, PREFIX, SERIES
from driftbandits.experiments.judging.targets import (
    Verdict,
    ratio_table,
    shared_runs,
    table_columns,
    typical,
    verdict_lines,
    worst,
)

WINDOW, DISCOUNT, GPUCB = f"SW-GPUCB{HERE}", f"WGPUCB{HERE}", f"GPUCB{HERE}"
ADA_OPKB = "ADA-OPKB"
STILL = "stationary/"
FIXED = "fixed"  # the reference table's name for the best fixed arm
# Set before anything was played.
MOST_OF_WINDOW = 0.70
MOST_OF_DISCOUNT = 0.75
MOST_OF_SINGLE = 0.5
MOST_LOST = 1.5
MOST_STILL = 2.5
MOST_OF_ADA_OPKB = 0.2
MOST_FALSE_ALARMS = 0.1
COLUMNS = table_columns(("window", "discount", "single", "gpucb"))


@dataclass(frozen=True, eq=False)  # tables have no single truth value to compare by
class Judgement:
    """What became of the targets.

    `worlds` has the COLUMNS, the world with the largest regret over the tuned window first; `single` names the best
    single setting, empty where none was played.
    """

    worlds: pd.DataFrame
    single: str
    verdicts: tuple[Verdict, ...]


def judge(cells: pd.DataFrame, *, references: pd.DataFrame | None = None, subject: str = LABEL) -> Judgement:
    """Judge the policy called `subject` by the cells of results; `references` is that of `real.reference_table`."""
    regrets = shared_runs(cells, PREFIX, subject)
    suite = regrets[regrets["experiment"].map(_in_suite).astype(bool)]
    means = suite.pivot_table(index="experiment", columns="policy", values="regret", sort=False)
    single = best_single(means)
    rivals = {"window": WINDOW, "discount": DISCOUNT, "single": single, "gpucb": GPUCB}
    worlds = ratio_table(suite, rivals, prefix=PREFIX, subject=subject)
    verdicts = (
        *_over_worlds(worlds, single),
        *_on_paper(regrets, subject),
        _false_alarms(cells, subject),
        *_on_series(regrets, references, subject),
    )
    return Judgement(worlds, single, verdicts)


def _in_suite(experiment: str) -> bool:
    return experiment.startswith(PREFIX) and not experiment.startswith((PAPER, SERIES))


def best_single(means: pd.DataFrame) -> str:
    """The baseline whose one setting has the least geometric mean regret over these worlds.

    >>> best_single(pd.DataFrame({"A (one setting)": [1.0, 9.0], "B (one setting)": [4.0, 4.0], "C": [1.0, 1.0]}))
    'A (one setting)'
    """
    singles = means[[name for name in means.columns if str(name).endswith(ONE)]].dropna(axis=1)
    return "" if singles.empty else str(np.log(singles).mean().idxmin())


def _over_worlds(worlds: pd.DataFrame, single: str) -> list[Verdict]:
    still = worlds["world"].str.startswith(STILL)
    every = f"geometric mean over {len(worlds)} worlds"
    return [
        Verdict("over the window tuned in each world", typical(worlds["over_window"]), MOST_OF_WINDOW, every),
        Verdict("over the discount tuned in each world", typical(worlds["over_discount"]), MOST_OF_DISCOUNT, every),
        Verdict(
            "over the best single setting of any baseline",
            typical(worlds["over_single"]),
            MOST_OF_SINGLE,
            f"{every}; {single or 'none'}",
        ),
        worst("worst world with changes, over the tuned window", worlds[~still], "over_window", MOST_LOST),
        worst("worst stationary world, over GP-UCB tuned there", worlds[still], "over_gpucb", MOST_STILL),
    ]


def _on_paper(cells: pd.DataFrame, subject: str) -> list[Verdict]:
    """The worst of the paper's environments, over ADA-OPKB; over its published form it is only reported."""
    paper = cells[cells["experiment"].str.startswith(PAPER)]
    means = paper.pivot_table(index="experiment", columns="policy", values="regret", sort=False)
    verdicts = []
    for rival, limit in ((ADA_OPKB, MOST_OF_ADA_OPKB), (f"{ADA_OPKB} (published)", math.nan)):
        ratios = pd.Series(dtype=float) if rival not in means.columns else means[subject] / means[rival]
        table = pd.DataFrame({"world": [str(n).removeprefix(PAPER) for n in ratios.index], "ratio": ratios.to_numpy()})
        verdicts.append(worst(f"worst environment of the paper, over {rival}", table, "ratio", limit))
    return verdicts


def _false_alarms(cells: pd.DataFrame, subject: str) -> Verdict:
    """A mean over the runs in stationary worlds, which have 10,000 rounds each."""
    still = cells["experiment"].str.startswith(PREFIX + STILL) & (cells["policy"] == subject)
    alarms = cells.loc[still, "false_alarms"]
    value = float(alarms.mean()) if len(alarms) else math.nan
    return Verdict("false alarms in 10,000 stationary rounds", value, MOST_FALSE_ALARMS, f"{len(alarms)} runs")


def _on_series(cells: pd.DataFrame, references: pd.DataFrame | None, subject: str) -> list[Verdict]:
    """In every real series: regret over that of the best baseline, and what is earned less than the best fixed arm."""
    verdicts = []
    for experiment, group in cells[cells["experiment"].str.startswith(SERIES)].groupby("experiment", sort=False):
        means = group.groupby("policy", sort=False)["regret"].mean()
        others = means.drop(subject)
        name = str(experiment).removeprefix(SERIES)
        if len(others):
            best = str(others.idxmin())
            verdicts.append(Verdict(f"{name}: regret over the best baseline", means[subject] / others[best], 1.0, best))
        own = group[group["policy"] == subject]
        verdicts += _against_fixed(name, own, references)
    return verdicts


def _against_fixed(name: str, runs: pd.DataFrame, references: pd.DataFrame | None) -> list[Verdict]:
    if references is None:
        return []
    fixed = references[references["reference"] == FIXED]
    both = runs.merge(fixed, on=["experiment", "seed"])
    if both.empty:
        return []
    value = float((both["regret"] - both["shortfall"]).mean())
    earned = "negative: earns more"
    return [Verdict(f"{name}: regret against the best fixed arm", value, math.nan, earned)]


def judgement_markdown(judgement: Judgement, *, subject: str = LABEL) -> str:
    """Verdicts, then every world, as tables to read."""
    single = markdown(judgement.single or "best single")
    lines = [
        *verdict_lines(judgement.verdicts),
        "",
        f"| world | {subject} ± s.e. | tuned window | tuned discount | {single} "
        "| tuned GPUCB | over window | over discount | over single | over GPUCB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in judgement.worlds.to_dict("records"):
        error = "" if math.isnan(row["standard_error"]) else f" ± {row['standard_error']:.0f}"
        regrets = " | ".join(f"{row[name]:,.0f}" for name in ("window", "discount", "single", "gpucb"))
        ratios = " | ".join(f"{row[f'over_{name}']:.2f}" for name in ("window", "discount", "single", "gpucb"))
        lines.append(f"| {markdown(row['world'])} | {row['regret']:,.0f}{error} | {regrets} | {ratios} |")
    return "\n".join(lines) + "\n"
