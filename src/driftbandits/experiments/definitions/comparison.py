"""Every policy with the settings found for it by the same search, on the worlds of the paper at d = 10 and d = 2."""

from __future__ import annotations

from driftbandits.experiments.definitions.ids import ENVIRONMENT_1, ENVIRONMENT_2, SLOW_COSINE
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, by_id
from driftbandits.experiments.definitions.tuned_settings import tuned_specs

COMPARISON: dict[str, Experiment] = by_id(
    Experiment(
        id=f"comparison/{name}/d{dimension}",
        title=f"{title}, d = {dimension}",
        environment=name,
        settings={"dimension": dimension, "horizon": HORIZON},
        policies=tuned_specs(dimension),
    )
    for dimension in (10, 2)
    for name, title in {
        ENVIRONMENT_1: "One switch",
        ENVIRONMENT_2: "Two switches",
        SLOW_COSINE: "Slow drift",
    }.items()
)
