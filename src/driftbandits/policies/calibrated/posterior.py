"""The Gaussian process of `CalibratedOPKB` given the rewards of an epoch: means and deviations, of all arms or a few.

symbol     name              meaning
F          _scaled           sqrt(kappa) Phi with a column of sqrt(LEVEL_VARIANCE), (N, r + 1): rewards are m0 + F x
A          factor            I + F' diag(n) F / s^2, (r + 1, r + 1): the precision of x given the rewards; its factor
w          weights           (r + 1,) the mean of x
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftbandits.detection.ledger import Totals
from driftbandits.linalg import cholesky
from driftbandits.policies.calibrated.evidence import LEVEL_VARIANCE
from driftbandits.types import Floats, Ints


@dataclass(frozen=True)
class Prior:
    """What is believed before any reward of the epoch."""

    features: Floats
    mean: Floats
    signal: float
    noise_variance: float


class Posterior:
    """What is believed of every arm, given totals of the rewards of all."""

    def __init__(self, prior: Prior, totals: Totals) -> None:
        self._prior = prior
        seen = np.flatnonzero(totals.counts)
        F, counts = _scaled(prior.features[seen], prior.signal), totals.counts[seen]
        A = (F.T * counts) @ F / prior.noise_variance
        A[np.diag_indices_from(A)] += 1.0
        surprise = totals.sums[seen] - counts * prior.mean[seen]
        self._factor = cholesky(A, what="precision of rewards")
        self._weights = self._factor.solve(F.T @ surprise / prior.noise_variance)

    @cached_property
    def mean(self) -> Floats:
        """Of every arm's reward, shape (N,)."""
        return np.asarray(self._prior.mean + _scaled(self._prior.features, self._prior.signal) @ self._weights)

    def mean_of(self, arms: Ints) -> Floats:
        """Of the rewards of these arms."""
        F = _scaled(self._prior.features[arms], self._prior.signal)
        return np.asarray(self._prior.mean[arms] + F @ self._weights)

    def deviation_of(self, arms: Ints) -> Floats:
        """Standard deviations of the rewards of these arms: of F x with x ~ N(w, A^-1)."""
        spread = self._factor.half_solve(_scaled(self._prior.features[arms], self._prior.signal).T)
        return np.asarray(np.sqrt(np.einsum("ra,ra->a", spread, spread)))


def _scaled(features: Floats, signal: float) -> Floats:
    F = np.empty((len(features), features.shape[1] + 1))
    F[:, :-1] = math.sqrt(signal) * features
    F[:, -1] = math.sqrt(LEVEL_VARIANCE)
    return F
