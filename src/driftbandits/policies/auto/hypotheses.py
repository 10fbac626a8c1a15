"""What AutoBandit's hypotheses are about: priors of the reward function and their features.

Many arms read the coordinates through features; those of a kernel are held once, whatever the size of its signal.

symbol  name       shape    meaning
phi_a   features   (N, r)   of one kernel
s, l                        variances of the signal and of the level that all arms share
h_a                (R,)     (sqrt(s) phi_a, zeros, sqrt(l)): the reward of arm a is h_a' x, see below

Where there are very many arms, some represent all: which arms were seen and which have moved is recorded of these.

An arm is represented by the nearest of them: by its point, or by its features where there are no points. Up to
`MOST_REPRESENTATIVES` arms represent themselves. Where arms are options in segments, some options represent all, in
every segment the same.

What the reward function may look like before any reward: one Gaussian prior per length scale.

symbol  name      shape
c                 number of a prior
P_c     prior     covariance of all arms' rewards: signal K_c + level 1 1'
h_a     row       (R,), how arm a reads the coordinates: f(a) = h_a' x
x                 (R,), the coordinates; N(0, P) in them

Few arms are their own coordinates: h_a is a unit vector, and reading costs nothing. Many arms are linear in R - 1
features of the kernel; P is then the identity. In both cases the level that all arms share is the last coordinate. Only
new arms need it where arms are coordinates (`arm_migration`): what is known of the level they share, of the rest what
the kernel says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from driftbandits._util.checks import FLOAT_BYTES, check_memory
from driftbandits.arms import ArmSet
from driftbandits.arms.kernels import some_rows
from driftbandits.policies.length_scales import PairKernel, candidates, cut_features, pair_kernels
from driftbandits.types import Bools, Floats, Ints

ARMS_AT_A_TIME = 4096  # where all arms are gone through: what is computed on the way stays small


class Readings:
    """Rows h_a of all priors; prior c has kernel c modulo the number of kernels."""

    def __init__(self, features: Sequence[Floats], signals: Floats, level: float, width: int) -> None:
        self._features = features
        self._signals = np.sqrt(signals)
        self._level = math.sqrt(level)
        self._width = width
        self.size = len(features[0])
        self._latest: tuple[int, Floats] = (-1, np.zeros((0, width)))

    def kernel(self, kind: int) -> int:
        """Number of the kernel of a prior."""
        return kind % len(self._features)

    def of(self, kind: int, arms: Ints | slice = slice(None)) -> Floats:
        """Rows of these arms under one prior, shape (M, R)."""
        phi = self._features[self.kernel(kind)][arms]
        rows = np.zeros((len(phi), self._width))
        np.multiply(phi, self._signals[kind], out=rows[:, : phi.shape[1]])
        rows[:, -1] = self._level
        return rows

    def one(self, kinds: Ints, arm: int) -> Floats:
        """The row of one arm under each of these priors, shape (n, R)."""
        if self._latest[0] != arm:  # one arm is read several times when its reward is told
            rows = np.zeros((len(self._features), self._width))
            for row, phi in zip(rows, self._features, strict=True):
                row[: phi.shape[1]] = phi[arm]
            self._latest = (arm, rows)
        read = self._latest[1][kinds % len(self._features)]
        read *= self._signals[kinds, None]
        read[:, -1] = self._level
        return read

    def some(self, arms: Ints) -> Readings:
        """The same of some arms, copied: they are numbered anew."""
        return Readings([phi[arms] for phi in self._features], np.square(self._signals), self._level**2, self._width)

    def rewards(self, kind: int, coordinates: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """What coordinates (..., R) say of these arms, shape (..., M)."""
        phi = self._features[self.kernel(kind)][arms]
        signal = (self._signals[kind] * coordinates[..., : phi.shape[1]]).astype(phi.dtype, copy=False)
        rewards = np.asarray(signal @ phi.T, dtype=np.float64)
        rewards += self._level * coordinates[..., -1:]
        return rewards

    def rewards_of_each(self, kinds: Ints, coordinates: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """`rewards` for several priors, each with coordinates (m, R) of its own: (k, m, R) to (k, m, M).

        Those of one kernel are read together, in one product.
        """
        kernels = kinds % len(self._features)
        distinct = sorted(set(kernels.tolist()))
        if len(distinct) == 1:  # as nearly always: nothing to put together
            return self._rewards_of_kernel(distinct[0], kinds, coordinates, arms)
        places = [np.flatnonzero(kernels == kernel) for kernel in distinct]
        parts = [
            self._rewards_of_kernel(kernel, kinds[mine], coordinates[mine], arms)
            for kernel, mine in zip(distinct, places, strict=True)
        ]
        return np.asarray(np.concatenate(parts)[np.argsort(np.concatenate(places))])

    def _rewards_of_kernel(self, kernel: int, kinds: Ints, coordinates: Floats, arms: Ints | slice) -> Floats:
        """`rewards_of_each` where all priors have this kernel."""
        phi = self._features[kernel][arms]
        signal = self._signals[kinds, None, None] * coordinates[:, :, : phi.shape[1]]
        read = signal.reshape(-1, phi.shape[1]).astype(phi.dtype, copy=False) @ phi.T
        rewards = read.reshape(len(kinds), -1, len(phi)).astype(np.float64, copy=False)
        rewards += self._level * coordinates[:, :, -1:]
        return rewards

    def variances(self, kind: int, covariance: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """Variances of these arms' rewards where the coordinates have this covariance, shape (M,)."""
        numbers = np.arange(self.size)[arms]
        found = np.empty(len(numbers))
        for start in range(0, len(numbers), ARMS_AT_A_TIME):
            some = slice(start, start + ARMS_AT_A_TIME)
            rows = self.of(kind, numbers[some])
            found[some] = np.einsum("ar,ar->a", rows @ covariance, rows)
        return np.maximum(found, 0.0)


MOST_REPRESENTATIVES = 1024


class Representatives:
    """Numbers of the representatives among the arms, growing; `together` of them belong to each segment.

    >>> few = Representatives(ArmSet([[0.0], [0.5], [1.0]]))
    >>> few.everyone, few.of(2)
    (True, 2)
    >>> many = Representatives(ArmSet(np.linspace(0.0, 1.0, 5_000)[:, None]))
    >>> many.everyone, len(many.numbers), bool(abs(many.numbers[many.of(3_210)] - 3_210) < 50)
    (False, 1024, True)
    """

    def __init__(self, arms: ArmSet, most: int = MOST_REPRESENTATIVES) -> None:
        crossing = arms.crossing
        self._options = arms if crossing is None else crossing.options
        segments = 1 if crossing is None else len(crossing.names)
        self._size = len(self._options)
        self.everyone = len(arms) <= most
        self._chosen = _some(self._size, self._size if self.everyone else max(most // segments, 1))
        self.together = len(self._chosen)
        self.numbers: Ints = (np.arange(segments)[:, None] * self._size + self._chosen).ravel()
        self.places: Ints | slice = slice(None) if self.everyone else self.numbers  # to take them from what is of all
        self._points = None if self.everyone else self._point(self._chosen)

    def of(self, arm: int) -> int:
        """Which of the representatives stands for `arm`."""
        if self._points is None:
            return arm
        segment, option = divmod(arm, self._size)
        distances = np.square(self._points - self._point(np.array([option]))).sum(axis=1)
        return segment * self.together + int(distances.argmin())

    def _point(self, options: Ints) -> Floats:
        """Where options are, (M, d): their points as distances are measured, or their features."""
        if self._options.kernel is None:
            return self._options.features[options]
        return self._options.gauge.standardised(self._options.points[options])


def _some(size: int, most: int) -> Ints:
    """So many numbers below `size`, growing, spread at random: every tenth of a grid would lie in a few columns."""
    if size <= most:
        return np.arange(size)
    return np.sort(np.random.default_rng(0).permutation(size)[:most])


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
