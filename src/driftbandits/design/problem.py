"""The log-det design problem: the information matrix of a law, what is minimised, and a certified result.

The information matrix of a law, factored once and asked for the leverage of many arms.

| formula | name      | shape  | meaning                                                                    |
|---------|-----------|--------|----------------------------------------------------------------------------|
| S       |           | (r, r) | Phi' diag(p) Phi + lambda I                                                |
| s       |           | scalar | number of arms with mass                                                   |
| A       |           | (s, s) | lambda I + D^1/2 K D^1/2 on those arms, D = diag(p), K = Phi Phi'           |
| M       | projector | (s, r) | A^-1/2 D^1/2 Phi on those arms, so that lambda S^-1 = I - M'M               |
| L       | factor    | (r, r) | Cholesky factor of S                                                       |

With few arms, or up to 3/2 times as many as features, `leverage_i = (|phi_i|^2 - |M phi_i|^2) / lambda`; otherwise
`|L^-1 phi_i|^2`. The first is far more exact where costs have pushed masses down to lambda: A is then badly scaled but,
scaled to a unit diagonal, well conditioned, which is all that Cholesky asks for; its error is about eps |phi|^2 /
lambda. The second has eps / lambda^2 there, the scales being mixed in S. From s = r / 2 on it takes less time per arm.

The log-det problem itself: what is minimised, and what certifies a solution.

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

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from driftbandits.text import counted
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


CHUNK_ROWS = 1024  # rows of features touched at once: a chunk and its products stay in the second-level cache


class Information:
    """S(p) of a law, factored; `through_arms` says which way, by default the more exact one where it is fast."""

    def __init__(
        self, features: Floats, probabilities: Floats, regulariser: float, *, through_arms: bool | None = None
    ) -> None:
        support = np.flatnonzero(probabilities)
        if support.size < probabilities.size:
            features, probabilities = features[support], probabilities[support]
        self.regulariser = regulariser
        self.rank = int(features.shape[1])
        few = support.size <= max(32, 3 * self.rank // 2)  # to there it is also fast
        self.through_arms = few if through_arms is None else through_arms
        scaled = np.sqrt(probabilities)[:, None] * features
        gram: Floats = (scaled @ scaled.T if self.through_arms else scaled.T @ scaled).T
        gram.reshape(-1, order="F")[:: gram.shape[0] + 1] += regulariser
        if not try_cholesky_in_place(gram):
            raise np.linalg.LinAlgError("S(p) is not positive definite in floating point: the features are too large")
        self.factor = gram
        self.projector: Floats | None = None
        if self.through_arms:
            self.projector = blas.dtrsm(1.0, gram, scaled, lower=1)

    @property
    def log_det(self) -> float:
        """`log det S`."""
        own = 2.0 * float(np.log(self.factor.diagonal()).sum())
        return own + (self.rank - int(self.factor.shape[0])) * math.log(self.regulariser)

    def leverage(self, features: Floats, squares: Floats) -> Floats:
        """`phi' S^-1 phi` for every row of `features`, whose squared norms are `squares`; O(N) memory beside them."""
        leverage = np.empty(features.shape[0])
        width = self.rank if self.projector is None else self.projector.shape[0]
        room = np.empty((min(CHUNK_ROWS, leverage.size), width))  # one for all: memory asked for anew is slow
        for start in range(0, leverage.size, CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            part = features[rows]
            image = room[: part.shape[0]]
            if self.projector is None:
                image[:] = part
                # The transpose of C-ordered rows is what BLAS wants as right-hand side: it is overwritten in place.
                image = blas.dtrsm(1.0, self.factor, image.T, lower=1, overwrite_b=1).T
            else:
                np.matmul(part, self.projector.T, out=image)
            np.einsum("ij,ij->i", image, image, out=leverage[rows])
        if self.through_arms:
            np.subtract(squares, leverage, out=leverage)
            leverage /= self.regulariser
        return leverage

    def cross(self, left: Floats, right: Floats) -> Floats:
        """`phi_i' S^-1 phi_j` for every row of `left` and every row of `right`."""
        if self.projector is not None:
            images = (left @ self.projector.T) @ (right @ self.projector.T).T
            return (left @ right.T - images) / self.regulariser
        whitened = blas.dtrsm(1.0, self.factor, right.T, lower=1)
        result: Floats = blas.dtrsm(1.0, self.factor, left.T, lower=1).T @ whitened
        return result


def try_cholesky_in_place(matrix: Floats) -> bool:
    """Overwrite a Fortran-ordered matrix with its lower Cholesky factor; the upper triangle is left as it is.

    Gives False, with the matrix spoilt, where it is not positive definite.
    """
    _, info = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    return bool(info == 0)


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
