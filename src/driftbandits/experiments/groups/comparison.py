"""All policies, tuned alike."""

from __future__ import annotations

from driftbandits.experiments.definitions.comparison import COMPARISON
from driftbandits.experiments.groups.group import Group

TUNED_COMPARISON = Group(
    name="comparison",
    title="All policies, tuned alike",
    lead="Every policy, each with settings found by the same search on environment 1 in the same dimension.",
    experiments=tuple(COMPARISON.values()),
    blocks="driftbandits.report.rankings:ranking_blocks",
)
