"""Bandits from real series, with their controls; start offsets are the replicates.

What a policy gains by adapting it must lose on the shuffled copy. Nothing is tuned on these series: policies keep the
settings found on environment 1 at d = 2, where points are as low-dimensional as here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import pandas as pd

from driftbandits import datasets
from driftbandits._util.markdown import csv
from driftbandits.datasets import REAL_PREFIX, REWARD_RANGES
from driftbandits.errors import InputError
from driftbandits.experiments.building import build_world
from driftbandits.experiments.results import Results
from driftbandits.experiments.specs import CLIP_REWARDS, Experiment, PolicySpec
from driftbandits.report.blocks import Block, ReportTable, TableEntry, columns, experiment_block
from reproduction.catalogue import ADA_OPKB, ADA_OPKB_PUBLISHED, AUTOBANDIT, by_id, tuned_spec
from reproduction.chapters import regret_entry
from reproduction.claims import Judgement
from reproduction.topic import Group, StudyContext

TUNED_POLICIES = (
    "GPUCB",
    "SW-GPUCB",
    "WGPUCB",
    "TV-GP-UCB",
    "GPUCB+MASTER",
    "D-UCB (plain)",
    "GLR-klUCB (plain)",
    "Uniform",
)
SERIES_POLICIES = (
    AUTOBANDIT,
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    *(PolicySpec(label, (found := tuned_spec(label, 2)).name, found.settings) for label in TUNED_POLICIES),
)
SERIES_TITLES = {
    "flights": "Flights: 30 destinations from New York, 2013",
    "digits": "Digits: 42 configurations of a classifier",
    "stocks": "Stocks: 36 of New York (negative control)",
}


def _experiment(name: str, copy: str) -> Experiment:
    observed = copy == "as observed"
    # the semi-real copy adds residuals to a smoothed truth, which may leave the recorded range
    clip = CLIP_REWARDS if copy == "semi-real" else {}
    return Experiment(
        id=f"{REAL_PREFIX}{name}" if observed else f"{REAL_PREFIX}{name}/{copy}",
        title=SERIES_TITLES[name] if observed else f"{SERIES_TITLES[name]}, {copy}",
        environment=f"{REAL_PREFIX}{name}",
        settings={"copy": copy},
        policies=SERIES_POLICIES,
        seeds=tuple(range(datasets.OFFSETS)),
        common={"reward_range": list(REWARD_RANGES[name]), **clip},
    )


REAL: dict[str, Experiment] = by_id(_experiment(name, copy) for name in SERIES_TITLES for copy in datasets.COPIES)


def is_real(experiment: Experiment) -> bool:
    """Whether its world is a real series."""
    return experiment.environment.startswith(REAL_PREFIX)


REFERENCE_COLUMNS = ("experiment", "seed", "reference", "shortfall")
BEST_OF_EVERY_ROUND = "per step"
BEST_FIXED_ARM = "fixed"


_REFERENCES: WeakKeyDictionary[Results, pd.DataFrame] = WeakKeyDictionary()  # they take seconds, and many ask


def references_of(results: Results) -> pd.DataFrame | None:
    """The `reference_table` of the real series among the experiments; None if there are none."""
    real = [experiment for experiment in results.experiments if is_real(experiment)]
    if real and results not in _REFERENCES:
        _REFERENCES[results] = reference_table(real)
    return _REFERENCES.get(results)


def reference_table(experiments: Sequence[Experiment]) -> pd.DataFrame:
    """By how much less than the best of every round each reference earns, one row per replicate and reference.

    It has the REFERENCE_COLUMNS. Regret against a reference is regret less its shortfall.
    """
    rows = []
    for experiment in experiments:
        if not is_real(experiment):
            raise InputError(f"{experiment.id!r} is not made from real data; known: {', '.join(REAL)}")
        for seed in experiment.seeds:
            world = build_world(experiment.environment, experiment.settings, seed)
            totals = datasets.benchmarks_of(world)
            most = totals.pop(BEST_OF_EVERY_ROUND)
            rows += [(experiment.id, seed, reference, most - total) for reference, total in totals.items()]
    return pd.DataFrame(rows, columns=list(REFERENCE_COLUMNS))


@dataclass(frozen=True, eq=False)
class RealSeriesJudgement(Judgement):
    """`references` is what `reference_table` gives; the page shows every policy against them."""

    references: pd.DataFrame

    @property
    def files(self) -> Mapping[str, str]:
        """The references."""
        return {"references.csv": csv(self.references)}


def judge_real_series(results: Results) -> RealSeriesJudgement | None:
    """What the references earn on the series that were played."""
    references = references_of(results)
    return None if references is None else RealSeriesJudgement(references)


def real_series_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """Figure and tables of each experiment on real data."""
    blocks = []
    for experiment in context.begun(experiments):
        block = experiment_block(context, experiment, turnover=True)
        against = reference_regret(context.runs(experiment), references_of(context.results))
        extra = (_reference_table(against, experiment),) if len(against) else ()
        blocks.append(dataclasses.replace(block, tables=(*block.tables, *extra)))
    return blocks


def reference_regret(runs: pd.DataFrame, references: pd.DataFrame | None) -> pd.DataFrame:
    """Mean regret of every policy against every reference: columns policy, reference, regret, standard_error.

    A reference's shortfall is what it earned less than the best arm of every step, so a run's regret against it is the
    run's regret less that. Negative: the policy earned more than the reference.
    """
    if references is None:
        return pd.DataFrame(columns=["policy", "reference", "regret", "standard_error"])
    lacking = [name for name in REFERENCE_COLUMNS if name not in references.columns]
    if lacking:
        raise InputError(f"references have no column {lacking[0]!r}; they need {', '.join(REFERENCE_COLUMNS)}")
    pairs = runs.merge(references[list(REFERENCE_COLUMNS)], on=["experiment", "seed"])
    pairs = pairs.assign(against=pairs["regret"] - pairs["shortfall"])
    grouped = pairs.groupby(["policy", "reference"], sort=False)["against"].agg(["mean", "sem"]).reset_index()
    return grouped.rename(columns={"mean": "regret", "sem": "standard_error"})


def _reference_table(against: pd.DataFrame, experiment: Experiment) -> ReportTable:
    names = list(dict.fromkeys(against["reference"]))
    found = {(row["policy"], row["reference"]): row for row in against.to_dict("records")}
    rows = []
    for policy in dict.fromkeys(against["policy"]):
        rows.append((TableEntry(str(policy)), *(regret_entry(found.get((policy, name))) for name in names)))
    return ReportTable(
        f"Final regret ± s.e. against references (negative: earned more than the reference): {experiment.title}",
        columns("policy", *map(str, names)),
        tuple(rows),
    )


REAL_SERIES = Group(
    name="real",
    title="Real data",
    lead="Bandits made from real series. Replicates start at different rounds of the same series, so they overlap and "
    "their standard errors are too small. Turnover is the share of rounds in which another arm was played than in "
    "the round before.",
    experiments=tuple(REAL.values()),
    judge=judge_real_series,
    blocks=real_series_blocks,
)
