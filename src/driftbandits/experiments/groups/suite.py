"""The suite of worlds."""

from __future__ import annotations

from driftbandits.experiments.definitions.suite import SUITE
from driftbandits.experiments.groups.group import Group

SUITE_OF_WORLDS = Group(
    name="suite",
    title="A wider suite of worlds",
    lead="A wider range of worlds. Every policy keeps the settings found for it on environment 1, so most worlds are "
    "new to it. Below each regret: how many times the best one of its world it is. Darker is worse, the best is bold. "
    "Means are over worlds that all policies have played.",
    experiments=tuple(SUITE.values()),
    blocks="driftbandits.report.suite:suite_blocks",
)
