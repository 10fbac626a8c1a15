"""Worlds to play in: pure mean rewards, noise common to all policies, and the truth about their changes."""

from __future__ import annotations

from driftbandits.environments import registry
from driftbandits.environments.base import Environment, uniforms
from driftbandits.environments.noise import Noise
from driftbandits.environments.registry import *  # noqa: F403  # whatever has a name: that list is the only one
from driftbandits.environments.reward_functions import SLOW_DRIFT
from driftbandits.environments.switching import Piecewise
from driftbandits.environments.tabular import Tabular
from driftbandits.environments.truth import Truth, significant_shifts

__all__ = ["SLOW_DRIFT", "Environment", "Noise", "Piecewise", "Tabular", "Truth", "significant_shifts", "uniforms"]
__all__ += registry.__all__
