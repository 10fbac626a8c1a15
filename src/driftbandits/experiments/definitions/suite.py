"""A wider suite for judging policies: every kind of change and of noise, at d = 10, 3 and 2.

Every policy plays with the settings found for it by equal search on environment 1 in the same dimension, so all other
worlds are new to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from driftbandits.experiments.definitions.ids import SLOW_COSINE, SUITE_PREFIX
from driftbandits.experiments.definitions.specs import CLIP_REWARDS, HORIZON, Experiment, PolicySpec, by_id
from driftbandits.experiments.definitions.tuned_settings import tuned_spec

SUITE_SEEDS = tuple(range(10))
SUITE_DIMENSIONS = (10, 3, 2)
SUITE_POLICIES = (
    "ADA-OPKB",
    "GPUCB",
    "SW-GPUCB",
    "TV-GP-UCB",
    "GPUCB+MASTER",
    "ET-GP-UCB",
    "DAL-GP-UCB",
    "GLR-klUCB (plain)",
    "Uniform",
)


def _switches(count: int) -> list[int]:
    return [HORIZON * k // (count + 1) for k in range(1, count + 1)]


def _tides(periods: int) -> list[list[float]]:
    """Phase that rises by half a turn and falls back, `periods` times."""
    half = HORIZON // (2 * periods)
    return [[half * k, math.pi * (k % 2)] for k in range(2 * periods + 1)]


# name: (title, environment, its settings)
SUITE_WORLDS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "stationary": ("Stationary", "switching", {"switches": []}),
    **{
        f"{kind}-{count}": (
            f"{count} {kind}{'s' if count > 1 else ''}",
            "switching",
            {"kind": kind, "switches": _switches(count)},
        )
        for kind in ("flip", "redraw")
        for count in (1, 3, 10)
    },
    "partial-3": ("Three partial changes", "switching", {"kind": "partial", "switches": _switches(3)}),
    "hidden-3": ("Three hidden changes", "switching", {"kind": "hidden", "switches": _switches(3)}),
    "level-3": ("Three level shifts of all arms", "switching", {"kind": "level", "switches": _switches(3)}),
    "slow": ("Slow drift", SLOW_COSINE, {}),
    "forgetting": ("Random drift", "forgetting", {}),
    "periodic": ("Periodic drift", "cosine", {"size": 100, "phase": _tides(4)}),
    "noisy": (
        "Two redraws, noise 0.5",
        "switching",
        {"kind": "redraw", "switches": _switches(2), "noise": {"name": "gaussian", "sd": 0.5}},
    ),
    "heavy-tails": (
        "Two redraws, heavy tails",
        "switching",
        {"kind": "redraw", "switches": _switches(2), "noise": {"name": "student_t", "scale": 0.1, "df": 2.5}},
    ),
    "mismatched": ("Two redraws, wrong kernel", "switching", {"kind": "redraw", "switches": _switches(2)}),
}
# What policies are told in place of the world's own kernel.
WRONG_KERNELS = {"mismatched": {"name": "matern", "length_scale": 0.05, "nu": 0.5}}
UNBOUNDED_WORLDS = ("noisy", "heavy-tails")  # rewards can leave [-1, 1], so policies clip


def _policy(label: str, dimension: int, kernel: Mapping[str, Any] | None) -> PolicySpec:
    found = tuned_spec(label, dimension)
    return PolicySpec(label, found.name, found.settings, kernel)


SUITE: dict[str, Experiment] = by_id(
    Experiment(
        id=f"{SUITE_PREFIX}{name}/d{dimension}",
        title=f"{title}, d = {dimension}",
        environment=environment,
        settings={**settings, "dimension": dimension, "horizon": HORIZON},
        policies=tuple(_policy(label, dimension, WRONG_KERNELS.get(name)) for label in SUITE_POLICIES),
        seeds=SUITE_SEEDS,
        common=CLIP_REWARDS if name in UNBOUNDED_WORLDS else {},
    )
    for dimension in SUITE_DIMENSIONS
    for name, (title, environment, settings) in SUITE_WORLDS.items()
)


def suite_name(world: Experiment) -> str:
    """What a suite world is called in files and in other groups.

    >>> suite_name(SUITE["suite/flip-3/d2"])
    'flip-3/d2'
    """
    return world.id.removeprefix(SUITE_PREFIX)
