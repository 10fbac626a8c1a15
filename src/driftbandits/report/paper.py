"""The paper's figures under their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandits.experiments.definitions.ids import ENVIRONMENT_1, ENVIRONMENT_2, SLOW_COSINE, STATIONARY_COSINE
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.report.context import ReportContext
from driftbandits.report.sections import Block
from driftbandits.report.worlds import experiment_block

FIGURE_NUMBERS = {ENVIRONMENT_1: "1a", ENVIRONMENT_2: "1b", STATIONARY_COSINE: "2a", SLOW_COSINE: "2b"}


def figure_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One block per figure, in the order of their numbers."""
    begun = sorted(context.begun(experiments), key=lambda e: FIGURE_NUMBERS[e.id])
    return [experiment_block(context, e, title=f"Figure {FIGURE_NUMBERS[e.id]}. {e.title}") for e in begun]
