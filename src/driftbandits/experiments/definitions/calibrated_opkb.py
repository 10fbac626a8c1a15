"""What CalibratedOPKB is judged by: ADA-OPKB in every world, alarms where nothing changes, delays after one change.

Worlds: the suite and the paper's, against ADA-OPKB with tuned, published and proven constants, and AutoBandit. All but
AutoBandit, which asks for nothing, are told the kernel they are told in the suite.

Alarms: nothing ever changes, so every restart is false, and `false_alarm` bounds the share of runs that have one.
Rewards are light- and heavy-tailed and 0 or 1, and the length scale is four times too long or too short and believed.

Delays: one change halfway, of several kinds. Its size is by how much rewards move: that of the best arm when rewards
flip, those of all arms when the level shifts. Other kinds have none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from driftbandits.experiments.definitions.ids import (
    CALIBRATED_ALARMS_PREFIX,
    CALIBRATED_DELAYS_PREFIX,
    CALIBRATED_PAPER_PREFIX,
    CALIBRATED_PREFIX,
    YARDSTICK_PAPER_PREFIX,
)
from driftbandits.experiments.definitions.prior_knowledge import kernel_of
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    ADA_OPKB_THEORY,
    AUTOBANDIT,
    CALIBRATED_OPKB,
    CALIBRATED_OPKB_THEORY,
)
from driftbandits.experiments.definitions.seeds import EVALUATION_SEEDS
from driftbandits.experiments.definitions.specs import CLIP_REWARDS, HORIZON, Experiment, by_id
from driftbandits.experiments.definitions.suite import SUITE, suite_name
from driftbandits.experiments.definitions.yardstick import YARDSTICK

KERNEL_POLICIES = (CALIBRATED_OPKB, CALIBRATED_OPKB_THEORY, ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPKB_THEORY)

ALARM_SEEDS = tuple(range(200))
ALARM_DIMENSIONS = (2, 10)
DELAY_SEEDS = tuple(range(20))
DELAY_HORIZON = 6_000
DELAY_CHANGE = 3_000


@dataclass(frozen=True)
class StationaryCondition:
    """A stationary world: its title and settings, those of every policy in it, and a wrong length scale, if any."""

    title: str
    world: Mapping[str, Any] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)
    wrong_length_scale: float | None = None


STATIONARY_CONDITIONS: dict[str, StationaryCondition] = {
    "gaussian": StationaryCondition("Gaussian noise", {"noise": {"name": "gaussian", "sd": 0.1}}, CLIP_REWARDS),
    "student-t": StationaryCondition(
        "Student's t noise, 2.5 degrees of freedom",
        {"noise": {"name": "student_t", "scale": 0.1, "df": 2.5}},
        CLIP_REWARDS,
    ),
    "bernoulli": StationaryCondition(
        "rewards 0 or 1",
        {"noise": {"name": "bernoulli"}, "offset": 0.5, "peak": 0.4},
        {"reward_range": [0.0, 1.0]},
    ),
    "too-long": StationaryCondition("length scale 4 times too long", wrong_length_scale=0.8),
    "too-short": StationaryCondition("length scale 4 times too short", wrong_length_scale=0.05),
}
# The peak that gives a change of each size: a flip moves the best arm by 2 peak, a level all arms by peak / 2.
PEAKS_BY_SIZE: dict[str, dict[float, float]] = {
    "flip": {1.6: 0.8, 0.8: 0.4, 0.4: 0.2, 0.2: 0.1},
    "level": {0.4: 0.8, 0.2: 0.4, 0.1: 0.2, 0.05: 0.1},
}
KINDS_WITHOUT_SIZE = ("redraw", "partial", "hidden")


def _in_suite(world: Experiment) -> Experiment:
    informed = tuple(dataclasses.replace(policy, kernel=kernel_of(world)) for policy in KERNEL_POLICIES)
    return dataclasses.replace(world, id=CALIBRATED_PREFIX + suite_name(world), policies=(*informed, AUTOBANDIT))


def _of_paper(world: Experiment) -> Experiment:
    """The yardstick's, on all seeds that ADA-OPKB plays in the paper's figures."""
    name = CALIBRATED_PAPER_PREFIX + world.id.removeprefix(YARDSTICK_PAPER_PREFIX)
    return dataclasses.replace(world, id=name, policies=(*KERNEL_POLICIES, AUTOBANDIT), seeds=EVALUATION_SEEDS)


def _stationary(name: str, dimension: int) -> Experiment:
    condition = STATIONARY_CONDITIONS[name]
    policies = [CALIBRATED_OPKB]
    if condition.wrong_length_scale is not None:
        kernel = {"name": "rbf", "length_scale": condition.wrong_length_scale}
        given = {**CALIBRATED_OPKB.settings, "kernel": "given"}
        policies = [dataclasses.replace(CALIBRATED_OPKB, settings=given, kernel=kernel)]
    if name == "gaussian" and dimension == 2:
        policies.append(CALIBRATED_OPKB_THEORY)
    return Experiment(
        id=f"{CALIBRATED_ALARMS_PREFIX}{name}/d{dimension}",
        title=f"Nothing changes, {condition.title}, d = {dimension}",
        environment="switching",
        settings={"switches": [], **condition.world, "dimension": dimension, "horizon": HORIZON},
        policies=tuple(policies),
        seeds=ALARM_SEEDS,
        common=condition.common,
    )


def _one_change(kind: str, size: float | None = None) -> Experiment:
    peak = {} if size is None else {"peak": PEAKS_BY_SIZE[kind][size]}
    return Experiment(
        id=f"{CALIBRATED_DELAYS_PREFIX}{kind}" if size is None else f"{CALIBRATED_DELAYS_PREFIX}{kind}-{size:g}",
        title=f"One {kind}" if size is None else f"One {kind} by {size:g}",
        environment="switching",
        settings={"kind": kind, "switches": [DELAY_CHANGE], **peak, "dimension": 2, "horizon": DELAY_HORIZON},
        policies=(CALIBRATED_OPKB, ADA_OPKB, AUTOBANDIT),
        seeds=DELAY_SEEDS,
    )


CALIBRATED_GROUP: dict[str, Experiment] = by_id(
    (
        *map(_in_suite, SUITE.values()),
        *(_of_paper(world) for world in YARDSTICK.values() if world.id.startswith(YARDSTICK_PAPER_PREFIX)),
        *(_stationary(name, dimension) for dimension in ALARM_DIMENSIONS for name in STATIONARY_CONDITIONS),
        *(_one_change(kind, size) for kind, sizes in PEAKS_BY_SIZE.items() for size in sizes),
        *map(_one_change, KINDS_WITHOUT_SIZE),
    )
)
