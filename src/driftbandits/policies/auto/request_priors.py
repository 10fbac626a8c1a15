"""Priors of reward functions of arms and requests, in coordinates; see `hypotheses` for those of arms alone.

symbol  name        shape        meaning
phi_a               (N, p)       features of the arms: of their kernel, or one per arm where they are independent
psi_c               (r,)         features of the request (`relevance.RequestFeatures`)
h_ac    row         (R,)         (sqrt(g) phi_a, sqrt(m) psi_c, sqrt(h) phi_a x psi_c, zeros, sqrt(l))
x                   (R,)         coordinates, N(0, I): the reward of arm a for request c is h_ac' x

What is read is that of the pairs *entered* last: all arms for one request, or a list of arms with a request each. The
average request has the mean of psi_c over the latest ones: as rewards are linear in psi_c, it gives mean rewards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.policies.auto.beliefs import LARGEST_BELIEF
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, Priors, Readings, Representatives
from driftbandits.policies.auto.relevance import RequestFeatures, Smoothness
from driftbandits.policies.length_scales import candidates
from driftbandits.types import Floats, Ints

MOST_ARM_KERNELS = 2  # beside independent arms
LEAST_REQUEST_FEATURES = 3
REQUESTS_AVERAGED = 256.0
REQUESTS_TO_REFRESH = 16
_HELD = 0.97  # share of the variance of arms that their features must hold


class RequestReadings(Readings):
    """Rows h_ac of the pairs entered, of all priors: one prior per pair of a model of requests and one of arms."""

    def __init__(
        self, arms: Sequence[Floats], requests: Sequence[RequestFeatures], models: Sequence[Smoothness], width: int
    ) -> None:
        super().__init__([np.zeros((len(arms[0]), 1))] * len(arms), np.ones(len(arms)), LEVEL_VARIANCE, width)
        self._arms, self._requests, self._models = arms, requests, models
        self._sizes = [features.size for features in requests]
        self.averages = [np.zeros(size) for size in self._sizes]  # of the latest requests, up to the last refresh
        self._since = [np.zeros(size) for size in self._sizes]  # sums over those seen after it
        self._seen, self._waiting = 0.0, 0
        self._average_rows: dict[int, Floats] = {}
        self._all = np.arange(len(arms[0]))
        self._entered: tuple[Ints, Floats | None] = (self._all, None)
        self._psi: dict[int, Floats] = {}
        self._made: dict[int, Floats] = {}
        self._features = _Lazy(self)  # type: ignore[assignment]

    def enter(self, requests: Floats | None, arms: Ints | None = None) -> None:
        """Read all arms for one request, (1, width), or `arms` with a request each; None: the average request."""
        self._entered = (self._all if arms is None else arms, requests)
        self._psi.clear()
        self._forget()

    def _forget(self) -> None:
        self._made.clear()
        self._latest = (-1, self._latest[1])
        self.size = len(self._entered[0])

    @contextmanager
    def average(self) -> Iterator[None]:
        """Read the average request meanwhile."""
        entered, psi = self._entered, dict(self._psi)
        self.enter(None)
        yield
        self._entered, self._psi = entered, psi
        self._forget()

    def see(self) -> None:
        """Let the request entered count in the average of the latest, which is refreshed every few requests."""
        for number, since in enumerate(self._since):
            since += self._of_requests(number)[0]
        self._waiting += 1
        if self._waiting >= REQUESTS_TO_REFRESH or self._seen < REQUESTS_TO_REFRESH:
            self._seen = min(self._seen + self._waiting, REQUESTS_AVERAGED)
            for average, since in zip(self.averages, self._since, strict=True):
                average += (since - self._waiting * average) / self._seen
                since[:] = 0.0
            self._waiting = 0
            self._average_rows.clear()

    def see_all(self, requests: Floats) -> None:
        """Let the average be that of these requests, (n, width)."""
        self.averages = [features(requests).mean(axis=0) for features in self._requests]
        self._seen = min(float(len(requests)), REQUESTS_AVERAGED)
        self._average_rows.clear()

    def _of_requests(self, kernel: int) -> Floats:
        number = kernel % len(self._requests)
        if number not in self._psi:
            codes = self._entered[1]
            self._psi[number] = self.averages[number][None] if codes is None else self._requests[number](codes)
        return self._psi[number]

    def features_of(self, kernel: int) -> Floats:
        """Features of the pairs under a kernel, without the level, (M, w)."""
        made = self._average_rows if self._entered[1] is None else self._made
        if kernel not in made:
            model, phi = self._models[kernel], self._arms[kernel][self._entered[0]]
            psi = self._of_requests(kernel)
            parts = [math.sqrt(model.arms) * phi]
            if psi.shape[1]:
                parts.append(np.broadcast_to(math.sqrt(model.requests) * psi, (len(phi), psi.shape[1])))
                joint = (math.sqrt(model.joint) * phi)[:, :, None] * psi[:, None, :]
                parts.append(joint.reshape(len(phi), -1))
            made[kernel] = np.concatenate(parts, axis=1)
        return made[kernel]

    def one(self, kinds: Ints, arm: int) -> Floats:
        """The row of one pair under each of these priors, shape (n, R)."""
        if self._latest[0] != arm:
            self._latest = (arm, np.zeros((len(self._arms), self._width)))
            self._latest[1][:, -1] = self._level
            self._read: set[int] = set()
        rows = self._latest[1]
        for kernel in set(kinds.tolist()) - self._read:
            phi = self.features_of(kernel)[arm]
            rows[kernel, : len(phi)] = phi
            self._read.add(kernel)
        return np.asarray(rows[kinds])

    def export(self) -> dict[str, Any]:
        """The average request, and what was seen since it was refreshed."""
        averages, since = (np.concatenate([*parts, np.zeros(0)]) for parts in (self.averages, self._since))
        return {"averages": averages, "since": since, "seen": self._seen, "waiting": self._waiting}

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        ends = np.cumsum(self._sizes)
        for name in ("averages", "since"):
            whole = state.array(name, np.float64, (int(ends[-1]),))
            states.check(bool((np.abs(whole) <= LARGEST_BELIEF).all()), name)
            parts = [whole[end - size : end].copy() for end, size in zip(ends, self._sizes, strict=True)]
            setattr(self, "averages" if name == "averages" else "_since", parts)
        self._seen = state.number("seen")
        self._waiting = state.integer("waiting", high=REQUESTS_TO_REFRESH)
        states.check(0.0 <= self._seen <= REQUESTS_AVERAGED, "seen")
        self._average_rows.clear()


class _Lazy:
    """Features of the pairs entered, made when they are read."""

    def __init__(self, readings: RequestReadings) -> None:
        self._readings = readings

    def __len__(self) -> int:
        return len(self._readings._arms)

    def __getitem__(self, kernel: int) -> Floats:
        return self._readings.features_of(kernel)


class RequestPriors(Priors):
    """The priors of some models of how rewards depend on requests, and on arms.

    `models` are (smoothness, anchors) pairs; those with `_NOTHING` chosen say that requests do not matter.
    """

    rows: RequestReadings

    def __init__(
        self, arms: ArmSet, models: Sequence[Smoothness], anchors: Floats, places: Ints, *, auto: bool, rank: int
    ) -> None:
        options = _arm_features(arms, auto=auto, rank=rank)
        self.arm_rank = _most_features(rank)
        features, chosen, requests, scales = [], [], [], []
        self.names: list[tuple[int, float | None]] = []  # of every prior, the number of its model and its length scale
        for number, model in enumerate(models):
            for scale, phi in options if model.chosen else options[-1:]:
                room = (rank - 1 - phi.shape[1]) // (1 + phi.shape[1])
                made = RequestFeatures(anchors, np.array(model.scales)[places], room if model.chosen else 0)
                features.append(phi)
                requests.append(made)
                chosen.append(model)
                scales.append(scale)
                self.names.append((number, scale))
        self.pairs = ()
        self.of_requests, self.requests = chosen, requests
        self.length_scales = tuple(scales)
        self._features = features
        self._directions, self._crowds, self._regions, self._alike = {}, {}, {}, {}
        self.count = len(features)
        self.direct = False
        self.size = len(arms)
        widths = [phi.shape[1] * (1 + made.size) + made.size for phi, made in zip(features, requests, strict=True)]
        self.width = max(widths) + 1
        self.prior = np.broadcast_to(np.eye(self.width), (self.count, self.width, self.width))
        self.rows = RequestReadings(features, requests, chosen, self.width)
        self.representatives = Representatives(arms, len(arms))
        self.representatives.everyone = False  # of rewards, which depend on the request


def _arm_features(arms: ArmSet, *, auto: bool, rank: int) -> list[tuple[float | None, Floats]]:
    """Length scales of arms with their features, independent ones last; as many features as leave room for requests."""
    most = _most_features(rank)
    try:
        tried = candidates(arms, most) if auto else [(None, arms.features)]
    except InputError:  # features of arms that have nothing in common cannot be cut: said below, with the cure
        tried = []
    kept = []
    for scale, phi in tried:
        enough = phi[:, : _enough(phi)]
        if enough.shape[1] <= most:
            kept.append((scale, enough))
    independent = [item for item in kept if item[0] == 0.0]
    others = [item for item in kept if item[0] != 0.0 and not (independent and item[1].shape[1] == len(arms))]
    found = [*others[::2][:MOST_ARM_KERNELS], *independent]
    if not found:
        raise InputError(
            f"with contexts, {len(arms):,} arms need more than {most} features (rank={rank}); describe the arms by "
            f"points so that similar ones can share what is learned, take fewer arms, or a larger rank"
        )
    return found


def _most_features(rank: int) -> int:
    """Of arms, so that there is room for a few of requests."""
    return max((rank - 1 - LEAST_REQUEST_FEATURES) // (1 + LEAST_REQUEST_FEATURES), 1)


def _enough(phi: Floats) -> int:
    """How many features, in their order, hold nearly all of the variance."""
    held = np.cumsum(np.square(phi).sum(axis=0))
    return int(np.searchsorted(held, _HELD * held[-1])) + 1
