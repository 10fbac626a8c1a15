"""Linear bandits: ADA-OPKB with the linear kernel beside the linear rivals of Table 1, on spheres and on a box.

Rivals play twice. "Theory": the sizes (window, period, discount) of their corrected analyses, told the path of theta;
those that choose sizes themselves are told nothing, and MASTER has its tests and replays as analysed. "Tuned": settings
found by the search of the comparison, on the linear world with one switch in the same dimension.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from driftbandits import policies
from driftbandits.experiments.definitions.first_settings import written_out
from driftbandits.experiments.definitions.lengths import quick
from driftbandits.experiments.definitions.linear_worlds import (
    SWITCH,
    LinearSetting,
    flipping,
    flipping_on_box,
    turning,
    turning_on_box,
)
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB,
    ADA_OPKB_PUBLISHED,
    AUTOBANDIT,
    CALIBRATED_OPKB,
    THEORY_ENDING,
)
from driftbandits.experiments.definitions.seeds import EVALUATION_SEEDS
from driftbandits.experiments.definitions.specs import HORIZON, Experiment, PolicySpec, by_id
from driftbandits.experiments.definitions.tuned_settings import LINEAR_FILE, tuned_settings, tuned_spec

LINEAR_PREFIX = "linear/"
SPHERE_DIMENSION, BOX_DIMENSION = 5, 2
BOX_ERROR = 0.1  # 841 arms
BOX_SEEDS = EVALUATION_SEEDS[:10]  # a run of some rivals takes seconds there
TASTE_ROUNDS, TASTE_ERROR = 2_000, 0.3  # 100 arms
TOLD_THE_PATH = (
    policies.DiscountedLinUCB,
    policies.SlidingWindowLinUCB,
    policies.RestartLinUCB,
    policies.LinearExp3,
)
CHOOSE_SIZES = (policies.SlidingWindowLinUCB, policies.RestartLinUCB, policies.LinearExp3)


def _theory(label: str, policy: type[policies.Policy], settings: Mapping[str, Any]) -> PolicySpec:
    return PolicySpec(label + THEORY_ENDING, policy.__name__, written_out(policy.__name__, settings))


# Rivals of Table 1 that are told nothing of the world.
UNTOLD_RIVALS = (
    *(
        _theory(f"{base.label}+{policies.BanditOverBandit.label}", policies.BanditOverBandit, {"base": base.__name__})
        for base in CHOOSE_SIZES
    ),
    _theory(
        f"{policies.LinUCB.label}+{policies.Master.label}",
        policies.Master,
        {"base": policies.LinUCB.__name__, "mode": "theory", "base_settings": {"beta": "ridge"}},
    ),
)
LINUCB = _theory(policies.LinUCB.label, policies.LinUCB, {})  # never forgets: its bound is for a theta that stays
UNIFORM = PolicySpec(policies.Uniform.label, policies.Uniform.__name__, written_out(policies.Uniform.__name__, {}))


def theory_rivals(path: float) -> tuple[PolicySpec, ...]:
    """All rivals of Table 1 with the sizes of their theory, where theta moves this far.

    >>> [rival.settings["variation"] for rival in theory_rivals(1.6) if "variation" in rival.settings]
    [1.6, 1.6, 1.6, 1.6]
    """
    told = (_theory(policy.label, policy, {"variation": path}) for policy in TOLD_THE_PATH)
    return (*told, *UNTOLD_RIVALS)


def tuned_policies(dimension: int) -> tuple[PolicySpec, ...]:
    """All policies that were tuned in linear worlds of this dimension."""
    labels = tuned_settings(LINEAR_FILE)[f"d={dimension}"]
    return tuple(tuned_spec(label, dimension, file=LINEAR_FILE) for label in labels)


def _policies(path: float, dimension: int) -> tuple[PolicySpec, ...]:
    """Every row once: where a search found nothing better than the row it began with, that row stands for both."""
    first = (ADA_OPKB, ADA_OPKB_PUBLISHED, *theory_rivals(path), LINUCB)
    tuned = tuple(p for p in tuned_policies(dimension) if all(_played(p) != _played(other) for other in first))
    return (*first, *tuned, AUTOBANDIT, CALIBRATED_OPKB, UNIFORM)


def _played(policy: PolicySpec) -> tuple[str, Mapping[str, Any]]:
    return policy.name, policy.settings


def _experiment(name: str, title: str, world: LinearSetting) -> Experiment:
    dimension = int(world.settings["dimension"])
    return Experiment(
        id=f"{LINEAR_PREFIX}{name}/d{dimension}",
        title=f"{title}, d = {dimension}",
        environment=world.environment,
        settings=world.settings,
        policies=_policies(world.path, dimension),
        seeds=BOX_SEEDS if "box_error" in world.settings else EVALUATION_SEEDS,
    )


def _experiments(rounds: int, error: float) -> dict[str, Experiment]:
    """All of them: switches come at the same share of `rounds`, and drift makes one turn."""

    def at(*switches: int) -> list[int]:
        return [switch * rounds // HORIZON for switch in switches]

    d, box = SPHERE_DIMENSION, BOX_DIMENSION
    return by_id(
        (
            _experiment("one-switch", "One switch", flipping(d, at(SWITCH), horizon=rounds)),
            _experiment("two-switches", "Two switches", flipping(d, at(1_500, 5_000), horizon=rounds)),
            _experiment("drift", "One turn of drift", turning(d, 1.0, horizon=rounds)),
            _experiment("box-one-switch", "Box, one switch", flipping_on_box(box, error, at(SWITCH), horizon=rounds)),
            _experiment("box-drift", "Box, one turn of drift", turning_on_box(box, error, 1.0, horizon=rounds)),
        )
    )


LINEAR = _experiments(HORIZON, BOX_ERROR)
_TASTE = _experiments(TASTE_ROUNDS, TASTE_ERROR)


def quick_linear_world(experiment: Experiment) -> Experiment:
    """A taste: two seeds, fewer rounds, which the title says, and a coarser box."""
    short = quick(_TASTE[experiment.id])
    return dataclasses.replace(short, title=f"{short.title} (T = {TASTE_ROUNDS:,})")
