"""Every policy with the settings found for it by the same search, on the worlds of the paper at d = 10 and d = 2."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandits.experiments.seeds import EVALUATION
from driftbandits.experiments.specs import HORIZON, Experiment
from driftbandits.report.blocks import Block
from reproduction.catalogue import by_id, tuned_specs
from reproduction.chapters import rankings_named
from reproduction.paper import ENVIRONMENT_1, ENVIRONMENT_2, SLOW_COSINE
from reproduction.topic import Group, StudyContext

COMPARISON: dict[str, Experiment] = by_id(
    Experiment(
        id=f"comparison/{name}/d{dimension}",
        title=f"{title}, d = {dimension}",
        environment=name,
        settings={"dimension": dimension, "horizon": HORIZON},
        policies=tuned_specs(dimension),
        seeds=EVALUATION.take(25),
    )
    for dimension in (10, 2)
    for name, title in {
        ENVIRONMENT_1: "One switch",
        ENVIRONMENT_2: "Two switches",
        SLOW_COSINE: "Slow drift",
    }.items()
)


def ranking_blocks(context: StudyContext, experiments: Sequence[Experiment]) -> list[Block]:
    """The chapter of the comparison."""
    return rankings_named("comparison", context, experiments)


TUNED_COMPARISON = Group(
    name="comparison",
    title="All policies, tuned alike",
    lead="Every policy, each with settings found by the same search on environment 1 in the same dimension.",
    experiments=tuple(COMPARISON.values()),
    blocks=ranking_blocks,
)
