"""TV-GP-UCB: a Gaussian process that drifts by itself, as a Kalman filter on the arms.

symbol    name        shape, meaning
e         rate        f_{t+1} = sqrt(1 - e) f_t + sqrt(e) g_{t+1}, the g independent draws from GP(0, k)
lambda    ridge       variance of the noise
F         features    (N, r) with F F' = K; the identity in arm coordinates
m, P      mean, covariance of f_t given the rewards told; P = K - D
D         learned     what the rewards have explained, c E in the coordinates of F
c         fade        the factor all that was learned has faded by

A round without a reward makes m into sqrt(1-e) m and P into (1-e) P + e K, which is K - (1-e) D: forgetting only
scales D. So m, D and its diagonal are kept up to powers of one scalar c, and a round costs one rank-one update.
"""

from __future__ import annotations

import math
from typing import Any, Self, Unpack

import numpy as np
import scipy.linalg.blas

from driftbandits import state as states
from driftbandits._util.checks import check_positive, check_probability
from driftbandits.arms import ArmSet
from driftbandits.policies.algorithm import Family
from driftbandits.policies.arm_migration import ArmsChange, old_features
from driftbandits.policies.decisions import Row
from driftbandits.policies.gp.gpucb import SMALLEST_RIDGE
from driftbandits.policies.gp.posterior import DRIFT_RULES, check_beta, check_posterior, drift_factor
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.inspection import around
from driftbandits.policies.optimistic import Optimism, OptimisticPolicy
from driftbandits.state.declared import Declared, array, count, number, part
from driftbandits.state.reader import check_covariance
from driftbandits.types import Floats

_FAINTEST_FADE = 1e-8  # below, it is multiplied out
_LEAST_SINGULAR = 1e-10  # of features, as a share of the largest


class DriftingPosterior(Declared):
    """Mean and variance of every arm's reward; the reward function drifts at `rate`, the noise has variance `ridge`.

    >>> posterior = DriftingPosterior(np.eye(2), ridge=1.0, rate=0.75)
    >>> posterior.add(0, 1.0)
    >>> posterior.mean().tolist(), posterior.variance().tolist()
    ([0.5, 0.0], [0.5, 1.0])
    >>> posterior.mean(ahead=1).tolist(), posterior.variance(ahead=1).tolist()
    ([0.25, 0.0], [0.875, 1.0])
    """

    def __init__(self, features: Floats, *, ridge: float, rate: float) -> None:
        arms, rank = features.shape
        self.ridge = ridge
        self._keep = 1.0 - rate
        self._features: Floats | None = np.ascontiguousarray(features) if 2 * rank < arms else None
        self._kernel: Floats | None = None if self._features is not None else np.asfortranarray(features @ features.T)
        self._prior_variance: Floats = np.einsum("ij,ij->i", features, features)
        self._size = rank if self._features is not None else arms
        self._fade = 1.0  # c
        self._learned: Floats = np.zeros((self._size, self._size), order="F")  # E = D / c
        self._explained: Floats = np.zeros(arms)  # diagonal of D, over c
        self._shift: Floats = np.zeros(arms)  # m / sqrt(c)

    def mean(self, ahead: int = 0) -> Floats:
        """Expected reward of every arm `ahead` rounds from now, shape (N,)."""
        return math.sqrt(self._fade * self._keep**ahead) * self._shift

    def variance(self, ahead: int = 0) -> Floats:
        """Variance of every arm's reward then, shape (N,); rounding may leave it slightly below 0."""
        return self._prior_variance - (self._fade * self._keep**ahead) * self._explained

    def joint(self, ahead: int = 0) -> tuple[Floats, Floats | None]:
        """Covariance of all arms then, in the coordinates of the features, and these (None: the arms')."""
        prior = np.eye(self._size) if self._kernel is None else self._kernel
        return prior - (self._fade * self._keep**ahead) * self._learned, self._features

    def forget(self, rounds: int) -> None:
        """Let `rounds` rounds pass."""
        self._fade *= self._keep**rounds
        if self._fade < _FAINTEST_FADE:
            self._shift *= math.sqrt(self._fade)
            self._explained *= self._fade
            self._learned *= self._fade
            self._fade = 1.0

    def add(self, arm: int, reward: float, age: int = 0) -> None:
        """Take in a reward of `age` rounds ago.

        Its function was f_s = rho f_t + an independent part of variance (1 - rho^2) k, with rho = (1-e)^(age/2): it
        is an observation of rho f_t with that much more noise. Exact at age 0. For an older reward an
        approximation, a little too sure of itself: that part is independent of f_t, not of the other rewards since s.
        """
        fade, rho = self._fade, self._keep ** (0.5 * age)
        if self._kernel is not None:
            column = self._kernel[:, arm] - fade * self._learned[:, arm]
            inner = column
        else:
            features: Floats = self._features  # type: ignore[assignment]
            inner = features[arm] - fade * (self._learned @ features[arm])
            column = features @ inner
        root = math.sqrt(fade)
        noise = self.ridge + (1.0 - rho * rho) * float(self._prior_variance[arm])
        gain = rho / (rho * rho * float(column[arm]) + noise)
        self._shift += (gain * (reward - rho * root * float(self._shift[arm])) / root) * column
        weight = rho * gain / fade
        self._explained += weight * np.square(column)
        self._learned = scipy.linalg.blas.dger(weight, inner, inner, a=self._learned, overwrite_a=1)

    def take(self, other: DriftingPosterior, old: Floats, rows: Floats) -> None:
        """What another posterior believes, over other arms: given the old features (M, r), ours are `rows` (N, r).

        With D = B E B' of the old coordinates B, what was explained lies in the span of the old features, so E is only
        written in other coordinates; the mean of a new arm is that of the Gaussian conditional.
        """
        inverse = np.linalg.pinv(old, rcond=_LEAST_SINGULAR)
        inward = inverse if other._features is None else np.eye(old.shape[1])
        outward = rows if self._features is None else np.linalg.pinv(self._features, rcond=_LEAST_SINGULAR) @ rows
        turn = outward @ inward
        self._fade = other._fade
        self._learned = np.asfortranarray(turn @ other._learned @ turn.T)
        self._shift = rows @ (inverse @ other._shift)
        if self._features is None:
            self._explained = self._learned.diagonal().copy()
        else:
            self._explained = _diagonal(self._features @ self._learned, self._features)

    saved = (number("fade", within=(_FAINTEST_FADE, 1.0)), array("shift"), array("explained"), array("learned"))

    def _check_state(self, **known: Any) -> None:
        self._learned = np.asfortranarray(self._learned)
        self._check_loaded()

    @np.errstate(all="ignore")
    def _check_loaded(self) -> None:
        """Refuse a belief that the next reward would break: P = K - D is a covariance, and explained the diagonal of D.

        It is not compared with the rewards, which are not kept.
        """
        known = max(float(self._prior_variance.max(initial=0.0)), 1e-300)
        own, prior = (1.0, np.eye(self._size)) if self._kernel is None else (known, self._kernel)
        learned = self._fade * self._learned
        slack = (1e-3 * self.ridge / known + 1e-9) * own
        check_covariance(learned, largest=own, slack=slack, what="covariance that rewards explain")
        check_covariance(prior - learned, largest=own, slack=slack, what="covariance of the posterior")
        spread = self._features
        diagonal = learned.diagonal() if spread is None else _diagonal(spread @ learned, spread)
        off = np.abs(self._fade * self._explained - diagonal)
        states.check(bool((off <= 1e-6 * known).all()), "variance that rewards explain")


def _diagonal(left: Floats, right: Floats) -> Floats:
    """That of left right'."""
    return np.asarray(np.einsum("ij,ij->i", left, right))


class TimeVaryingGPUCB(OptimisticPolicy):
    """TV-GP-UCB (Bogunovic, Scarlett and Cevher 2016): GP-UCB for a reward function that drifts at a known rate.

    The model is f_{t+1} = sqrt(1-e) f_t + sqrt(e) g_{t+1}; the index is mean + scale beta sd of f_t given the past.
    Made for steady drift: after an abrupt change the old rewards fade over about 2 / e rounds, and its regret is
    linear in T for any fixed e > 0, since what is not played becomes uncertain again.

    Parameters
    ----------
    rate : e in [0, 1); memory is about 2 / e rounds, by default 2,000, and 0 is GPUCB
    ridge : lambda, the variance of the noise on the internal scale where the reward range is [-1, 1]; unlike in
        `GPUCB` the real one: default noise^2, at least 1e-4
    scale : multiplies beta
    noise : R, standard deviation of the noise, in the user's units; default a tenth of half the reward range
    failure_probability : delta, used by "finite"
    beta : a number (default 0.75, as in `GPUCB`), "finite" or "practical"; see `drift_factor`
    others : see `Policy`

    Rewards told in the order of their rounds, however late, are taken in exactly; one that is overtaken by another
    enters at its age, see `DriftingPosterior.add`. Cost per round: O(N^2), or O(N r) where the kernel's rank r is below
    N / 2.

    >>> policy = TimeVaryingGPUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    family = Family.GAUSSIAN_PROCESS

    def __init__(
        self,
        arms: ArmSet,
        *,
        rate: float = 1e-3,
        ridge: float | None = None,
        scale: float = 1.0,
        noise: float | None = None,
        failure_probability: float = 0.01,
        beta: str | float = 0.75,
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        check_posterior(arms.features)
        self.rate = check_probability("rate", rate, zero=True)
        self.ridge = None if ridge is None else check_positive("ridge", ridge)
        self.scale = check_positive("scale", scale, zero=True)
        self.noise = None if noise is None else check_positive("noise", noise, zero=True)
        self.failure_probability = check_probability("failure_probability", failure_probability)
        self.beta = check_beta(beta, DRIFT_RULES)
        deviation = self._scale.noise(self.noise)
        self._variance = max(deviation**2, SMALLEST_RIDGE) if self.ridge is None else self.ridge

    def _start(self, horizon: int | None) -> None:
        self._prepare_state()
        self._first = self._clock = self.rounds  # the filter stands at the newest round with a reward

    def _prepare_state(self) -> None:
        self._posterior = DriftingPosterior(self.arms.features, ridge=self._variance, rate=self.rate)

    # --- time and data ------------------------------------------------------------------------------------------

    def _learn_one(self, row: Row, reward: float) -> None:
        ident, arm = row.id, row.arm
        if ident < self._first:
            self.late += 1
            return
        if ident > self._clock:
            self._posterior.forget(ident - self._clock)
            self._clock = ident
        self._posterior.add(arm, reward, self._clock - ident)

    # --- beliefs ------------------------------------------------------------------------------------------------

    def _factor(self) -> float:
        return self.scale * drift_factor(
            self.beta,
            arms=len(self.arms),
            rounds=self.rounds - self._first + 1,
            failure_probability=self.failure_probability,
        )

    def _index(self) -> Floats:
        ahead = self.rounds - self._clock
        deviation = np.sqrt(np.maximum(self._posterior.variance(ahead), 0.0))
        return np.asarray(self._posterior.mean(ahead) + self._factor() * deviation)

    def _optimism(self, arm: int) -> Optimism:
        ahead = self.rounds - self._clock
        width = self._factor() * math.sqrt(max(float(self._posterior.variance(ahead)[arm]), 0.0))
        return Optimism(value=float(self._posterior.mean(ahead)[arm]) + width, width=width)

    def _estimate(self) -> Floats:
        return self._posterior.mean(self.rounds - self._clock)

    def _interval(self) -> tuple[Floats, Floats]:
        ahead = self.rounds - self._clock
        return around(self._posterior.mean(ahead), np.sqrt(np.maximum(self._posterior.variance(ahead), 0.0)))

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._prepare_state()
        self._posterior.take(old._posterior, change.old.features, old_features(change))
        self._first, self._clock = old._first, old._clock

    _saved = (
        part("posterior"),
        count("first", low="phase_start", high="rounds"),
        count("clock", low="first", high="rounds"),
    )

    def _check_state(self) -> None:
        # a posterior mean is sqrt(k y' (K + lambda)^-1 y) at most, with as many rewards as rounds
        posterior = self._posterior
        reach = math.sqrt(float(posterior._prior_variance.max()) * (self.rounds - self._first) / posterior.ridge)
        states.check(bool((np.abs(posterior.mean()) <= 2.0 * reach + 1.0).all()), "mean of the posterior")
