"""Worlds to play in: pure mean rewards, noise common to all policies, and the truth about their changes."""

from __future__ import annotations

from driftbandits.environments.base import Environment, uniforms
from driftbandits.environments.cosine import SLOW_DRIFT, CosineBandit
from driftbandits.environments.drifting import ForgettingDrift
from driftbandits.environments.noise import (
    BernoulliNoise,
    GaussianNoise,
    Noise,
    StudentTNoise,
    TruncatedGaussianNoise,
    UniformNoise,
)
from driftbandits.environments.piecewise import Piecewise
from driftbandits.environments.registry import create, names, noise_from_config
from driftbandits.environments.switching import SwitchingKernel
from driftbandits.environments.tabular import Tabular
from driftbandits.environments.truth import Truth

__all__ = [
    "BernoulliNoise",
    "CosineBandit",
    "Environment",
    "ForgettingDrift",
    "GaussianNoise",
    "Noise",
    "Piecewise",
    "SLOW_DRIFT",
    "StudentTNoise",
    "SwitchingKernel",
    "Tabular",
    "Truth",
    "TruncatedGaussianNoise",
    "UniformNoise",
    "create",
    "names",
    "noise_from_config",
    "uniforms",
]
