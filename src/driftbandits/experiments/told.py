"""What a baseline is told of a suite world beyond what AutoBandit is told: the kernel, and how large the noise is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandits.environments.noise import PAPER_NOISE
from driftbandits.environments.registry import noise_from_config
from driftbandits.experiments.specs import Experiment, PolicySpec
from driftbandits.experiments.suite import TOLD

SIGNAL = (
    0.1  # variance of the rewards over a suite world's arms; a kernel has diagonal 1, so the ridge is relative to it
)
PLAIN = ("GLRklUCB",)  # know the noise, but regress on nothing


def noise_of(world: Experiment) -> float:
    """Standard deviation of a world's noise, at a mean of 0 where the noise is cut differently at others.

    >>> from driftbandits.experiments.suite import SUITE
    >>> noise_of(SUITE["suite/noisy/d2"]), round(noise_of(SUITE["suite/heavy-tails/d2"]), 3)
    (0.5, 0.224)
    """
    config = world.settings.get("noise")
    noise = PAPER_NOISE if config is None else noise_from_config(config)
    return round(float(noise.deviation(np.zeros(1))[0]), 6)


def kernel_of(world: Experiment) -> Mapping[str, Any] | None:
    """The kernel that policies are told in a suite world; None for the world's own."""
    return TOLD.get(world.id.split("/")[1])


def told_spec(label: str, policy: str, settings: Mapping[str, Any], world: Experiment) -> PolicySpec:
    """The policy with these settings, and what it can be told of the world.

    >>> from driftbandits.experiments.suite import SUITE
    >>> told_spec("a window", "SlidingWindowGPUCB", {"window": 400, "beta": 0.6}, SUITE["suite/noisy/d2"]).settings
    {'noise': 0.5, 'ridge': 2.5, 'window': 400, 'beta': 0.6}
    """
    noise = noise_of(world)
    told: dict[str, Any] = {"noise": noise, "ridge": round(noise**2 / SIGNAL, 6)}
    if policy in PLAIN:
        told.pop("ridge")
    if "base" in settings:
        base = {**told, **settings.get("base_settings", {})}
        return PolicySpec(label, policy, {"noise": noise, **settings, "base_settings": base}, kernel_of(world))
    return PolicySpec(label, policy, {**told, **settings}, kernel_of(world))
