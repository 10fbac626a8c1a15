"""Kernel regression on a finite set of arms: one posterior for the whole GP and linear family.

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

Arms in the regression: those on offer, followed by retired ones that still have data.

An arm that is no longer offered has taught something of its neighbours. Where the past enters through counts and sums
per arm, its rewards stay in use, and leave with a window or fade as those of other arms do. So a policy whose arms have
come and gone believes what one would that had all of them from the start.

symbol  name      shape
B       basis     (N + G, r), B B' the kernel of the N arms on offer and the G retired ones behind them
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from driftbandits import state as states
from driftbandits._util.checks import FLOAT_BYTES, check_memory, check_positive, check_word
from driftbandits.arms import ArmSet
from driftbandits.errors import KernelError
from driftbandits.policies.arm_migration import ArmsChange, match_places
from driftbandits.state.declared import Declared, array, count, number
from driftbandits.state.reader import FARTHEST, check_covariance, check_sums, check_whole
from driftbandits.types import Bools, Floats, Ints

CONFIDENCE_RULES = ("ridge", "igp", "paper")
WEIGHTED_RULES = (*CONFIDENCE_RULES, "authors")
DRIFT_RULES = ("finite", "practical")


def confidence_factor(
    rule: str | float, *, gain: float, ridge: float, noise: float, bound: float, failure_probability: float
) -> float:
    """The factor beta in mean + beta sd, from the information gain `gain` (half convention) of the data behind them.

    ridge   B + (R / sqrt(lambda)) sqrt(2 g + 2 log(1 / delta))     any lambda, ||r||_H <= B, R-sub-Gaussian noise
    igp     B + R sqrt(2 (g + 1 + log(1 / delta)))                  Chowdhury and Gopalan, lambda = 1 + 2/T
    paper   1 + sqrt(2 (2 g + 1 + log(1 / delta)))                  the paper's GPUCB; its gain has no factor 1/2
    authors B + R sqrt(2 (G + log(1 / delta)))                      the authors' WGPUCB: no 1 / sqrt(lambda), and the
                                                                    caller's `gain` is G, the largest of all rounds
    number  that number
    """
    if not isinstance(rule, str):
        return float(rule)
    log_term = math.log(1.0 / failure_probability)
    if rule == "ridge":
        return bound + noise / math.sqrt(ridge) * math.sqrt(2.0 * gain + 2.0 * log_term)
    if rule == "igp":
        return bound + noise * math.sqrt(2.0 * (gain + 1.0 + log_term))
    if rule == "authors":
        return bound + noise * math.sqrt(2.0 * (gain + log_term))
    return 1.0 + math.sqrt(2.0 * (2.0 * gain + 1.0 + log_term))


def drift_factor(rule: str | float, *, arms: int, rounds: int, failure_probability: float) -> float:
    """The factor of the sd in round number `rounds` (from 1): the square root of Bogunovic et al.'s beta_t.

    finite      beta_t = 2 log(N pi^2 t^2 / (6 delta))      their theorem on finite domains
    practical   beta_t = 0.8 log(4 t)                       as public re-implementations have it
    number      that number is the factor itself, as in `GPUCB`

    >>> round(drift_factor("practical", arms=100, rounds=1000, failure_probability=0.01), 3)
    2.576
    """
    if not isinstance(rule, str):
        return float(rule)
    if rule == "finite":
        return math.sqrt(2.0 * math.log(arms * math.pi**2 * rounds**2 / (6.0 * failure_probability)))
    return math.sqrt(0.8 * math.log(4.0 * rounds))


def check_beta(beta: Any, rules: Sequence[str]) -> str | float:
    """Give `beta` back if it is one of the `rules` or a number of at least 0.

    >>> check_beta("igp", CONFIDENCE_RULES), check_beta(2, CONFIDENCE_RULES)
    ('igp', 2.0)
    """
    if isinstance(beta, str):
        return check_word("beta", beta, rules, cure="or give the factor itself, a number")
    return check_positive("beta", beta, zero=True)


_rank_one = scipy.linalg.blas.dger
REMOVALS_BETWEEN_REFRESHES = 256  # a refresh sweeps out their rounding
_ROUNDING_OF_SUMS = 1e-6  # of what was added and taken away again


class ArmPosterior(Declared):
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

    @property
    def joint(self) -> tuple[Floats, Floats | None]:
        """Covariance of all arms, in the coordinates of the features, and these (None: the arms')."""
        return self._covariance, self._features

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

    saved = (
        array("weights"),
        array("sums"),
        array("mean", np.float64, ("weights",)),
        array("variance", np.float64, ("weights",)),
        array("covariance", np.float64, ("prior", "prior")),
        number("information_gain"),
        count("removals", high=REMOVALS_BETWEEN_REFRESHES - 1),
    )

    def _check_state(self, **known: Any) -> None:
        self._covariance = np.asfortranarray(self._covariance)
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


_SAME_KERNEL = 1e-6
_LEAST_SINGULAR = 1e-8  # share of the largest


@dataclass(frozen=True)
class Roster:
    """The retired arms, by points (G, d) and names, and the basis of all."""

    points: Floats
    names: tuple[str, ...] | None
    basis: Floats

    def export(self) -> dict[str, Any]:
        """As JSON values and arrays."""
        names = None if self.names is None else list(self.names)
        return {"points": self.points.copy(), "names": names, "basis": self.basis.copy()}

    @classmethod
    def load(cls, state: states.Reader, arms: ArmSet, own: Floats) -> Roster:
        """Inverse of `export`, for arms whose own basis is `own`."""
        points = state.array("points", np.float64, (None, arms.dimension))
        basis = state.array("basis", np.float64, (len(arms) + len(points), None))
        names = state.raw("names")
        listed = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
        states.check(names is None or (listed and len(names) == len(points)), "names of retired arms")
        states.check(bool(len(points)), "number of retired arms")
        offered = basis[: len(arms)]
        probe = np.cos(np.arange(len(arms), dtype=np.float64))
        off = np.abs(offered @ (offered.T @ probe) - own @ (own.T @ probe)).max()
        states.check(bool(off <= _SAME_KERNEL * max(1.0, float(np.square(own).sum()))), "basis of retired arms")
        return cls(points, None if names is None else tuple(names), basis)


def carry_roster(old: Roster | None, change: ArmsChange, in_use: Bools, *, linear: bool) -> tuple[Roster | None, Ints]:
    """The roster after a change of arms, and the new place of everyone on the old one (-1: nowhere).

    `in_use` says of whom on the old roster there are rewards. A retired arm that is offered again takes its place.
    """
    retired = np.zeros((0, change.old.dimension)) if old is None else old.points
    names = None if change.old.names is None else (*change.old.names, *((old.names or ()) if old else ()))
    points = np.vstack([change.old.points, retired])
    target = np.concatenate([change.target, _returning(old, change)])
    staying = np.flatnonzero((target < 0) & in_use)
    target[staying] = len(change.new) + np.arange(len(staying))
    if not len(staying):
        return None, target
    known = None if names is None or len(names) != len(points) else tuple(names[place] for place in staying)
    if linear:
        basis = np.vstack([change.new.points, points[staying]])
    elif change.new.kernel is not None:
        basis = change.new.with_points(np.vstack([change.new.points, points[staying]])).features
    else:
        basis = _joined(change, change.old.features if old is None else old.basis, staying)
    return Roster(points[staying], known, np.ascontiguousarray(basis)), target


def _returning(old: Roster | None, change: ArmsChange) -> Ints:
    """For every retired arm its number among the arms that come, -1 if it does not come back."""
    target = np.full(0 if old is None else len(old.points), -1, dtype=np.int64)
    if old is not None and len(change.added):
        found = match_places(old.points, old.names, change.new.points[change.added], _names(change))
        target[found[found >= 0]] = change.added[found >= 0]
    return target


def _names(change: ArmsChange) -> tuple[str, ...] | None:
    names = change.new.names
    return None if names is None else tuple(names[arm] for arm in change.added)


def _joined(change: ArmsChange, old_basis: Floats, staying: Ints) -> Floats:
    """The basis without a kernel to ask: features in the same coordinates, or else by what the kept arms say.

    Of a new arm and a retired one a kernel matrix says nothing: the covariance is then what the kept arms explain.
    """
    new = change.new.features
    known, kept = old_basis[change.source[change.kept]], change.kept
    rows = old_basis[staying]
    if new.shape[1] == old_basis.shape[1] and np.allclose(new[kept], known, rtol=0.0, atol=1e-12):
        return np.vstack([new, rows])
    inside = np.linalg.lstsq(new[kept], known @ rows.T, rcond=_LEAST_SINGULAR)[0].T
    values, vectors = np.linalg.eigh(rows @ rows.T - inside @ inside.T)
    rest = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.block([[new, np.zeros((len(new), len(rows)))], [inside, rest]])
