"""The baselines of the yardstick with the settings found for them: `oracles.json`, made by `driftbandits tune oracles`.

A baseline "tuned here" has the settings that were best in this very world, one with "one setting" those that were best
over all worlds of the suite; both were found on tuning seeds and are told kernel and noise. The file has what was
searched; all other settings are those of `first_settings`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from driftbandits.experiments.definitions.prior_knowledge import informed_spec, uninformed_spec
from driftbandits.experiments.definitions.rows import ONE_SETTING_ENDING, TUNED_HERE_ENDING
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.definitions.suite import suite_name


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
    found = oracle_settings()["worlds"][suite_name(world)]
    return tuple(
        informed_spec(label + TUNED_HERE_ENDING, e["policy"], e["settings"], world) for label, e in found.items()
    )


def single_settings(world: Experiment | None = None) -> tuple[PolicySpec, ...]:
    """Every baseline with its one setting, told what there is to know of a suite world, or without one nothing."""
    found = oracle_settings()["singles"]
    specs = []
    for label, entry in found.items():
        named = (label + ONE_SETTING_ENDING, entry["policy"], entry["settings"])
        specs.append(uninformed_spec(*named) if world is None else informed_spec(*named, world))
    return tuple(specs)
