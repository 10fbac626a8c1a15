"""Which columns of the contexts matter, and how smoothly: chosen by how well they explain the rewards told so far.

The mean reward of arm a for a request c is modelled as

    f(c, a) = level + g(a) + m(c) + h(c, a)

with m and h smooth in the parts of c that matter, under squared exponential kernels with a length scale per part. Parts
are taken in one after the other, as long as the evidence (marginal likelihood) of the rewards grows by more than
`LEAST_GAIN`; the sizes of g, m, h and the noise are sought with them. m decides nothing, but explains rewards that move
because the mix of requests moves. Arms are independent here: what they have in common is in m.

symbol  name       shape    meaning
n, q                        rewards; 1 + r, with the r features of a request (`RequestFeatures`)
Z       design     (n, q)   1, then the features
u       common     (q,)     coefficients common to all arms, N(0, C)
v_a                (q,)     those of arm a beside, N(0, D); f(c, a) = Z (u + v_a)
A_a, b_a           (q, q)   Z'Z and Z'y of the rewards of an arm, over the noise

The evidence follows from these sums alone: v_a is integrated out arm by arm, then u. So it costs n q^2 once, and N q^3
for every size of the signals that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import scipy.linalg

from driftbandits import state as states
from driftbandits._util.linalg import small_pivoted
from driftbandits.arms.contexts import Contexts, places_of
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE
from driftbandits.types import Floats, Ints

LEAST_GAIN = 4.0  # nats, for one more part: there are many to choose from
LENGTH_SCALES = (8.0, 3.0, 1.2, 0.5)  # of a part, in its standard deviations; the first is nearly linear
FIRST_SCALE = 3.0  # with which a part is tried at first
MOST_PARTS = 6  # that matter
_ANCHORS = 96  # requests among which features are sought
_FEATURES_WEIGHED = 16
_LEFT_OUT = 1e-3  # share of the variance that features may leave out
_TRIED = 3  # parts whose length scales are sought, of those whose evidence grew most
_SIZES = tuple(4.0**-k for k in range(1, 9))  # variances of signals, for rewards in [-1, 1]
_SWEEPS = 2


@dataclass(frozen=True, eq=False)
class Smoothness:
    """How rewards depend on requests: length scale of every part (infinite: it does not matter), sizes, noise."""

    scales: tuple[float, ...]
    arms: float  # variance of g
    requests: float  # of m
    joint: float  # of h
    noise: float

    @property
    def chosen(self) -> tuple[int, ...]:
        """Parts that matter."""
        return tuple(part for part, scale in enumerate(self.scales) if math.isfinite(scale))

    def is_near(self, other: Smoothness) -> bool:
        """Whether it is hardly worth to learn anew with the other."""
        sizes = [(self.arms, other.arms), (self.requests, other.requests), (self.joint, other.joint)]
        return self.scales == other.scales and all(0.2 < one / two < 5.0 for one, two in sizes)

    def export(self) -> dict[str, Any]:
        """What `load` needs; a length scale of 0 stands for an infinite one."""
        scales = np.array([scale if math.isfinite(scale) else 0.0 for scale in self.scales])
        sizes = np.array([self.arms, self.requests, self.joint, self.noise])
        return {"scales": scales, "sizes": sizes}

    @classmethod
    def load(cls, state: states.Reader, parts: int) -> Smoothness:
        """Inverse of `export`."""
        scales = state.array("scales", np.float64, (parts,))
        sizes = state.array("sizes", np.float64, (4,))
        states.check(bool((scales >= 0).all()), "scales")
        states.check(bool(((sizes > 0) & (sizes < 1e6)).all()), "sizes")
        return cls(tuple(scale or math.inf for scale in scales.tolist()), *sizes.tolist())


class RequestFeatures:
    """Features of requests under a squared exponential kernel, (n, r): centred, of mean square 1 over the anchors.

    Centred, because what all requests share is in the level and in g; with a long length scale they are nearly linear.
    """

    def __init__(self, anchors: Floats, scales: Floats, most: int) -> None:
        active = np.isfinite(scales)
        self._used = np.flatnonzero(active)
        self._scales = scales[active]
        points = anchors[:, self._used] / self._scales
        gram = np.exp(-0.5 * _squared(points, points))
        gram -= gram.mean(axis=0) + gram.mean(axis=1)[:, None] - gram.mean()
        variance = float(gram.diagonal().mean())
        self.size, self.scale = 0, 1.0
        if variance < 1e-12:
            return
        order, _ = small_pivoted(gram / variance, _LEFT_OUT, tilted=True)
        order = order[:most]
        chosen = points[order]
        self._anchors, self.size = chosen, len(order)
        # features of the plain kernel, then centred over all anchors: of the chosen ones and the constant
        plain = np.exp(-0.5 * _squared(chosen, chosen))
        plain.flat[:: len(order) + 1] += 1e-9
        self._factor = np.linalg.cholesky(plain)
        whole = self._plain(points)
        self._middle = whole.mean(axis=0)
        self.scale = math.sqrt(max(float(np.square(whole - self._middle).sum(axis=1).mean()), 1e-12))

    def _plain(self, points: Floats) -> Floats:
        columns = np.exp(-0.5 * _squared(self._anchors, points))
        return np.asarray(scipy.linalg.blas.dtrsm(1.0, self._factor, columns, lower=1).T)

    def __call__(self, requests: Floats) -> Floats:
        """Features of standardised codes, (n, width) to (n, r)."""
        if not self.size:
            return np.zeros((len(requests), 0))
        return np.asarray((self._plain(requests[:, self._used] / self._scales) - self._middle) / self.scale)


def _squared(rows: Floats, others: Floats) -> Floats:
    products = rows @ others.T
    products *= -2.0
    products += np.square(rows).sum(axis=1)[:, None]
    products += np.square(others).sum(axis=1)
    return np.asarray(np.maximum(products, 0.0))


@dataclass(frozen=True, slots=True)
class _Sums:
    """What the evidence follows from: of every arm that was played."""

    squares: Floats  # (K, q, q), Z'Z
    products: Floats  # (K, q), Z'y
    total: float  # y'y
    rewards: int


def _sums(design: Floats, arms: Sequence[Ints], rewards: Floats) -> _Sums:
    squares = np.array([design[mine].T @ design[mine] for mine in arms])
    products = np.array([design[mine].T @ rewards[mine] for mine in arms])
    mine = np.concatenate(arms)
    return _Sums(squares, products, float(rewards[mine] @ rewards[mine]), len(mine))


def _evidence(sums: _Sums, sizes: Smoothness) -> float:
    """Log marginal likelihood, up to a constant."""
    q = sums.squares.shape[1]
    common = np.full(q, math.sqrt(sizes.requests))
    own = np.full(q, math.sqrt(sizes.joint))
    common[0], own[0] = math.sqrt(LEVEL_VARIANCE), math.sqrt(sizes.arms)
    information, told = sums.squares / sizes.noise, sums.products / sizes.noise
    inner = np.eye(q) + own[:, None] * information * own
    factor = np.linalg.cholesky(inner)
    half = np.linalg.solve(factor, own[:, None] * information)  # L^-1 D^1/2 A
    seen = np.linalg.solve(factor, (own * told)[:, :, None])[:, :, 0]
    left = (information - half.swapaxes(1, 2) @ half).sum(axis=0)  # what the arms say of u
    said = (told - np.einsum("kij,ki->kj", half, seen)).sum(axis=0)
    outer = np.linalg.cholesky(np.eye(q) + common[:, None] * left * common)
    last = np.linalg.solve(outer, common * said)
    quadratic = sums.total / sizes.noise - float(np.square(seen).sum()) - float(last @ last)
    logs = 2.0 * float(np.log(np.diagonal(factor, axis1=1, axis2=2)).sum() + np.log(outer.diagonal()).sum())
    return -0.5 * (sums.rewards * math.log(sizes.noise) + logs + quadratic)


class _Search:
    """One search: what was told, of every epoch by itself."""

    def __init__(self, requests: Floats, arms: Ints, rewards: Floats, epochs: Ints, places: Ints) -> None:
        self._requests, self._rewards, self._places = requests, rewards.copy(), places
        self._arms: list[list[Ints]] = []
        for epoch in np.unique(epochs):
            mine = np.flatnonzero(epochs == epoch)
            self._rewards[mine] -= rewards[mine].mean()
            self._arms.append([mine[arms[mine] == arm] for arm in np.unique(arms[mine])])
        step = max(len(requests) // _ANCHORS, 1)
        self._anchors = requests[::step][:_ANCHORS]

    def sums(self, scales: Sequence[float]) -> list[_Sums]:
        """Of the features under these length scales, for every epoch."""
        features = RequestFeatures(self._anchors, np.array(scales)[self._places], _FEATURES_WEIGHED)
        ones = np.ones((len(self._requests), 1))
        design = np.hstack([ones, features(self._requests)])
        return [_sums(design, arms, self._rewards) for arms in self._arms]

    def fit(self, start: Smoothness, names: Sequence[str], sweeps: int = 1) -> tuple[float, Smoothness]:
        """The best sizes on their grids, one after the other, for the length scales of `start`."""
        sums, best = self.sums(start.scales), start
        found = sum(_evidence(each, best) for each in sums)
        for _ in range(sweeps):
            before = found
            for name in names:
                for tried in self._around(best, name):
                    value = sum(_evidence(each, tried) for each in sums)
                    if value > found + 1e-9:
                        found, best = value, tried
            if found <= before:
                break
        return found, best

    def _around(self, now: Smoothness, name: str) -> Iterator[Smoothness]:
        factors = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
        values = [max(now.noise * factor, 1e-6) for factor in factors] if name == "noise" else _SIZES
        for value in values:
            yield replace(now, **cast(dict[str, Any], {name: value}))


_ALL = ("noise", "arms", "requests", "joint")


def choose(
    requests: Floats,
    arms: Ints,
    rewards: Floats,
    contexts: Contexts,
    *,
    everything: bool,
    epochs: Ints | None = None,
    now: Smoothness | None = None,
) -> Smoothness:
    """The parts that matter for these rewards, (n,), of arms for requests with standardised codes (n, width).

    Every epoch has reward functions of its own. `everything` takes all parts, nearly linear, and seeks the sizes alone.
    `now` is kept, the same object, unless another is clearly better.
    """
    places = places_of(contexts.parts, contexts.width)
    search = _Search(requests, arms, rewards, np.zeros_like(arms) if epochs is None else epochs, places)
    nothing = (math.inf,) * len(contexts.parts)
    noise = max(float(np.var(rewards)), 1e-6)
    best = Smoothness(nothing, arms=0.0625, requests=0.0625, joint=0.0625, noise=noise)
    if everything:
        best = replace(best, scales=(LENGTH_SCALES[0],) * len(contexts.parts))
        return search.fit(best, _ALL, _SWEEPS)[1]
    evidence, best = search.fit(best, ("noise", "arms"), _SWEEPS)
    while len(best.chosen) < min(MOST_PARTS, len(contexts.parts)):
        tried = []
        for part in range(len(contexts.parts)):
            if part not in best.chosen:
                tried.append(search.fit(_with(best, part, FIRST_SCALE), ("joint", "requests")))
        tried.sort(key=lambda item: -item[0])
        refined = [
            search.fit(_with(one, (set(one.chosen) - set(best.chosen)).pop(), scale), _ALL)
            for _, one in tried[:_TRIED]
            for scale in LENGTH_SCALES
        ]
        value, candidate = max(refined, key=lambda item: item[0])
        if value < evidence + LEAST_GAIN:
            break
        evidence, best = value, candidate
        for part in best.chosen[: len(best.chosen) - 1]:
            for scale in LENGTH_SCALES:
                if scale != best.scales[part]:
                    value, candidate = search.fit(_with(best, part, scale), ("joint", "requests"))
                    if value > evidence + 1e-9:
                        evidence, best = value, candidate
    if now is not None and now.chosen == best.chosen and _fits(search, now) > evidence - LEAST_GAIN:
        return now
    return best


def _fits(search: _Search, now: Smoothness) -> float:
    """Evidence for sizes near those of now."""
    evidence, fitted = search.fit(now, _ALL)
    return evidence if fitted.is_near(now) else -math.inf


def lacks_a_part(requests: Floats, arms: Ints, rewards: Floats, contexts: Contexts, now: Smoothness) -> bool:
    """Whether these rewards, (n,), are clearly better explained with one more part: it costs little to ask."""
    search = _Search(requests, arms, rewards, np.zeros_like(arms), places_of(contexts.parts, contexts.width))
    evidence, fitted = search.fit(now, ("noise", "arms"))
    fitted = replace(fitted, joint=max(fitted.joint, 4.0**-5))
    if len(now.chosen) >= MOST_PARTS:
        return False
    less = [replace(fitted, noise=share * fitted.noise) for share in (1.0, 0.7)]
    for part in range(len(contexts.parts)):
        if part not in now.chosen:
            sums = search.sums(_with(now, part, FIRST_SCALE).scales)
            if max(sum(_evidence(each, sizes) for each in sums) for sizes in less) > evidence + 2.0 * LEAST_GAIN:
                return True
    return False


def _with(now: Smoothness, part: int, scale: float) -> Smoothness:
    scales = list(now.scales)
    scales[part] = scale
    return replace(now, scales=tuple(scales))
