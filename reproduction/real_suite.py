"""AutoBandit on real series, beside policies that nobody has tuned (the group `series`).

Every policy has its defaults, the window alone a length that has none: a tenth of the rounds. Series are split in two,
by name: AutoBandit may be developed on the first, and is judged by the others, which are played once it stands.

A series counts by the regret over that of the rival that is best there; over series by the geometric mean. Replicates
begin at different rounds of the same series, so they overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from driftbandits import datasets, policies
from driftbandits._util.markdown import csv, markdown
from driftbandits.datasets import REAL_PREFIX, REWARD_RANGES
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import Experiment, PolicySpec
from driftbandits.report.blocks import Block, ReportTable, TableEntry, columns, number
from driftbandits.types import Floats
from reproduction.catalogue import AUTOBANDIT, by_id
from reproduction.chapters import rankings_named
from reproduction.claims import Judgement, geometric_mean, shared_runs
from reproduction.topic import Group, StudyContext

SERIES_PREFIX = "series/"
DEVELOPMENT = ("flights", "digits", "on-time", "temperature", "pressure")
JUDGED = ("stocks", "made-up", "wind", "humidity")
TITLES = {
    "flights": "Flights: delays by destination",
    "digits": "Digits: learning rates of a classifier",
    "on-time": "On time: carriers and airports",
    "temperature": "Temperature: forecasts of the next hour",
    "pressure": "Air pressure: forecasts of the next hour",
    "stocks": "Stocks of New York (negative control)",
    "made-up": "Made up: minutes, by carrier and airport",
    "wind": "Wind speed: forecasts of the next hour",
    "humidity": "Humidity: forecasts of the next hour",
}
USUAL_DISCOUNT = 0.999  # of Thompson sampling by arm, which has none: that of DiscountedUCB


def _rivals(rounds: int) -> tuple[PolicySpec, ...]:
    window, thompson = {"window": rounds // 10}, {"discount": USUAL_DISCOUNT}
    kinds: tuple[tuple[type[policies.Policy], dict[str, float]], ...] = (
        (policies.GPUCB, {}),
        (policies.SlidingWindowGPUCB, dict(window)),
        (policies.EventTriggeredGPUCB, {}),
        (policies.TimeVaryingGPUCB, {}),
        (policies.DiscountedUCB, {}),
        (policies.ThompsonSampling, dict(thompson)),
    )
    return tuple(PolicySpec(policies.policy_label(kind), kind.__name__, settings) for kind, settings in kinds)


# Rounds of a replicate: written down, so that experiments are known without the data.
ROUNDS = {
    "flights": 1642,
    "digits": 2100,
    "on-time": 2740,
    "temperature": 6406,
    "pressure": 5704,
    "stocks": 4240,
    "made-up": 2734,
    "wind": 6406,
    "humidity": 6402,
}
REAL_SUITE: dict[str, Experiment] = by_id(
    Experiment(
        id=f"{SERIES_PREFIX}{name}",
        title=TITLES[name],
        environment=f"{REAL_PREFIX}{name}",
        settings={"copy": "as observed"},
        policies=(AUTOBANDIT, *_rivals(ROUNDS[name])),
        seeds=tuple(range(datasets.OFFSETS)),
        common={"reward_range": list(REWARD_RANGES[name])},
    )
    for name in (*DEVELOPMENT, *JUDGED)
)


@dataclass(frozen=True, eq=False)
class RealSuiteJudgement(Judgement):
    """`regrets` has the mean final regret, one row per series and one column per policy, AutoBandit's worst loss first;
    `over_best` is each over the least of the rivals'.
    """

    regrets: pd.DataFrame
    over_best: pd.DataFrame

    def means(self, names: Sequence[str] = (*DEVELOPMENT, *JUDGED)) -> pd.Series[float]:
        """Geometric mean of every policy over those of these series that were played; the best first."""
        rows = self.over_best.loc[[name for name in self.over_best.index if name in names]]
        return rows.apply(geometric_mean).sort_values(kind="stable")

    def markdown(self) -> str:
        """The ratios as a table to read."""
        head = " | ".join(markdown(str(name)) for name in self.over_best.columns)
        lines = [f"| series | {head} |", f"|---|{'---:|' * len(self.over_best.columns)}"]
        rows = [
            *((str(name), row) for name, row in self.over_best.iterrows()),
            ("**development**", self.means(DEVELOPMENT).reindex(self.over_best.columns)),
            ("**judged**", self.means(JUDGED).reindex(self.over_best.columns)),
            ("**all**", self.means().reindex(self.over_best.columns)),
        ]
        lines += [f"| {name} | {' | '.join(f'{value:.2f}' for value in row)} |" for name, row in rows]
        return "\n".join(lines) + "\n"

    @property
    def files(self) -> dict[str, str]:
        """The table to read, and regrets."""
        return {"series.md": self.markdown(), "series.csv": csv(self.regrets.reset_index(names="series"))}


def judge_real_suite(results: Results) -> RealSuiteJudgement | None:
    """Every policy on the series that AutoBandit has played, beside the best of its rivals there."""
    runs = shared_runs(results.cells, SERIES_PREFIX, AUTOBANDIT.label)
    means = runs.pivot_table(index="experiment", columns="policy", values="regret", sort=False)
    means = means.dropna()
    rivals = [name for name in means.columns if name != AUTOBANDIT.label]
    if means.empty or not rivals:
        return None
    means.index = pd.Index([str(name).removeprefix(SERIES_PREFIX) for name in means.index])
    over_best = means.div(means[rivals].min(axis=1), axis=0)
    order = over_best[AUTOBANDIT.label].sort_values(ascending=False, kind="stable").index
    return RealSuiteJudgement(means.loc[order], over_best.loc[order, [AUTOBANDIT.label, *rivals]])


def real_suite_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """All ratios with losses first, then a ranking per series."""
    judgement = context.judgements.of(RealSuiteJudgement)
    rankings = rankings_named("series", context, experiments)
    if judgement is None:
        return rankings
    heads = [str(name) for name in judgement.over_best.columns]
    rows = [(str(name), row.to_numpy(dtype=float)) for name, row in judgement.over_best.iterrows()]
    rows += [("geometric mean", judgement.means().reindex(heads).to_numpy(dtype=float))]
    table = ReportTable(
        "Mean final regret over that of the best rival, AutoBandit’s losses first",
        columns("series", *heads),
        tuple(_row(name, values) for name, values in rows),
    )
    return [Block("series-judged", "Over the best rival", tables=(table,), unfolded=True), *rankings]


def _row(name: str, values: Floats) -> tuple[TableEntry, ...]:
    entries = (TableEntry(f"{value:.2f}" if value < 100 else number(value)) for value in values.tolist())
    return (TableEntry(name), *entries)


REAL_SUITE_GROUP = Group(
    name="series",
    title="Real series, nothing tuned",
    lead="AutoBandit beside policies with their defaults (the window has a tenth of the rounds) on bandits made from "
    "real series. Replicates start at different rounds of the same series, so they overlap and their standard errors "
    "are too small.",
    experiments=tuple(REAL_SUITE.values()),
    judge=judge_real_suite,
    blocks=real_suite_blocks,
)
