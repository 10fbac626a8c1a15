"""How many arms read the coordinates: the features of every kernel are held once, whatever the size of its signal.

symbol  name       shape    meaning
phi_a   features   (N, r)   of one kernel
s, l                        variances of the signal and of the level that all arms share
h_a                (R,)     (sqrt(s) phi_a, zeros, sqrt(l)): the reward of arm a is h_a' x, see `priors`
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from driftbandits.types import Floats, Ints

ARMS_AT_A_TIME = 4096  # where all arms are gone through: what is computed on the way stays small


class Readings:
    """Rows h_a of all priors; prior c has kernel c modulo the number of kernels."""

    def __init__(self, features: Sequence[Floats], signals: Floats, level: float, width: int) -> None:
        self._features = features
        self._signals = np.sqrt(signals)
        self._level = math.sqrt(level)
        self._width = width
        self.size = len(features[0])
        self._latest: tuple[int, Floats] = (-1, np.zeros((0, width)))

    def kernel(self, kind: int) -> int:
        """Number of the kernel of a prior."""
        return kind % len(self._features)

    def of(self, kind: int, arms: Ints | slice = slice(None)) -> Floats:
        """Rows of these arms under one prior, shape (M, R)."""
        phi = self._features[self.kernel(kind)][arms]
        rows = np.zeros((len(phi), self._width))
        np.multiply(phi, self._signals[kind], out=rows[:, : phi.shape[1]])
        rows[:, -1] = self._level
        return rows

    def one(self, kinds: Ints, arm: int) -> Floats:
        """The row of one arm under each of these priors, shape (n, R)."""
        if self._latest[0] != arm:  # one arm is read several times when its reward is told
            rows = np.zeros((len(self._features), self._width))
            for row, phi in zip(rows, self._features, strict=True):
                row[: phi.shape[1]] = phi[arm]
            self._latest = (arm, rows)
        read = self._latest[1][kinds % len(self._features)]
        read *= self._signals[kinds, None]
        read[:, -1] = self._level
        return read

    def some(self, arms: Ints) -> Readings:
        """The same of some arms, copied: they are numbered anew."""
        return Readings([phi[arms] for phi in self._features], np.square(self._signals), self._level**2, self._width)

    def rewards(self, kind: int, coordinates: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """What coordinates (..., R) say of these arms, shape (..., M)."""
        phi = self._features[self.kernel(kind)][arms]
        signal = (self._signals[kind] * coordinates[..., : phi.shape[1]]).astype(phi.dtype, copy=False)
        rewards = np.asarray(signal @ phi.T, dtype=np.float64)
        rewards += self._level * coordinates[..., -1:]
        return rewards

    def rewards_of_each(self, kinds: Ints, coordinates: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """`rewards` for several priors, each with coordinates (m, R) of its own: (k, m, R) to (k, m, M).

        Those of one kernel are read together, in one product.
        """
        kernels = kinds % len(self._features)
        distinct = sorted(set(kernels.tolist()))
        if len(distinct) == 1:  # as nearly always: nothing to put together
            return self._rewards_of_kernel(distinct[0], kinds, coordinates, arms)
        places = [np.flatnonzero(kernels == kernel) for kernel in distinct]
        parts = [
            self._rewards_of_kernel(kernel, kinds[mine], coordinates[mine], arms)
            for kernel, mine in zip(distinct, places, strict=True)
        ]
        return np.asarray(np.concatenate(parts)[np.argsort(np.concatenate(places))])

    def _rewards_of_kernel(self, kernel: int, kinds: Ints, coordinates: Floats, arms: Ints | slice) -> Floats:
        """`rewards_of_each` where all priors have this kernel."""
        phi = self._features[kernel][arms]
        signal = self._signals[kinds, None, None] * coordinates[:, :, : phi.shape[1]]
        read = signal.reshape(-1, phi.shape[1]).astype(phi.dtype, copy=False) @ phi.T
        rewards = read.reshape(len(kinds), -1, len(phi)).astype(np.float64, copy=False)
        rewards += self._level * coordinates[:, :, -1:]
        return rewards

    def variances(self, kind: int, covariance: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """Variances of these arms' rewards where the coordinates have this covariance, shape (M,)."""
        numbers = np.arange(self.size)[arms]
        found = np.empty(len(numbers))
        for start in range(0, len(numbers), ARMS_AT_A_TIME):
            some = slice(start, start + ARMS_AT_A_TIME)
            rows = self.of(kind, numbers[some])
            found[some] = np.einsum("ar,ar->a", rows @ covariance, rows)
        return np.maximum(found, 0.0)
