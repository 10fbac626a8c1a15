"""All policies tuned alike, ranked in each world."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.plots.data import RankedRegret, ranked_regret
from driftbandits.plots.figures import ranking_figure, ranking_frame, ranking_key
from driftbandits.policies.algorithm import Family
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import number
from driftbandits.report.pictures import make_picture
from driftbandits.report.sections import Block
from driftbandits.report.worlds import experiment_note, policy_table
from driftbandits.showing import counted

CAPTION = (
    "Mean final regret with bars of one standard error, best on top, on a logarithmic axis. Marks say which family a "
    "policy belongs to; colours are those of all figures."
)


def ranking_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """The chapter of the comparison."""
    return rankings_named("comparison", context, experiments)


def sizes_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """The chapter of windows and discounts."""
    return rankings_named("sizes", context, experiments)


def rankings_named(name: str, context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One figure of all rankings with one table per experiment; `name` begins the names of file and anchors."""
    begun = context.begun(experiments)
    if not begun:
        return []
    families = _families(context, begun)
    panels = [ranked_regret(context.results.cells, e.id, title=e.title) for e in begun]
    frame = ranking_frame(panels)
    picture = make_picture(
        panels,
        lambda some, *, legend: ranking_figure(
            some, families=families, palette=context.palette, frame=frame, legend=legend
        ),
        _describe,
        key=ranking_key(families),
        caption=CAPTION,
        folder=context.figures,
        name=name,
    )
    tables = tuple(policy_table(context, e) for e in begun)
    notes = tuple(note for e in begun for note in experiment_note(context, e, named=True))
    return [
        Block(f"{name}-ranking", "Ranking", notes, picture, tables),
    ]


def _families(context: ReportContext, experiments: Sequence[Experiment]) -> dict[str, str]:
    """The family of every label, in the order of legends; those a user has made up come last."""
    found = {p.label: str(context.kind(e, p).family) for e in experiments for p in e.policies}
    order = dict.fromkeys([*Family, *found.values()])
    places = {family: place for place, family in enumerate(order)}
    return dict(sorted(found.items(), key=lambda entry: places[entry[1]]))


def _describe(panel: RankedRegret) -> str:
    best = "; ".join(f"{p} {number(float(m))}" for p, m in list(zip(panel.policies, panel.mean, strict=True))[:5])
    return f"Ranking of {counted(len(panel.policies), 'policy')} by final regret: {panel.title}. Best five: {best}."
