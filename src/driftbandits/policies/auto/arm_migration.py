"""What the hypotheses believe of new arms: the Gaussian conditional.

symbol  name      shape           meaning
F               (M, r)           features of the old arms under one prior
G       rows    (N, r)           the new arms in these features: their projection on what the old ones span
T       G F^+   (N, M)           K_no K_oo^-1: what is expected of the new arms, given the old ones and no level
C       turn    (R', R)          from the old coordinates to the new ones
U       rest    (N, N)           covariance of the new arms given the old ones

The level that all arms share is a coordinate of its own, so that y = g + level with g of the kernel alone; g of a new
arm is T g of the old ones, up to U. A hypothesis with mean m and covariance S goes on with C m and C S C' + breadth U.
`learned` is what its prior over the new arms has more than that. For a kernel that is given this is what the hypothesis
would believe had it known the arms from the start. Where the kernel is cut to fewer features than it has (`rank`), or
arms become so many that a prior is given up, it is what the features of the new arms can say of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits._util.linalg import first_largest
from driftbandits.arms.features import pair_features
from driftbandits.arms.kernels import SquaredExponential
from driftbandits.errors import InputError
from driftbandits.policies.arm_migration import ArmsChange, match_arms, old_features, unexplained
from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.policies.auto.exposures import Exposures
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, SIGNAL_VARIANCES, Priors, Representatives
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.successes import LOW
from driftbandits.policies.length_scales import PairKernel, feature_map
from driftbandits.state.reader import FARTHEST
from driftbandits.types import Floats, Ints

_LEAST_SINGULAR = 1e-10  # of features, as a share of the largest
_TURNED = ("mean", "learned", "recent", "with_mood")


@dataclass(frozen=True, slots=True)
class MigratedHypotheses:
    """The states of beliefs and mixture with the new arms.

    kinds : for every old prior the number of the new one that takes its place
    places : for every old hypothesis its new place, -1 where it was given up
    """

    beliefs: dict[str, Any]
    mixture: dict[str, Any]
    kinds: Ints
    places: Ints


def migrate_hypotheses(
    beliefs: Beliefs, mixture: Mixture, new: Priors, change: ArmsChange, *, rank: int
) -> MigratedHypotheses:
    """What the hypotheses believe of the arms whose priors are `new`."""
    state, weights, old = beliefs.export(), mixture.export(), beliefs.priors
    kind, kinds = state["kind"], _kinds(old, new)
    rows, log_weight = _rows(kind, kinds, weights["log_weight"])
    turns = {k: _Turn(old, new, k, kinds[k], change, rank) for k in np.unique(kind[rows]).tolist()}
    moved = [turns[int(kind[row])].carry(beliefs, int(row)) for row in rows]
    kept = {
        name: value[rows] if isinstance(value, np.ndarray) else value
        for name, value in state.items()
        if name not in (*_TURNED, "kind")
    }
    kept.update({name: np.array([part[name] for part in moved]) for name in _TURNED})
    kept.update(kind=np.array([kinds[int(k)] for k in kind[rows]]), count=len(rows))
    places = np.full(len(kind), -1, dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return MigratedHypotheses(kept, {**weights, "log_weight": log_weight}, kinds, places)


def migrate_counts(state: dict[str, Any], change: ArmsChange) -> dict[str, Any]:
    """The state of `TwoValued`: successes and failures of the kept arms.

    What a success pays is known of these arms, or else it is the mean of all.
    """
    value = change.carry(state["value"], LOW)
    known = state["value"] > LOW
    if known.any() and not (value > LOW).any():
        value[change.kept] = state["value"][known].mean()
    return {
        **state,
        "value": value,
        "plays": change.carry(state["plays"], 0),
        "successes": change.carry(state["successes"], 0),
        "paid": change.carry(state["paid"], 0.0),
        "squares": change.carry(state["squares"], 0.0),
    }


def migrate_exposures(exposures: Exposures, change: ArmsChange) -> dict[str, Any]:
    """The state of `Exposures`: cohorts without the plays of arms that are gone."""
    moved = Exposures(len(change.target))
    moved.load(states.Reader(exposures.export()), rounds=FARTHEST)
    moved.renumber(change.target, len(change.source))
    return moved.export()


class RepresentativesChange:
    """Which representatives of the new arms stand for what the old ones stood for.

    sources : for every new representative the place of what represented it before, -1 where it was not there
    """

    def __init__(self, old: Representatives, new: Representatives, change: ArmsChange) -> None:
        self._old, self._new, self._change = old, new, change
        origins = change.source[new.numbers].tolist()
        self.sources: Ints = np.array([old.of(arm) if arm >= 0 else -1 for arm in origins], dtype=np.int64)

    def _place(self, place: int) -> int:
        """Where what the representative `place` stood for is represented now; -1 if it is gone, or was none."""
        arm = -1 if place < 0 else int(self._change.target[self._old.numbers[place]])
        return -1 if arm < 0 else self._new.of(arm)

    def migrate_probing(self, state: dict[str, Any], kinds: Ints, clock: int) -> dict[str, Any]:
        """The state of `Probing`: nothing has gone unseen of an arm that was not there."""
        told = np.zeros(len(self._new.numbers), dtype=np.int64)
        for place in np.flatnonzero(state["told"]).tolist():
            now = self._place(place)
            if now >= 0:
                told[now] += state["told"][place]
        return {
            **state,
            "seen": np.where(self.sources >= 0, state["seen"][self.sources], float(clock)),
            "told": told,
            "kind": -1 if state["kind"] < 0 else int(kinds[state["kind"]]),
            **{name: self._place(state[name]) for name in ("doubted", "stale", "rival", "claimed")},
        }


def _kinds(old: Priors, new: Priors) -> Ints:
    """For every old prior the new one with its length scale and signal; where that is given up, the finest there is.

    Of segments' correlations none is given up.
    """
    tried, now = (priors.count // len(SIGNAL_VARIANCES) for priors in (old, new))
    labels, news = _labels(old)[:tried], _labels(new)[:now]
    places = {label: place for place, label in enumerate(news)}
    finest = {rho: place for place, (scale, rho) in enumerate(news) if scale}
    found = [places.get((scale, rho), finest.get(rho, now - 1)) for scale, rho in labels]
    return np.array([signal * now + place for signal in range(len(SIGNAL_VARIANCES)) for place in found])


def _labels(priors: Priors) -> list[tuple[float | None, float | None]]:
    """Length scale and correlation of segments of every prior."""
    return list(zip(priors.length_scales, priors.correlations or [None] * priors.count, strict=True))


def _rows(kind: Ints, kinds: Ints, log_weight: Floats) -> tuple[Ints, Floats]:
    """Hypotheses that go on, and their weights.

    Those of a prior that is given up go on only where no hypothesis has the one in its place; else these get their
    weight.
    """
    own = np.array([int(np.flatnonzero(kinds == kinds[k])[0]) for k in range(len(kinds))])  # the first stands for all
    goes_on = np.zeros(len(kind), dtype=np.bool_)
    weights = log_weight.copy()
    for target in np.unique(kinds[kind]):
        rows = np.flatnonzero(kinds[kind] == target)
        first = rows[kind[rows] == own[kind[rows]]]
        staying = first if len(first) else rows[kind[rows] == kind[rows[first_largest(weights[rows])]]]
        goes_on[staying] = True
        lost = np.setdiff1d(rows, staying)
        if len(lost):
            heir = staying[first_largest(weights[staying])]
            weights[heir] = np.logaddexp.reduce(weights[[heir, *lost.tolist()]])
    rows = np.flatnonzero(goes_on)
    return rows, weights[rows] - weights[rows].max()


class _Turn:
    """The way of the hypotheses of one prior to the new arms."""

    def __init__(self, old: Priors, new: Priors, kind: int, new_kind: int, change: ArmsChange, rank: int) -> None:
        self._new, self._kind = new, new_kind
        signal = SIGNAL_VARIANCES[kind // (old.count // len(SIGNAL_VARIANCES))]
        features, rows = _in_old_features(old, kind, change, rank)
        inward = _inward(old, features, signal)
        if new.direct:
            rest = _rest(old, kind, rows, change, rank)
            self.turn, self.rest = _to_arms(new, inward, rows, rest, signal)
            if old.direct:  # what is known of a kept arm stays; the way through features has its rounding
                self.turn[change.kept] = np.eye(old.width)[change.source[change.kept]]
        else:
            self.turn, self.rest = _to_features(new, new_kind, inward, rows)

    def carry(self, beliefs: Beliefs, row: int) -> dict[str, Floats]:
        """Mean, and what was learned, of one hypothesis in the new coordinates."""
        turn = self.turn
        breadth, level, fade = (float(part[row]) for part in (beliefs.breadth, beliefs.level, beliefs.fade))
        covariance = turn @ beliefs.covariance(row) @ turn.T + breadth * self.rest
        prior = breadth * self._new.prior[self._kind]
        if self._new.direct:
            prior = prior + LEVEL_VARIANCE * level
        else:
            prior[-1, -1] += level
        recent = beliefs.recent[row, : beliefs.gathered] @ turn.T
        learned = (prior - 0.5 * (covariance + covariance.T)) / fade - recent.T @ recent
        with_mood = turn @ beliefs.with_mood[row]
        return {"mean": turn @ beliefs.mean[row], "learned": learned, "recent": recent, "with_mood": with_mood}


def _in_old_features(old: Priors, kind: int, change: ArmsChange, rank: int) -> tuple[Floats, Floats]:
    """F and G of one prior, without its signal."""
    features = old.features(kind)
    if old.pairs:
        return features, _rows_of_pairs(old.pairs[kind], change, rank)
    return features, rows_in_old_features(features, old.length_scales[kind], change, rank)


def rows_in_old_features(features: Floats, scale: float | None, change: ArmsChange, rank: int) -> Floats:
    """G under the kernel with this length scale, in whose features the old arms are `features`."""
    if scale is None:
        whole = old_features(change)
        return whole @ _turn(change.old.features, features)
    rows = np.zeros((len(change.new), features.shape[1]))
    rows[change.kept] = features[change.source[change.kept]]
    if scale and len(change.added):
        gauge = change.new.gauge
        points = gauge.standardised(change.new.points)[change.added]
        rows[change.added] = feature_map(gauge.standardised(change.old.points), scale, rank)(points)[:, : rows.shape[1]]
    return rows


def _rows_of_pairs(pair: PairKernel, change: ArmsChange, rank: int) -> Floats:
    """G of options in segments, where only options come or go: those of the options times those of the segments."""
    options = _options(change)
    rows = pair_features(rows_in_old_features(pair.options, pair.length_scale, options, rank), pair.segments)
    return rows @ _turn(pair_features(pair.options, pair.segments), pair.features)


def _turn(features: Floats, turned: Floats) -> Floats:
    """What makes all features into those that are used, which may be turned, and cut to fewer."""
    if np.array_equal(features, turned):
        return np.eye(features.shape[1])
    return np.asarray(np.linalg.lstsq(features, turned, rcond=None)[0])


def _options(change: ArmsChange) -> ArmsChange:
    """Which options of pairs are which."""
    old, new = change.old.crossing, change.new.crossing
    if old is None or new is None or old.names != new.names:
        raise InputError(
            "AutoBandit goes on with other options in the same segments: make the new arms with "
            "ArmSet.crossed(options, segments) from options that follow the old ones and the segments as they were, or "
            "build a new policy"
        )
    return match_arms(old.options, new.options)


def _rest(old: Priors, kind: int, rows: Floats, change: ArmsChange, rank: int) -> Floats:
    """U of one prior, without its signal; (N, N), so only for arms that are their own coordinates."""
    if not old.pairs:
        return _rest_of(old.length_scales[kind], rows, change)
    pair, options = old.pairs[kind], _options(change)
    rows = rows_in_old_features(pair.options, pair.length_scale, options, rank)
    rest = _rest_of(pair.length_scale, rows, options)
    return np.asarray(np.kron(pair.segments @ pair.segments.T, rest), dtype=np.float64)


def _rest_of(scale: float | None, rows: Floats, change: ArmsChange) -> Floats:
    if scale is None:
        return unexplained(change, old_features(change))
    rest, added = np.zeros((len(change.new), len(change.new))), np.ix_(change.added, change.added)
    if scale == 0.0:
        rest[added] = np.eye(len(change.added))
    elif len(change.added):
        points = change.new.gauge.standardised(change.new.points)[change.added]
        rest[added] = SquaredExponential(scale)(points, points) - rows[change.added] @ rows[change.added].T
    return rest


def _inward(old: Priors, features: Floats, signal: float) -> Floats:
    """From the old coordinates to those of the features, of variance 1 each, and the level's."""
    size, rank = features.shape
    if not old.direct:
        return np.eye(old.width)[[*range(rank), old.width - 1]]
    inverse = np.linalg.pinv(features, rcond=_LEAST_SINGULAR) / np.sqrt(signal)
    inward = np.zeros((rank + 1, size + 1))
    inward[:rank, :size], inward[:rank, size] = inverse, -inverse.sum(axis=1)
    inward[rank, size] = 1.0 / np.sqrt(LEVEL_VARIANCE)
    return inward


def _to_arms(new: Priors, inward: Floats, rows: Floats, rest: Floats, signal: float) -> tuple[Floats, Floats]:
    """The whole way to arms that are their own coordinates, and what the old arms leave open of these."""
    size, rank = rows.shape
    outward, left = np.zeros((new.width, rank + 1)), np.zeros((new.width, new.width))
    outward[:size, :rank], outward[:, rank] = np.sqrt(signal) * rows, np.sqrt(LEVEL_VARIANCE)
    left[:size, :size] = signal * _positive(rest)
    return outward @ inward, left


def _to_features(new: Priors, kind: int, inward: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """The whole way to the features of the new arms, and what the old arms leave open of these."""
    rank = rows.shape[1]
    outward, left = np.zeros((new.width, rank + 1)), np.zeros((new.width, new.width))
    features = new.features(kind)
    shown = features.shape[1]
    # rotations, up to what the features leave out: no direction may gain variance
    left_side, values, right_side = np.linalg.svd(
        np.linalg.pinv(features, rcond=_LEAST_SINGULAR) @ rows, full_matrices=False
    )
    moved = (left_side * np.minimum(values, 1.0)) @ right_side
    outward[:shown, :rank], outward[-1, rank] = moved, 1.0
    left[:-1, :-1] = np.eye(new.width - 1)
    left[:shown, :shown] -= moved @ moved.T
    return outward @ inward, left


def _positive(matrix: Floats) -> Floats:
    """Without the variances below 0 that rounding leaves."""
    some = np.flatnonzero(matrix.any(axis=1))
    values, vectors = np.linalg.eigh(matrix[np.ix_(some, some)])
    positive = np.zeros_like(matrix)
    positive[np.ix_(some, some)] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return positive
