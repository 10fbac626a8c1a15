"""Kernels to choose from where the length scale, or the correlation of segments, is not known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from driftbandits._util.linalg import is_canonical, small_pivoted, upright
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.features import Crossing, correlation_matrix, pair_features
from driftbandits.arms.kernels import SquaredExponential, some_rows
from driftbandits.arms.scaling import Gauge
from driftbandits.errors import InputError
from driftbandits.types import Floats

OCTAVES = (0.5, 0.25, 0.125, 0.0625)  # of the median distance between arms
ARMS_TRIED_PER_FEATURE = 10  # among which the features of a kernel are sought
_LEAST_NEIGHBOUR_CORRELATION = 0.1  # with less, a length scale says that arms are independent
_LEAST_VARIANCE_HELD = 0.5  # share that features must hold
_VARIANCE_LEFT_OUT = 1e-4  # share, by the features of a kernel
_LEAST_SHARE = 1e-7  # of the variance of the first of such features: what has less is turned by rounding
_TILT = 1e-2  # by which arms count differently: features of a grid, say, would come in equal pairs, turned anyhow
_POINTS_AT_A_TIME = 4096
_MOST_NUMBERS_IN_DOUBLE = 2**25  # of features; beyond, single precision is enough and takes half the room


def candidates(arms: ArmSet, rank: int) -> list[tuple[float | None, Floats]]:
    """Length scales with the features of their kernels; None is the arms' own kernel, where there is no other."""
    others: list[tuple[float | None, Floats]] = [*other_kernels(arms, rank)]
    if arms.kernel is None or not others:
        return [(None, cut_features(arms.features, rank)), *others]
    return others


def other_kernels(arms: ArmSet, rank: int) -> list[tuple[float, Floats]]:
    """Length scales beside the arms' own kernel, none without points; independent arms where these can be held."""
    independent = [(0.0, np.eye(len(arms)))] if len(arms) <= 2 * rank else []
    if arms.kernel is None:
        return independent
    points = arms.gauge.standardised(arms.points)
    scales = _length_scales(arms.gauge) if points.shape[1] else []
    if len(points) <= 2 * rank:
        tried = [(scale, feature_map(points, scale, rank)(points)) for scale in scales]
        return [*tried[:1], *((s, phi) for s, phi in tried[1:] if _held(phi) > _LEAST_VARIANCE_HELD), *independent]
    some = some_rows(points, ARMS_TRIED_PER_FEATURE * rank)
    maps = [(scale, feature_map(points, scale, rank)) for scale in scales]
    # the coarsest is always kept; a finer one only if the features can show it
    kept = [*maps[:1], *((s, features) for s, features in maps[1:] if _held(features(some)) > _LEAST_VARIANCE_HELD)]
    return [(scale, _in_blocks(features, points)) for scale, features in kept]


def _length_scales(gauge: Gauge) -> list[float]:
    """Octaves of the median distance between arms, down to where neighbours no longer correlate."""
    scales = [gauge.typical * octave for octave in OCTAVES]
    return [scale for scale in scales if math.exp(-0.5 * (gauge.nearest / scale) ** 2) > _LEAST_NEIGHBOUR_CORRELATION]


def _held(features: Floats) -> float:
    """Share of the variance of arms that their features hold, on average."""
    return float(np.square(features).sum(axis=1).mean())


def _in_blocks(features: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Features of all points, a block at a time: what is computed on the way stays small."""
    first = features(points[:_POINTS_AT_A_TIME])
    precision = np.float32 if len(points) * first.shape[1] > _MOST_NUMBERS_IN_DOUBLE else np.float64
    found: Floats = np.empty((len(points), first.shape[1]), dtype=precision)
    found[:_POINTS_AT_A_TIME] = first
    for start in range(_POINTS_AT_A_TIME, len(points), _POINTS_AT_A_TIME):
        found[start : start + _POINTS_AT_A_TIME] = features(points[start : start + _POINTS_AT_A_TIME])
    return found


def feature_map(points: Floats, scale: float, rank: int) -> Callable[[Floats], Floats]:
    """What gives any points in the features that `points` have under the kernel with this length scale."""
    kernel = SquaredExponential(scale)
    few = len(points) <= 2 * rank
    if few and not is_canonical():
        arms = ArmSet(points, kernel, tolerance=_VARIANCE_LEFT_OUT)
        anchors, factor = points[arms.pivots], arms.features[arms.pivots]
    else:
        some = points if few else some_rows(points, ARMS_TRIED_PER_FEATURE * rank)
        order, whole = small_pivoted(kernel(some), _VARIANCE_LEFT_OUT, tilted=is_canonical())
        kept = len(order) if few else min(rank, len(order))
        anchors, factor = some[order[:kept]], whole[:kept, :kept]

    def features(others: Floats) -> Floats:
        return np.asarray(scipy.linalg.blas.dtrsm(1.0, factor, kernel(others, anchors).T, lower=1, overwrite_b=1).T)

    return features


def cut_features(features: Floats, rank: int) -> Floats:
    """At most `rank` features where there are many arms: those that explain most of all arms together."""
    cut, held = _leading(features, rank)
    if held < _LEAST_VARIANCE_HELD:
        raise InputError(
            f"the {rank} best features of the kernel hold only {100 * held:.0f} % of its variance over {len(features)} "
            f"arms; give rank={features.shape[1]}, or a smoother kernel"
        )
    return cut


def leading_features(features: Floats, rank: int) -> Floats | None:
    """As `cut_features`, but None where these hold too little of the variance."""
    cut, held = _leading(features, rank)
    return cut if held >= _LEAST_VARIANCE_HELD else None


def _leading(features: Floats, rank: int) -> tuple[Floats, float]:
    """Features cut to at most `rank` where there are many arms, and the share of the variance they hold.

    They come in an order and with signs that are the same on every machine, for samples are drawn in them.
    """
    if len(features) <= 2 * rank or not (is_canonical() or features.shape[1] > rank):
        return features, 1.0
    if not is_canonical():
        values, vectors = np.linalg.eigh(features.T @ features)
        return np.asarray(features @ vectors[:, -rank:]), float(values[-rank:].sum() / values.sum())
    uneven = np.random.default_rng(0).random(len(features))
    values, vectors = np.linalg.eigh((features.T * (1.0 + _TILT * uneven)) @ features)
    cut = features @ vectors[:, -rank:][:, values[-rank:] > _LEAST_SHARE * values[-1]]
    return np.where(uneven @ cut < 0.0, -cut, cut), float(values[-rank:].sum() / values.sum())


CORRELATIONS = (0.0, 0.5, 1.0)  # tried beside the one given
MOST_SCALES = 2  # of the options, beside independent ones: with the correlations and signals, priors are many
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class PairKernel:
    """A kernel of the pairs: length scale of the options and correlation of segments (None: as given), features.

    `features` are those of the pairs, products of those of `options` and of `segments`, perhaps cut to fewer.
    """

    length_scale: float | None
    correlation: float | None
    options: Floats
    segments: Floats
    features: Floats


def pair_kernels(crossing: Crossing[ArmSet], rank: int) -> list[PairKernel]:
    """Length scales of the options times correlations of the segments, with the features of the pairs."""
    found = [
        PairKernel(scale, correlation, options, segments, pair_features(options, segments))
        for correlation, segments in _correlations(crossing)
        for scale, options in _scales(crossing, rank)
    ]
    if crossing.size * len(crossing.names) <= 2 * rank:
        return found
    cut = [(pair, leading_features(pair.features, rank)) for pair in found]
    kept = [dataclasses.replace(pair, features=features) for pair, features in cut if features is not None]
    return kept or [dataclasses.replace(found[0], features=cut_features(found[0].features, rank))]  # or what is wrong


def _scales(crossing: Crossing[ArmSet], rank: int) -> list[tuple[float | None, Floats]]:
    """A few of the length scales an octave apart, the coarsest first, and independent options where they can be."""
    tried = candidates(crossing.options, rank)
    independent = [item for item in tried if item[0] == 0.0]
    others = [item for item in tried if item[0] != 0.0 and not (independent and _is_identity(item[1]))]
    return [*others[::2][:MOST_SCALES], *independent]


def _is_identity(features: Floats) -> bool:
    return features.shape[0] == features.shape[1] and bool(np.abs(features - np.eye(len(features))).max() < _NEGLIGIBLE)


def _correlations(crossing: Crossing[ArmSet]) -> list[tuple[float | None, Floats]]:
    """Correlations with the features of the segments; that given is None where it is not one of the usual numbers."""
    size = len(crossing.names)
    given = crossing.segments.features @ crossing.segments.features.T
    usual = {rho: correlation_matrix(rho, size) for rho in CORRELATIONS}
    known = any(np.abs(given - matrix).max() < _NEGLIGIBLE for matrix in usual.values())
    own: list[tuple[float | None, Floats]] = [] if known else [(None, crossing.segments.features)]
    return [*own, *((rho, _root(matrix)) for rho, matrix in usual.items())]


def _root(matrix: Floats) -> Floats:
    """Features of a small positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _NEGLIGIBLE
    rows = np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
    return upright(rows) if is_canonical() else rows
