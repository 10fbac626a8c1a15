"""About how long a cell takes: to play long ones first, and to say how long a run will take yet."""

from __future__ import annotations

from driftbandits.experiments.definitions.policy_classes import policy_class
from driftbandits.experiments.definitions.specs import HORIZON, Cell


def trains(cell: Cell) -> bool:
    """Whether the cell's policy trains a network."""
    return policy_class(cell.policy.name).trains(cell.policy.settings)


def cost_of(cell: Cell) -> float:
    """Roughly the seconds a cell takes on one core; a guess, which is off by a factor of a few.

    >>> from driftbandits.experiments.definitions.specs import PolicySpec
    >>> cost_of(Cell("switching/1", {}, PolicySpec("a network", "AdaOPNN"), 0))
    60.0
    """
    horizon = cell.settings.get("horizon", HORIZON)
    # a user's own world may mean something else by it
    rounds = horizon if isinstance(horizon, int | float) else HORIZON
    return policy_class(cell.policy.name).seconds(rounds, cell.policy.settings)
