"""All policies tuned alike, ranked in each world."""

from __future__ import annotations

from collections.abc import Sequence

from driftbandits.experiments.definitions.specs import Experiment
from driftbandits.plots.data import RankedRegret, ranked_regret
from driftbandits.plots.figures import ranking_figure, ranking_frame
from driftbandits.report.context import ReportContext
from driftbandits.report.formats import number
from driftbandits.report.pictures import make_picture
from driftbandits.report.sections import Block
from driftbandits.report.worlds import experiment_note, policy_table

# Families by what a policy's registered name holds, the first that fits.
FAMILIES = (
    ("nothing to set", ("AutoBandit", "CalibratedOPKB")),
    ("optimisation (OPKB)", ("OPKB",)),
    ("neural", ("OPNN", "Neural")),
    ("Gaussian process", ("GPUCB",)),
    ("wrappers (MASTER, BOB)", ("Master", "BanditOverBandit")),
    ("linear", ("LinUCB", "LinearExp3")),
    ("plain, no features", ("SlidingWindowUCB", "DiscountedUCB", "GLRklUCB", "Exp3S", "Uniform")),
)
CAPTION = (
    "Mean final regret with bars of one standard error, best on top, on a logarithmic axis. Marks say which family a "
    "policy belongs to; colours are those of the other figures."
)


def family(name: str) -> str:
    """The family of a policy by its registered name.

    >>> family("SlidingWindowNeuralUCB"), family("TimeVaryingGPUCB"), family("mine.py:Mine")
    ('neural', 'Gaussian process', 'other')
    """
    return next((kind for kind, parts in FAMILIES if ":" not in name and any(p in name for p in parts)), "other")


def ranking_blocks(context: ReportContext, experiments: Sequence[Experiment]) -> list[Block]:
    """One figure of all rankings, then one table per experiment."""
    begun = context.begun(experiments)
    if not begun:
        return []
    names = {policy.label: policy.name for e in begun for policy in e.policies}
    order = [kind for kind, _ in FAMILIES] + ["other"]
    families = dict(sorted(((label, family(name)) for label, name in names.items()), key=lambda x: order.index(x[1])))
    panels = [ranked_regret(context.results.cells, e.id, title=e.title) for e in begun]
    frame = ranking_frame(panels, families)
    picture = make_picture(
        panels,
        lambda some: ranking_figure(some, families=families, palette=context.palette, frame=frame),
        _describe,
        caption=CAPTION,
        folder=context.figures,
        name="comparison",
    )
    tables = tuple(policy_table(context, e) for e in begun)
    notes = tuple(note for e in begun for note in experiment_note(context, e, named=True))
    return [
        Block("comparison-ranking", "Ranking", notes, picture),
        Block("comparison-tables", "All numbers", tables=tables),
    ]


def _describe(panel: RankedRegret) -> str:
    best = "; ".join(f"{p} {number(float(m))}" for p, m in list(zip(panel.policies, panel.mean, strict=True))[:5])
    return f"Ranking of {len(panel.policies)} policies by final regret: {panel.title}. Best five: {best}."
