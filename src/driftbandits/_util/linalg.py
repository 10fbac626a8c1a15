"""Factorisations for kernels that may be singular: pivoted Cholesky, and a Cholesky with bounded, reported jitter.

symbol  name        shape
K       kernel      (N, N), never formed when N is large
Phi     features    (N, r), Phi Phi' = K up to `tolerance` in every entry
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from driftbandits._util.checks import FLOAT_BYTES, check_memory, memory_limit
from driftbandits.errors import KernelError
from driftbandits.types import Floats, Ints

_MOST_CANDIDATES = 2048  # arms among which a stage seeks its pivots; up to this many arms, one stage does all
_BLOCK_ENTRIES = 1 << 16  # half a megabyte stays in the cache and is not given back to the system
_COLUMNS_RESERVED = 32  # for later stages
NOT_VALID_CURE = (
    "use a valid covariance function, clip the negative eigenvalues of a matrix, or, if its values are rounded (to "
    "single precision, say), give a larger tolerance"
)
_GOLDEN_RATIO = 0.6180339887498949  # multiples of it, modulo 1, are evenly spread without repeating any grid
_ARMS_SAMPLED = 256  # by which the number of features is foretold, where there are very many arms
_TOO_MANY_CURE = "take fewer arms, a larger tolerance or a kernel with a longer length scale"
_TILT = 1e-6  # far more than rounding, too little to matter
_LEAST_TILTED = 1e-6  # a smaller tolerance leaves nothing out that would show, whatever the order
_ROUNDING_SHARE = 1e-8  # of the largest k(x, x): what kernels computed in double precision may be off by


@dataclass(frozen=True)
class LowRank:
    """Features of a positive semi-definite kernel, and how much of it they leave out.

    `residual` is the largest diagonal entry of K - Phi Phi'; no entry of that matrix is larger. `pivots` are the arms
    whose columns of K the features give exactly, in the order of the features.
    """

    features: Floats
    pivots: Ints
    residual: float


def pivoted_cholesky(diagonal: Floats, entries: Callable[[Ints | slice, Ints], Floats], *, tolerance: float) -> LowRank:
    """Factor K = Phi Phi' from its diagonal and a few columns, until no diagonal entry of the rest exceeds `tolerance`.

    `entries(rows, columns)` gives K[rows][:, columns]. A stage takes up to 2,048 candidates among the arms whose rest
    is too large, finds its pivots by LAPACK's pivoted Cholesky on them, and then the pivots' columns for all arms, a
    block of rows at a time: K[rows, pivots] less what earlier stages explain, solved with the pivots' factor. Up to
    2,048 arms one stage is all; beyond, a second or third usually has a few pivots to add. Time O(N r^2), memory
    O(N r), hardly more than the features themselves; K itself is never formed.

    Raises KernelError where the entries show that K is not finite, symmetric and positive semi-definite, InputError
    where the features will not fit into memory, as soon as that is clear.

    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> result = pivoted_cholesky(K.diagonal(), lambda i, j: K[i][:, j], tolerance=1e-12)
    >>> bool(np.allclose(result.features @ result.features.T, K))
    True
    """
    rest = diagonal.astype(np.float64, copy=True)
    slack = max(10 * tolerance, _ROUNDING_SHARE * float(rest.max(initial=0.0)))
    features = _Growing(len(rest))
    pivots: Ints = np.empty(0, dtype=np.int64)
    while rest.max(initial=0.0) > tolerance:
        candidates = _candidates(rest, tolerance)
        known = features.take(candidates)
        small = entries(candidates, candidates) - known @ known.T
        _check_entries(small, candidates, rest, slack)
        order, factor = small_pivoted(small, tolerance)
        if len(order) == 0:  # rounding: the largest rest is no longer above the tolerance when computed afresh
            break
        chosen = candidates[order]
        if not len(pivots):
            _check_outlook(entries, chosen, factor, rest)
        features.add(entries, chosen, factor, rest)
        _check_rest(rest, slack)
        rest[chosen] = 0.0
        pivots = np.concatenate([pivots, chosen])
    return LowRank(features=features.array(), pivots=pivots, residual=float(rest.max(initial=0.0)))


class _Growing:
    """An (N, r) array in row order that gains columns inside its own memory, so that many arms need no second copy.

    Room for a few columns is reserved behind the array; memory that is never written takes no room.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._rank = 0
        self._flat: Floats = np.empty(0)

    def array(self) -> Floats:
        """The features so far; a view that no longer holds once more are added."""
        return self._flat[: self._size * self._rank].reshape(self._size, self._rank)

    def take(self, rows: Ints) -> Floats:
        return self.array()[rows]

    def add(self, entries: Callable[[Ints | slice, Ints], Floats], chosen: Ints, factor: Floats, rest: Floats) -> None:
        """Add the columns of the pivots `chosen`, and take what they explain off `rest`.

        A row's new place is never before its old one, so rows are moved last ones first.
        """
        old, new = self._rank, self._rank + len(chosen)
        known = self.take(chosen).T
        if self._size * new > len(self._flat):
            both = FLOAT_BYTES * self._size * (old + new)
            check_memory(both, f"{new:,} features of {self._size:,} arms", cure=_TOO_MANY_CURE)
            larger = np.empty(self._size * (new + _COLUMNS_RESERVED * (self._size > _MOST_CANDIDATES)))
            larger[: self._size * old] = self._flat[: self._size * old]
            self._flat = larger
        step = max(64, _BLOCK_ENTRIES // new)
        for start in reversed(range(0, self._size, step)):
            stop = min(start + step, self._size)
            block = entries(slice(start, stop), chosen)
            before = self._flat[start * old : stop * old].reshape(stop - start, old).copy()
            if old:
                block = block - before @ known
            block = scipy.linalg.blas.dtrsm(1.0, factor, block.T, lower=1).T
            after = self._flat[start * new : stop * new].reshape(stop - start, new)
            after[:, :old] = before
            after[:, old:] = block
            rest[start:stop] -= np.einsum("ij,ij->i", block, block)
        self._rank = new


def _candidates(rest: Floats, tolerance: float) -> Ints:
    """Arms to seek pivots among: those with most variance left, and an even spread, for the former cluster."""
    left = np.flatnonzero(rest > tolerance)
    if len(left) <= _MOST_CANDIDATES:
        return left
    most = _MOST_CANDIDATES // 4
    top = np.argpartition(rest[left], -most)[-most:]
    spread = np.arange(1, _MOST_CANDIDATES - most + 1) * _GOLDEN_RATIO % 1.0 * len(left)
    both: Ints = left[np.unique(np.concatenate([top, spread.astype(np.int64)]))]
    return both


def _check_outlook(entries: Callable[[Ints | slice, Ints], Floats], chosen: Ints, factor: Floats, rest: Floats) -> None:
    """Refuse a kernel that needs more features than memory holds, as the first pivots foretell: in seconds, not hours.

    The pivots are spread over all arms, so those to come explain no more each than these. What these explain of some
    other arms gives how many it takes; only if half as many do not fit is the kernel refused.
    """
    size = len(rest)
    some = ((np.arange(_ARMS_SAMPLED) + 0.5) / _ARMS_SAMPLED * size).astype(np.int64)
    variance = float(rest[some].sum())
    if FLOAT_BYTES * size**2 <= memory_limit() or variance <= 0.0:
        return
    block = scipy.linalg.blas.dtrsm(1.0, factor, entries(some, chosen).T, lower=1)
    share = float(np.square(block).sum()) / variance
    expected = min(len(chosen) / max(share, 1e-300), float(size))
    what = f"about {expected:,.0f} features of {size:,} arms"
    check_memory(int(FLOAT_BYTES * size * expected / 2), what, cure=_TOO_MANY_CURE)


def _check_rest(rest: Floats, slack: float) -> None:
    if not np.isfinite(rest).all():
        arm = int(np.argmin(np.isfinite(rest)))
        raise KernelError(f"the kernel is not finite at arm {arm}; check the points and the kernel's parameters")
    if rest.min() < -slack:
        worst = int(rest.argmin())
        raise KernelError(
            f"the kernel is not positive semi-definite: the variance of arm {worst} given others is {rest[worst]:.3g}; "
            f"{NOT_VALID_CURE}"
        )


def _check_entries(small: Floats, candidates: Ints, rest: Floats, slack: float) -> None:
    """Refuse entries that are not finite, not symmetric or disagree with the diagonal."""
    if not np.isfinite(small).all():
        arm = int(candidates[np.argwhere(~np.isfinite(small))[0, 0]])
        raise KernelError(f"the kernel is not finite at arm {arm}; check the points and the kernel's parameters")
    off = small.diagonal() - rest[candidates]
    if np.abs(off).max() > slack:
        worst = int(np.abs(off).argmax())
        raise KernelError(
            f"k(X, Y) and the kernel's diagonal disagree at arm {int(candidates[worst])} by {off[worst]:.3g}; a "
            f"WhiteKernel is noise and not part of the covariance of the arms: leave it out"
        )
    skew = np.abs(small - small.T)
    if skew.max() > slack:
        row, column = (int(candidates[i]) for i in np.unravel_index(int(skew.argmax()), skew.shape))
        raise KernelError(
            f"the kernel is not symmetric: k(x, y) and k(y, x) of arms {row} and {column} differ by {skew.max():.3g}"
        )


def small_pivoted(gram: Floats, tolerance: float, *, tilted: bool = False) -> tuple[Ints, Floats]:
    """LAPACK's pivoted Cholesky: the pivots above `tolerance`, and the factor of the kept ones in that order.

    Arms on a grid have mirror images that are as good as they are. Rounding would choose between them, differently on
    every machine, so if `tilted`, where the kept ones leave something out, earlier arms count as having a little more
    variance.
    """
    if gram.diagonal().max() <= tolerance:  # LAPACK takes the first pivot whatever its size
        return np.empty(0, dtype=np.int64), np.empty((0, 0))
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, lower=1, tol=tolerance)
    if tilted and tolerance >= _LEAST_TILTED * gram.diagonal().max():
        tilt = np.linspace(1.0 + _TILT, 1.0, len(gram))
        uneven, order, count, _ = scipy.linalg.lapack.dpstrf(gram * tilt[:, None] * tilt, lower=1, tol=tolerance)
        if count != rank or (order[:rank] != pivots[:rank]).any():
            factor, pivots, rank = uneven / tilt[order - 1][:, None], order, count
    return (pivots[:rank] - 1).astype(np.int64), np.tril(factor[:rank, :rank])


def upright(rows: Floats) -> Floats:
    """Rows with the same products, (m, r), however they came turned: zero beyond the diagonal, which is positive.

    Eigenvectors come with either sign, and those of equal eigenvalues in any basis of their space: what is drawn in
    such coordinates would be another draw on another machine.

    >>> upright(np.array([[0.0, -2.0], [3.0, 0.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    triangle: Floats = np.linalg.qr(rows.T).R.T
    return np.where(triangle.diagonal() < 0.0, -triangle, triangle) + 0.0


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

    def half_solve(self, right: Floats) -> Floats:
        """Solve L x = right with the factor L, so that x'x = right' (A + jitter I)^-1 right."""
        solution, info = scipy.linalg.lapack.dtrtrs(self.factor, right, lower=1)
        if info != 0:
            raise KernelError(f"LAPACK trtrs refused its argument {-info}")
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


SLACK = 1e-9  # between numbers of about 1: far more than rounding adds up to, far less than what matters


_AS_FIRST_RELEASED: ContextVar[bool] = ContextVar("as_first_released", default=False)


@contextmanager
def as_first_released(really: bool) -> Iterator[None]:
    """While a state of 0.3.0 is restored: features and cells of arms as that release chose them.

    What is in such a state is said in these features; in others it would mean something else.
    """
    token = _AS_FIRST_RELEASED.set(really)
    try:
        yield
    finally:
        _AS_FIRST_RELEASED.reset(token)


def is_canonical() -> bool:
    """Whether features and cells of arms are chosen in the same way on every machine."""
    return not _AS_FIRST_RELEASED.get()


def first_largest(values: Floats, *, slack: float = SLACK) -> int:
    """Place of the first value that is at most `slack` below the largest.

    >>> first_largest(np.array([0.1, 0.3, 0.3 + 1e-16, 0.2]))
    1
    """
    return int((values >= values.item(values.argmax()) - slack).argmax())


def largest_first(values: Floats, *, slack: float = SLACK) -> Ints:
    """Places of all values from the largest to the smallest, those within `slack` of their neighbours in turn.

    >>> largest_first(np.array([0.1, 0.3, 0.3 + 1e-16, 0.2])).tolist()
    [1, 2, 3, 0]
    """
    order = np.argsort(-values, kind="stable")
    if len(order) < 2:
        return order
    apart = values[order[:-1]] - values[order[1:]] > slack
    if apart.all():
        return order
    group: Ints = np.zeros(len(order), dtype=np.int64)
    np.cumsum(apart, out=group[1:])
    return np.asarray(order[np.lexsort((order, group))])


def some_largest(values: Floats, count: int, *, slack: float = SLACK) -> Ints:
    """Places of the `count` largest values, growing; of those within `slack` of the last of them, the first.

    >>> some_largest(np.array([0.3, 0.1, 0.3 + 1e-16, 0.4]), 2).tolist()
    [0, 3]
    """
    least = np.partition(values, -count)[-count]
    larger = values > least + slack
    equal = np.flatnonzero((values >= least - slack) & ~larger)
    larger[equal[: count - int(np.count_nonzero(larger))]] = True
    return np.flatnonzero(larger)
