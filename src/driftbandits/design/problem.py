"""The log-det problem itself: what is minimised, and what certifies a solution.

    minimise  f(p) = c'p - log det S(p)   over the simplex,   S(p) = Phi' diag(p) Phi + lambda I

| paper     | name          | shape  | meaning                                              |
|-----------|---------------|--------|------------------------------------------------------|
| phi(x)    | features      | (N, r) | feature vector of each arm, one a row                |
| P(x)      | probabilities | (N,)   | the law, p in formulas                               |
| beta Delta| costs         | (N,)   | linear cost of each arm, c in formulas               |
| sigma/T   | regulariser   | scalar | lambda in formulas, > 0                              |
|           | leverage      | (N,)   | phi_i' S^-1 phi_i, so that grad f = c - leverage     |
|           | gap           | scalar | p'g - min g >= f(p) - min f, for g = grad f          |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from driftbandits.types import Floats, Ints

# Rows of features a pricing step touches at once: a chunk and its solve stay in the second-level cache.
CHUNK_ROWS = 1024


@dataclass(frozen=True)
class Certificate:
    """What one exact evaluation at a law says: gap, log det and the gradient it came from."""

    gap: float
    log_det: float
    gradient: Floats


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

    def restrict(self, rows: Ints) -> DesignProblem:
        """The same problem on the arms `rows` alone."""
        return DesignProblem(self.features[rows], self.costs[rows], self.regulariser)

    def factor(self, probabilities: Floats) -> Floats:
        """Lower Cholesky factor L of S(p), (r, r) in Fortran order; only the arms with mass are read."""
        return factor_information(self.features, probabilities, self.regulariser)

    def leverage(self, factor: Floats) -> Floats:
        """`|L^-1 phi_i|^2` of every arm, (N,), in chunks: O(N r^2) time, O(N) memory."""
        return leverage_of(self.features, factor)

    def certify(self, probabilities: Floats) -> Certificate:
        """Evaluate gap and log det at `probabilities` by triangular solves.

        >>> problem = DesignProblem(np.eye(2), np.zeros(2), 1.0)
        >>> problem.certify(np.array([0.5, 0.5])).gap
        0.0
        """
        factor = self.factor(probabilities)
        gradient = self.costs - self.leverage(factor)
        return Certificate(
            gap=gap_of(probabilities, gradient), log_det=log_det_of(factor), gradient=gradient
        )


def factor_information(features: Floats, probabilities: Floats, regulariser: float) -> Floats:
    """Lower Cholesky factor of `Phi' diag(p) Phi + lambda I`, (r, r) in Fortran order."""
    support = np.flatnonzero(probabilities)
    if support.size < probabilities.size:
        features, probabilities = features[support], probabilities[support]
    scaled = np.sqrt(probabilities)[:, None] * features
    information = np.asfortranarray(scaled.T @ scaled)
    information.reshape(-1, order="F")[:: information.shape[0] + 1] += regulariser
    if not try_cholesky_in_place(information):
        raise np.linalg.LinAlgError("S(p) is not positive definite in floating point")
    return information


def leverage_of(features: Floats, factor: Floats) -> Floats:
    """`|L^-1 phi_i|^2` for every row of `features`."""
    count = features.shape[0]
    leverage = np.empty(count)
    for start in range(0, count, CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        # The transpose of C-ordered rows is what BLAS wants; the right-hand side is copied, the features never touched.
        solved = blas.dtrsm(1.0, factor, features[rows].T, lower=1).T
        np.einsum("ij,ij->i", solved, solved, out=leverage[rows])
    return leverage


def gap_of(probabilities: Floats, gradient: Floats) -> float:
    """Frank-Wolfe bound `p'g - min g`, summed as `p'(g - min g)` so that it cannot come out negative."""
    return float(probabilities @ (gradient - gradient.min()))


def log_det_of(factor: Floats) -> float:
    """`log det S` from its Cholesky factor."""
    return 2.0 * float(np.log(factor.diagonal()).sum())


def try_cholesky_in_place(matrix: Floats) -> bool:
    """Overwrite a Fortran-ordered matrix with its lower Cholesky factor; the upper triangle is left as it is.

    Gives False, with the matrix spoilt, where it is not positive definite.
    """
    _, info = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    return bool(info == 0)
