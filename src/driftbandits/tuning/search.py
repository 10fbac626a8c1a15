"""Search by successive halving over points fixed beforehand, on tuning seeds only.

The points are a scrambled Sobol sequence in the policy's space and perhaps its default, the same on every machine;
after every rung the better quarter goes on with more seeds. Nothing depends on timing or on the number of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import qmc

from driftbandits.experiments.catalogue import TUNING_SEEDS, PolicySpec
from driftbandits.experiments.runner import Cell, run_cells

Rungs = Sequence[tuple[int, int]]  # (points kept, tuning seeds played so far)


@dataclass(frozen=True)
class Space:
    """What is searched: names with the ends of their ranges (in logarithms), and how values become settings."""

    policy: str
    ranges: Mapping[str, tuple[float, float]]
    settings: Callable[[Mapping[str, float]], dict[str, Any]]


@dataclass(frozen=True)
class World:
    """A world to be tuned on, by registered name."""

    environment: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """The best point (None stands for the policy's default), its mean regret, and every point's score."""

    values: dict[str, float] | None
    regret: float
    table: pd.DataFrame


def trial_points(space: Space, count: int, *, default: bool = True) -> list[dict[str, float] | None]:
    """`count` points of the space, rounded to three digits; the first may be the policy's default (None)."""
    if not space.ranges:
        return [None]
    sobol = qmc.Sobol(len(space.ranges), scramble=True, rng=np.random.default_rng(0))
    unit = sobol.random_base2(int(np.ceil(np.log2(count))))[: count - default]
    low, high = np.log(np.array(list(space.ranges.values()), dtype=np.float64)).T
    values = np.exp(low + unit * (high - low))
    rounded = [{n: float(f"{v:.3g}") for n, v in zip(space.ranges, row, strict=True)} for row in values]
    return [None, *rounded] if default else [*rounded]


def count_runs(rungs: Rungs, worlds: int) -> int:
    """Runs that a search of these rungs takes."""
    total, played = 0, 0
    for keep, seeds in rungs:
        total += keep * (seeds - played) * worlds
        played = seeds
    return total


def search(
    space: Space,
    worlds: Sequence[World],
    rungs: Rungs,
    *,
    default: bool = True,
    jobs: int = -1,
    progress: Callable[[], None] | None = None,
) -> Found:
    """Find the point with the least mean final regret over all worlds and tuning seeds.

    `default` puts the policy's default among the points; leave it out where the search is to find that default.
    """
    points = trial_points(space, rungs[0][0], default=default)
    scores: dict[int, list[float]] = {number: [] for number in range(len(points))}
    alive = list(scores)
    played = 0
    for keep, seeds in rungs:
        alive = sorted(alive, key=lambda number: _mean(scores[number]))[:keep]
        cells = [
            Cell("tune", world.environment, world.settings, _spec(space, number, points[number]), seed)
            for number in alive
            for seed in TUNING_SEEDS[played:seeds]
            for world in worlds
        ]
        for result in run_cells(cells, jobs=jobs, progress=progress):
            scores[int(result.cell.policy.label)].append(float(result.regret[-1]))
        played = seeds
    best = min(alive, key=lambda number: _mean(scores[number]))
    return Found(values=points[best], regret=_mean(scores[best]), table=_table(points, scores))


def _spec(space: Space, number: int, values: dict[str, float] | None) -> PolicySpec:
    return PolicySpec(str(number), space.policy, fixed_settings(space, values))


def fixed_settings(space: Space, values: Mapping[str, float] | None) -> dict[str, Any]:
    """Settings of one point of a space; None is the default, which still may name its base."""
    return space.settings(values or {})


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _table(points: list[dict[str, float] | None], scores: dict[int, list[float]]) -> pd.DataFrame:
    rows = [
        {"point": number, **(point or {}), "runs": len(scores[number]), "regret": _mean(scores[number])}
        for number, point in enumerate(points)
    ]
    return pd.DataFrame(rows).sort_values(["runs", "regret"], ascending=[False, True])
