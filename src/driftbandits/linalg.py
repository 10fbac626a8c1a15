"""Factorisations for kernels that may be singular: pivoted Cholesky, and a Cholesky with bounded, reported jitter.

symbol  name        shape
K       kernel      (N, N), never formed when N is large
Phi     features    (N, r), Phi Phi' = K up to `tolerance` in every entry
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from driftbandits.errors import KernelError
from driftbandits.types import Floats, Ints

_CANDIDATES = 1024  # arms among which the next pivots are sought; up to this many arms, all of them
_PANEL = 48  # columns added at a time: enough to turn the work into matrix products
_KEEN = 0.1  # a panel takes pivots down to this share of the largest remaining variance


@dataclass(frozen=True)
class LowRank:
    """Features of a positive semi-definite kernel, and how much of it they leave out.

    `residual` is the largest diagonal entry of K - Phi Phi'; no entry of that matrix is larger.
    """

    features: Floats
    pivots: Ints
    residual: float


def pivoted_cholesky(diagonal: Floats, entries: Callable[[Ints | slice, Ints], Floats], *, tolerance: float) -> LowRank:
    """Factor K = Phi Phi' from its diagonal and a few columns, until no diagonal entry of the rest exceeds `tolerance`.

    `entries(rows, columns)` gives K[rows][:, columns]. Up to a thousand arms this is LAPACK's pivoted Cholesky. Beyond,
    pivots are sought among a thousand candidates at a time and their columns computed for all arms in panels, so that
    the N x r work is done by matrix products. Time O(N r^2), memory O(N r); K itself is never formed.

    Raises KernelError where the entries show that K is not symmetric positive semi-definite.

    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> result = pivoted_cholesky(K.diagonal(), lambda i, j: K[i][:, j], tolerance=1e-12)
    >>> bool(np.allclose(result.features @ result.features.T, K))
    True
    """
    rest = diagonal.astype(np.float64, copy=True)
    panels: list[Floats] = []
    pivots: list[Ints] = []
    everything = slice(None)
    while rest.max() > tolerance:
        candidates = _candidates(rest, len(panels))
        small = _remaining(entries, panels, candidates, candidates)
        _check_entries(small, candidates, rest, tolerance)
        floor = tolerance if len(rest) <= _CANDIDATES else max(tolerance, _KEEN * rest.max())
        order, factor = _small_pivoted(small, floor)
        if len(rest) > _CANDIDATES:
            order, factor = order[:_PANEL], factor[:_PANEL, :_PANEL]
        chosen = candidates[order]
        columns = _remaining(entries, panels, everything, chosen)
        panel = scipy.linalg.solve_triangular(factor, columns.T, lower=True, overwrite_b=True).T
        rest -= np.einsum("ij,ij->i", panel, panel)
        _check_rest(rest, diagonal, tolerance)
        rest[chosen] = 0.0
        panels.append(panel)
        pivots.append(chosen)
    features = np.ascontiguousarray(np.hstack(panels)) if panels else np.empty((len(rest), 0))
    order = np.concatenate(pivots) if pivots else np.empty(0, dtype=np.int64)
    return LowRank(features=features, pivots=order, residual=float(max(rest.max(), 0.0)))


def _candidates(rest: Floats, turn: int) -> Ints:
    """Arms to seek pivots among: those with most variance left, and an even sample, for the former cluster."""
    n = len(rest)
    if n <= _CANDIDATES:
        return np.arange(n)
    top = np.argpartition(-rest, _CANDIDATES // 4)[: _CANDIDATES // 4]
    stride = n // (3 * _CANDIDATES // 4)
    return np.unique(np.concatenate([top, np.arange(turn % stride, n, stride)]))


def _remaining(
    entries: Callable[[Ints | slice, Ints], Floats], panels: list[Floats], rows: Ints | slice, columns: Ints
) -> Floats:
    """Entries of K less what the panels so far explain."""
    block = np.array(entries(rows, columns), dtype=np.float64)
    for panel in panels:
        block -= panel[rows] @ panel[columns].T
    return block


def _negative_slack(diagonal: Floats, tolerance: float) -> float:
    return max(10 * tolerance, 1e-8 * float(diagonal.max(initial=0.0)))


def _check_rest(rest: Floats, diagonal: Floats, tolerance: float) -> None:
    if not np.isfinite(rest).all():
        raise KernelError(
            f"the kernel is not finite at arm {int(np.argmin(np.isfinite(rest)))}; check the points and its parameters"
        )
    if rest.min() < -_negative_slack(diagonal, tolerance):
        worst = int(rest.argmin())
        raise KernelError(
            f"the kernel is not positive semi-definite: the variance of arm {worst} given others is {rest[worst]:.3g}; "
            f"use a valid covariance function, or clip the negative eigenvalues of the matrix"
        )


def _check_entries(small: Floats, candidates: Ints, rest: Floats, tolerance: float) -> None:
    """Refuse entries that are not finite or disagree with the diagonal."""
    if not np.isfinite(small).all():
        arm = int(candidates[np.argwhere(~np.isfinite(small))[0, 0]])
        raise KernelError(f"the kernel is not finite at arm {arm}; check the points and the kernel's parameters")
    off = small.diagonal() - rest[candidates]
    if np.abs(off).max() > _negative_slack(rest, tolerance) + 1e-8:
        worst = int(np.abs(off).argmax())
        raise KernelError(
            f"k(X, Y) and the kernel's diagonal disagree at arm {int(candidates[worst])} by {off[worst]:.3g}; a "
            f"WhiteKernel is noise and not part of the covariance of the arms: leave it out"
        )


def _small_pivoted(gram: Floats, tolerance: float) -> tuple[Ints, Floats]:
    """LAPACK's pivoted Cholesky: the pivots above `tolerance`, and the factor of the kept ones in that order."""
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, lower=1, tol=tolerance)
    return (pivots[:rank] - 1).astype(np.int64), np.tril(factor[:rank, :rank])


@dataclass(frozen=True)
class Cholesky:
    """Lower factor of A + jitter I, with the jitter that was needed (0 for a healthy matrix)."""

    factor: Floats
    jitter: float

    def solve(self, right: Floats) -> Floats:
        """Solve (A + jitter I) x = right."""
        solution, info = scipy.linalg.lapack.dpotrs(self.factor, right, lower=1)
        if info != 0:
            raise KernelError(f"LAPACK potrs refused its argument {-info}")
        return np.asarray(solution)

    @property
    def log_det(self) -> float:
        """Logarithm of the determinant of A + jitter I."""
        return 2.0 * float(np.log(self.factor.diagonal()).sum())


def cholesky(matrix: Floats, *, what: str = "matrix") -> Cholesky:
    """Cholesky factor of a symmetric matrix, with the smallest jitter that makes it work.

    Jitters tried: 0, then 1e-14 to 1e-8 of the largest diagonal entry; the one used is in the result.

    >>> cholesky(np.eye(2)).jitter
    0.0
    """
    scale = float(np.abs(matrix.diagonal()).max(initial=0.0))
    if not np.isfinite(matrix).all():
        raise KernelError(f"the {what} is not finite")
    for relative in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        jitter = relative * scale
        shifted = matrix if jitter == 0.0 else matrix + jitter * np.eye(len(matrix))
        factor, info = scipy.linalg.lapack.dpotrf(shifted, lower=1, clean=1)
        if info == 0:
            return Cholesky(factor=factor, jitter=jitter)
    raise KernelError(f"the {what} is not positive definite, even with {jitter:.1e} added to its diagonal")
