"""Table 1 of the paper: how fast regret grows."""

from __future__ import annotations

from driftbandits.experiments.definitions.growth import GROWTH, quick_point
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.judging.claims_judgement import judge_claims

GROWTH_OF_REGRET = Group(
    name="growth",
    title="Table 1: how fast regret grows",
    lead="The paper bounds the regret of ADA-OPKB by its rates in the rounds T, the segments L_T and the variation V_T "
    "(Table 1), and where nothing changes that of OPKB and OPNN. Along a sweep of one of them, with both axes "
    "logarithmic, a rate is a slope. Rivals have the sizes of their theory and bounds of their own.",
    experiments=tuple(GROWTH.values()),
    judge=judge_claims,
    blocks="driftbandits.report.sweeps:growth_blocks",
    quick=quick_point,
    played="always",
)
