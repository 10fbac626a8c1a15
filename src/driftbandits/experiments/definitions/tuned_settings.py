"""The settings found by equal search, as data.

`tuned.json` is made by `driftbandits tune comparison`, `tuned_linear.json` by `driftbandits tune linear`. They hold
what was searched; all other settings are those of `first_settings`.
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

COMPARISON_FILE = "tuned.json"  # found on environment 1
LINEAR_FILE = "tuned_linear.json"  # found on the linear world with one switch


@lru_cache
def tuned_settings(file: str = COMPARISON_FILE) -> dict[str, Any]:
    """What the file holds: for every dimension ("d=10") and label the policy's name, settings and score."""
    path = resources.files("driftbandits.experiments.definitions") / file
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def tuned_spec(label: str, dimension: int, *, file: str = COMPARISON_FILE) -> PolicySpec:
    """The policy called `label` with the settings found for it in this dimension.

    >>> tuned_spec("SW-GPUCB", 2).label
    'SW-GPUCB (tuned)'
    """
    found = tuned_settings(file).get(f"d={dimension}", {})
    if label not in found:
        raise InputError(f"no tuned settings for {label!r} at d = {dimension}; known: {', '.join(found)}")
    return _spec(label + TUNED_ENDING, found[label])


def tuned_specs(dimension: int) -> tuple[PolicySpec, ...]:
    """All policies of the comparison with the settings found for this dimension, under their plain labels."""
    found = tuned_settings()[f"d={dimension}"]
    return tuple(_spec(label, entry) for label, entry in found.items())


def _spec(label: str, entry: Mapping[str, Any]) -> PolicySpec:
    return PolicySpec(label, entry["policy"], written_out(entry["policy"], entry["settings"]))
