"""The posterior of very many arms, of which only those near the largest index are kept up to date.

Arms lie in groups of neighbours. A reward moves what is known of the middle of each group, exactly; of its members it
is known to within their distance from it. So a group whose members cannot lead is skipped: what its members have
been since it was last brought up to date, and what moved, bound their indices from above.

| symbol | name     | shape     | meaning                                                                             |
|--------|----------|-----------|-------------------------------------------------------------------------------------|
| f      | features | (N, r)    | of the arms; A (r, r) is the covariance in their coordinates                        |
| g      | members  | (G, size) | arms of each group; the last one is filled up with an arm of its own                |
| c, d   | middles, radii | (G, r), (G,) | mean of the members' features, and the largest distance from it            |
| m      | moved    | (r,)      | what all rewards have added to the mean, f'm for an arm                             |
| m_g    | anchors  | (G, r)    | m when the group was brought up to date                                             |

    mean of a member  <=  its largest mean then + c'(m - m_g) + d |m - m_g|
    sd of a member    <=  its largest sd then, and <= (c'A c)^(1/2) + d, for A <= I
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from driftbandits import state as states
from driftbandits.policies.gp.posterior import ArmPosterior
from driftbandits.types import Floats, Ints

LEAST_ARMS = 20_000  # of fewer all are kept up to date in a millisecond
_GROUP_SIZE = 128
_MOST_GROUPS = 1024
_FEWEST_GROUPS = 32
_ROWS_COMPARED = 128  # of a part that is to be cut, for the feature in which they differ most
_FEATURES_COMPARED = 32  # the first ones of a kernel are those that say most
_FIRST_GROUPS = 8  # examined; twice as many each time
_GROUPS_AT_ONCE = 16  # their features and products stay in the cache
_REWARDS_KEPT = 64  # of a group that has missed more, variances are computed from A
_MARGIN = 1e-8  # of indices, beyond what counts as a tie
_ROUNDING = 1e-12  # of squared distances
_rank_one = scipy.linalg.blas.dger


@dataclass(frozen=True)
class Groups:
    """Neighbours among the arms; the first `offered` groups hold the arms on offer, the others those that are gone."""

    members: Ints
    features: Floats  # (G, size, r), a copy in which neighbours lie together: to gather them takes longer than sums
    of: Ints
    middles: Floats
    radii: Floats
    offered: int

    @classmethod
    def build(cls, features: Floats, offered: int) -> Groups:
        """Halve the arms along the feature in which they differ most, until the parts are small."""
        size = min(max(_GROUP_SIZE, offered // _MOST_GROUPS), max(1, offered // _FEWEST_GROUPS))
        parts = _halved(features, np.arange(offered), size)
        gone = _halved(features, np.arange(offered, len(features)), size) if offered < len(features) else []
        members = np.array([np.resize(part, size) for part in (*parts, *gone)])
        of = np.empty(len(features), dtype=np.int64)
        of[members] = np.arange(len(members))[:, None]
        together = features[members]
        middles = np.matmul(np.full((1, 1, size), 1.0 / size), together)[:, 0, :]
        squares, own = np.einsum("gsr,gsr->gs", together, together), np.einsum("gr,gr->g", middles, middles)[:, None]
        apart = squares - 2.0 * np.matmul(together, middles[:, :, None])[:, :, 0] + own
        radii = np.sqrt((np.maximum(apart, 0.0) + _ROUNDING * (squares + own)).max(axis=1))
        return cls(members, together, of, middles, radii, len(parts))


def _halved(features: Floats, arms: Ints, size: int) -> list[Ints]:
    """Parts of `size` arms, the last one smaller."""
    if len(arms) <= size:
        return [arms]
    some = features[arms[:: max(1, len(arms) // _ROWS_COMPARED)], :_FEATURES_COMPARED]
    widest = int(some.var(axis=0).argmax())
    cut = size * max(1, round(len(arms) / (2 * size)))
    order = arms[np.argpartition(features[arms, widest], cut - 1)]
    return [*_halved(features, order[:cut], size), *_halved(features, order[cut:], size)]


@dataclass
class _Span:
    """Arms as of when their group was brought up to date, and what came since; all is put in its place at once."""

    moved: Floats
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    variance: Floats = field(default_factory=lambda: np.zeros(0))
    told: int = 0  # rewards since the span began, of the last of which there are
    kept: int = 0
    inner: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # A f
    gains: Floats = field(default_factory=lambda: np.zeros(2 * _REWARDS_KEPT))  # what its square is multiplied by
    bounds: _Bounds | None = None
    leaders: Ints | None = None  # groups that are up to date, and outside which nobody leads

    def keep(self, inner: Floats, gain: float) -> None:
        """One more reward."""
        if not len(self.inner):
            self.inner = np.empty((2 * _REWARDS_KEPT, len(inner)))
        if self.kept == len(self.inner):
            self.kept = _REWARDS_KEPT
            self.inner[: self.kept], self.gains[: self.kept] = self.inner[self.kept :], self.gains[self.kept :]
        self.inner[self.kept], self.gains[self.kept] = inner, gain
        self.kept += 1
        self.told += 1


@dataclass
class _Bounds:
    """Of every group, as of when it was brought up to date; `shift` and `variance` follow each reward."""

    anchors: Floats
    squares: Floats  # |m_g|^2
    seen: Ints  # of the rewards told
    mean: Floats
    sd: Floats
    index: Floats  # with `factor`
    factor: Floats
    shift: Floats  # c'(m - m_g)
    variance: Floats  # c'A c

    def most(self, factor: float, moved: Floats, radii: Floats, groups: Ints | slice = slice(None)) -> Floats:
        """The most that an index of a member may be."""
        own, squares, radii = float(moved @ moved), self.squares[groups], radii[groups]
        apart = own - 2.0 * (self.anchors[groups] @ moved) + squares
        drift = self.shift[groups] + radii * np.sqrt(np.maximum(apart, 0.0) + _ROUNDING * (own + squares))
        by_then = self.index[groups] + np.maximum(factor - self.factor[groups], 0.0) * self.sd[groups]
        by_middle = self.mean[groups] + factor * (np.sqrt(np.maximum(self.variance[groups], 0.0)) + radii)
        most: Floats = np.minimum(by_then, by_middle) + drift
        return most

    def anchor(self, groups: Ints, moved: Floats) -> None:
        """The means of these groups are up to date."""
        self.anchors[groups], self.squares[groups], self.shift[groups] = moved, float(moved @ moved), 0.0


class LeadingPosterior(ArmPosterior):
    """An `ArmPosterior` whose `mean` and `variance` are found when they are read; `index` is known of those that lead.

    Rewards are added by `add` and then `settle`. Whatever else changes the belief brings all arms up to date.
    """

    _features: Floats
    _span: _Span

    def __init__(self, features: Floats, *, ridge: float, offered: int) -> None:
        self._groups = Groups.build(features, offered)
        super().__init__(features, ridge=ridge)

    # --- all arms -------------------------------------------------------------------------------------------------

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
        """Bring all arms up to date."""
        span = self._span
        if not span.told:
            return
        mean, variance = span.mean.copy(), span.variance.copy()
        seen, anchors = np.zeros(len(self._groups.members), dtype=np.int64), np.zeros_like(self._groups.middles)
        if span.bounds is not None:
            seen, anchors = span.bounds.seen, span.bounds.anchors
        self._update(mean, variance, np.flatnonzero(seen < span.told), seen, anchors)
        self._span = _Span(np.zeros_like(span.moved), mean, variance)

    def _update(self, mean: Floats, variance: Floats, groups: Ints, seen: Ints, anchors: Floats) -> None:
        """Put what the members of `groups` are now into `mean` and `variance`, from what they were at `seen`."""
        span, rank = self._span, self._features.shape[1]
        for chosen in self._batches(groups, seen):
            arms = self._groups.members[chosen]
            shaped = self._groups.features[chosen]
            rows = shaped.reshape(-1, rank)
            since, steps = seen[chosen], span.moved - anchors[chosen]
            mean[arms] += np.matmul(shaped, steps[:, :, None])[:, :, 0]
            missed = span.told - int(since.min())
            if missed > span.kept:
                left = np.einsum("ij,ij->i", rows @ self._covariance, rows).reshape(arms.shape)
                variance[arms] = left
                continue
            inner, gains = span.inner[span.kept - missed : span.kept], span.gains[span.kept - missed : span.kept]
            mine = np.where(np.arange(span.told - missed, span.told) >= since[:, None], gains, 0.0)
            columns = (rows @ inner.T).reshape(*arms.shape, missed)
            variance[arms] -= np.matmul(np.square(columns, out=columns), mine[:, :, None])[:, :, 0]

    def _batches(self, groups: Ints, seen: Ints) -> Iterator[Ints]:
        """Groups that have missed about as many rewards, a few at a time."""
        octaves = np.frexp(self._span.told - seen[groups])[1]
        for octave in np.unique(octaves):
            alike = groups[octaves == octave]
            for start in range(0, len(alike), _GROUPS_AT_ONCE):
                yield alike[start : start + _GROUPS_AT_ONCE]

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
        own, mean = float(row @ inner), float(self._means(np.array([arm]))[0])
        gain = 1.0 / (self.ridge + own)
        step = gain * (reward - mean)
        self.information_gain += 0.5 * math.log1p(own / self.ridge)
        span.moved += step * inner
        span.keep(inner, gain)
        if span.bounds is not None:
            columns = self._groups.middles @ inner
            span.bounds.shift += step * columns
            span.bounds.variance -= gain * np.square(columns)
        span.leaders = None
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

    def settle(self, factor: float) -> None:
        """After a reward: bring the groups up to date that may lead, those that promise most first.

        `factor` is what an sd is multiplied by in an index.
        """
        groups, bounds = self._groups, self._span.bounds
        if bounds is None:
            self.fold()
            bounds = self._span.bounds = self._new_bounds(factor)
        span = self._span
        most = bounds.most(factor, span.moved, groups.radii)
        most[groups.offered :] = -np.inf
        fresh, current = np.zeros(len(most), dtype=np.bool_), float(span.moved @ span.moved)
        best, wanted = -np.inf, _FIRST_GROUPS
        while True:
            open_ = np.flatnonzero(~fresh & (most >= best - _MARGIN))
            if not len(open_):
                break
            chosen = open_ if len(open_) <= wanted else open_[np.argpartition(most[open_], -wanted)[-wanted:]]
            costly = (span.told - bounds.seen[chosen] > span.kept) & (bounds.squares[chosen] != current)
            if costly.any():  # variances take far longer than means, which may be enough to see that nobody leads
                some = chosen[costly]
                self._bring_means(bounds, some, factor)
                most[some] = bounds.most(factor, span.moved, groups.radii, some)
                chosen = chosen[~costly]
            if len(chosen):
                self._bring(bounds, chosen, factor)
                fresh[chosen] = True
                best = max(best, float(bounds.index[chosen].max()))
            wanted *= 2
        span.leaders = np.flatnonzero(fresh)

    def _new_bounds(self, factor: float) -> _Bounds:
        """All arms are up to date."""
        middles = self._groups.middles
        number = len(middles)
        bounds = _Bounds(
            anchors=np.zeros((number, middles.shape[1])),
            squares=np.zeros(number),
            seen=np.zeros(number, dtype=np.int64),
            mean=np.empty(number),
            sd=np.empty(number),
            index=np.empty(number),
            factor=np.empty(number),
            shift=np.zeros(number),
            variance=np.einsum("ij,ij->i", middles @ self._covariance, middles),
        )
        self._note(bounds, np.arange(number), factor)
        return bounds

    def _bring(self, bounds: _Bounds, chosen: Ints, factor: float) -> None:
        """Bring groups up to date."""
        span = self._span
        stale = chosen[bounds.seen[chosen] < span.told]
        self._update(span.mean, span.variance, stale, bounds.seen, bounds.anchors)
        bounds.seen[stale] = span.told
        bounds.anchor(stale, span.moved)
        self._note(bounds, chosen, factor)

    def _bring_means(self, bounds: _Bounds, chosen: Ints, factor: float) -> None:
        """Bring the means of groups up to date; their variances have only become less."""
        span = self._span
        for start in range(0, len(chosen), _GROUPS_AT_ONCE):
            some = chosen[start : start + _GROUPS_AT_ONCE]
            steps = span.moved - bounds.anchors[some]
            span.mean[self._groups.members[some]] += np.matmul(self._groups.features[some], steps[:, :, None])[:, :, 0]
        bounds.anchor(chosen, span.moved)
        self._note(bounds, chosen, factor)

    def _note(self, bounds: _Bounds, chosen: Ints, factor: float) -> None:
        """What is largest in groups that are up to date."""
        arms = self._groups.members[chosen]
        mean, sd = self._span.mean[arms], np.sqrt(np.maximum(self._span.variance[arms], 0.0))
        bounds.mean[chosen], bounds.sd[chosen] = mean.max(axis=1), sd.max(axis=1)
        bounds.index[chosen], bounds.factor[chosen] = (mean + factor * sd).max(axis=1), factor

    def index(self, factor: float, arms: int) -> Floats:
        """Indices of the first so many arms; of those in groups that do not lead, -inf."""
        span = self._span
        if span.leaders is None:
            return np.asarray((self.mean + factor * np.sqrt(np.maximum(self.variance, 0.0)))[:arms])
        near = self._groups.members[span.leaders]
        index = np.full(arms, -np.inf)
        index[near] = span.mean[near] + factor * np.sqrt(np.maximum(span.variance[near], 0.0))
        return index

    def _means(self, arms: Ints) -> Floats:
        """Of a few arms."""
        span = self._span
        moved = span.moved if span.bounds is None else span.moved - span.bounds.anchors[self._groups.of[arms]]
        return np.asarray(span.mean[arms] + (self._features[arms] * moved).sum(axis=1))

    def mean_and_variance(self, arms: Ints) -> tuple[Floats, Floats]:
        """Of a few arms, without bringing all up to date."""
        rows = self._features[arms]
        return self._means(arms), np.einsum("ij,ij->i", rows @ self._covariance, rows)

    # --- state ----------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything but the prior and the bounds: who goes on and who is restored find these anew."""
        self.fold()
        self._span.bounds = self._span.leaders = None
        return super().export()

    def load(self, state: states.Reader, **known: Any) -> None:
        """Inverse of `export`."""
        self._begin()
        super().load(state, **known)
