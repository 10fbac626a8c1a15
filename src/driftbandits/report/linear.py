"""Linear bandits: rankings in every world, and slopes along the linear sweeps of Table 1."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandits.experiments.definitions.bounds import Sweep
from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.experiments.judging.linear import LinearJudgement
from driftbandits.plots.data import growth_panel
from driftbandits.plots.slopes import slopes_figure, slopes_frame
from driftbandits.report.context import ReportContext
from driftbandits.report.pictures import make_picture
from driftbandits.report.rankings import rankings_named
from driftbandits.report.sections import Block
from driftbandits.report.sweeps import describe_slopes, regret_table, slope_table, unfinished
from driftbandits.report.worlds import experiment_blocks

CAPTION = (
    "Slopes of log regret, mean over seeds with 95 % intervals. A policy whose dot and interval lie left of its bar "
    "grows no faster than its bound. Hollow dots tell variants of an algorithm apart."
)


def linear_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One figure of all rankings, then one table per world."""
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
    frame = slopes_frame(drawn)
    picture = make_picture(
        drawn,
        lambda some: slopes_figure(some, palette=context.palette, frame=frame),
        describe_slopes,
        caption=CAPTION,
        folder=context.figures,
        name="linear-growth",
    )
    tables = tuple(regret_table(context, sweep) for sweep in begun)
    return [
        Block(
            "linear-growth-slopes",
            "Slopes",
            unfinished(context, begun),
            picture,
            (slope_table(drawn, rate="minimax exponent"),),
        ),
        Block("linear-growth-regret", "Regret along each sweep", tables=tables),
    ]
