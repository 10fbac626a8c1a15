"""About how long a cell takes: to play long ones first, and to say how long a run will take yet."""

from __future__ import annotations

from driftbandits.experiments.definitions.specs import Cell
from driftbandits.policies import POLICIES, NeuralUCB
from driftbandits.policies.paper.opnn import AdaOPNN, NeuralBlockPolicy

NETWORKS = (NeuralBlockPolicy, NeuralUCB)
# Seconds on one core, measured for runs of MEASURED_ROUNDS with networks of MEASURED_WIDTH and MEASURED_DEPTH.
MEASURED_ROUNDS, MEASURED_WIDTH, MEASURED_DEPTH = 10_000, 2_048, 3
SECONDS_WITHOUT_TRAINING = 0.4
SECONDS_OF_NEURAL_UCB = 2.0
SECONDS_OF_OPNN = 20.0
SECONDS_OF_ADA_OPNN = 60.0


def trains(cell: Cell) -> bool:
    """Whether the cell's policy trains a network."""
    kind = POLICIES.get(cell.policy.name)
    settings = cell.policy.settings
    return (
        kind is not None
        and issubclass(kind, NETWORKS)
        and settings.get("train", True) is True
        and settings.get("width") != "infinite"  # whose features are fixed
    )


def cost_of(cell: Cell) -> float:
    """Roughly the seconds a cell takes on one core; a guess, which is off by a factor of a few.

    >>> from driftbandits.experiments.definitions.specs import PolicySpec
    >>> cost_of(Cell("switching/1", {}, PolicySpec("a network", "AdaOPNN"), 0))
    60.0
    """
    horizon = cell.settings.get("horizon", MEASURED_ROUNDS)
    # a user's own world may mean something else by it
    rounds = horizon / MEASURED_ROUNDS if isinstance(horizon, int | float) else 1.0
    quick = SECONDS_WITHOUT_TRAINING * rounds
    if not trains(cell):
        return quick
    kind, settings = POLICIES[cell.policy.name], cell.policy.settings
    if not issubclass(kind, NeuralBlockPolicy):
        return SECONDS_OF_NEURAL_UCB * rounds
    width, depth = settings.get("width", MEASURED_WIDTH), settings.get("depth", MEASURED_DEPTH)
    size: float = (width / MEASURED_WIDTH) ** 2 * (depth - 2)
    return max(size * (SECONDS_OF_ADA_OPNN if issubclass(kind, AdaOPNN) else SECONDS_OF_OPNN), quick)
