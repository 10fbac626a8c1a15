"""The grids of the yardstick: few points per baseline, on the natural scale of the suite's worlds.

Rewards have a variance of about 0.1 where a kernel has diagonal 1, so a width of two standard deviations is a beta of
about 0.6. An arm not yet seen promises beta: below 0.5 a policy stays with the first good arm it finds; above 0.8, the
largest mean of the suite, one with a short memory never stops exploring. In between it knows what is good enough, as a
policy tuned for these worlds may.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driftbandits.tuning.rungs import Rungs

MEMORY_ROUNDS = (100, 200, 400, 800, 1_600, 3_200, 10_000)


@dataclass(frozen=True)
class Grid:
    """Points of one policy.

    `single` are the rungs of the search for one setting over all worlds, `tuned` those of the search in every world
    apart, None where there is none such.
    """

    policy: str
    points: tuple[Mapping[str, Any], ...]
    single: Rungs
    tuned: Rungs | None = None


def _product(**values: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(values, point, strict=True)) for point in itertools.product(*values.values()))


def _weighted() -> tuple[dict[str, Any], ...]:
    """A memory of w rounds is a discount of 1 - 1 / w. A run takes long: only long memories are tried more widely."""
    points = (*_product(memory=MEMORY_ROUNDS, beta=(0.6, 0.7)), *_product(memory=(800, 1_600, 3_200), beta=(0.9,)))
    return tuple({"discount": round(1.0 - 1.0 / p["memory"], 8), "beta": p["beta"]} for p in points)


def _master() -> tuple[dict[str, Any], ...]:
    lengths = ((250, 0.3, 1.0), (250, 0.13, 0.92), (426, 0.13, 0.92), (426, 0.13, 1.07), (992, 0.13, 0.92))
    return tuple(
        {"length": length, "replay_scale": scale, "base": "GPUCB", "base_settings": {"beta": beta}}
        for length, scale, beta in (*lengths, (992, 0.325, 1.07))
    )


# All points play one seed, the window's two, lest a lucky seed drop the best; the best then play more.
ALL_ON_ONE_SEED: Rungs = ((99, 1),)
TWO_ON_A_SECOND_SEED: Rungs = ((99, 1), (2, 2))
TWO_ON_THREE_SEEDS: Rungs = ((99, 1), (2, 3))
GRIDS: dict[str, Grid] = {
    "SW-GPUCB": Grid(
        "SlidingWindowGPUCB",
        _product(window=MEMORY_ROUNDS, beta=(0.6, 0.7, 0.85, 1.2)),
        single=((99, 2), (4, 3)),
        tuned=((99, 2), (6, 4), (3, 6)),
    ),
    "WGPUCB": Grid("WeightedGPUCB", _weighted(), single=TWO_ON_A_SECOND_SEED, tuned=((99, 1), (3, 3))),
    "TV-GP-UCB": Grid(
        "TimeVaryingGPUCB",
        _product(rate=(1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2), beta=(0.6, 0.75)),
        single=TWO_ON_THREE_SEEDS,
    ),
    "ET-GP-UCB": Grid(
        "EventTriggeredGPUCB", _product(failure_probability=(0.001, 0.05), beta=(0.6, 0.75)), single=TWO_ON_THREE_SEEDS
    ),
    "DAL-GP-UCB": Grid(
        "DetectionAugmentedGPUCB",
        _product(cover=(10, 30, 100), exploration=(0.03, 0.1), beta=(0.6, 0.75)),
        single=TWO_ON_THREE_SEEDS,
    ),
    "GPUCB+MASTER": Grid("Master", _master(), single=ALL_ON_ONE_SEED),
    "GLR-klUCB": Grid("GLRklUCB", _product(scale=(0.25, 0.45, 0.8), exploration=(0.02, 0.08)), single=ALL_ON_ONE_SEED),
    "GPUCB": Grid("GPUCB", _product(beta=(0.6, 0.7, 0.85, 1.2)), single=TWO_ON_A_SECOND_SEED, tuned=((99, 3),)),
    "R-GPUCB": Grid("RestartGPUCB", _product(period=(400, 1_000, 2_500), beta=(0.6, 0.75)), single=TWO_ON_THREE_SEEDS),
}
