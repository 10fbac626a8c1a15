"""From a kernel on the arms to their features: Phi Phi' = K / scale up to a tolerance, or an error with its cure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandits import kernels
from driftbandits.errors import InputError, KernelError
from driftbandits.kernels import KernelFunction
from driftbandits.linalg import NOT_VALID_CURE, LowRank, pivoted_cholesky
from driftbandits.numeric import as_floats
from driftbandits.showing import counted, shown
from driftbandits.types import Floats, Ints

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
