"""The log-det problem itself: what is minimised, and what certifies a solution.

    minimise  f(p) = c'p - log det S(p)   over the simplex,   S(p) = Phi' diag(p) Phi + lambda I

| paper     | name          | shape  | meaning                                              |
|-----------|---------------|--------|------------------------------------------------------|
| phi(x)    | features      | (N, r) | feature vector of each arm, one per row                |
| P(x)      | probabilities | (N,)   | the law, p in formulas                               |
| beta Delta| costs         | (N,)   | linear cost of each arm, c in formulas               |
| sigma/T   | regulariser   | scalar | lambda in formulas, > 0                              |
|           | leverage      | (N,)   | phi_i' S^-1 phi_i, so that grad f = c - leverage     |
|           | gap           | scalar | p'g - min g >= f(p) - min f, for g = grad f          |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftbandits.design.measure import Information
from driftbandits.types import Floats, Ints


@dataclass(frozen=True)
class Certificate:
    """What one exact evaluation at a law says: gap, log det, and the information and the leverage they came from."""

    gap: float
    log_det: float
    gradient: Floats
    leverage: Floats
    information: Information


@dataclass(frozen=True)
class DesignProblem:
    """One log-det problem on the arms given; all of them are candidates.

    features: (N, r) float64, C order. costs: (N,) float64, shifted so that the smallest is zero: a constant added
    to every cost moves neither the argmin nor the gap, and without it the digits go to what matters.
    """

    features: Floats
    costs: Floats
    regulariser: float

    @property
    def size(self) -> int:
        """Number of arms, N."""
        return int(self.features.shape[0])

    @property
    def rank(self) -> int:
        """Number of features of an arm, r."""
        return int(self.features.shape[1])

    @cached_property
    def squares(self) -> Floats:
        """`|phi_i|^2` of every arm, (N,)."""
        result: Floats = np.einsum("ij,ij->i", self.features, self.features)
        return result

    def restrict(self, rows: Ints) -> DesignProblem:
        """The same problem on the arms `rows` alone."""
        return DesignProblem(self.features[rows], self.costs[rows], self.regulariser)

    def measure(self, probabilities: Floats) -> Information:
        """The information matrix S(p), factored; only the arms with mass are read."""
        return Information(self.features, probabilities, self.regulariser)

    def certify(self, probabilities: Floats) -> Certificate:
        """Evaluate gap and log det at `probabilities`, in O(N r^2) time and O(N) memory.

        >>> problem = DesignProblem(np.eye(2), np.zeros(2), 1.0)
        >>> problem.certify(np.array([0.5, 0.5])).gap
        0.0
        """
        information = self.measure(probabilities)
        leverage = information.leverage(self.features, self.squares)
        gradient = self.costs - leverage
        return Certificate(gap_of(probabilities, gradient), information.log_det, gradient, leverage, information)


def gap_of(probabilities: Floats, gradient: Floats) -> float:
    """Frank-Wolfe bound `p'g - min g`, summed as `p'(g - min g)` so that it cannot come out negative."""
    return float(probabilities @ (gradient - gradient.min()))
