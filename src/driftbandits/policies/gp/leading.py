"""The posterior of many arms, kept up to date for those alone that may have the largest index.

symbol    name         meaning
s, t                   the round of the last fold, when all arms were brought up to date, and now
beta      factor       what an sd is multiplied by in an index
theta                  (r,) coefficients: the mean is m0 + F theta; `moved` is theta_t - theta_s
A_s^-1    precision    (r, r) I + sum n f f' / lambda: the inverse of the covariance of theta in round s
kappa     drift        sqrt((theta_t - theta_s)' A_s^-1 (theta_t - theta_s))

Rewards only take variance away, and |f'(theta_t - theta_s)| <= sd_s(f) kappa (Cauchy and Schwarz). So no index is above
mean_s + (beta + kappa) sd_s: an arm for which that is less than the best index of a pool of arms that are up to date
does not lead, and need not be looked at. While this holds of all arms outside the pool, a reward costs O(P r + N) for
P arms in the pool, in the place of O(N r); when it fails, all arms are brought up to date by one product with all
rewards since, and the pool is chosen anew. The arms that lead are the same, but for rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
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


@dataclass
class _Pool:
    """Arms that are kept up to date, and what was known of the others when they were chosen."""

    arms: Ints
    features: Floats
    mean: Floats
    variance: Floats
    other_means: Floats
    other_sds: Floats
    precision: Floats

    def index(self, factor: float) -> Floats:
        """Of the arms in it."""
        return np.asarray(self.mean + factor * np.sqrt(np.maximum(self.variance, 0.0)))

    def most_outside(self, factor: float, moved: Floats) -> float:
        """The most that an index outside may be by now."""
        drift = math.sqrt(max(float(moved @ self.precision @ moved), 0.0))
        return float((self.other_means + (factor + drift) * self.other_sds).max())


@dataclass
class _Span:
    """All arms as of round s, and the rewards since; put in its place whole, so that nobody sees half a fold."""

    moved: Floats
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    variance: Floats = field(default_factory=lambda: np.zeros(0))
    late: list[tuple[Floats, float, float]] = field(default_factory=list)  # A f, and what c c and c are multiplied by
    pool: _Pool | None = None


class LeadingPosterior(ArmPosterior):
    """An `ArmPosterior` whose `mean` and `variance` are found when they are read; `index` is known of those that lead.

    Rewards are added by `add` and then `settle`. Whatever else changes the belief brings all arms up to date.
    """

    _features: Floats
    _span: _Span

    # --- all arms, as of the last fold ----------------------------------------------------------------------------

    @property
    def mean(self) -> Floats:
        """Of all arms."""
        self.fold()
        return self._span.mean

    @mean.setter
    def mean(self, values: Floats) -> None:
        self._span.mean = values

    @property
    def variance(self) -> Floats:
        """Of all arms."""
        self.fold()
        return self._span.variance

    @variance.setter
    def variance(self, values: Floats) -> None:
        self._span.variance = values

    def fold(self) -> None:
        """Bring all arms up to date with the rewards since the last time."""
        span = self._span
        if not span.late:
            return
        mean, variance = span.mean.copy(), span.variance.copy()
        inner, gains, steps = (np.array(column) for column in zip(*span.late, strict=True))
        for start in range(0, len(mean), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            columns = self._features[rows] @ inner.T
            mean[rows] += columns @ steps
            variance[rows] -= np.square(columns, out=columns) @ gains
        self._span = _Span(np.zeros_like(span.moved), mean, variance)

    def _begin(self) -> None:
        """Nothing is known of any arm."""
        self._span = _Span(np.zeros(self._features.shape[1]))

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
        span = self._span
        own, mean = float(row @ inner), float(span.mean[arm] + row @ span.moved)
        gain = 1.0 / (self.ridge + own)
        step = gain * (reward - mean)
        self.information_gain += 0.5 * math.log1p(own / self.ridge)
        span.moved += step * inner
        span.late.append((inner, gain, step))
        if span.pool is not None:
            columns = span.pool.features @ inner
            span.pool.mean += step * columns
            span.pool.variance -= gain * np.square(columns)
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
        pool = self._span.pool
        if pool is None or pool.most_outside(factor, self._span.moved) >= pool.index(factor).max() - _MARGIN:
            self.fold()
            self._span.pool = self._chosen(factor, arms)

    def index(self, factor: float, arms: int) -> Floats:
        """Indices of the first so many arms; of those outside the pool, which do not lead, -inf."""
        pool = self._span.pool
        if pool is None:
            return np.asarray((self.mean + factor * np.sqrt(np.maximum(self.variance, 0.0)))[:arms])
        index = np.full(arms, -np.inf)
        index[pool.arms] = pool.index(factor)
        return index

    def _chosen(self, factor: float, arms: int) -> _Pool | None:
        """A pool of the arms with the largest indices, if they lead alone; all arms are up to date."""
        span = self._span
        mean, sd = span.mean[:arms], np.sqrt(np.maximum(span.variance[:arms], 0.0))
        index = mean + factor * sd
        size = len(index) // POOL_SHARE
        chosen = np.sort(np.argpartition(index, -size)[-size:])
        if np.delete(index, chosen).max() >= index.max() - _MARGIN:  # ties, as at the start, where all arms are alike
            return None
        seen = np.flatnonzero(self.weights > 0.0)
        played = self._features[seen]
        precision = played.T @ (played * (self.weights[seen, None] / self.ridge))
        precision[np.diag_indices_from(precision)] += 1.0
        return _Pool(
            arms=chosen,
            features=self._features[chosen],
            mean=mean[chosen],
            variance=span.variance[chosen],
            other_means=np.delete(mean, chosen),
            other_sds=np.delete(sd, chosen),
            precision=precision,
        )

    def mean_and_variance(self, arms: Ints) -> tuple[Floats, Floats]:
        """Of a few arms, without bringing all up to date."""
        rows = self._features[arms]
        return self._span.mean[arms] + rows @ self._span.moved, np.einsum("ij,ij->i", rows @ self._covariance, rows)

    # --- state ----------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything but the prior, and but the pool: who goes on and who is restored choose it anew."""
        self.fold()
        self._span.pool = None
        return super().export()

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self._begin()
        super().load(state)
