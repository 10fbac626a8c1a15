"""The linear algebra of one Newton step: the weighted hat matrix and the system built from it.

| formula | name    | shape  | meaning                                                                     |
|---------|---------|--------|-----------------------------------------------------------------------------|
| K       | kernel  | (N, N) | Phi Phi'                                                                    |
| B       | hat     | (N, N) | D^1/2 Phi S^-1 Phi' D^1/2 with D = diag(p); its diagonal is p * leverage    |
| w       | products| (N,)   | p * z, the complementarity products                                         |
| M       |         | (N, N) | B o B + diag(w), the Newton matrix in the relative step delta = dp / p      |

The Hessian of -log det S is (Phi S^-1 Phi') o (Phi S^-1 Phi'). Scaled by p from both sides it is B o B, whose entries
are at most one whatever p is: arms that fade away do not spoil the conditioning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import blas, lapack

from driftbandits.design.measure import try_cholesky_in_place
from driftbandits.design.problem import DesignProblem
from driftbandits.types import Floats

_JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)  # relative to the largest entry, which is at most 1 + w


def newton_system(problem: DesignProblem) -> NewtonSystem:
    """The cheaper of the two ways to B for this shape: through (N, N) or through (r, r) matrices."""
    size, rank = problem.size, problem.rank
    # Multiplications per law: potrf + potri against syrk + potrf + trsm + syrk. LAPACK's inverse runs at about half the
    # speed of products on matrices that outgrow the cache.
    through_arms = size**3 * (1.0 if size <= 64 else 1.6)
    through_features = 2.0 * size * rank**2 + rank**3 / 3 + size**2 * rank
    return ArmSpace(problem) if through_arms <= through_features else FeatureSpace(problem)


class NewtonSystem(ABC):
    """B at one law at a time, in one (N, N) buffer that later holds the Newton matrix and its factor."""

    def __init__(self, problem: DesignProblem) -> None:
        size = problem.size
        self.problem = problem
        self.matrix: Floats = np.zeros((size, size), order="F")
        self.diagonal: Floats = self.matrix.reshape(-1, order="F")[:: size + 1]  # a view: writes go to the matrix

    @abstractmethod
    def weigh(self, probabilities: Floats) -> Floats:
        """Move to the law `probabilities` and give the diagonal of B there, `p * leverage`."""

    @abstractmethod
    def _square(self) -> None:
        """Put B o B into the lower triangle of `matrix`; its diagonal may be left wrong."""

    def factor(self, probabilities: Floats, hat: Floats, products: Floats) -> bool:
        """Factor `M = B o B + diag(w)` at the law just weighed, `hat` being the diagonal of B; say whether it worked.

        M is positive definite in exact arithmetic. Rounding can break it when duplicate arms carry mass and w is near
        the last digit; a jitter of at most 1e-8 then bends the direction of one step, never the certificate.
        """
        wanted = hat * hat + products
        largest = float(wanted.max())
        for jitter in _JITTERS:
            if jitter > 0.0:  # the failed attempt has overwritten the matrix
                self.weigh(probabilities)
            self._square()
            self.diagonal[:] = wanted + jitter * largest
            if try_cholesky_in_place(self.matrix):
                return True
        return False

    def solve(self, right: Floats) -> Floats:
        """Solve `M x = right` with the factor in the buffer; `right` is (N,) or (N, k)."""
        solution, _ = lapack.dpotrs(self.matrix, right, lower=1)
        result: Floats = solution
        return result


class ArmSpace(NewtonSystem):
    """B from `I - B = (I + D^1/2 (K / lambda) D^1/2)^-1`: best when the rank is not much below the number of arms."""

    def __init__(self, problem: DesignProblem) -> None:
        super().__init__(problem)
        scaled = problem.features * (1.0 / np.sqrt(problem.regulariser))
        self.kernel: Floats = (scaled @ scaled.T).T  # symmetric: the transpose is the same matrix in Fortran order

    def weigh(self, probabilities: Floats) -> Floats:
        """Move to the law `probabilities` and give the diagonal of B there."""
        roots = np.sqrt(probabilities)
        np.multiply(roots[:, None], roots, out=self.matrix)
        self.matrix *= self.kernel
        self.diagonal += 1.0
        if not try_cholesky_in_place(self.matrix):
            return np.full(probabilities.size, np.nan)
        lapack.dpotri(self.matrix, lower=1, overwrite_c=1)
        hat: Floats = 1.0 - self.diagonal
        return hat

    def _square(self) -> None:
        np.multiply(self.matrix, self.matrix, out=self.matrix)  # off the diagonal B and I - B differ by sign only


class FeatureSpace(NewtonSystem):
    """B as the Gram matrix of `L^-1 Phi' D^1/2`: best for many arms of low rank."""

    def __init__(self, problem: DesignProblem) -> None:
        super().__init__(problem)
        self.whitened: Floats = problem.features.T

    def weigh(self, probabilities: Floats) -> Floats:
        """Move to the law `probabilities` and give the diagonal of B there."""
        scaled = np.sqrt(probabilities)[:, None] * self.problem.features
        information: Floats = (scaled.T @ scaled).T
        information.reshape(-1, order="F")[:: self.problem.rank + 1] += self.problem.regulariser
        if not try_cholesky_in_place(information):
            return np.full(probabilities.size, np.nan)
        self.whitened = blas.dtrsm(1.0, information, scaled.T, lower=1, overwrite_b=1)
        hat: Floats = np.einsum("ij,ij->j", self.whitened, self.whitened)
        return hat

    def _square(self) -> None:
        blas.dsyrk(1.0, self.whitened, c=self.matrix, trans=1, lower=1, overwrite_c=1)
        np.multiply(self.matrix, self.matrix, out=self.matrix)
