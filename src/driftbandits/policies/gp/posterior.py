"""Kernel regression on a finite set of arms: one object for the whole GP and linear family.

symbol    name               shape, meaning
m0        prior_mean         (N,) what the model expects before any reward, 0 unless set
n         weights            (N,) how often, or with which discounted weight, each arm was seen
s         sums               (N,) weighted sums of rewards
lambda    ridge              variance of the noise of the surrogate model
F         features           (N, r) with F F' = K; the identity in arm coordinates
W         sum_i n_i f_i f_i' + lambda I
A         covariance         lambda W^-1 in the coordinates of F; K less what was learned in arm coordinates
mu        mean               (N,) m0 + F A F' (s - n m0) / lambda
d         variance           (N,) diagonal of F A F'
g         information_gain   1/2 log det(I + K n / lambda), the half convention of GP-UCB papers

The past enters through (n, s) only. Where the rank is below half the number of arms the coordinates are the features
(O(r^2 + N r) per round), otherwise the arms themselves (O(N^2)).
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from driftbandits import state as states
from driftbandits.errors import KernelError
from driftbandits.memory import FLOAT_BYTES, check_memory
from driftbandits.state.plausible import FARTHEST, check_covariance, check_sums, check_whole
from driftbandits.types import Floats, Ints

_rank_one = scipy.linalg.blas.dger
REMOVALS_BETWEEN_REFRESHES = 256  # a refresh sweeps out their rounding
_ROUNDING_OF_SUMS = 1e-6  # of what was added and taken away again


class ArmPosterior:
    """Posterior mean and variance of every arm under GP(m0, k) with noise variance `ridge`.

    Adding and removing single observations cost one rank-one update; `refresh` computes everything from (n, s) by a
    Cholesky factorisation. Removal is well posed (n_a >= 1 implies C_aa < lambda) but amplifies rounding, so every
    256 removals, and at once where C_aa has come too near lambda, the posterior is refreshed.

    >>> posterior = ArmPosterior(np.eye(2), ridge=1.0)
    >>> posterior.add(0, 1.0)
    >>> posterior.mean.tolist(), posterior.variance.tolist()
    ([0.5, 0.0], [0.5, 1.0])
    """

    def __init__(self, features: Floats, *, ridge: float) -> None:
        arms = len(features)
        self.ridge = ridge
        self.weights: Floats = np.zeros(arms)
        self.sums: Floats = np.zeros(arms)
        self._set_prior(features, np.zeros(arms))
        self.reset()

    def _set_prior(self, features: Floats, prior_mean: Floats) -> None:
        arms, rank = features.shape
        self.prior_mean = prior_mean
        self._features: Floats | None = np.ascontiguousarray(features) if 2 * rank < arms else None
        self._prior: Floats = np.eye(rank) if self._features is not None else features @ features.T
        self._prior_variance: Floats = np.einsum("ij,ij->i", features, features)

    def rebase(self, features: Floats, prior_mean: Floats) -> None:
        """Go on with another prior, from the same observations."""
        self._set_prior(features, prior_mean)
        self.refresh()

    def reset(self) -> None:
        """Forget everything."""
        self._clear()

    def _clear(self) -> None:
        """Back to the prior, without observations."""
        self.weights[:] = 0.0
        self.sums[:] = 0.0
        self._covariance = np.array(self._prior, order="F")
        self.mean: Floats = self.prior_mean.copy()
        self.variance: Floats = self._prior_variance.copy()
        self.information_gain = 0.0
        self._removals = 0

    def add(self, arm: int, reward: float) -> None:
        """Take in one observation."""
        self.weights[arm] += 1.0
        self.sums[arm] += reward
        self._shift(arm, reward, 1.0)

    def remove(self, arm: int, reward: float) -> None:
        """Take back one observation."""
        self.weights[arm] -= 1.0
        self.sums[arm] = self.sums[arm] - reward if self.weights[arm] > 0.0 else 0.0
        self._removals += 1
        if self._removals >= REMOVALS_BETWEEN_REFRESHES or self.variance[arm] >= self.ridge * (1.0 - 1e-10):
            self.refresh()
            return
        self._shift(arm, reward, -1.0)

    def replace(self, arm: int, old: float, new: float) -> None:
        """Put a new reward of an arm in the place of an old one: only the mean moves."""
        self.sums[arm] += new - old
        self.mean += self._column(arm)[0] * ((new - old) / self.ridge)

    def _column(self, arm: int) -> tuple[Floats, Floats]:
        """Covariance of `arm` with all arms, and the same in the coordinates of A."""
        if self._features is None:
            column = self._covariance[:, arm]
            return column, column
        inner = self._covariance @ self._features[arm]
        return self._features @ inner, inner

    def _shift(self, arm: int, reward: float, weight: float) -> None:
        """Change the weight of `arm` by +1 or -1: C -= w c c' / (lambda + w c_a) and likewise the mean."""
        column, inner = self._column(arm)
        own = column.item(arm)
        gain = weight / (self.ridge + weight * own)
        self.information_gain += 0.5 * math.log1p(weight * own / self.ridge)
        self.mean += (gain * (reward - self.mean.item(arm))) * column
        self.variance -= gain * (column * column)
        direction = inner.copy()  # in arm coordinates a view of what is about to change
        _rank_one(-gain, direction, direction, a=self._covariance, overwrite_a=1)

    def refresh(self) -> None:
        """Compute everything from the weights and sums."""
        self._removals = 0
        seen = np.flatnonzero(self.weights > 0.0)
        if not len(seen):
            self._clear()
            return
        if self._features is None:
            self._refresh_arms(seen)
        else:
            self._refresh_features(seen, self._features)

    def _refresh_arms(self, seen: Any) -> None:
        root = np.sqrt(self.weights[seen])
        surprise = self.sums[seen] - self.weights[seen] * self.prior_mean[seen]
        small = root[:, None] * self._prior[np.ix_(seen, seen)] * root
        small[np.diag_indices_from(small)] += self.ridge
        factor, info = scipy.linalg.lapack.dpotrf(small, lower=1, clean=1, overwrite_a=1)
        _check(info)
        explained, _ = scipy.linalg.lapack.dtrtrs(factor, root[:, None] * self._prior[seen], lower=1)
        weighted, _ = scipy.linalg.lapack.dtrtrs(factor, (surprise / root)[:, None], lower=1)
        self._covariance = np.asfortranarray(self._prior - explained.T @ explained)
        self.variance = self._covariance.diagonal().copy()
        self.mean = self.prior_mean + explained.T @ weighted[:, 0]
        self.information_gain = float(np.log(factor.diagonal()).sum()) - 0.5 * len(seen) * math.log(self.ridge)

    def _refresh_features(self, seen: Any, features: Floats) -> None:
        played = features[seen]
        gram = played.T @ (played * self.weights[seen, None])
        gram[np.diag_indices_from(gram)] += self.ridge
        factor, info = scipy.linalg.lapack.dpotrf(gram, lower=1, clean=1, overwrite_a=1)
        _check(info)
        inverse, info = scipy.linalg.lapack.dpotrs(factor, np.eye(len(gram)), lower=1)
        _check(info)
        self._covariance = np.asfortranarray(self.ridge * inverse)
        spread, _ = scipy.linalg.lapack.dtrtrs(factor, features.T, lower=1)
        self.variance = self.ridge * np.einsum("ij,ij->j", spread, spread)
        surprise = self.sums[seen] - self.weights[seen] * self.prior_mean[seen]
        coefficients, _ = scipy.linalg.lapack.dpotrs(factor, played.T @ surprise, lower=1)
        self.mean = self.prior_mean + features @ coefficients
        self.information_gain = float(np.log(factor.diagonal()).sum()) - 0.5 * len(gram) * math.log(self.ridge)

    def take(self, other: ArmPosterior, places: Ints) -> None:
        """The observations of another posterior, whose arm a is places[a] here (negative: there are none of it)."""
        named = places >= 0
        self.weights[places[named]], self.sums[places[named]] = other.weights[named], other.sums[named]
        self.refresh()

    def export(self) -> dict[str, Any]:
        """Everything but the prior."""
        return {
            "weights": self.weights.copy(),
            "sums": self.sums.copy(),
            "mean": self.mean.copy(),
            "variance": self.variance.copy(),
            "covariance": np.array(self._covariance, order="C"),
            "information_gain": self.information_gain,
            "removals": self._removals,
        }

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        size = len(self.weights)
        self.weights = state.array("weights", np.float64, (size,))
        self.sums = state.array("sums", np.float64, (size,))
        self.mean = state.array("mean", np.float64, (size,))
        self.variance = state.array("variance", np.float64, (size,))
        self._covariance = np.asfortranarray(state.array("covariance", np.float64, self._prior.shape))
        self.information_gain = state.number("information_gain")
        self._removals = state.integer("removals", high=REMOVALS_BETWEEN_REFRESHES - 1)
        self._check_loaded()

    @np.errstate(all="ignore")
    def _check_loaded(self) -> None:
        """Refuse a belief that the next reward would break, or that the rewards counted cannot have led to."""
        check_whole(self.weights, FARTHEST, "weights of the posterior")
        check_sums(self.weights, self.sums, "sums of the posterior", slack=_ROUNDING_OF_SUMS)
        known = max(float(self._prior_variance.max(initial=0.0)), 1e-300)
        own = known if self._features is None else 1.0  # the same in the coordinates of the covariance
        slack = (1e-3 * self.ridge / known + 1e-9) * own
        check_covariance(self._covariance, largest=own, slack=slack, what="covariance of the posterior")
        states.check(bool((self._covariance.diagonal() <= 2.0 * own).all()), "covariance of the posterior")
        # a thousand times what rounding did in long runs: with small ridges, removals lose (k / lambda)^2 of the digits
        ratio = known / self.ridge
        loose = 1e-6 + 1e-9 * ratio + 1e-11 * ratio * ratio
        if loose < 1.0:
            self._check_follows(loose, known, own)

    def _check_follows(self, loose: float, known: float, own: float) -> None:
        """Refuse a belief that is far from what its weights and sums lead to."""
        anew = copy.copy(self)
        anew.weights, anew.sums = self.weights.copy(), self.sums.copy()
        try:
            anew.refresh()
        except KernelError:  # there is nothing to compare with
            return
        pairs = (
            (self.mean, anew.mean, 1.0 + float(np.abs(anew.mean).max(initial=0.0))),
            (self.variance, anew.variance, known),
            (self._covariance, anew._covariance, own),
            (np.asarray(self.information_gain), np.asarray(anew.information_gain), 1.0 + anew.information_gain),
        )
        near = all(bool((np.abs(one - other) <= loose * size).all()) for one, other, size in pairs)
        states.check(near, "belief of the posterior")


def _check(info: int) -> None:
    if info != 0:
        raise KernelError(f"the posterior could not be factored (LAPACK info {info}); raise the ridge")


def check_posterior(features: Floats) -> None:
    """Refuse arms whose joint posterior cannot be held: two matrices as large as the features are many."""
    arms, rank = features.shape
    cure = "take fewer arms, or a kernel with a longer length scale or a larger tolerance"
    check_memory(
        2 * FLOAT_BYTES * min(arms, rank) ** 2,
        f"a posterior over {arms:,} arms and {rank:,} features",
        cure=cure,
    )
