"""A wider suite of worlds: every kind of change and of noise, at d = 10, 3 and 2.

Every policy plays with the settings found for it by equal search on environment 1 in the same dimension, so all other
worlds are new to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import CLIP_REWARDS, HORIZON, Experiment, PolicySpec
from driftbandits.report.blocks import NOTHING, Block, ReportTable, TableEntry, columns, experiment_note, number
from reproduction.catalogue import by_id, tuned_spec
from reproduction.paper import SLOW_COSINE
from reproduction.topic import Group, StudyContext

SUITE_PREFIX = "suite/"
STATIONARY_PREFIX = "stationary/"  # after the prefix of a group: worlds of the suite in which nothing changes
SUITE_SEEDS = EVALUATION.take(10)
SUITE_DIMENSIONS = (10, 3, 2)
SUITE_POLICIES = (
    "ADA-OPKB",
    "GPUCB",
    "SW-GPUCB",
    "TV-GP-UCB",
    "GPUCB+MASTER",
    "ET-GP-UCB",
    "DAL-GP-UCB",
    "GLR-klUCB (plain)",
    "Uniform",
)


def _switches(count: int) -> list[int]:
    return [HORIZON * k // (count + 1) for k in range(1, count + 1)]


def _tides(periods: int) -> list[list[float]]:
    """Phase that rises by half a turn and falls back, `periods` times."""
    half = HORIZON // (2 * periods)
    return [[half * k, math.pi * (k % 2)] for k in range(2 * periods + 1)]


# name: (title, environment, its settings)
SUITE_WORLDS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "stationary": ("Stationary", "switching", {"switches": []}),
    **{
        f"{kind}-{count}": (
            f"{count} {kind}{'s' if count > 1 else ''}",
            "switching",
            {"kind": kind, "switches": _switches(count)},
        )
        for kind in ("flip", "redraw")
        for count in (1, 3, 10)
    },
    "partial-3": ("Three partial changes", "switching", {"kind": "partial", "switches": _switches(3)}),
    "hidden-3": ("Three hidden changes", "switching", {"kind": "hidden", "switches": _switches(3)}),
    "level-3": ("Three level shifts of all arms", "switching", {"kind": "level", "switches": _switches(3)}),
    "slow": ("Slow drift", SLOW_COSINE, {}),
    "forgetting": ("Random drift", "forgetting", {}),
    "periodic": ("Periodic drift", "cosine", {"size": 100, "phase": _tides(4)}),
    "noisy": (
        "Two redraws, noise 0.5",
        "switching",
        {"kind": "redraw", "switches": _switches(2), "noise": {"name": "gaussian", "sd": 0.5}},
    ),
    "heavy-tails": (
        "Two redraws, heavy tails",
        "switching",
        {"kind": "redraw", "switches": _switches(2), "noise": {"name": "student_t", "scale": 0.1, "df": 2.5}},
    ),
    "mismatched": ("Two redraws, wrong kernel", "switching", {"kind": "redraw", "switches": _switches(2)}),
}
# What policies are told in place of the world's own kernel.
WRONG_KERNELS = {"mismatched": {"name": "matern", "length_scale": 0.05, "nu": 0.5}}
UNBOUNDED_WORLDS = ("noisy", "heavy-tails")  # rewards can leave [-1, 1], so policies clip


def _policy(label: str, dimension: int, kernel: Mapping[str, Any] | None) -> PolicySpec:
    found = tuned_spec(label, dimension)
    return PolicySpec(label, found.name, found.settings, kernel)


SUITE: dict[str, Experiment] = by_id(
    Experiment(
        id=f"{SUITE_PREFIX}{name}/d{dimension}",
        title=f"{title}, d = {dimension}",
        environment=environment,
        settings={**settings, "dimension": dimension, "horizon": HORIZON},
        policies=tuple(_policy(label, dimension, WRONG_KERNELS.get(name)) for label in SUITE_POLICIES),
        seeds=SUITE_SEEDS,
        common=CLIP_REWARDS if name in UNBOUNDED_WORLDS else {},
    )
    for dimension in SUITE_DIMENSIONS
    for name, (title, environment, settings) in SUITE_WORLDS.items()
)


def suite_name(world: Experiment) -> str:
    """What a suite world is called in files and in other groups.

    >>> suite_name(SUITE["suite/flip-3/d2"])
    'flip-3/d2'
    """
    return world.id.removeprefix(SUITE_PREFIX)


# A regret up to so many times the best one has the mark heat-0, heat-1, ...; more than the last has heat-6.
HEAT_STEPS = (1.1, 1.5, 2.0, 4.0, 8.0, 16.0)


def suite_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One table per dimension, the best policy over all worlds first."""
    blocks = []
    for part in dict.fromkeys(_dimension(e.id) for e in experiments):
        here = context.begun([e for e in experiments if _dimension(e.id) == part])
        if not here:
            continue
        notes = tuple(note for e in here for note in experiment_note(context, e, named=True))
        title = f"d = {part.removeprefix('d')}" if part else "Worlds"
        blocks.append(
            Block(
                f"suite-{part or 'worlds'}", title, notes, tables=(_suite_table(context, here, title),), unfolded=True
            )
        )
    return blocks


def regret_matrix(summary: pd.DataFrame, experiments: Sequence[Experiment]) -> pd.DataFrame:
    """Mean final regret, one row per experiment and one column per policy, the least geometric mean first."""
    ids = [experiment.id for experiment in experiments]
    here = summary[summary["experiment"].isin(ids)]
    table = here.pivot(index="experiment", columns="policy", values="regret").reindex(ids)
    order = geometric_means(table).sort_values(kind="stable", na_position="last").index
    return table[order]


def geometric_means(table: pd.DataFrame) -> pd.Series[float]:
    """Geometric mean of every column, over the rows in which all columns have a positive number."""
    whole = table.dropna()
    whole = whole[(whole > 0).all(axis=1)]
    return np.exp(np.log(whole).mean()) if len(whole) else pd.Series(math.nan, index=table.columns)


def heat(ratio: float) -> int:
    """Which step of the colour scale a regret has that is `ratio` times the best one.

    >>> [heat(x) for x in (1.0, 1.2, 3.0, 100.0)]
    [0, 1, 3, 6]
    """
    return sum(ratio > step for step in HEAT_STEPS)


def _suite_table(context: StudyContext, experiments: Sequence[Experiment], title: str) -> ReportTable:
    table = regret_matrix(context.results.summary, experiments)
    best = table.min(axis=1)
    rows = []
    for experiment in experiments:
        regrets = table.loc[experiment.id].to_numpy(dtype=np.float64)
        name = experiment.title.removesuffix(f", {title}")
        rows.append((TableEntry(name), *(_entry(float(r), float(np.nanmin(regrets))) for r in regrets)))
    means = geometric_means(table)
    relative = geometric_means(table.div(best, axis=0))
    foot = (
        (TableEntry("geometric mean over worlds"), *(TableEntry(number(float(m))) for m in means)),
        (
            TableEntry("… of regret over the best"),
            *(TableEntry(_times(float(r)), marks=_mark(float(r))) for r in relative),
        ),
    )
    steps = ", ".join(f"{step:g}" for step in HEAT_STEPS)
    caption = f"Mean final regret, {title}; darker in steps at × {steps}"
    return ReportTable(caption, columns("world", *map(str, table.columns)), tuple(rows), foot)


def _entry(regret: float, best: float) -> TableEntry:
    if math.isnan(regret):
        return TableEntry(NOTHING)
    ratio = regret / best if best > 0 else math.nan
    lead = " best" if regret == best else ""
    return TableEntry(number(regret), "" if lead else _times(ratio), _mark(ratio) + lead)


def _times(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"× {ratio:.2f}" if ratio < 10 else f"× {ratio:,.0f}"


def _mark(ratio: float) -> str:
    return "" if math.isnan(ratio) else f"heat-{heat(ratio)}"


def _dimension(name: str) -> str:
    last = name.rpartition("/")[2]
    return last if last[:1] == "d" and last[1:].isdigit() else ""


SUITE_OF_WORLDS = Group(
    name="suite",
    title="A wider suite of worlds",
    lead="A wider range of worlds. Every policy keeps the settings found for it on environment 1, so most worlds are "
    "new to it. Below each regret: how many times the best one of its world it is. Darker is worse, the best is bold. "
    "Means are over worlds that all policies have played.",
    experiments=tuple(SUITE.values()),
    blocks=suite_blocks,
)
