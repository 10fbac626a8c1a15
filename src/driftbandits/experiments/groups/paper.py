"""The paper's figures, and the same worlds in the dimensions it does not have."""

from __future__ import annotations

from driftbandits.experiments.definitions.paper import FIGURES, OTHER_DIMENSIONS
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.judging.claims_judgement import judge_claims

PAPER_FIGURES = Group(
    name="paper",
    title="The paper’s figures",
    lead="The worlds of the paper’s figures, as published (d = 10; the stationary bandit d = 8). Solid lines are the "
    "algorithms as the paper’s text has them and rivals tuned by an equal search; dashed lines are the published "
    "settings.",
    experiments=tuple(FIGURES.values()),
    judge=judge_claims,
    blocks="driftbandits.report.paper:figure_blocks",
    played="always",
    anchor="figures",
)
PAPER_IN_OTHER_DIMENSIONS = tuple(
    Group(
        name=f"paper/d{d}",
        title=f"The same worlds at d = {d}",
        lead="At d = 10 the kernel matrix is nearly the identity: no arm tells much about another, so the paper’s "
        f"worlds hardly test a kernel. Here are the same worlds at d = {d}, where it matters. ADA-OPNN plays at "
        "infinite width, where its features never move.",
        experiments=tuple(members.values()),
        judge=judge_claims,
        played="always",
        anchor=f"d{d}",
    )
    for d, members in OTHER_DIMENSIONS.items()
)
