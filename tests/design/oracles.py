"""What the tests of the solver compare with: an exact certificate, and the families of problems it must solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF


def certificate(features, costs, regulariser, law, candidates=None):
    """Frank-Wolfe gap at `law` in extended precision, with nothing taken from the library.

    Double precision is not enough to check a gap of 1e-6 where leverages reach 1e6.
    """
    wide = np.longdouble
    phi, p, c = features.astype(wide), law.astype(wide), np.asarray(costs, dtype=wide)
    information = phi.T @ (p[:, None] * phi) + wide(regulariser) * np.eye(phi.shape[1], dtype=wide)
    factor = np.zeros_like(information)
    for k in range(len(information)):
        column = information[k:, k] - factor[k:, :k] @ factor[k, :k]
        factor[k:, k] = column / np.sqrt(column[0])
    solved = phi.T.copy()
    for k in range(len(factor)):
        solved[k] = (solved[k] - factor[k, :k] @ solved[:k]) / factor[k, k]
    gradient = c - (solved * solved).sum(axis=0)
    allowed = gradient if candidates is None else gradient[candidates]
    return float(p @ (gradient - allowed.min()))


@dataclass(frozen=True)
class Case:
    """One design problem, and the words that made it."""

    features: np.ndarray
    costs: np.ndarray
    regulariser: float
    family: str
    cost_kind: str

    def __repr__(self):
        return f"Case({self.family}, {self.features.shape}, costs {self.cost_kind}, lambda {self.regulariser:g})"


def square_root(kernel, tolerance=1e-10):
    """Features of a kernel matrix by its eigenvectors: dense, unlike the library's Cholesky features."""
    values, vectors = np.linalg.eigh(kernel)
    kept = values > tolerance * values.max()
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


def _features(family, size, dimension, rng):
    points = rng.random((size, dimension))
    match family:
        case "identity":
            return np.eye(size)
        case "nearly identity":
            return square_root(RBF(0.02)(points))
        case "rank one":
            return rng.uniform(-1, 1, (size, 1))
        case "linear":
            return rng.uniform(-1, 1, (size, dimension)) / np.sqrt(dimension)
        case "smooth":
            return square_root(RBF(0.2)(points))
        case "nearly singular":
            return square_root(RBF(5.0)(points))
        case "nearly singular, full rank":
            return np.linalg.cholesky(RBF(5.0)(points) + 1e-10 * np.eye(size))
        case "duplicates":
            return square_root(RBF(0.2)(points[rng.integers(0, max(1, size // 3), size)]))
        case "rotated":
            return rng.standard_normal((size, size)) / np.sqrt(size)
    raise AssertionError(family)


FAMILIES = (
    "identity",
    "nearly identity",
    "rank one",
    "linear",
    "smooth",
    "nearly singular",
    "nearly singular, full rank",
    "duplicates",
    "rotated",
)


def _costs(kind, size, scale, rng):
    match kind:
        case "zero":
            return np.zeros(size)
        case "equal":
            return np.full(size, scale)
        case "even":
            return scale * rng.random(size)
        case "many scales":
            return scale * 10.0 ** rng.uniform(-6, 0, size)
        case "two values":
            return scale * (rng.random(size) < 0.5)
        case "one arm":
            return np.where(np.arange(size) == size // 2, 0.0, 1e6)
        case "offset":
            return 1e6 + scale * rng.random(size)
    raise AssertionError(kind)


COST_KINDS = ("zero", "equal", "even", "many scales", "two values", "one arm", "offset")


def make_case(family, cost_kind, *, size, dimension=2, scale=1.0, regulariser=1e-2, seed=0):
    rng = np.random.default_rng(seed)
    features = _features(family, size, dimension, rng)
    return Case(features, _costs(cost_kind, size, scale, rng), regulariser, family, cost_kind)


@st.composite
def cases(draw, sizes=(1, 2, 3, 5, 10, 25, 60), scales=(1e-3, 1.0, 1e2, 1e4, 1e6)):
    return make_case(
        draw(st.sampled_from(FAMILIES)),
        draw(st.sampled_from(COST_KINDS)),
        size=draw(st.sampled_from(sizes)),
        dimension=draw(st.integers(1, 4)),
        scale=draw(st.sampled_from(scales)),
        regulariser=draw(st.sampled_from((1e-6, 1e-4, 1e-2, 1.0, 10.0))),
        seed=draw(st.integers(0, 10_000)),
    )
