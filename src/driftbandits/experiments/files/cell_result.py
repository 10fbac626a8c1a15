"""What is kept of a finished cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driftbandits.experiments.definitions.specs import Cell
from driftbandits.simulation import Detection


@dataclass(frozen=True)
class CellResult:
    """What is kept of a run.

    `regret` is cumulative, after `rounds` rounds played; `changes` are the rounds at which changes were found;
    `turnover` is the share of rounds in which another arm was played than in the round before; `seconds` is the time
    of the run itself.
    """

    cell: Cell
    rounds: npt.NDArray[np.int64]
    regret: npt.NDArray[np.float64]
    changes: tuple[int, ...]
    detection: Detection
    turnover: float
    seconds: float
