"""The information matrix of a law, factored once and asked for the leverage of many arms.

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
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import blas, lapack

from driftbandits.types import Floats

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
