"""Kernels to choose from where arms are options in segments: length scales of the options, correlations of segments."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.crossing import Crossing, correlation_matrix, pair_features
from driftbandits.linalg import upright
from driftbandits.policies.core.lengthscales import candidates, cut_features, leading_features
from driftbandits.ties import is_canonical
from driftbandits.types import Floats

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
