"""The same experiment as a taste, or on all seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from driftbandits.experiments.definitions.specs import Experiment, PolicySpec


def quick(experiment: Experiment) -> Experiment:
    """A taste: two seeds, and trained networks 256 wide instead of 2,048."""
    return dataclasses.replace(
        experiment, policies=tuple(_narrow(p) for p in experiment.policies), seeds=experiment.seeds[:2]
    )


def full(experiment: Experiment) -> Experiment:
    """Every policy on all seeds of the paper, whatever a run takes."""
    return dataclasses.replace(
        experiment, policies=tuple(dataclasses.replace(p, seeds=None) for p in experiment.policies)
    )


def _narrow(policy: PolicySpec) -> PolicySpec:
    if policy.name not in ("OPNN", "AdaOPNN") or not policy.settings.get("train", True):
        return policy
    settings: Mapping[str, Any] = {**policy.settings, "width": 256}
    return dataclasses.replace(policy, settings=settings, seeds=None)
