"""A kernel that sees some columns of the points: products of such are kernels per column, hour times price say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from driftbandits.errors import InputError
from driftbandits.text import shown
from driftbandits.types import Floats


class ColumnKernel(Kernel):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn kernel on some columns of the points.

    Parameters
    ----------
    kernel : scikit-learn kernel
    columns : numbers of the columns that it sees

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> ColumnKernel(RBF(0.5), [1])(np.array([[0.0, 1.0], [9.0, 1.0]])).round(3)
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, kernel: Any, columns: Sequence[int]) -> None:
        self.kernel = kernel
        self.columns = columns

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Its values for all pairs of rows."""
        right = None if Y is None else self._seen(Y)
        return self.kernel(self._seen(X), right, eval_gradient) if eval_gradient else self.kernel(self._seen(X), right)

    def _seen(self, points: Any) -> Floats:
        table = np.atleast_2d(np.asarray(points, dtype=np.float64))
        if max(self.columns) >= table.shape[1]:
            raise InputError(f"the kernel {self!r} sees column {max(self.columns)}, and points have {table.shape[1]}")
        return table[:, list(self.columns)]

    def diag(self, X: Any) -> Floats:
        """k(x, x) of every row.

        Parameters
        ----------
        X : array, shape (N, d)

        Returns
        -------
        array, shape (N,)
        """
        return np.asarray(self.kernel.diag(self._seen(X)))

    def is_stationary(self) -> bool:
        """As the kernel that it has.

        Returns
        -------
        bool
        """
        return bool(self.kernel.is_stationary())

    def __repr__(self) -> str:
        return f"{self.kernel!r} of columns {list(self.columns)}"


def check_columns(given: Any) -> list[int]:
    """Numbers of columns, distinct; InputError for anything else.

    >>> check_columns([0, 2])
    [0, 2]
    """
    known = isinstance(given, list | tuple) and all(type(column) is int and column >= 0 for column in given)
    if not known or not given or len(set(given)) < len(given):
        raise InputError(f"columns must be distinct numbers of columns, from 0, as in [0, 2], got {shown(given)}")
    return list(given)
