"""What the reward function may look like before any reward: one Gaussian prior a length scale.

symbol  name      shape
c                 number of a prior
P_c     prior     covariance of all arms' rewards: signal K_c + level 1 1'
h_a     row       (R,), how arm a reads the coordinates: f(a) = h_a' x
x                 (R,), the coordinates; N(0, P) in them

Few arms are their own coordinates: h_a is a unit vector, and reading costs nothing. Many arms are linear in R features
of the kernel, with one more for the level that all share; P is then the identity.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import scipy.spatial
from sklearn.gaussian_process.kernels import RBF

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.linalg import small_pivoted
from driftbandits.types import Bools, Floats, Ints

SIGNALS = (0.2, 0.05)  # prior variances of an arm's reward about the level, where rewards span [-1, 1]
SIGNAL = 0.1  # between them, where one number must do
LEVEL = 0.1  # prior variance of the level that all arms share
OCTAVES = (0.5, 0.25, 0.125, 0.0625)  # length scales tried by "auto", of the median distance between arms
_FAINT = 0.1  # a length scale at which neighbours correlate less says that arms are independent
_ALIKE = 0.5  # squared correlation above which a look at one arm is a look at the other
_LEAST = 1e-12
_TOO_LITTLE = 0.5  # share of the variance that features must hold
_LEFT_OUT = 1e-4  # of the variance, by the features of a kernel
_SAMPLED = 400  # arms by which distances are judged


class Priors:
    """The priors of all candidate kernels and sizes of the signal, in coordinates common to them.

    `length_scales` has one entry a prior: None for the kernel the arms came with, 0 for independent arms.
    """

    def __init__(self, arms: ArmSet, *, auto: bool, rank: int) -> None:
        candidates = _candidates(arms, rank) if auto else [(None, _cut(arms.features, rank))]
        self.length_scales = tuple(scale for scale, _ in candidates) * len(SIGNALS)
        self._features = [features for _, features in candidates] * len(SIGNALS)
        self._directions: dict[int, Floats] = {}
        self._crowds: dict[int, Floats] = {}
        self._alike: dict[int, Bools] = {}
        self.count = len(self._features)
        signals = np.repeat(SIGNALS, len(candidates))
        widest = max(features.shape[1] for features in self._features)
        self.direct = 2 * widest + 2 > len(arms)  # arms are their own coordinates
        self.rows: Floats | None = None  # (kinds, N, R), how arms read the coordinates, unless they are their own
        if self.direct:
            self.width = len(arms)
            self.prior = np.array([s * phi @ phi.T + LEVEL for s, phi in zip(signals, self._features, strict=True)])
        else:
            self.width = widest + 1
            self.prior = np.broadcast_to(np.eye(self.width), (self.count, self.width, self.width))
            self.rows = np.zeros((self.count, len(arms), self.width))
            for rows, signal, phi in zip(self.rows, signals, self._features, strict=True):
                rows[:, : phi.shape[1]] = math.sqrt(signal) * phi
                rows[:, -1] = math.sqrt(LEVEL)

    def bump(self, kind: int, arm: int) -> Floats:
        """Coordinates u such that u u' is the part of the prior, without the level, that a reward of `arm` sees."""
        if self.rows is None:
            column = self.prior[kind, arm] - LEVEL
            return np.asarray(column / math.sqrt(max(float(column[arm]), _LEAST)))
        row = self.rows[kind, arm].copy()
        row[-1] = 0.0
        return np.asarray(row / math.sqrt(max(float(row @ row), _LEAST)))

    def alike(self, kind: int, arm: int) -> Bools:
        """Arms of which a reward of `arm` says much, itself among them."""
        unit = self._units(kind)
        if not self.direct:
            return _near(unit, unit[arm : arm + 1], arm)[:, 0]
        if kind not in self._alike:
            self._alike[kind] = _near(unit, unit, np.arange(len(unit)))
        return np.asarray(self._alike[kind][arm])

    def crowds(self, kind: int) -> Floats:
        """How many arms each arm is alike with, shape (N,); counted on some of them where there are many."""
        if kind not in self._crowds:
            unit = self._units(kind)
            some = _some(unit, 2 * _SAMPLED)
            alike = np.square(unit @ some.T) > _ALIKE
            self._crowds[kind] = np.maximum(np.count_nonzero(alike, axis=1) * (len(unit) / len(some)), 1.0)
        return self._crowds[kind]

    def _units(self, kind: int) -> Floats:
        """Features of length 1, whose products are correlations."""
        if kind not in self._directions:
            phi = self._features[kind]
            self._directions[kind] = phi / np.sqrt(np.maximum(np.square(phi).sum(axis=1), _LEAST))[:, None]
        return self._directions[kind]


def _near(unit: Floats, others: Floats, own: int | Ints) -> Bools:
    """Which of `unit` each of the `others` says much of; these are rows `own` of `unit`."""
    near: Bools = np.square(unit @ others.T) > _ALIKE
    near[own, np.arange(len(others))] = True
    return near


def _standardised(points: Floats) -> Floats:
    """Columns with standard deviation 1; one that never changes says nothing."""
    spread = points.std(axis=0)
    kept = spread > 1e-12 * np.abs(points).max(axis=0)
    scaled: Floats = points[:, kept] / spread[kept]
    return scaled


def _candidates(arms: ArmSet, rank: int) -> list[tuple[float | None, Floats]]:
    """Length scales with the features of their kernels; independent arms where as many features can be held."""
    independent: list[tuple[float | None, Floats]] = [(0.0, np.eye(len(arms)))] if len(arms) <= 2 * rank else []
    if arms.kernel is None:
        return [(None, _cut(arms.features, rank)), *independent]
    points = _standardised(arms.points)
    scales = _length_scales(points) if points.shape[1] else []
    if not scales and not independent:
        return [(None, _cut(arms.features, rank))]
    tried = [(scale, _features(points, scale, rank)) for scale in scales]
    # the coarsest is always kept; a finer one only if the features can show it
    held = [(s, phi) for n, (s, phi) in enumerate(tried) if n == 0 or np.square(phi).sum(axis=1).mean() > _TOO_LITTLE]
    return [*held, *independent]


def _length_scales(points: Floats) -> list[float]:
    """Octaves of the median distance between arms, down to where neighbours no longer correlate."""
    some = _some(points, _SAMPLED)
    distances = scipy.spatial.distance.pdist(some)
    typical = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
    nearest = float(np.median(scipy.spatial.cKDTree(points).query(some, k=min(2, len(points)))[0].max(axis=-1)))
    scales = [typical * octave for octave in OCTAVES]
    return [scale for scale in scales if math.exp(-0.5 * (nearest / scale) ** 2) > _FAINT]


def _features(points: Floats, scale: float, rank: int) -> Floats:
    """Features of the kernel with this length scale, at most `rank` of them where there are many arms."""
    kernel = RBF(scale)
    if len(points) <= 2 * rank:
        return ArmSet(points, kernel, tolerance=_LEFT_OUT).features
    some = _some(points, 10 * rank)
    order, factor = small_pivoted(kernel(some), _LEFT_OUT)
    kept = min(rank, len(order))
    columns = kernel(some[order[:kept]], points)
    return np.asarray(scipy.linalg.solve_triangular(factor[:kept, :kept], columns, lower=True).T)


def _some(rows: Floats, most: int) -> Floats:
    """At most so many of the rows, spread at random: every tenth of a grid would all lie in a few columns."""
    return rows if len(rows) <= most else rows[np.random.default_rng(0).permutation(len(rows))[:most]]


def _cut(features: Floats, rank: int) -> Floats:
    """At most `rank` features where there are many arms: those that explain most of all arms together."""
    if len(features) <= 2 * rank or features.shape[1] <= rank:
        return features
    values, vectors = np.linalg.eigh(features.T @ features)
    kept = float(values[-rank:].sum() / values.sum())
    if kept < _TOO_LITTLE:
        raise InputError(
            f"the {rank} best features of the kernel hold only {100 * kept:.0f} % of its variance over {len(features)} "
            f"arms; give rank={features.shape[1]}, or a smoother kernel"
        )
    return np.asarray(features @ vectors[:, -rank:])
