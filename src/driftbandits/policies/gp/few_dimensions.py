"""D-LinUCB's regression in few dimensions: both matrices are carried from round to round, and solved every round.

symbol     name        meaning
eta        discount    by which weights fade per round
n, n2, s   weights     (3, N) weights of the arms, their weights with eta^2, and their weighted sums of rewards
V          sum n f f' + lambda I
V2         sum n2 f f' + lambda I, here times lambda, as the variance wants it
b          sum s f
S          sums        (d, 2 d + 1) the matrix (V | lambda V2 | b) without the ridge
mean       f' V^-1 b
variance   lambda f' V^-1 V2 V^-1 f

With a round S only fades, and a reward adds one term of rank one: O(d^2), where sums over the weights of all arms take
O(N d^2). All terms are positive and none is ever taken away, so rounding stays what it is in the weights; still S is
summed anew after `REWARDS_BETWEEN_SUMS` rewards.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from driftbandits.errors import KernelError
from driftbandits.types import Floats

_rank_one = scipy.linalg.blas.dger
_factor_and_solve = scipy.linalg.lapack.dposv
_solve = scipy.linalg.lapack.dpotrs
REWARDS_BETWEEN_SUMS = 256


class FewDimensions:
    """Mean and sd of every arm from fading weights, with both matrices in the width.

    features, (N, d), and their products f f', flattened, (N, d^2), are read and never changed.

    >>> regression = FewDimensions(np.eye(2), np.eye(4)[[0, 3]], eta=0.5, ridge=1.0)
    >>> mean, sd = regression.beliefs(np.array([[1.0, 0.0], [1.0, 0.0], [0.8, 0.0]]))
    >>> mean.round(6).tolist(), np.square(sd).round(6).tolist()
    ([0.4, 0.0], [0.5, 1.0])
    """

    def __init__(self, features: Floats, outers: Floats, *, eta: float, ridge: float) -> None:
        rank = features.shape[1]
        self._features, self._outers, self._rank, self._ridge = features, outers, rank, ridge
        # what a reward of weight 1 multiplies its f with; the last entry is the reward's
        self._tails = np.concatenate([features, ridge * features, np.zeros((len(features), 1))], axis=1)
        shape = rank, 2 * rank + 1
        self._fades: Floats = np.full(shape, eta, order="F")  # as large as S: NumPy is slower where it must stretch one
        self._fades[:, rank:-1] = eta**2
        self._ridges: Floats = np.zeros(shape, order="F")
        self._ridges[:, :rank].flat[:: rank + 1] = ridge
        self._ridges[:, rank:-1].flat[:: rank + 1] = ridge**2
        # buffers of a solution and the parts of them that LAPACK works on, in its order
        self._room: Floats = np.empty(shape, order="F")
        self._matrix, self._right = self._room[:, :rank], self._room[:, rank:]
        self._middle: Floats = np.empty((rank, rank), order="F")
        self._flat: Floats = self._middle.T.reshape(-1)
        self.forget_sums()

    def forget_sums(self) -> None:
        """Have them summed anew from the weights, at the next beliefs."""
        self._sums: Floats | None = None
        self._added = 0

    def fade(self, rounds: int) -> None:
        """Let so many rounds pass."""
        if self._sums is not None:
            self._sums *= self._fades if rounds == 1 else self._fades**rounds

    def add(self, arm: int, weight: float, reward: float) -> None:
        """Take in a reward that has this weight now."""
        self._added += 1
        if self._added >= REWARDS_BETWEEN_SUMS:
            self.forget_sums()
        elif self._sums is not None:
            tail = self._tails[arm].copy()
            tail[-1] = reward
            if weight != 1.0:
                tail *= weight
                tail[self._rank : -1] *= weight
            self._sums = _rank_one(1.0, self._features[arm], tail, a=self._sums, overwrite_a=1)

    def _summed(self, weights: Floats) -> Floats:
        rank, (first, second, sums) = self._rank, weights
        result = np.empty((rank, 2 * rank + 1), order="F")
        result[:, :rank] = (first @ self._outers).reshape(rank, rank)
        result[:, rank:-1] = self._ridge * (second @ self._outers).reshape(rank, rank)
        result[:, -1] = sums @ self._features
        return result

    def beliefs(self, weights: Floats) -> tuple[Floats, Floats]:
        """Mean and sd of every arm, (N,) each, at these n, n2 and s, which are those that were faded and added to."""
        if self._sums is None:
            self._sums = self._summed(weights)
        np.add(self._sums, self._ridges, out=self._room)
        # in place: V becomes its factor, and (lambda V2 | b) becomes what that solves
        _, solved, info = _factor_and_solve(self._matrix, self._right, lower=1, overwrite_a=1, overwrite_b=1)
        if info != 0:
            raise KernelError(f"the weighted regression could not be factored (LAPACK info {info}); raise the ridge")
        self._middle[:] = solved[:, :-1].T
        _solve(self._matrix, self._middle, lower=1, overwrite_b=1)
        variance = self._outers.dot(self._flat)  # `dot` begins sooner than `@`
        np.maximum(variance, 0.0, out=variance)
        return self._features.dot(solved[:, -1]), np.sqrt(variance, out=variance)
