"""Linear bandits: rankings in every world, and slopes along the linear sweeps of Table 1."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandits.experiments.definitions.bounds import Sweep
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.linear import LinearJudgement
from driftbandits.plots.data import growth_panel
from driftbandits.report.context import ReportContext
from driftbandits.report.rankings import rankings_named
from driftbandits.report.sections import Block
from driftbandits.report.sweeps import SLOPES_CAPTION, regret_table, slope_table, slopes_picture, unfinished
from driftbandits.report.worlds import experiment_blocks


def linear_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One figure of all rankings, with one table per world."""
    return rankings_named("linear", context, experiments)


def linear_growth_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """The sweeps that were measured; single points that no sweep holds stand for themselves."""
    judgement = context.judgements.of(LinearJudgement)
    sweeps = () if judgement is None else judgement.sweeps
    swept = {e.id for sweep in sweeps for e in sweep.experiments}
    single = [e for e in experiments if e.id not in swept]
    return [*_sweep_blocks(context, sweeps), *experiment_blocks(context, single)]


def _sweep_blocks(context: ReportContext, sweeps: Sequence[Sweep]) -> list[Block]:
    begun = [sweep for sweep in sweeps if context.begun(sweep.experiments)]
    panels = [growth_panel(context.results.cells, sweep) for sweep in begun]
    drawn = [panel for panel in panels if panel.curves]
    if not drawn:
        return []
    picture = slopes_picture(context, drawn, caption=SLOPES_CAPTION, name="linear-growth")
    tables = tuple(regret_table(context, sweep) for sweep in begun)
    return [
        Block(
            "linear-growth-slopes",
            "Slopes, and what the bounds allow",
            unfinished(context, begun),
            picture,
            (slope_table(drawn, rate="minimax exponent"),),
        ),
        Block("linear-growth-regret", "Regret along each sweep", tables=tables),
    ]
