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

from driftbandits.experiments.definitions.autobandit import AUTO
from driftbandits.experiments.definitions.prior_knowledge import kernel_of
from driftbandits.experiments.definitions.specs import EVALUATION_SEEDS, Experiment, PolicySpec
from driftbandits.experiments.definitions.suite import HORIZON, SUITE
from driftbandits.experiments.definitions.yardstick import ADA_OPKB, ADA_OPKB_PUBLISHED, YARDSTICK
from driftbandits.experiments.definitions.yardstick import PAPER as YARDSTICK_PAPER

PREFIX = "calibrated/"
PAPER = "calibrated/paper/"
ALARMS = "calibrated/alarms/"
DELAYS = "calibrated/delays/"
LABEL = "CalibratedOPKB"
CALIBRATED = PolicySpec(LABEL, "CalibratedOPKB")
THEORY_MODE = PolicySpec(f"{LABEL} (theory mode)", "CalibratedOPKB", {"mode": "theory"})
# The optimal design for 4,000 to 8,000 of 10,000 rounds, by dimension, then one law to the end.
ADA_OPKB_THEORY = PolicySpec("ADA-OPKB (theory constants)", "AdaOPKB", {"constants": "theory"})
KERNEL_POLICIES = (CALIBRATED, THEORY_MODE, ADA_OPKB, ADA_OPKB_PUBLISHED, ADA_OPKB_THEORY)

ALARM_SEEDS = tuple(range(200))
ALARM_DIMENSIONS = (2, 10)
DELAY_SEEDS = tuple(range(20))
DELAY_HORIZON = 6_000
DELAY_CHANGE = 3_000


@dataclass(frozen=True)
class Condition:
    """A stationary world: its title and settings, those of every policy in it, and a length scale that is wrong."""

    title: str
    world: Mapping[str, Any] = field(default_factory=dict)
    common: Mapping[str, Any] = field(default_factory=dict)
    told: float | None = None


CLIP = {"out_of_range": "clip"}
CONDITIONS: dict[str, Condition] = {
    "gaussian": Condition("Gaussian noise", {"noise": {"name": "gaussian", "sd": 0.1}}, CLIP),
    "student-t": Condition(
        "Student's t noise, 2.5 degrees of freedom", {"noise": {"name": "student_t", "scale": 0.1, "df": 2.5}}, CLIP
    ),
    "bernoulli": Condition(
        "rewards 0 or 1",
        {"noise": {"name": "bernoulli"}, "offset": 0.5, "peak": 0.4},
        {"reward_range": [0.0, 1.0]},
    ),
    "too-long": Condition("length scale 4 times too long", told=0.8),
    "too-short": Condition("length scale 4 times too short", told=0.05),
}
# Size of the change by the peak that gives it: a flip moves the best arm by 2 peak, a level all arms by peak / 2.
SIZES: dict[str, dict[float, float]] = {
    "flip": {1.6: 0.8, 0.8: 0.4, 0.4: 0.2, 0.2: 0.1},
    "level": {0.4: 0.8, 0.2: 0.4, 0.1: 0.2, 0.05: 0.1},
}
PLAIN_KINDS = ("redraw", "partial", "hidden")


def _in_suite(world: Experiment) -> Experiment:
    told = tuple(dataclasses.replace(policy, kernel=kernel_of(world)) for policy in KERNEL_POLICIES)
    return dataclasses.replace(world, id=PREFIX + world.id.removeprefix("suite/"), policies=(*told, *AUTO))


def _of_paper(world: Experiment) -> Experiment:
    """The yardstick's, on all seeds that ADA-OPKB plays in the paper's figures."""
    name = PAPER + world.id.removeprefix(YARDSTICK_PAPER)
    return dataclasses.replace(world, id=name, policies=(*KERNEL_POLICIES, *AUTO), seeds=EVALUATION_SEEDS)


def _still(name: str, condition: Condition, dimension: int) -> Experiment:
    policies = [CALIBRATED]
    if condition.told is not None:
        kernel = {"name": "rbf", "length_scale": condition.told}
        policies = [dataclasses.replace(CALIBRATED, settings={"kernel": "given"}, kernel=kernel)]
    if name == "gaussian" and dimension == 2:
        policies.append(THEORY_MODE)
    return Experiment(
        id=f"{ALARMS}{name}/d{dimension}",
        title=f"Nothing changes, {condition.title}, d = {dimension}",
        environment="switching",
        settings={"switches": [], **condition.world, "dimension": dimension, "horizon": HORIZON},
        policies=tuple(policies),
        seeds=ALARM_SEEDS,
        common=condition.common,
    )


def _one_change(kind: str, size: float | None = None) -> Experiment:
    peak = {} if size is None else {"peak": SIZES[kind][size]}
    return Experiment(
        id=f"{DELAYS}{kind}" if size is None else f"{DELAYS}{kind}-{size:g}",
        title=f"One {kind}" if size is None else f"One {kind} by {size:g}",
        environment="switching",
        settings={"kind": kind, "switches": [DELAY_CHANGE], **peak, "dimension": 2, "horizon": DELAY_HORIZON},
        policies=(CALIBRATED, ADA_OPKB, *AUTO),
        seeds=DELAY_SEEDS,
    )


CALIBRATED_GROUP: dict[str, Experiment] = {
    experiment.id: experiment
    for experiment in (
        *map(_in_suite, SUITE.values()),
        *(_of_paper(world) for world in YARDSTICK.values() if world.id.startswith(YARDSTICK_PAPER)),
        *(_still(name, condition, d) for d in ALARM_DIMENSIONS for name, condition in CONDITIONS.items()),
        *(_one_change(kind, size) for kind, sizes in SIZES.items() for size in sizes),
        *map(_one_change, PLAIN_KINDS),
    )
}
