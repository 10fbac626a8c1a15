"""The baselines of the yardstick with the settings found for them: `oracles.json`, made by `driftbandits tune oracles`.

A baseline "tuned here" has the settings that were best in this very world, one with "one setting" those that were best
over all worlds of the suite; both were found on tuning seeds and are told kernel and noise.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from driftbandits.experiments.definitions.prior_knowledge import told_spec, untold_spec
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec

HERE = " (tuned here)"
ONE = " (one setting)"


@lru_cache
def oracle_settings() -> dict[str, Any]:
    """What `oracles.json` holds: `worlds` by name and label, `singles` by label; policy, settings and score of each."""
    file = resources.files("driftbandits.experiments.definitions") / "oracles.json"
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def tuned_here(world: Experiment) -> tuple[PolicySpec, ...]:
    """The baselines tuned in this suite world.

    >>> from driftbandits.experiments.definitions.suite import SUITE
    >>> [spec.label for spec in tuned_here(SUITE["suite/slow/d2"])]
    ['SW-GPUCB (tuned here)', 'WGPUCB (tuned here)', 'GPUCB (tuned here)']
    """
    found = oracle_settings()["worlds"][world.id.removeprefix("suite/")]
    return tuple(told_spec(label + HERE, e["policy"], e["settings"], world) for label, e in found.items())


def single_settings(world: Experiment | None = None) -> tuple[PolicySpec, ...]:
    """Every baseline with its one setting, told what there is to know of a suite world, or without one nothing."""
    found = oracle_settings()["singles"]
    if world is None:
        return tuple(untold_spec(label + ONE, e["policy"], e["settings"]) for label, e in found.items())
    return tuple(told_spec(label + ONE, e["policy"], e["settings"], world) for label, e in found.items())
