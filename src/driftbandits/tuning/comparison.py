"""Tunes every policy of the comparison alike: same world, same tuning seeds, same number of points and runs.

Each policy is tuned on environment 1 (one switch) at d = 10 and at d = 2 apart, as the paper tunes; environment 2 and
the slow drift are then met with those settings. The result is the data file `experiments/tuned.json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from driftbandits.errors import InputError
from driftbandits.experiments.catalogue import DIMENSIONS, PolicySpec
from driftbandits.experiments.runner import progress_bar
from driftbandits.tuning.search import Space, World, count_runs, fixed_settings, search
from driftbandits.tuning.spaces import SPACES

RUNGS = ((32, 1), (8, 4), (2, 16))  # (points kept, tuning seeds played so far)


def tune_comparison(*, out: Path, labels: Sequence[str] = (), jobs: int = -1) -> None:
    """Search the spaces called `labels` (by default all) and write what was found into the file `out`."""
    unknown = [label for label in labels if label not in SPACES]
    if unknown:
        raise InputError(f"no space is called {unknown[0]!r}; known: {', '.join(SPACES)}")
    chosen = {label: SPACES[label] for label in (labels or SPACES)}
    found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    runs = count_runs(RUNGS, worlds=1)
    found["how"] = (
        f"driftbandits tune comparison: {RUNGS[0][0]} points, {runs} runs of environment 1 a policy and dimension"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    for dimension in DIMENSIONS:
        world = World("switching/1", {"dimension": dimension, "horizon": 10_000})
        for label, space in chosen.items():
            found.setdefault(f"d={dimension}", {})[label] = _tune_one(space, world, label, dimension, runs, jobs)
            out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print(f"settings of {len(chosen)} policies at d = {', '.join(map(str, DIMENSIONS))}: {out}")


def _tune_one(space: Space, world: World, label: str, dimension: int, runs: int, jobs: int) -> dict[str, Any]:
    total = runs if space.ranges else RUNGS[-1][1]
    with progress_bar(total, f"{label}, d = {dimension}") as advance:
        result = search(space, [world], RUNGS, jobs=jobs, progress=advance)
    return {"values": result.values, "regret_on_tuning_seeds": round(result.regret, 1)}


def tuned_specs(dimension: int) -> tuple[PolicySpec, ...]:
    """The policies of the comparison with the settings found for this dimension."""
    file = resources.files("driftbandits.experiments") / "tuned.json"
    if not file.is_file():
        raise InputError("experiments/tuned.json is missing; make it with: driftbandits tune comparison")
    data = json.loads(file.read_text())
    found = data[f"d={dimension}"]
    return tuple(
        PolicySpec(label, space.policy, fixed_settings(space, found[label]["values"]))
        for label, space in SPACES.items()
    )
