"""The linear worlds that are played and tuned in, as values, and how far theta moves in each.

symbol  meaning
d, N    dimension, number of arms
T       rounds
V_T     path of theta, sum_t ||theta_{t+1} - theta_t||: what the linear rivals are told
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from driftbandits.experiments.definitions.specs import HORIZON

NORM = 0.8  # of theta
FLIP = 2 * NORM  # how far theta moves where it becomes -theta
ARMS = 100
SWITCH = 3_000  # where the worlds with one switch have it
SWITCHING, DRIFTING = "linear/switching", "linear/drifting"


@dataclass(frozen=True)
class LinearSetting:
    """A linear world by name and settings, and the path of its theta."""

    environment: str
    settings: dict[str, Any]
    path: float


def flipping(dimension: int, switches: Sequence[int], *, horizon: int = HORIZON, size: int = ARMS) -> LinearSetting:
    """Arms drawn from the sphere, and a theta that becomes -theta at every switch.

    >>> flipping(5, (3000,)).path
    1.6
    """
    arms = {"dimension": dimension, "size": size}
    return _flipping(arms, switches, horizon)


def flipping_on_box(dimension: int, error: float, switches: Sequence[int], *, horizon: int = HORIZON) -> LinearSetting:
    """The same on a cube, discretised with this error."""
    return _flipping({"dimension": dimension, "box_error": error}, switches, horizon)


def turning(dimension: int, turns: float, *, horizon: int = HORIZON, size: int = ARMS) -> LinearSetting:
    """Arms drawn from the sphere, and a theta that turns steadily, so many times in all.

    >>> round(turning(5, 1.0).path, 2)
    5.03
    """
    return _turning({"dimension": dimension, "size": size}, turns, horizon)


def turning_on_box(dimension: int, error: float, turns: float, *, horizon: int = HORIZON) -> LinearSetting:
    """The same on a cube, discretised with this error."""
    return _turning({"dimension": dimension, "box_error": error}, turns, horizon)


def one_switch(dimension: int) -> LinearSetting:
    """The linear world that settings are tuned on: switch and rounds are those of the paper's environment 1."""
    return flipping(dimension, (SWITCH,))


def _flipping(arms: dict[str, Any], switches: Sequence[int], horizon: int) -> LinearSetting:
    settings = {**arms, "horizon": horizon, "norm": NORM, "switches": list(switches), "kind": "flip"}
    return LinearSetting(SWITCHING, settings, FLIP * len(switches))


def _turning(arms: dict[str, Any], turns: float, horizon: int) -> LinearSetting:
    speed = 2 * math.pi * turns / horizon
    settings = {**arms, "horizon": horizon, "norm": NORM, "speed": speed}
    return LinearSetting(DRIFTING, settings, (horizon - 1) * FLIP * math.sin(speed / 2))
