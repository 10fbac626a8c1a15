"""From a kernel on the arms to their features: Phi Phi' = K / scale up to a tolerance, or an error with its cure."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from driftbandits._util.checks import FLOAT_BYTES, as_floats, check_memory
from driftbandits._util.linalg import NOT_VALID_CURE, LowRank, pivoted_cholesky
from driftbandits.arms import kernels
from driftbandits.arms.kernels import KernelFunction
from driftbandits.errors import InputError, KernelError, near_and_valid
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Floats, Ints

_ARMS_COMPARED_WHOLE = 1024  # beyond, a kernel function is compared with its features on 16 columns
_BLOCK_ENTRIES = 1 << 20  # compared at a time

Entries = Callable[[Ints | slice, Ints], Floats]


def from_function(points: Floats, function: KernelFunction) -> tuple[Floats, Entries, bool]:
    """Diagonal and entries of a kernel function on the points, and whether to check all columns."""
    evaluate = kernels.checked(function)

    def entries(rows: Ints | slice, columns: Ints) -> Floats:
        return evaluate(points[rows], points[columns])

    return kernels.diagonal(function, points), entries, len(points) <= _ARMS_COMPARED_WHOLE


def from_matrix(kernel: Any, size: int, names: tuple[str, ...] | None) -> tuple[Floats, Entries, bool]:
    """Diagonal and entries of a given matrix, after refusing one that is not finite and symmetric."""
    wanted = "a scikit-learn kernel, a function k(X, Y), a mapping with a 'name', or a matrix"
    try:
        matrix = as_floats(kernel)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"kernel must be {wanted} of numbers, got {shown(kernel)}: {error}") from None
    if matrix.ndim != 2:
        raise InputError(f"kernel must be {wanted}, got {shown(kernel)}")
    if matrix.shape != (size, size):
        raise InputError(
            f"a kernel matrix for {counted(size, 'arm')} must be square of that size, got the shape {matrix.shape}"
        )
    for labels in (kernel.index, kernel.columns) if hasattr(kernel, "columns") and hasattr(kernel, "index") else ():
        given = [str(label) for label in labels]
        if names is not None and given not in (list(names), [str(i) for i in range(size)]):
            raise InputError(
                "the kernel matrix has other labels than the arms, or another order; use .loc[names, names]"
            )
    slack = 1e-8 * float(np.abs(matrix.diagonal()).max())
    for rows in _blocks(size, size):
        block = matrix[rows]
        if not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise KernelError(
                f"the kernel matrix is {block[row, column]} at arms {rows.start + row} and {column}; fill missing "
                f"entries first"
            )
        skew = np.abs(block - matrix[:, rows].T)
        if skew.max() > slack:
            row, column = np.unravel_index(int(skew.argmax()), skew.shape)
            raise KernelError(
                f"the kernel matrix is not symmetric at arms {rows.start + row} and {column}, by {skew.max():.3g}; use "
                f"(K + K.T) / 2 if the difference is rounding"
            )
    return matrix.diagonal(), lambda rows, columns: matrix[rows][:, columns], True


def factored(own: Floats, entries: Entries, tolerance: float, *, whole: bool) -> tuple[LowRank, float, float]:
    """Features of the kernel divided by `scale`, the scale, and a number by which to know the kernel again."""
    size = len(own)
    scale = scale_of(own)
    if whole and _is_identity(entries, size):  # what follows would take a minute for 10,000 arms
        return LowRank(np.eye(size), np.arange(size), 0.0), 1.0, 1.0
    largest = float(own.max()) / scale

    def scaled(rows: Ints | slice, columns: Ints) -> Floats:
        values = entries(rows, columns)
        return values if scale == 1.0 else values / scale

    factor = pivoted_cholesky(np.maximum(own, 0.0) / scale, scaled, tolerance=tolerance * largest)
    columns = np.arange(size) if whole else np.unique(np.linspace(0, size - 1, 16).astype(np.int64))
    weights = mixed_weights(size)
    unexplained = np.flatnonzero(~np.isin(columns, factor.pivots))  # the features give the pivots' columns exactly
    right = factor.features[columns[unexplained]].T
    total = mass = worst = 0.0
    for rows in _blocks(size, len(columns)):
        values = scaled(rows, columns)
        total += float(weights[rows] @ values @ weights[columns])
        mass += float(np.abs(weights[rows]) @ np.abs(values) @ np.abs(weights[columns]))
        rest = np.abs(values[:, unexplained] - factor.features[rows] @ right)
        worst = max(worst, float(rest.max(initial=0.0)))
        # a positive semi-definite rest is bounded by its diagonal
        if not worst <= factor.residual + max(10 * tolerance, 1e-7) * largest:
            row, column = np.unravel_index(int(rest.argmax()), rest.shape)
            raise KernelError(
                f"the kernel is not positive semi-definite: k(x, y) of arms {rows.start + row} and "
                f"{int(columns[unexplained[column]])} is {rest[row, column]:.3g} away from what their variances allow; "
                f"{NOT_VALID_CURE}"
            )
    return LowRank(factor.features, factor.pivots, max(factor.residual, worst)), scale, total / mass


def _is_identity(entries: Entries, size: int) -> bool:
    every = np.arange(size)
    for rows in _blocks(size, size):
        block = entries(rows, every)
        if np.count_nonzero(block) != len(block) or (block[np.arange(len(block)), every[rows]] != 1.0).any():
            return False
    return True


def scale_of(own: Floats) -> float:
    """What the kernel is divided by, from its diagonal: the largest entry, if that is above 1."""
    if not np.isfinite(own).all():
        arm = int(np.argmin(np.isfinite(own)))
        raise KernelError(f"k(x, x) is {own[arm]} at arm {arm}; check the points and the kernel's parameters")
    largest = float(own.max())
    if own.min() < -1e-8 * max(largest, 0.0):
        raise KernelError(f"the kernel is not positive semi-definite: k(x, x) = {own.min():.3g} at arm {own.argmin()}")
    if largest <= 0.0:
        raise KernelError("the kernel is zero on every arm, so nothing can be learned; use another kernel")
    return max(1.0, largest)


def mixed_weights(size: int) -> Floats:
    """Fixed weights of both signs without a pattern, for the mean by which a kernel is known again."""
    return np.asarray(np.cos(np.arange(size, dtype=np.float64)))


def _blocks(size: int, width: int) -> list[slice]:
    """Rows 0 to size - 1 in blocks of about a million entries."""
    step = max(64, _BLOCK_ENTRIES // width)
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


Arms = TypeVar("Arms")
USUAL_CORRELATION = 0.5
_SEGMENTS_LISTED = 20


@dataclass(frozen=True, eq=False)
class Crossing(Generic[Arms]):
    """Which options in which segments: both are arm sets of their own, `options` without and `segments` with names."""

    options: Arms
    segments: Arms
    size: int  # options
    names: tuple[str, ...]  # of the segments

    def segment_of(self, arm: int) -> int:
        """Number of the segment an arm belongs to."""
        return arm // self.size

    def mask(self, segment: int) -> Bools:
        """The arms of a segment."""
        mask = np.zeros(self.size * len(self.names), dtype=np.bool_)
        mask[segment * self.size : (segment + 1) * self.size] = True
        return mask

    def number_of(self, segment: Any) -> int:
        """Number of the segment with this name."""
        try:
            return self.names.index(segment)
        except ValueError:
            listed = [*self.names[:_SEGMENTS_LISTED], *(["..."] if len(self.names) > _SEGMENTS_LISTED else [])]
            raise InputError(f"no segment is called {shown(segment)}; {near_and_valid(segment, listed)}") from None


def correlation_matrix(correlation: Any, size: int) -> Floats:
    """(S, S) with ones on the diagonal and the same correlation everywhere else.

    >>> correlation_matrix(0.5, 2).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    number = isinstance(correlation, numbers.Real) and not isinstance(correlation, (bool, np.bool_))
    if not number or not 0.0 <= float(correlation) <= 1.0:
        raise InputError(
            f"the correlation of any two segments must be a number from 0 (they have nothing in common) to 1 (they are "
            f"alike), got {shown(correlation)}"
        )
    return np.full((size, size), float(correlation)) + (1.0 - float(correlation)) * np.eye(size)


def pair_features(options: Floats, segments: Floats) -> Floats:
    """Features of the pairs, (S O, r_s r_o): their products are products of those of segments and of options.

    >>> pair_features(np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])).ravel().tolist()
    [3.0, 6.0, 5.0, 10.0]
    """
    numbers_ = options.size * segments.size
    check_memory(FLOAT_BYTES * numbers_, "features of options in segments", cure="take fewer, or a smoother kernel")
    return np.asarray(np.kron(segments, options), dtype=np.float64)


def pair_points(options: Floats, segments: Floats) -> Floats:
    """Coordinates of the options, then those of the segments."""
    return np.hstack([np.tile(options, (len(segments), 1)), np.repeat(segments, len(options), axis=0)])
