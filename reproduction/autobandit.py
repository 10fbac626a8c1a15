"""AutoBandit and what it is judged by (the group `yardstick`): the suite, the paper's worlds, real series.

In every suite world play windows, discounts and GP-UCB tuned for that world and told its kernel and noise (the hard
opponents), every baseline with the one setting that was best over all worlds (the fair ones), and where the world
switches a GP-UCB that is told when (about the least that can be had). These settings are `settings/oracles.json`, found
by `driftbandits tune oracles` on tuning seeds. On the paper's worlds ADA-OPKB is the opponent; on real series every
baseline is, with its one setting and with those found on environment 1.

Policies are compared in a world by their mean final regret over the seeds that all of them have played there. Worlds
without such a seed are left out, and every verdict says how many worlds it covers. Ratios over worlds are geometric
means. The best single setting is the baseline with the least geometric mean over the same worlds: it is chosen on the
seeds it is judged on, in its favour.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from driftbandits._util.markdown import csv, markdown
from driftbandits.datasets import REAL_PREFIX
from driftbandits.environments.noise import PAPER_NOISE
from driftbandits.environments.registry import noise_from_config
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import HORIZON, Experiment, PolicySpec
from driftbandits.policies import SlidingWindowGPUCB, WeightedGPUCB, policy_label
from driftbandits.report.blocks import NOTHING, Block, experiment_block
from driftbandits.text import counted
from reproduction.catalogue import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    AUTOBANDIT,
    FIRST_SETTINGS,
    ONE_SETTING_ENDING,
    SETTINGS_FOLDER,
    TUNED_HERE_ENDING,
    by_id,
    written_out,
)
from reproduction.chapters import ratio_picture, verdict_table, world_table
from reproduction.claims import (
    REPORTED_ONLY,
    Judgement,
    TargetVerdict,
    geometric_mean,
    judge_worst_world,
    ratio_columns,
    ratio_table,
    shared_runs,
    verdict_lines,
    with_standard_error,
)
from reproduction.figures import ratio_rows
from reproduction.paper import ENVIRONMENT_1, ENVIRONMENT_2, PAPER_TITLES, SLOW_COSINE
from reproduction.real_data import BEST_FIXED_ARM, REAL, real_series_blocks, references_of
from reproduction.suite import STATIONARY_PREFIX, SUITE, SUITE_SEEDS, WRONG_KERNELS, suite_blocks, suite_name
from reproduction.topic import Group, StudyContext

YARDSTICK_PREFIX = "yardstick/"
YARDSTICK_PAPER_PREFIX = f"{YARDSTICK_PREFIX}paper/"
YARDSTICK_REAL_PREFIX = f"{YARDSTICK_PREFIX}{REAL_PREFIX}"
# AutoBandit, over the baselines of the yardstick: geometric means over all worlds of the suite,
AUTOBANDIT_MOST_OVER_TUNED_WINDOW = 0.70
AUTOBANDIT_MOST_OVER_TUNED_DISCOUNT = 0.75
AUTOBANDIT_MOST_OVER_BEST_SINGLE_SETTING = 0.5
# and in the worst single world.
AUTOBANDIT_MOST_IN_WORST_CHANGING_WORLD = 1.5
AUTOBANDIT_MOST_IN_WORST_STATIONARY_WORLD = 2.5
AUTOBANDIT_MOST_OVER_ADA_OPKB = 0.2  # in the worst of the paper's environments
AUTOBANDIT_MOST_FALSE_ALARMS_PER_RUN = 0.1
SIGNAL_VARIANCE = 0.1  # of rewards over a suite world's arms; ridges are relative to it, for kernels have diagonal 1
USUAL_NOISE = 0.1  # what policies take for granted where nobody knows it, in half reward ranges


def noise_of(world: Experiment) -> float:
    """Standard deviation of a world's noise, at a mean of 0 where the noise is cut differently at others.

    >>> from reproduction.suite import SUITE
    >>> noise_of(SUITE["suite/noisy/d2"]), round(noise_of(SUITE["suite/heavy-tails/d2"]), 3)
    (0.5, 0.224)
    """
    config = world.settings.get("noise")
    noise = PAPER_NOISE if config is None else noise_from_config(config)
    return round(float(noise.deviation(np.zeros(1))[0]), 6)


def kernel_of(world: Experiment) -> Mapping[str, Any] | None:
    """The kernel that policies are told in a suite world; None for the world's own."""
    return WRONG_KERNELS.get(world.id.split("/")[1])


def informed_spec(label: str, policy: str, settings: Mapping[str, Any], world: Experiment) -> PolicySpec:
    """The policy with these settings, and what it can be told of the world.

    >>> from reproduction.suite import SUITE
    >>> told = informed_spec("a window", "SlidingWindowGPUCB", {"window": 400}, SUITE["suite/noisy/d2"]).settings
    >>> told["noise"], told["ridge"], told["window"]
    (0.5, 2.5, 400)
    """
    noise = noise_of(world)
    return PolicySpec(label, policy, _joined(policy, settings, {"noise": noise}, _ridge(noise)), kernel_of(world))


def uninformed_spec(label: str, policy: str, settings: Mapping[str, Any]) -> PolicySpec:
    """The policy with these settings where nobody knows the noise: the usual one.

    >>> told = uninformed_spec("a window", "SlidingWindowGPUCB", {"window": 400}).settings
    >>> told["noise"], told["ridge"], told["window"]
    (None, 0.1, 400)
    """
    return PolicySpec(label, policy, _joined(policy, settings, {}, _ridge(USUAL_NOISE)))


def _ridge(noise: float) -> dict[str, Any]:
    return {"ridge": round(noise**2 / SIGNAL_VARIANCE, 6)}


def _joined(
    policy: str, settings: Mapping[str, Any], noise: Mapping[str, Any], ridge: Mapping[str, Any]
) -> dict[str, Any]:
    """Every setting of the policy. A wrapper knows the noise; the ridge is for its base."""
    if "base" in settings:
        told = {**noise, **settings, "base_settings": {**noise, **ridge, **settings.get("base_settings", {})}}
    else:
        told = {**noise, **(ridge if "ridge" in FIRST_SETTINGS[policy] else {}), **settings}
    return written_out(policy, told)


@lru_cache
def oracle_settings() -> dict[str, Any]:
    """What `oracles.json` holds: `worlds` by name and label, `singles` by label; policy, settings and score of each."""
    found: dict[str, Any] = json.loads((SETTINGS_FOLDER / "oracles.json").read_text())
    return found


def tuned_here(world: Experiment) -> tuple[PolicySpec, ...]:
    """The baselines tuned in this suite world.

    >>> from reproduction.suite import SUITE
    >>> [spec.label for spec in tuned_here(SUITE["suite/slow/d2"])]
    ['SW-GPUCB (tuned here)', 'WGPUCB (tuned here)', 'GPUCB (tuned here)']
    """
    found = oracle_settings()["worlds"][suite_name(world)]
    return tuple(
        informed_spec(label + TUNED_HERE_ENDING, e["policy"], e["settings"], world) for label, e in found.items()
    )


def single_settings(world: Experiment | None = None) -> tuple[PolicySpec, ...]:
    """Every baseline with its one setting, told what there is to know of a suite world, or without one nothing."""
    found = oracle_settings()["singles"]
    specs = []
    for label, entry in found.items():
        named = (label + ONE_SETTING_ENDING, entry["policy"], entry["settings"])
        specs.append(uninformed_spec(*named) if world is None else informed_spec(*named, world))
    return tuple(specs)


KNOWS_CHANGES_LABEL = "GPUCB told the changes"


def _in_suite(world: Experiment) -> Experiment:
    ada_opkb = dataclasses.replace(ADA_OPKB, kernel=kernel_of(world))
    policies = (AUTOBANDIT, *tuned_here(world), *_knows_changes(world), *single_settings(world), ada_opkb)
    return dataclasses.replace(world, id=YARDSTICK_PREFIX + suite_name(world), policies=policies, seeds=SUITE_SEEDS)


def _knows_changes(world: Experiment) -> tuple[PolicySpec, ...]:
    """GP-UCB that starts anew at every switch: the suite's are evenly spaced, so a period says when."""
    switches = world.settings.get("switches", [])
    if not switches:
        return ()
    still = f"{STATIONARY_PREFIX}d{world.settings['dimension']}"
    beta = oracle_settings()["worlds"][still]["GPUCB"]["settings"]["beta"]
    return (informed_spec(KNOWS_CHANGES_LABEL, "RestartGPUCB", {"period": switches[0], "beta": beta}, world),)


def _of_paper(name: str, environment: str, **settings: int) -> Experiment:
    return Experiment(
        id=YARDSTICK_PAPER_PREFIX + name,
        title=PAPER_TITLES[environment],
        environment=environment,
        settings={**settings, "horizon": HORIZON},
        policies=(AUTOBANDIT, ADA_OPKB, ADA_OPKB_PUBLISHED),
        seeds=SUITE_SEEDS,
    )


def _series_experiment(series: Experiment) -> Experiment:
    policies = (AUTOBANDIT, *single_settings(), *(p for p in series.policies if p != AUTOBANDIT))
    return dataclasses.replace(series, id=YARDSTICK_PREFIX + series.id, policies=policies)


YARDSTICK: dict[str, Experiment] = by_id(
    (
        *map(_in_suite, SUITE.values()),
        _of_paper("one-switch", ENVIRONMENT_1, dimension=10),
        _of_paper("two-switches", ENVIRONMENT_2, dimension=10),
        _of_paper("slow", SLOW_COSINE),
        *(_series_experiment(series) for series in REAL.values() if series.settings["copy"] == "as observed"),
    )
)
# Baselines by the columns they have; the best single setting is known only when the results are.
TUNED_RIVALS = {
    "window": policy_label(SlidingWindowGPUCB) + TUNED_HERE_ENDING,
    "discount": policy_label(WeightedGPUCB) + TUNED_HERE_ENDING,
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
    judgement = judge_autobandit(results.cells, references=references_of(results))
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
        *_judge_series(regrets, references, subject),
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


def _judge_series(cells: pd.DataFrame, references: pd.DataFrame | None, subject: str) -> list[TargetVerdict]:
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


def yardstick_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """What was judged if the subject has played, then every policy in the suite, on the paper's worlds, on series."""
    judgement = context.judgements.of(AutoBanditJudgement)
    suite = [e for e in experiments if not e.id.startswith((YARDSTICK_PAPER_PREFIX, YARDSTICK_REAL_PREFIX))]
    return [
        *([] if judgement is None else [_judged(context, judgement)]),
        *(dataclasses.replace(block, id=f"yardstick-{block.id}") for block in suite_blocks(context, suite)),
        *(
            experiment_block(context, e)
            for e in context.begun([e for e in experiments if e.id.startswith(YARDSTICK_PAPER_PREFIX)])
        ),
        *real_series_blocks(context, [e for e in experiments if e.id.startswith(YARDSTICK_REAL_PREFIX)]),
    ]


def _judged(context: StudyContext, judgement: AutoBanditJudgement) -> Block:
    subject = judgement.subject
    heads = {
        "window": "tuned window",
        "discount": "tuned discount",
        "single": judgement.single or NOTHING,
        "gpucb": "tuned GPUCB",
    }
    return Block(
        id="yardstick-judged",
        title=f"{subject}: targets, and every world with losses first",
        picture=ratio_picture(
            context,
            ratio_rows(judgement.worlds, "over_window"),
            limit=AUTOBANDIT_MOST_IN_WORST_CHANGING_WORLD,
            subject=subject,
            rival="tuned window",
            caption=f"Mean final regret of {subject} over that of the sliding window tuned in the same world.",
            name="yardstick",
        ),
        tables=(verdict_table(judgement.verdicts), world_table(judgement.worlds, heads, subject=subject)),
    )


AUTOBANDIT_YARDSTICK = Group(
    name="yardstick",
    title="AutoBandit and its yardstick",
    lead="What AutoBandit, with one setting and told nothing, is judged by. “Tuned here” are settings found for that "
    "very world on tuning seeds, “one setting” those found over all worlds; both are told kernel and noise. "
    "On real series nobody knows the noise, and all baselines take it for a tenth of half the reward range.",
    experiments=tuple(YARDSTICK.values()),
    judge=judge_yardstick,
    blocks=yardstick_blocks,
)
