"""What the reward function may look like before any reward: one Gaussian prior per length scale.

symbol  name      shape
c                 number of a prior
P_c     prior     covariance of all arms' rewards: signal K_c + level 1 1'
h_a     row       (R,), how arm a reads the coordinates: f(a) = h_a' x
x                 (R,), the coordinates; N(0, P) in them

Few arms are their own coordinates: h_a is a unit vector, and reading costs nothing. Many arms are linear in R - 1
features of the kernel; P is then the identity. In both cases the level that all arms share is the last coordinate. Only
new arms need it where arms are coordinates (`carrying`): what is known of the level they share, of the rest what the
kernel says.
"""

from __future__ import annotations

import math

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.kernels import some_rows
from driftbandits.memory import FLOAT_BYTES, check_memory
from driftbandits.policies.auto.readings import Readings
from driftbandits.policies.auto.representatives import MOST_REPRESENTATIVES, Representatives
from driftbandits.policies.core.crossings import PairKernel, pair_kernels
from driftbandits.policies.core.lengthscales import candidates, cut_features
from driftbandits.types import Bools, Floats, Ints

SIGNAL_VARIANCES = (0.2, 0.05)  # of an arm's reward about the level, on the scale [-1, 1]
TYPICAL_SIGNAL_VARIANCE = 0.1  # between them, where one number must do
LEVEL_VARIANCE = 0.1  # of the level that all arms share
_ALIKE_SQUARED_CORRELATION = 0.75  # above, a look at one arm is a look at the other, though the kernel be too smooth
_LEAST_SQUARED_LENGTH = 1e-12
_ARMS_COUNTED = 800  # among which those alike are counted


class Priors:
    """The priors of all candidate kernels and sizes of the signal, in coordinates common to them.

    `length_scales` has one entry per prior: None for the kernel the arms came with, 0 for independent arms. So have
    `pairs` and `correlations` where arms are options in segments.
    """

    def __init__(self, arms: ArmSet, *, auto: bool, rank: int) -> None:
        self.pairs: tuple[PairKernel, ...] = ()  # the kernels, where they are tried and arms are options in segments
        if auto and arms.crossing is not None:
            pairs = pair_kernels(arms.crossing, rank)
            tried = [(pair.length_scale, pair.features) for pair in pairs]
            self.pairs = tuple(pairs * len(SIGNAL_VARIANCES))
        elif auto:
            tried = candidates(arms, rank)
        else:
            tried = [(None, cut_features(arms.features, rank))]
        self.length_scales = tuple(scale for scale, _ in tried) * len(SIGNAL_VARIANCES)
        self._features = [features for _, features in tried] * len(SIGNAL_VARIANCES)
        self._directions: dict[int, Floats] = {}
        self._crowds: dict[int, Floats] = {}
        self._regions: dict[int, float] = {}
        self._alike: dict[int, Bools] = {}
        self.count = len(self._features)
        signals = np.repeat(SIGNAL_VARIANCES, len(tried))
        widest = max(features.shape[1] for features in self._features)
        self.direct = 2 * widest + 2 > len(arms)  # arms are their own coordinates
        self.rows: Readings | None = None  # how arms read the coordinates, unless they are their own
        self.representatives = Representatives(arms, len(arms) if self.direct else MOST_REPRESENTATIVES)
        self._check_room(len(arms), widest)
        self.size = len(arms)
        if self.direct:
            self.width = len(arms) + 1
            self.prior = np.full((self.count, self.width, self.width), LEVEL_VARIANCE)
            for prior, signal, phi in zip(self.prior, signals, self._features, strict=True):
                prior[:-1, :-1] += signal * phi @ phi.T
        else:
            self.width = widest + 1
            self.prior = np.broadcast_to(np.eye(self.width), (self.count, self.width, self.width))
            self.rows = Readings(self._features[: len(tried)], signals, LEVEL_VARIANCE, self.width)

    @property
    def correlations(self) -> tuple[float | None, ...]:
        """Those of segments, where arms are options in segments: None for the one they came with."""
        return tuple(pair.correlation for pair in self.pairs)

    def _check_room(self, size: int, widest: int) -> None:
        """Refuse priors that cannot be held; what is learned takes several times as much again."""
        numbers = self.count * size**2 if self.direct else self.count // len(SIGNAL_VARIANCES) * size * widest
        cure = f"take a smaller rank (the widest kernel has {widest:,} features), or fewer arms"
        check_memory(FLOAT_BYTES * numbers, f"{self.count} priors of {size:,} arms", cure=cure)

    def features(self, kind: int) -> Floats:
        """Features of the kernel of a prior, (N, r)."""
        return self._features[kind]

    def bump(self, kind: int, arm: int) -> Floats:
        """Coordinates u such that u u' is the part of the prior, without the level, that a reward of `arm` sees."""
        if self.rows is None:
            column = self.prior[kind, arm] - LEVEL_VARIANCE
            return np.asarray(column / math.sqrt(max(float(column[arm]), _LEAST_SQUARED_LENGTH)))
        row = self.rows.of(kind, np.array([arm]))[0]
        row[-1] = 0.0
        return np.asarray(row / math.sqrt(max(float(row @ row), _LEAST_SQUARED_LENGTH)))

    def alike(self, kind: int, arm: int) -> Bools:
        """Arms of which a reward of `arm` says much, itself among them; of representatives, as all below."""
        unit = self._units(kind)
        if not self.direct and len(unit) > MOST_REPRESENTATIVES:  # one option of very many segments: too many pairs
            return _near(unit, unit[arm : arm + 1], arm)[:, 0]
        if kind not in self._alike:
            self._alike[kind] = _near(unit, unit, np.arange(len(unit)))
        return np.asarray(self._alike[kind][arm])

    def crowds(self, kind: int) -> Floats:
        """How many arms each arm is alike with, shape (N,); counted on some of them where there are many."""
        if kind not in self._crowds:
            unit = self._units(kind)
            some = some_rows(unit, _ARMS_COUNTED)
            alike = np.square(unit @ some.T) > _ALIKE_SQUARED_CORRELATION
            self._crowds[kind] = np.maximum(np.count_nonzero(alike, axis=1) * (len(unit) / len(some)), 1.0)
        return self._crowds[kind]

    def regions(self, kind: int) -> float:
        """How many arms there are, those alike counted as one."""
        if kind not in self._regions:
            self._regions[kind] = float((1.0 / self.crowds(kind)).sum())
        return self._regions[kind]

    def _units(self, kind: int) -> Floats:
        """Features of length 1 of the representatives, whose products are correlations."""
        if kind not in self._directions:
            phi = self._features[kind]
            if not self.representatives.everyone:
                phi = phi[self.representatives.numbers]
            squared = np.maximum(np.square(phi).sum(axis=1), _LEAST_SQUARED_LENGTH)
            self._directions[kind] = phi / np.sqrt(squared)[:, None]
        return self._directions[kind]


def _near(unit: Floats, others: Floats, own: int | Ints) -> Bools:
    """Which of `unit` each of the `others` says much of; these are rows `own` of `unit`."""
    near: Bools = np.square(unit @ others.T) > _ALIKE_SQUARED_CORRELATION
    near[own, np.arange(len(others))] = True
    return near
