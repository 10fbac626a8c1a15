"""About how long a cell takes: to play long ones first, and to say how long a run will take yet."""

from __future__ import annotations

from driftbandits.experiments.definitions.specs import Cell
from driftbandits.policies import POLICIES, NeuralUCB
from driftbandits.policies.paper.opnn import AdaOPNN, NeuralBlockPolicy

NETWORKS = (NeuralBlockPolicy, NeuralUCB)
INFINITE = "infinite"  # a network of this width has fixed features
ROUNDS, WIDTH, DEPTH = 10_000, 2_048, 3
# seconds on one core, measured at ROUNDS rounds, WIDTH and DEPTH
PLAIN, SHALLOW, STEADY, RESTARTING = 0.4, 2.0, 20.0, 60.0


def trains(cell: Cell) -> bool:
    """Whether the cell's policy trains a network."""
    kind = POLICIES.get(cell.policy.name)
    settings = cell.policy.settings
    return (
        kind is not None
        and issubclass(kind, NETWORKS)
        and settings.get("train", True) is True
        and settings.get("width") != INFINITE
    )


def cost_of(cell: Cell) -> float:
    """Roughly the seconds a cell takes on one core; a guess, which is off by a factor of a few.

    >>> from driftbandits.experiments.definitions.specs import PolicySpec
    >>> cost_of(Cell("switching/1", {}, PolicySpec("a network", "AdaOPNN"), 0))
    60.0
    """
    horizon = cell.settings.get("horizon", ROUNDS)
    rounds = horizon / ROUNDS if isinstance(horizon, int | float) else 1.0  # a user's own world may mean something else
    if not trains(cell):
        return PLAIN * rounds
    kind, settings = POLICIES[cell.policy.name], cell.policy.settings
    if not issubclass(kind, NeuralBlockPolicy):
        return SHALLOW * rounds
    size: float = (settings.get("width", WIDTH) / WIDTH) ** 2 * (settings.get("depth", DEPTH) - 2)
    return max(size * (RESTARTING if issubclass(kind, AdaOPNN) else STEADY), PLAIN * rounds)
