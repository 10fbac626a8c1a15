"""About how long a cell takes: to play long ones first, and to say how long a run will take yet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from driftbandits.experiments.definitions.policy_classes import policy_class
from driftbandits.experiments.definitions.specs import HORIZON, Cell

USUAL_ARMS = 100  # what the facts of policies are measured with
LARGEST = 1e15


def cost_of(cell: Cell) -> float:
    """Roughly the seconds a cell takes on one core of two that are busy; a guess, which is off by a factor of two.

    >>> from driftbandits.experiments.definitions.specs import PolicySpec
    >>> wide, narrow = (PolicySpec("a network", "AdaOPNN", {"width": width}) for width in (2048, 256))
    >>> cost_of(Cell("switching/1", {}, wide, 0)) > 10 * cost_of(Cell("switching/1", {}, narrow, 0))
    True
    """
    # a user's own world may mean something else by it
    rounds = _number(cell.settings, "horizon", HORIZON)
    kind = policy_class(cell.policy.name)
    more: float = max(_arms(cell.settings) / USUAL_ARMS, 1.0) ** kind.arms_power
    return more * kind.seconds(rounds, cell.policy.settings)


def _arms(settings: Mapping[str, Any]) -> float:
    """How many arms a world has, by its settings."""
    error, dimension = _number(settings, "box_error", 0.0), _number(settings, "dimension", 1.0)
    if error > 0.0 and 0.0 < dimension <= 10.0:  # the largest cube in the unit ball, see `ArmSet.box`
        return float(math.ceil(2 * math.sqrt(dimension) / error) ** dimension)
    return _number(settings, "size", USUAL_ARMS)


def _number(settings: Mapping[str, Any], name: str, usual: float) -> float:
    """A setting that is a number; what is usual in place of any other, and of one too large to reckon with the most."""
    value = settings.get(name, usual)
    return float(min(value, LARGEST)) if isinstance(value, int | float) else usual
