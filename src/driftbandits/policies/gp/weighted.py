"""WGPUCB and D-LinUCB: regression with weights that fade by a factor `discount` per round.

D-LinUCB's regression in few dimensions: both matrices are carried from round to round, and solved every round.

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

symbol     name        meaning
eta        discount    weight of a reward k rounds old is eta^k; the newest is 1 round old in WGPUCB, 0 in D-LinUCB
n, s       weights, sums of weight eta^k; n2 with weights eta^(2k)
V          sum n f f' + lambda I
V2         sum n2 f f' + lambda I
g2         gain        1/2 log det(V2 / lambda), enters beta
M          sum n f f' as it was at the anchor, a round of the recent past; U diag(H) U'
H, U       levels, turn
c          fade        eta^k, k rounds after the anchor

All weights fade every round and lambda does not, so no update of rank one leads from V to the next V. But what was
known at the anchor only fades: in its own eigenvectors it is diag(c H + lambda), and each arm rewarded since adds one
term of rank one. Those m arms are a regression on top with the faded past as its prior, O(N r m) instead of O(N r^2);
when they are many, the anchor moves to the present. Nothing but the weights is carried from round to round, so rounding
does not grow. In few dimensions, and where the width takes both matrices, V and V2 are factored every round instead;
where it takes both in few dimensions and beta is a number, they are carried from round to round (`FewDimensions`).
Weights are kept relative to the present round (never eta^-t), so no horizon overflows.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from driftbandits import state as states
from driftbandits._util.checks import check_probability, check_word
from driftbandits._util.guard import guarded
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import KernelError
from driftbandits.policies.algorithm import Family
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Row
from driftbandits.policies.gp import forgetting
from driftbandits.policies.gp.forgetting import Forgetting
from driftbandits.policies.gp.posterior import CONFIDENCE_RULES, WEIGHTED_RULES
from driftbandits.policies.inspection import around
from driftbandits.policies.optimistic import Optimism
from driftbandits.state.reader import ROUNDING, check_sums, told_at_most
from driftbandits.types import Floats, Ints

_rank_one = scipy.linalg.blas.dger
_factor_and_solve = scipy.linalg.lapack.dposv
_solve_by_cholesky = scipy.linalg.lapack.dpotrs
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
        _solve_by_cholesky(self._matrix, self._middle, lower=1, overwrite_b=1)
        variance = self._outers.dot(self._flat)  # `dot` begins sooner than `@`
        np.maximum(variance, 0.0, out=variance)
        return self._features.dot(solved[:, -1]), np.sqrt(variance, out=variance)


_solve_lower = scipy.linalg.blas.dtrsm
_product = scipy.linalg.blas.dgemm
_FAINTEST_WEIGHT = 1e-200  # its inverse is still finite
_FAINTEST_WEIGHT_KEPT = 1e-12  # of an arm that is gone
_ROUNDS_AHEAD = 32  # the anchor alone then costs no calls in most of them
_FEW_DIMENSIONS = 32  # factoring V takes less time than the calls it saves


class _Beliefs(NamedTuple):
    mean: Floats
    sd: Floats
    gain: float  # 0 where nobody needs it


class _Past:
    """What the anchor's data alone say in the `_ROUNDS_AHEAD` rounds from `start` on, by a few products in all."""

    def __init__(
        self, levels: list[Floats], sums: Floats, turned: Floats, *, start: int, eta: float, ridge: float
    ) -> None:
        self.start = start
        fades = eta ** np.arange(start, start + _ROUNDS_AHEAD, dtype=np.float64)[:, None]
        # 1 / (c H + lambda) of V, and of V2 with its own H and c^2; (rounds, r)
        self.first: Floats = 1.0 / (fades * levels[0] + ridge)
        self.means: Floats = (fades * sums * self.first) @ turned.T
        self.variances: Floats = self.first @ np.square(turned).T
        if len(levels) > 1:
            self.second: Floats = 1.0 / (np.square(fades) * levels[1] + ridge)
            self.gains: list[float] = (-0.5 * np.log(ridge * self.second).sum(axis=1)).tolist()


class _Anchor:
    """The regression of one round, from which that of a later one follows with the arms rewarded in between.

    Levels H, turn U, and a row U' f for every arm since are those of V; where gains are wanted, there are others of V2.
    """

    def __init__(self, features: Floats, weights: Floats, *, clock: int, eta: float, ridge: float, gains: bool) -> None:
        rank = features.shape[1]
        self._clock, self._eta, self._ridge = clock, eta, ridge
        self._room = rank // 2  # near the best between more arms per round and eigenvectors more often
        self._places: dict[int, int] = {}
        self._since: Ints = np.empty(0, dtype=np.int64)  # its keys
        self._rows: Floats = np.empty((2, self._room, rank))
        self._features: Floats = features
        levels, turn = _eigenvectors(features, weights[0])
        self._levels, self._second_turn = [levels], None
        if gains:
            levels, self._second_turn = _eigenvectors(features, weights[1])
            self._levels.append(levels)
        self._turned: Floats = np.asfortranarray(features @ turn)
        self._sums: Floats = weights[2] @ self._turned
        self._past = self._look_ahead(0)

    def _look_ahead(self, start: int) -> _Past:
        return _Past(self._levels, self._sums, self._turned, start=start, eta=self._eta, ridge=self._ridge)

    def holds(self, arm: int) -> bool:
        """Whether `arm` is among those rewarded since; it is put there if there is room."""
        if arm in self._places:
            return True
        place = len(self._places)
        if place == self._room:
            return False
        self._rows[0, place] = self._turned[arm]
        if self._second_turn is not None:
            self._rows[1, place] = self._features[arm] @ self._second_turn
        self._places[arm] = place
        self._since = np.array(list(self._places))
        return True

    def beliefs(self, added: Floats, clock: int) -> _Beliefs:
        """In round `clock`, with the weights and sums `added` since, (3, N), as faded by then.

        As a Gaussian process: the past gives the mean m and the covariance lambda E, E = F (c M + lambda I)^-1 F', and
        each arm since is an observation s / n of noise lambda / n.
        """
        age = clock - self._clock
        if not 0 <= age - self._past.start < _ROUNDS_AHEAD:
            self._past = self._look_ahead(age)
        past, at = self._past, age - self._past.start
        mean, variance = past.means[at], past.variances[at]
        gain = 0.0 if self._second_turn is None else past.gains[at]
        if self._places:
            weights, squared, sums = added.take(self._since, axis=1)
            noise = 1.0 / np.maximum(weights, _FAINTEST_WEIGHT)
            scaled = self._rows[0, : len(noise)] * past.first[at]
            known = _product(1.0, self._turned, scaled.T)  # E, its columns of the arms since
            factor = _noisy_factor(known[self._since].T, noise)
            surprise = sums * noise - mean[self._since]
            explained = _from_right(factor, known)
            mean = mean + explained @ _solve_lower(1.0, factor, surprise[:, None], lower=1)[:, 0]
            variance = variance - np.einsum("ij,ij->i", explained, explained)
            if self._second_turn is not None:
                gain += self._gain_since(squared, past.second[at])
        return _Beliefs(mean=mean, sd=_root(self._ridge * variance), gain=gain)

    def _gain_since(self, squared: Floats, within: Floats) -> float:
        """1/2 log det(I + n2 E2) of the arms since: what they add, as det(A + R' n R) = det A det(I + n R A^-1 R')."""
        weights = np.maximum(squared, _FAINTEST_WEIGHT)
        rows = self._rows[1, : len(weights)]
        factor = _noisy_factor(_product(1.0, rows.T, (rows * within).T, trans_a=1), 1.0 / weights)
        return 0.5 * float(np.log(weights * np.square(factor.diagonal())).sum())


class WeightedGPUCB(Forgetting):
    """WGPUCB (Deng et al. 2022): GPUCB on exponentially discounted rewards.

    Parameters
    ----------
    discount : eta in (0, 1]; default 0.9975, or from `variation` and the horizon, `forgetting.kernel_discount`
    variation : V_T, the total drift of the reward function, for the theory's discount; knowledge that the ADA family
        does without
    width : "one_matrix" (sd from V) or "two_matrix" (sd from V^-1 V2 V^-1, tighter and dearer)
    beta : a number (default 0.75, as in `GPUCB`), or the theory's "ridge", "igp" or "paper", see `confidence_factor`,
        with the gain of the squared weights. "authors" is the width that the authors of ADA-OPKB gave WGPUCB,
        B + R sqrt(2 (G + log(1 / delta))) with G the largest gain of all rounds and no division by sqrt(lambda), for
        playing what they played
    others : see `GPUCB`

    A late reward enters with the weight of its age since it was asked. Cost per round: O(N r m) with m <= r / 2 arms
    played lately, and O(N r^2 + r^3) whenever they become too many; O(N r^2) with "two_matrix".

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> WeightedGPUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0).discount
    0.9975
    """

    _size_name: ClassVar[str] = "discount"
    _usual_size: ClassVar[float] = 0.9975
    _kernel_size = staticmethod(forgetting.kernel_discount)
    _linear_size = staticmethod(forgetting.linear_discount)
    _rules: ClassVar[tuple[str, ...]] = WEIGHTED_RULES
    _largest_gain: float | None = None  # of all rounds, where beta asks for it

    def __init__(
        self,
        arms: ArmSet,
        *,
        discount: float | None = None,
        width: Literal["one_matrix", "two_matrix"] = "one_matrix",
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self._set_size(None if discount is None else check_probability("discount", discount, one=True))
        self.width = check_word("width", width, ("one_matrix", "two_matrix"))
        self.needs_horizon = self.needs_horizon or self.beta == "authors"

    @property
    def discount(self) -> float | None:
        """Factor by which weights fade per round; None before the first round if it is to be computed."""
        return self._eta if self._phase_length else self._size

    def _start(self, horizon: int | None) -> None:
        self._prepare(horizon)
        self._eta = self._resolve_size(horizon)
        self._set_weights(np.zeros((3, len(self._basis()))))
        self._first = self._clock = self.rounds

    def _prepare(self, horizon: int | None) -> None:
        features = self._basis()
        if features.shape[1] > len(features):  # points in many dimensions: the same inner products in N of them
            features = np.ascontiguousarray(np.linalg.qr(features.T).R.T)
        rank = features.shape[1]
        self._features = features
        self._anchored = self.width == "one_matrix" and rank > _FEW_DIMENSIONS
        # in few dimensions both weighted Gram matrices are one small product with all f f', flattened
        self._outers: Floats | None = (
            np.einsum("ij,ik->ijk", features, features).reshape(-1, rank**2) if rank <= _FEW_DIMENSIONS else None
        )
        self._gains = isinstance(self.beta, str) and self.beta != "authors"  # whether beta is made of them
        self._log_ridge = math.log(self.ridge)
        if horizon is not None and self.beta == "authors":
            self._largest_gain = self._gain_at(horizon)

    def _set_weights(self, weights: Floats) -> None:
        """Begin with these n, n2, s and no anchor."""
        self._all = np.stack([weights, np.zeros_like(weights)])
        self._weights, self._added = self._all  # all there is, and what came since the anchor
        self._fades = np.array([[self._eta], [self._eta**2], [self._eta]])  # of one round
        self._few: FewDimensions | None = None
        if self._outers is not None and self.width == "two_matrix" and not self._gains:
            self._few = FewDimensions(self._features, self._outers, eta=self._eta, ridge=self.ridge)
            # as large as the weights: NumPy takes three times as long where it must stretch a factor
            self._fades = np.repeat(self._fades, weights.shape[1], axis=1)
        self._drop_anchor()

    def _drop_anchor(self) -> None:
        self._anchor: _Anchor | None = None
        self._beliefs: _Beliefs | None = None

    # --- time and data ------------------------------------------------------------------------------------------

    def _quiet_rounds(self) -> int:
        return 1  # weights fade with every round

    def _due(self) -> bool:
        return self._clock < self.rounds

    def _turn(self) -> None:
        self._fade_until(self.rounds)

    def _fade_until(self, clock: int) -> None:
        passed = clock - self._clock
        kept = self._all if self._anchored else self._weights
        kept *= self._fades if passed == 1 else self._fades**passed
        if self._few is not None:
            self._few.fade(passed)
        self._clock = clock
        self._beliefs = None

    def _learn_one(self, row: Row, reward: float) -> None:
        ident, arm = row.id, row.arm
        if ident < self._first:
            self.late += 1
            return
        # the clock stands at `ident` while a round's own reward is awaited, further on for a late one; a batch asked
        # ahead of the clock is weighted from where the clock stands
        weight = self._eta ** (self._clock - ident)
        news = (weight, weight * weight, weight * reward)
        if self._anchored:
            self._all[:, :, arm] += news
            if self._anchor is not None and not self._anchor.holds(arm):
                self._anchor = None
        else:
            self._weights[:, arm] += news
            if self._few is not None:
                self._few.add(arm, weight, reward)
        self._beliefs = None

    # --- beliefs ------------------------------------------------------------------------------------------------

    def _believe(self) -> _Beliefs:
        if self._beliefs is None:
            if self._few is not None:
                self._beliefs = _Beliefs(*self._few.beliefs(self._weights), gain=0.0)
            else:
                self._beliefs = self._from_anchor() if self._anchored else self._factored()
        return self._beliefs

    def _from_anchor(self) -> _Beliefs:
        if self._anchor is None:
            sizes = {"eta": self._eta, "ridge": self.ridge}
            anchor = _Anchor(self._features, self._weights, clock=self._clock, gains=self._gains, **sizes)
            self._added[:] = 0.0  # before there is an anchor: without one nobody reads it
            self._anchor = anchor
        return self._anchor.beliefs(self._added, self._clock)

    def _factored(self) -> _Beliefs:
        """With V = L L' and V2 = L2 L2': F V^-1 F' is the square of F L^-T, F V^-1 V2 V^-1 F' that of F V^-1 L2."""
        features = self._features
        first, second = self._grams(features)
        factor, doubled = _cholesky(first), _cholesky(second)
        right = features.T @ self._weights[2]
        if self.width == "two_matrix":
            solved = _solve(factor, np.column_stack([doubled, right]))
            spread, mean = features @ solved[:, :-1], features @ solved[:, -1]
        else:
            spread = _from_right(factor, np.array(features, order="F"))
            mean = spread @ _solve_lower(1.0, factor, right[:, None], lower=1)[:, 0]
        sd = _root(self.ridge * np.einsum("ij,ij->i", spread, spread))
        return _Beliefs(mean=mean, sd=sd, gain=self._gain_of(doubled))

    def _jointly(self) -> tuple[Floats, float, Floats, Floats | None]:
        """Mean of all arms, the gain, and the covariance of all in the coordinates of the features, and these.

        As in `ArmPosterior`, the coordinates are those of the arms (None) unless the rank is below half their number.
        """
        first, second = self._grams(self._features)
        factor, doubled = _cholesky(first), _cholesky(second)
        half = _solve(factor, doubled if self.width == "two_matrix" else np.eye(len(factor)))
        covariance = half @ half.T if self.width == "two_matrix" else 0.5 * (half + half.T)
        features, gain = self._features, self._gain_of(doubled)
        mean = features @ _solve(factor, features.T @ self._weights[2])
        if 2 * features.shape[1] < len(features):
            return mean, gain, self.ridge * covariance, features
        return mean, gain, self.ridge * (features @ covariance @ features.T), None

    def _gain_of(self, factor: Floats) -> float:
        """1/2 log det(V2 / lambda), of the factor of V2."""
        return float(np.log(factor.diagonal()).sum()) - 0.5 * len(factor) * self._log_ridge

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

    def _factor(self, gain: float) -> float:
        return super()._factor(gain if self._largest_gain is None else self._largest_gain)

    def _index(self) -> Floats:
        beliefs = self._believe()
        return np.asarray((beliefs.mean + self._factor(beliefs.gain) * beliefs.sd)[: len(self.arms)])

    def _optimism(self, arm: int) -> Optimism:
        beliefs = self._believe()
        width = self._factor(beliefs.gain) * float(beliefs.sd[arm])
        return Optimism(value=float(beliefs.mean[arm]) + width, width=width)

    def _estimate(self) -> Floats:
        return self._believe().mean[: len(self.arms)]

    def _interval(self) -> tuple[Floats, Floats]:
        beliefs = self._believe()
        return around(self._estimate(), self._unit * beliefs.sd[: len(self.arms)])

    @property
    @guarded
    def information_gain(self) -> float:
        """Information gain of the squared weights (half convention)."""
        self._begin_once()
        return self._believe().gain if self._gains else self._gain_of(_cholesky(self._grams(self._features)[1]))

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._place(old, change, old._weights[0] > _FAINTEST_WEIGHT_KEPT)
        self._prepare(self._phase_length if self.needs_horizon else None)
        self._eta, self._first, self._clock = old._eta, old._first, old._clock
        weights, named = np.zeros((3, len(self._basis()))), self._places >= 0
        weights[:, self._places[named]] = old._weights[:, named]
        self._set_weights(weights)

    def _export(self) -> dict[str, Any]:
        # anchor and sums are no part of the state: dropped here, so that who goes on and who is restored do the same
        if self._few is not None:
            self._few.forget_sums()
        self._drop_anchor()
        numbers = {"eta": self._eta, "first": self._first, "clock": self._clock}
        return {"weights": self._weights.copy(), **numbers, **self._export_roster()}

    def _import(self, state: states.Reader) -> None:
        self._import_roster(state)
        self._prepare(self._phase_length if self.needs_horizon else None)
        self._eta = state.number("eta")
        given = self._size
        states.check(0.0 < self._eta <= 1.0 and (given is None or self._eta == given), "discount")
        self._set_weights(state.array("weights", np.float64, (3, len(self._features))))
        self._first = state.integer("first", low=self._phase_start, high=self.rounds)
        self._clock = state.integer("clock", low=max(self._first, self.rounds - 1), high=self.rounds)
        weights, squared, sums = self._weights
        check_sums(weights, squared, "squared weights")
        check_sums(weights, sums, "sums of rewards")
        most = (1.0 + ROUNDING) * told_at_most(self.rounds, self._pending.rows(), since=self._first)
        states.check(bool((squared >= 0.0).all()) and float(weights.sum()) <= most, "weights")


class DiscountedLinUCB(WeightedGPUCB):
    """D-LinUCB (Russac, Vernade and Cappe 2019): LinUCB on discounted rewards, with both its matrices.

    The newest reward has weight 1, the one before it eta, as in its paper; in WGPUCB the newest has faded once already.

    Its defaults are not enough where rewards are not linear in the points: see `LinUCB`.

    Parameters
    ----------
    discount : eta in (0, 1]; default 0.99, or from `variation` and the horizon, `forgetting.linear_discount`
    variation : the drift of the parameter, for the theory's discount; knowledge that the ADA family does without
    bound : norm of the parameter, in the user's units; default half the range
    beta : a number (default 0.75, as in `GPUCB`), or the theory's "ridge", "igp" or "paper", see `confidence_factor`,
        with the gain of the squared weights
    others : see `WeightedGPUCB`

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> DiscountedLinUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0).discount
    0.99
    """

    family = Family.LINEAR
    _linear: ClassVar[bool] = True
    _rules: ClassVar[tuple[str, ...]] = CONFIDENCE_RULES
    _usual_size: ClassVar[float] = 0.99

    def __init__(
        self, arms: ArmSet, *, width: Literal["one_matrix", "two_matrix"] = "two_matrix", **settings: Any
    ) -> None:
        super().__init__(arms, width=width, **settings)

    def _due(self) -> bool:
        return False  # time passes when a round is asked, not before the next one

    def _advance(self, count: int) -> None:
        self._fade_until(self.rounds - 1)


def _eigenvectors(features: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues (r,) and eigenvectors (r, r) of sum n f f'."""
    if not weights.any():
        return np.zeros(features.shape[1]), np.eye(features.shape[1])
    rooted = features * np.sqrt(weights)[:, None]
    values, vectors, info = scipy.linalg.lapack.dsyevd(
        scipy.linalg.blas.dsyrk(1.0, rooted.T, lower=1), lower=1, overwrite_a=1
    )
    if info != 0:
        raise KernelError(f"the weighted regression has no eigenvectors (LAPACK info {info}); raise the ridge")
    return np.maximum(values, 0.0), np.asarray(vectors)


def _root(variance: Floats) -> Floats:
    return np.sqrt(np.maximum(variance, 0.0))


def _noisy_factor(covariance: Floats, noise: Floats) -> Floats:
    """Cholesky factor of E + diag(noise), in the place of E, which is in Fortran order."""
    covariance.T.reshape(-1)[:: len(noise) + 1] += noise
    return _cholesky(covariance)


def _from_right(factor: Floats, right: Floats) -> Floats:
    """B L^-T in the place of B, which is in Fortran order: a third faster in BLAS than L^-1 B'."""
    return np.asarray(_solve_lower(1.0, factor, right, side=1, lower=1, trans_a=1, overwrite_b=1))


def _solve(factor: Floats, right: Floats) -> Floats:
    solution, info = scipy.linalg.lapack.dpotrs(factor, right, lower=1)
    if info != 0:
        raise KernelError(f"LAPACK potrs refused its argument {-info}")
    return np.asarray(solution)


def _cholesky(matrix: Floats) -> Floats:
    factor, info = scipy.linalg.lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    _check_factored(info)
    return np.asarray(factor)


def _check_factored(info: int) -> None:
    if info != 0:
        raise KernelError(f"the weighted regression could not be factored (LAPACK info {info}); raise the ridge")
