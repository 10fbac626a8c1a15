"""Real series, with their controls."""

from __future__ import annotations

from driftbandits.experiments.definitions.real_series import REAL
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.judging.real_series import judge_real_series

REAL_SERIES = Group(
    name="real",
    title="Real data",
    lead="Bandits made from real series. Replicates start at different rounds of the same series, so they overlap and "
    "their standard errors are too small. Turnover is the share of rounds in which another arm was played than in "
    "the round before.",
    experiments=tuple(REAL.values()),
    judge=judge_real_series,
    blocks="driftbandits.report.real_series:real_series_blocks",
)
