"""The posterior of many arms, kept up to date for those alone that may have the largest index.

symbol    name         meaning
s, t                   the round of the last fold, when all arms were brought up to date, and now
beta      factor       what an sd is multiplied by in an index
theta     _theta       (r,) coefficients: the mean is m0 + F theta
A, W      _covariance, _precision   (r, r) of theta, and W / lambda, its inverse
kappa     _drift       sqrt((theta_t - theta_s)' A_s^-1 (theta_t - theta_s))

Rewards only take variance away, and |f'(theta_t - theta_s)| <= sd_s(f) kappa (Cauchy and Schwarz). So no index is above
mean_s + (beta + kappa) sd_s: an arm for which that is less than the best index of a pool of arms that are up to date
does not lead, and need not be looked at. While this holds of all arms outside the pool, a reward costs O(P r + N) for
P arms in the pool, in the place of O(N r); when it fails, all arms are brought up to date by one product with all
rewards since, and the pool is chosen anew. The arms that lead are the same, but for rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg.blas

from driftbandits import state as states
from driftbandits.policies.gp.posterior import ArmPosterior
from driftbandits.types import Floats, Ints

LEAST_ARMS = 20_000  # of fewer all are kept up to date in a millisecond
POOL_SHARE = 25  # one arm in so many is in the pool
_ROWS_AT_ONCE = 2048  # they and their products stay in the cache
_MARGIN = 1e-8  # of indices, beyond what counts as a tie
_rank_one = scipy.linalg.blas.dger


class LeadingPosterior(ArmPosterior):
    """An `ArmPosterior` whose `mean` and `variance` are found when they are read; `index` is known of those that lead.

    Rewards are added by `add` and then `settle`. Whatever else changes the belief brings all arms up to date.
    """

    _features: Floats

    # --- all arms, as of the last fold ----------------------------------------------------------------------------

    @property
    def mean(self) -> Floats:
        """Of all arms."""
        self.fold()
        return self._mean

    @mean.setter
    def mean(self, values: Floats) -> None:
        self._mean = values

    @property
    def variance(self) -> Floats:
        """Of all arms."""
        self.fold()
        return self._variance

    @variance.setter
    def variance(self, values: Floats) -> None:
        self._variance = values

    def fold(self) -> None:
        """Bring all arms up to date with the rewards since the last time."""
        if self._late:
            inner, gains, steps = (np.array(column) for column in zip(*self._late, strict=True))
            for start in range(0, len(self._mean), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                columns = self._features[rows] @ inner.T
                self._mean[rows] += columns @ steps
                self._variance[rows] -= np.square(columns, out=columns) @ gains
            self._begin()

    def _begin(self) -> None:
        """All arms are up to date: count from here, without a pool."""
        self._late: list[tuple[Floats, float, float]] = []  # of each reward: A f, and what c c and c are multiplied by
        self._pool: Ints | None = None
        self._moved: Floats = np.zeros(self._features.shape[1])  # theta_t - theta_s

    # --- rewards --------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget everything."""
        self._begin()
        super().reset()

    def refresh(self) -> None:
        """Compute everything from the weights and sums."""
        self._begin()
        super().refresh()

    def add(self, arm: int, reward: float) -> None:
        """Take in one observation."""
        self.weights[arm] += 1.0
        self.sums[arm] += reward
        row = self._features[arm]
        inner = self._covariance @ row
        own, mean = float(row @ inner), float(self._mean[arm] + row @ self._moved)
        gain = 1.0 / (self.ridge + own)
        step = gain * (reward - mean)
        self.information_gain += 0.5 * math.log1p(own / self.ridge)
        self._moved += step * inner
        self._late.append((inner, gain, step))
        if self._pool is not None:
            columns = self._pool_features @ inner
            self._pool_mean += step * columns
            self._pool_variance -= gain * np.square(columns)
        _rank_one(-gain, inner, inner, a=self._covariance, overwrite_a=1)

    def remove(self, arm: int, reward: float) -> None:
        """Take back one observation."""
        self.fold()
        super().remove(arm, reward)

    def replace(self, arm: int, old: float, new: float) -> None:
        """Put a new reward of an arm in the place of an old one."""
        self.fold()
        super().replace(arm, old, new)

    # --- those that lead ------------------------------------------------------------------------------------------

    def settle(self, factor: float, arms: int) -> None:
        """After a reward: see to it that those who lead, of the first `arms`, are up to date.

        `factor` is what an sd is multiplied by in an index.
        """
        if self._pool is None or self._outside(factor) >= self._pool_index(factor).max() - _MARGIN:
            self.fold()
            self._choose(factor, arms)

    def index(self, factor: float, arms: int) -> Floats:
        """Indices of the first so many arms; of those outside the pool, which do not lead, -inf."""
        if self._pool is None:
            return np.asarray((self.mean + factor * np.sqrt(np.maximum(self.variance, 0.0)))[:arms])
        index = np.full(arms, -np.inf)
        index[self._pool] = self._pool_index(factor)
        return index

    def _pool_index(self, factor: float) -> Floats:
        return np.asarray(self._pool_mean + factor * np.sqrt(np.maximum(self._pool_variance, 0.0)))

    def _outside(self, factor: float) -> float:
        """The most that an index outside the pool may be."""
        drift = math.sqrt(max(float(self._moved @ self._precision @ self._moved), 0.0))
        return float((self._outside_mean + (factor + drift) * self._outside_sd).max())

    def _choose(self, factor: float, arms: int) -> None:
        """A pool of the arms with the largest indices, if they lead alone; all arms are up to date."""
        mean, sd = self._mean[:arms], np.sqrt(np.maximum(self._variance[:arms], 0.0))
        index = mean + factor * sd
        size = len(index) // POOL_SHARE
        pool = np.sort(np.argpartition(index, -size)[-size:])
        outside = np.delete(index, pool)
        if outside.max() >= index.max() - _MARGIN:  # as many ties as at the start, where all arms are alike
            self._pool = None
            return
        self._pool, self._pool_features = pool, self._features[pool]
        self._pool_mean, self._pool_variance = self._mean[pool], self._variance[pool]
        self._outside_mean, self._outside_sd = np.delete(mean, pool), np.delete(sd, pool)
        seen = np.flatnonzero(self.weights > 0.0)
        played = self._features[seen]
        self._precision: Floats = played.T @ (played * (self.weights[seen, None] / self.ridge))
        self._precision[np.diag_indices_from(self._precision)] += 1.0

    def mean_and_variance(self, arms: Ints) -> tuple[Floats, Floats]:
        """Of a few arms, without bringing all up to date."""
        rows = self._features[arms]
        return self._mean[arms] + rows @ self._moved, np.einsum("ij,ij->i", rows @ self._covariance, rows)

    # --- state ----------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything but the prior, and but the pool: who goes on and who is restored choose it anew."""
        self.fold()
        self._pool = None
        return super().export()

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self._begin()
        super().load(state)
