"""What a baseline of the yardstick is told beyond its settings: in a suite world the kernel and how large noise is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandits.environments.noise import PAPER_NOISE
from driftbandits.environments.registry import noise_from_config
from driftbandits.experiments.definitions.first_settings import FIRST_SETTINGS, written_out
from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.definitions.suite import WRONG_KERNELS

SIGNAL_VARIANCE = 0.1  # of rewards over a suite world's arms; ridges are relative to it, for kernels have diagonal 1
USUAL_NOISE = 0.1  # what policies take for granted where nobody knows it, in half reward ranges


def noise_of(world: Experiment) -> float:
    """Standard deviation of a world's noise, at a mean of 0 where the noise is cut differently at others.

    >>> from driftbandits.experiments.definitions.suite import SUITE
    >>> noise_of(SUITE["suite/noisy/d2"]), round(noise_of(SUITE["suite/heavy-tails/d2"]), 3)
    (0.5, 0.224)
    """
    config = world.settings.get("noise")
    noise = PAPER_NOISE if config is None else noise_from_config(config)
    return round(float(noise.deviation(np.zeros(1))[0]), 6)


def kernel_of(world: Experiment) -> Mapping[str, Any] | None:
    """The kernel that policies are told in a suite world; None for the world's own."""
    return WRONG_KERNELS.get(world.id.split("/")[1])


def informed_spec(label: str, policy: str, settings: Mapping[str, Any], world: Experiment) -> PolicySpec:
    """The policy with these settings, and what it can be told of the world.

    >>> from driftbandits.experiments.definitions.suite import SUITE
    >>> told = informed_spec("a window", "SlidingWindowGPUCB", {"window": 400}, SUITE["suite/noisy/d2"]).settings
    >>> told["noise"], told["ridge"], told["window"]
    (0.5, 2.5, 400)
    """
    noise = noise_of(world)
    return PolicySpec(label, policy, _joined(policy, settings, {"noise": noise}, _ridge(noise)), kernel_of(world))


def uninformed_spec(label: str, policy: str, settings: Mapping[str, Any]) -> PolicySpec:
    """The policy with these settings where nobody knows the noise: the usual one.

    >>> told = uninformed_spec("a window", "SlidingWindowGPUCB", {"window": 400}).settings
    >>> told["noise"], told["ridge"], told["window"]
    (None, 0.1, 400)
    """
    return PolicySpec(label, policy, _joined(policy, settings, {}, _ridge(USUAL_NOISE)))


def _ridge(noise: float) -> dict[str, Any]:
    return {"ridge": round(noise**2 / SIGNAL_VARIANCE, 6)}


def _joined(
    policy: str, settings: Mapping[str, Any], noise: Mapping[str, Any], ridge: Mapping[str, Any]
) -> dict[str, Any]:
    """Every setting of the policy. A wrapper knows the noise; the ridge is for its base."""
    if "base" in settings:
        told = {**noise, **settings, "base_settings": {**noise, **ridge, **settings.get("base_settings", {})}}
    else:
        told = {**noise, **(ridge if "ridge" in FIRST_SETTINGS[policy] else {}), **settings}
    return written_out(policy, told)
