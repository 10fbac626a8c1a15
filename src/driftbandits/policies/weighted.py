"""WGPUCB and D-LinUCB: regression with weights that fade by a factor `discount` a round.

symbol     name        meaning
eta        discount    weight of a reward k rounds old is eta^k
n, s       weights, sums of weight eta^k; n2 with weights eta^(2k)
V          sum n f f' + lambda I
V2         sum n2 f f' + lambda I
g2         gain        1/2 log det(V2 / lambda), enters beta

All weights change every round, so there is no rank-one shortcut: a round costs two Cholesky factorisations.
Weights are kept relative to the present round (never eta^-t), so no horizon overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError, KernelError
from driftbandits.policies import sizes
from driftbandits.policies import state as states
from driftbandits.policies.checks import check_positive
from driftbandits.policies.forgetting import Forgetting
from driftbandits.policies.gpucb import confidence_factor
from driftbandits.policies.optimistic import Optimism
from driftbandits.types import Floats

_solve_lower = scipy.linalg.blas.dtrsm
_FEW = 32  # dimensions


@dataclass(frozen=True)
class _Beliefs:
    mean: Floats
    sd: Floats
    gain: float


class WeightedGPUCB(Forgetting):
    """WGPUCB (Deng et al. 2022): GPUCB on exponentially discounted rewards.

    Parameters
    ----------
    discount : eta in (0, 1]; by default from `variation` and the horizon, `sizes.kernel_discount`
    variation : V_T, the total drift of the reward function; knowledge that the ADA family does without
    width : "one_matrix" (sd from V) or "two_matrix" (sd from V^-1 V2 V^-1, tighter and dearer)
    others : see `GPUCB`; beta uses the gain of the squared weights

    A late reward enters with the weight of its age since it was asked. Cost a round: O(N^3), or O(N r^2).
    """

    _size_name: ClassVar[str] = "discount"

    def __init__(
        self,
        arms: ArmSet,
        *,
        discount: float | None = None,
        variation: float = 1.0,
        width: Literal["one_matrix", "two_matrix"] = "one_matrix",
        **settings: Any,
    ) -> None:
        size = None if discount is None else check_positive("discount", discount)
        if size is not None and size > 1:
            raise InputError(f"discount must lie in (0, 1], got {discount!r}")
        if width not in ("one_matrix", "two_matrix"):
            raise InputError(f"width must be 'one_matrix' or 'two_matrix', got {width!r}")
        super().__init__(arms, size=size, variation=variation, **settings)
        self.width = width

    @property
    def discount(self) -> float | None:
        """Factor by which weights fade a round; None before the first round if it is to be computed."""
        return self._eta if self._phase_length else self._size

    def _resolve(self, horizon: int | None) -> float:
        if self._size is not None:
            return self._size
        if horizon is None:
            raise InputError("discount=None needs a horizon")
        if self._linear:
            return sizes.linear_discount(horizon=horizon, variation=self.variation, dimension=self.arms.dimension)
        return sizes.kernel_discount(horizon=horizon, variation=self.variation, gain=self._gain_at(horizon))

    def _start(self, horizon: int | None) -> None:
        self._prepare()
        self._eta = self._resolve(horizon)
        self._weights = np.zeros((3, len(self.arms)))  # n, n2, s
        self._first = self._clock = self.rounds

    def _prepare(self) -> None:
        features = self._basis()
        low_rank = self.width == "two_matrix" or 2 * features.shape[1] < features.shape[0]
        self._features: Floats | None = features if low_rank else None
        self._kernel: Floats | None = None if low_rank else np.asfortranarray(features @ features.T)
        # in few dimensions both weighted Gram matrices are one small product with all f f', flattened
        rank = features.shape[1]
        few = low_rank and rank <= _FEW
        self._outers: Floats | None = np.einsum("ij,ik->ijk", features, features).reshape(-1, rank**2) if few else None
        self._log_ridge = math.log(self.ridge)
        self._beliefs: _Beliefs | None = None

    # --- time and data ------------------------------------------------------------------------------------------

    def _due(self) -> bool:
        return self._clock < self.rounds

    def _turn(self) -> None:
        fade = self._eta ** (self.rounds - self._clock)
        self._weights *= fade
        self._weights[1] *= fade
        self._clock = self.rounds
        self._beliefs = None

    def _add(self, ident: int, arm: int, reward: float) -> None:
        if ident < self._first:
            self.late += 1
            return
        # the clock stands at `ident` while a round's own reward is awaited, further on for a late one; a batch asked
        # ahead of the clock is weighted from where the clock stands
        weight = self._eta ** (self._clock - ident)
        weights, squared, sums = self._weights
        weights[arm] += weight
        squared[arm] += weight * weight
        sums[arm] += weight * reward
        self._beliefs = None

    # --- beliefs ------------------------------------------------------------------------------------------------

    def _believe(self) -> _Beliefs:
        if self._beliefs is None:
            weights, squared, sums = self._weights
            if self._features is not None:
                self._beliefs = self._in_features(self._features, sums)
            elif self._kernel is not None:
                self._beliefs = self._in_arms(self._kernel, weights, squared, sums)
        return self._beliefs  # type: ignore[return-value]

    def _in_arms(self, kernel: Floats, weights: Floats, squared: Floats, sums: Floats) -> _Beliefs:
        """All arms at once: one of weight 0 has a row of the identity and explains nothing."""
        root = np.sqrt(weights)
        factor = self._arm_factor(kernel, root)
        # K diag(root) L^-T, solved from the right: a third faster in BLAS than L^-1 diag(root) K
        explained = _solve_lower(1.0, factor, kernel * root, side=1, lower=1, trans_a=1, overwrite_b=1)
        right = np.divide(sums, root, out=np.zeros_like(sums), where=root > 0.0)
        weighted = _solve_lower(1.0, factor, right[:, None], lower=1)[:, 0]
        variance = kernel.diagonal() - np.einsum("ij,ij->i", explained, explained)
        second = self._arm_factor(kernel, np.sqrt(squared))
        gain = float(np.log(second.diagonal()).sum()) - 0.5 * len(kernel) * self._log_ridge
        return _Beliefs(mean=explained @ weighted, sd=np.sqrt(np.maximum(variance, 0.0)), gain=gain)

    def _arm_factor(self, kernel: Floats, root: Floats) -> Floats:
        small = kernel * root
        small *= root[:, None]
        small.T.ravel()[:: len(small) + 1] += self.ridge
        return _cholesky(small)

    def _in_features(self, features: Floats, sums: Floats) -> _Beliefs:
        first, second = self._grams(features)
        factor = _cholesky(first)
        spread = self.ridge * (
            _solve(factor, _solve(factor, second).T)
            if self.width == "two_matrix"
            else _solve(factor, np.eye(len(first)))
        )
        variance = np.einsum("ij,ij->i", features @ spread, features)
        doubled = _cholesky(second)
        return _Beliefs(
            mean=features @ _solve(factor, features.T @ sums),
            sd=np.sqrt(np.maximum(variance, 0.0)),
            gain=float(np.log(doubled.diagonal()).sum()) - 0.5 * len(first) * self._log_ridge,
        )

    def _grams(self, features: Floats) -> tuple[Floats, Floats]:
        """V and V2; symmetric, so their transposes are they too, in the order LAPACK wants."""
        rank = features.shape[1]
        if self._outers is not None:
            flat = self._weights[:2] @ self._outers
        else:
            flat = np.stack([((features.T * weights) @ features).ravel() for weights in self._weights[:2]])
        flat[:, :: rank + 1] += self.ridge
        first, second = flat.reshape(2, rank, rank)
        return first.T, second.T

    def _factor_of(self, beliefs: _Beliefs) -> float:
        return self.scale * confidence_factor(
            self.beta,
            gain=beliefs.gain,
            ridge=self.ridge,
            noise=self._noise,
            bound=self._bound,
            confidence=self.confidence,
        )

    def _index(self) -> Floats:
        beliefs = self._believe()
        return np.asarray(beliefs.mean + self._factor_of(beliefs) * beliefs.sd)

    def _optimism(self, arm: int) -> Optimism:
        beliefs = self._believe()
        width = self._factor_of(beliefs) * float(beliefs.sd[arm])
        return Optimism(value=float(beliefs.mean[arm]) + width, width=width)

    def _estimate(self) -> Floats:
        return self._believe().mean

    @property
    def information_gain(self) -> float:
        """Information gain of the squared weights (half convention)."""
        self._begin_once()
        return self._believe().gain

    # --- state --------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "width": self.width}

    def _export(self) -> dict[str, Any]:
        return {"weights": self._weights.copy(), "eta": self._eta, "first": self._first, "clock": self._clock}

    def _import(self, state: states.Reader) -> None:
        self._prepare()
        self._weights = state.array("weights", np.float64, (3, len(self.arms)))
        self._eta = state.number("eta")
        self._first = state.integer("first", high=self.rounds)
        self._clock = state.integer("clock", high=self.rounds)


class DiscountedLinUCB(WeightedGPUCB):
    """D-LinUCB (Russac, Vernade and Cappe 2019): LinUCB on discounted rewards, with both its matrices.

    `discount` is by default `sizes.linear_discount` of `variation`, the drift of the parameter: knowledge that the ADA
    family does without. Other settings as `WeightedGPUCB`; `bound` is the norm of the parameter.
    """

    _linear: ClassVar[bool] = True

    def __init__(
        self, arms: ArmSet, *, width: Literal["one_matrix", "two_matrix"] = "two_matrix", **settings: Any
    ) -> None:
        super().__init__(arms, width=width, **settings)


def _solve(factor: Floats, right: Floats) -> Floats:
    solution, info = scipy.linalg.lapack.dpotrs(factor, right, lower=1)
    if info != 0:
        raise KernelError(f"LAPACK potrs refused its argument {-info}")
    return np.asarray(solution)


def _cholesky(matrix: Floats) -> Floats:
    factor, info = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        raise KernelError(f"the weighted regression could not be factored (LAPACK info {info}); raise the ridge")
    return np.asarray(factor)
