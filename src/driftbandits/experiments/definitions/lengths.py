"""The same experiment as a taste, or on all seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from driftbandits.experiments.definitions.specs import Experiment, PolicySpec

QUICK_SEEDS, QUICK_WIDTH = 2, 256


def quick(experiment: Experiment) -> Experiment:
    """A taste: two seeds, and trained networks 256 wide instead of 2,048, as the title says then.

    Parameters
    ----------
    experiment : as it is defined

    Returns
    -------
    Experiment
    """
    return dataclasses.replace(with_networks_narrow(experiment), seeds=experiment.seeds[:QUICK_SEEDS])


def with_networks_narrow(experiment: Experiment) -> Experiment:
    """All but trained networks as it is; these 256 wide and on two seeds, as in a taste."""
    policies = tuple(_narrow(policy) for policy in experiment.policies)
    if policies == experiment.policies:
        return experiment
    return dataclasses.replace(experiment, title=f"{experiment.title} (networks {QUICK_WIDTH} wide)", policies=policies)


def full(experiment: Experiment) -> Experiment:
    """Every policy on all seeds of the paper, whatever a run takes."""
    return dataclasses.replace(
        experiment, policies=tuple(dataclasses.replace(p, seeds=None) for p in experiment.policies)
    )


def _narrow(policy: PolicySpec) -> PolicySpec:
    if policy.name not in ("OPNN", "AdaOPNN") or not policy.settings.get("train", True):
        return policy
    settings: Mapping[str, Any] = {**policy.settings, "width": QUICK_WIDTH}
    return policy if settings == policy.settings else dataclasses.replace(policy, settings=settings, seeds=QUICK_SEEDS)
