"""The paper's figures, the same worlds in the dimensions it does not have, and the sizes it was tuned to."""

from __future__ import annotations

from driftbandits.experiments.definitions.best_sizes import BEST_SIZES
from driftbandits.experiments.definitions.paper import FIGURES, OTHER_DIMENSIONS
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.judging.claims_judgement import judge_claims

PAPER_FIGURES = Group(
    name="paper",
    title="The paper’s figures",
    lead="The worlds of the paper’s figures (d = 10; the stationary bandit d = 8). Algorithms stand as the paper’s "
    "text has them, rivals as an equal search tuned them; “published” is what the authors ran. AutoBandit and "
    "CalibratedOPKB go beyond the paper.",
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
PAPER_SIZES = Group(
    name="paper/sizes",
    title="The sizes found on environment 1",
    lead="The paper calls a window of 3,000 and a discount of 0.9995 the best on environment 1. Here are those of "
    "its grids on tuning seeds, which no figure uses.",
    experiments=tuple(BEST_SIZES.values()),
    judge=judge_claims,
    blocks="driftbandits.report.rankings:sizes_blocks",
    played="always",
    anchor="sizes",
)
