"""The settings found by equal search, as data: `tuned.json`, made by `driftbandits tune comparison`.

The file has what was searched; all other settings are those of `first_settings`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.first_settings import written_out
from driftbandits.experiments.definitions.rows import TUNED_ENDING
from driftbandits.experiments.definitions.specs import PolicySpec


@lru_cache
def tuned_settings() -> dict[str, Any]:
    """What `tuned.json` holds: for every dimension ("d=10") and label the policy's name, settings and score."""
    file = resources.files("driftbandits.experiments.definitions") / "tuned.json"
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def tuned_spec(label: str, dimension: int) -> PolicySpec:
    """The policy called `label` with the settings found for it on environment 1 in this dimension.

    >>> tuned_spec("SW-GPUCB", 2).label
    'SW-GPUCB (tuned)'
    """
    found = tuned_settings().get(f"d={dimension}", {})
    if label not in found:
        raise InputError(f"no tuned settings for {label!r} at d = {dimension}; known: {', '.join(found)}")
    return _spec(label + TUNED_ENDING, found[label])


def tuned_specs(dimension: int) -> tuple[PolicySpec, ...]:
    """All policies of the comparison with the settings found for this dimension, under their plain labels."""
    found = tuned_settings()[f"d={dimension}"]
    return tuple(_spec(label, entry) for label, entry in found.items())


def _spec(label: str, entry: Mapping[str, Any]) -> PolicySpec:
    return PolicySpec(label, entry["policy"], written_out(entry["policy"], entry["settings"]))
