"""What a design solver hands back: the law, and the certificate of how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from driftbandits.showing import counted
from driftbandits.types import Floats, Ints


class Status(Enum):
    """How a solve ended. Only `OPTIMAL` is ever returned; the others come with a `ConvergenceError`.

    >>> [status.value for status in Status]
    ['optimal', 'stalled', 'iteration_limit']
    """

    OPTIMAL = "optimal"
    STALLED = "stalled"
    ITERATION_LIMIT = "iteration_limit"


@dataclass(frozen=True, eq=False)
class Design:
    """A law over arms that minimises `costs'p - log det S(p)`, with its certificate.

    Parameters
    ----------
    probabilities : (N,) array, read-only; exactly non-negative, summing to one to rounding
    gap : `p'g - min g >= f(p) - f(p*)` with `g = costs - leverage`, evaluated at `probabilities` itself: how far from
        the optimum it can be at most
    status : how the solve ended
    iterations : Newton steps, summed over all inner solves
    log_det : `log det(Phi' diag(p) Phi + regulariser I)`

    >>> from driftbandits.design import solve_design
    >>> solve_design(np.eye(2), regulariser=1.0)
    Design(2 of 2 arms, gap=..., status=OPTIMAL, iterations=..., log_det=0.81...)
    """

    probabilities: Floats
    gap: float
    status: Status
    iterations: int
    log_det: float

    @property
    def support(self) -> Ints:
        """Indices of the arms with positive probability, ascending.

        >>> Design(np.array([0.0, 1.0]), 0.0, Status.OPTIMAL, 0, 0.0).support
        array([1])
        """
        return np.flatnonzero(self.probabilities)

    def __repr__(self) -> str:
        count = int(np.count_nonzero(self.probabilities))
        return (
            f"Design({count} of {counted(self.probabilities.size, 'arm')}, gap={self.gap:.2e}, "
            f"status={self.status.name}, iterations={self.iterations}, log_det={self.log_det:.6g})"
        )
