"""How the default constants of ADA-OPKB were found: `make tune`.

Scrambled Sobol points in the logarithms of sigma and c0 to c4, fixed beforehand, play the paper's environment 1 at
d = 10 (as published) and at d = 2 (where the kernel matters) on tuning seeds. After
every rung the better quarter goes on with more seeds. The score is the mean final regret over both. Environment 2 is never touched.

Budget: 512 points and 4,768 runs of 10,000 rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import qmc

from driftbandits.experiments.catalogue import TUNING_SEEDS, PolicySpec
from driftbandits.experiments.runner import Cell, progress_bar, run_cells
from driftbandits.policies import Constants

POINTS = 512
RANGES = {  # spread around the paper's grid where block sizes stay usable at 10,000 rounds
    "sigma": (1.0, 1000.0),
    "c0": (0.1, 20.0),
    "c1": (0.01, 2.0),
    "c2": (0.1, 20.0),
    "c3": (0.005, 0.5),
    "c4": (0.005, 5.0),
}
RUNGS = ((512, 2), (128, 6), (32, 22), (8, 64))  # (points kept, tuning seeds played so far)
DIMENSIONS = (10, 2)


def trial_constants() -> list[Constants]:
    """The points to try, the same on every machine."""
    sobol = qmc.Sobol(len(RANGES), scramble=True, rng=np.random.default_rng(0))
    unit = sobol.random(POINTS)
    low, high = np.log(np.array(list(RANGES.values()))).T
    values = np.exp(low + unit * (high - low))
    return [
        Constants(**{name: float(f"{value:.3g}") for name, value in zip(RANGES, row, strict=True)}) for row in values
    ]


def trial_cells(number: int, constants: Constants, seeds: Sequence[int]) -> list[Cell]:
    """The runs of one point on these tuning seeds."""
    policy = PolicySpec(str(number), "AdaOPKB", {"constants": constants})
    return [
        Cell("tune", "switching/1", {"dimension": dimension, "horizon": 10_000}, policy, seed)
        for seed in seeds
        for dimension in DIMENSIONS
    ]


def tune(*, out: Path, jobs: int = -1) -> Constants:
    """Search, write every point's score to `out`, print the best and give it."""
    points = trial_constants()
    scores: dict[int, list[float]] = {number: [] for number in range(len(points))}
    alive = list(scores)
    played = 0
    for keep, seeds in RUNGS:
        alive = sorted(alive, key=lambda number: _mean(scores[number]))[:keep]
        fresh = TUNING_SEEDS[played:seeds]
        cells = [cell for number in alive for cell in trial_cells(number, points[number], fresh)]
        with progress_bar(len(cells), f"{len(alive)} points, seeds {played} to {seeds - 1}") as advance:
            for result in run_cells(cells, jobs=jobs, progress=advance):
                scores[int(result.cell.policy.label)].append(float(result.regret[-1]))
        played = seeds
    best = min(alive, key=lambda number: _mean(scores[number]))
    out.mkdir(parents=True, exist_ok=True)
    _score_table(points, scores).to_csv(out / "constants.csv", index=False)
    print(f"best of {len(points)} points: {points[best]!r}, mean regret {_mean(scores[best]):.1f}")
    print(f"every point: {out / 'constants.csv'}")
    return points[best]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _score_table(points: list[Constants], scores: dict[int, list[float]]) -> pd.DataFrame:
    rows = [
        {
            **{name: getattr(point, name) for name in RANGES},
            "runs": len(scores[number]),
            "regret": _mean(scores[number]),
            "regret_d10": _mean(scores[number][::2]),
            "regret_d2": _mean(scores[number][1::2]),
        }
        for number, point in enumerate(points)
    ]
    return pd.DataFrame(rows).sort_values(["runs", "regret"], ascending=[False, True])
