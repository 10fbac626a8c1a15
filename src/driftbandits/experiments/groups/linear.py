"""Linear bandits: the worlds, and the linear half of Table 1."""

from __future__ import annotations

from driftbandits.experiments.definitions.linear import LINEAR, quick_linear_world
from driftbandits.experiments.definitions.linear_growth import LINEAR_GROWTH, quick_linear_point
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.judging.linear import judge_linear

LINEAR_BANDITS = Group(
    name="linear",
    title="Linear bandits",
    lead="Rewards that are linear in the arms, on a sphere (d = 5, 100 arms) and on a box with the paper’s "
    "discretisation (d = 2, error 0.1, 841 arms). ADA-OPKB has the linear kernel. Rivals play with the sizes of their "
    "theory, told how far theta moves, and with settings found by the same search on one switch.",
    experiments=tuple(LINEAR.values()),
    judge=judge_linear,
    blocks="driftbandits.report.linear:linear_blocks",
    quick=quick_linear_world,
    played="always",
)
LINEAR_TABLE_1 = Group(
    name="linear/growth",
    title="Table 1 for linear bandits: how fast regret grows",
    lead="Each row of the linear half of Table 1 against its own bound, in the rounds T, the segments L_T, the "
    "variation V_T and the dimension d. ADA-OPKB’s bounds, d √(L_T T) and d^(2/3) V_T^(1/3) T^(2/3), are those that "
    "nobody can beat but for logarithms. Rivals have the sizes of their theory.",
    experiments=tuple(LINEAR_GROWTH.values()),
    judge=judge_linear,
    blocks="driftbandits.report.linear:linear_growth_blocks",
    quick=quick_linear_point,
    played="always",
    anchor="linear-growth",
)
