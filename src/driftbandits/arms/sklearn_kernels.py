"""Kernels as classes of scikit-learn, whose import takes a second: of some columns of the points, and neural tangents.

Products of kernels that see some columns are kernels per column, hour times price say. The neural tangent kernel is
that of a fully connected ReLU network of infinite width, in closed form.

symbol      name      meaning
L           depth     number of weight matrices
theta_l     angle     angle between two points as seen by layer l
Sigma^(l)   covariance of what layer l gives:  |x| |y| (sin theta + (pi - theta) cos theta) / pi
            and that of its derivative:        (pi - theta) / pi
H           kernel    H^(1) = <x, y>,  H^(l + 1) = H^(l) (pi - theta_l) / pi + Sigma^(l)

Lengths are kept by every layer, so H(x, x) = L |x|^2. Angles are carried through 1 - cos: from cos alone, two equal
points would seem 1e-8 apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from driftbandits._util.checks import check_depth
from driftbandits.errors import InputError
from driftbandits.text import shown
from driftbandits.types import Floats


class NeuralTangentKernel(Kernel):  # type: ignore[misc]  # scikit-learn has no types
    """Kernel that a ReLU network with `depth` weight matrices and no biases follows as its width grows.

    What OPNN is with unlimited width, and usable by every kernel policy. It sees directions only (k(a x, b y) =
    a b k(x, y) for a, b > 0): give it points of equal length, no two of them parallel.

    Parameters
    ----------
    depth : number of weight matrices

    >>> kernel = NeuralTangentKernel(depth=3)
    >>> kernel(np.array([[1.0, 0.0], [0.0, 1.0]])).round(4)
    array([[3.    , 0.6857],
           [0.6857, 3.    ]])
    """

    def __init__(self, depth: int = 3) -> None:
        self.depth = depth

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """k(X, Y), shape (len(X), len(Y)); there is no hyper-parameter, so the gradient is empty."""
        if eval_gradient and Y is not None:
            raise ValueError("the gradient can only be evaluated when Y is None")
        left = np.atleast_2d(np.asarray(X, dtype=np.float64))
        right = left if Y is None else np.atleast_2d(np.asarray(Y, dtype=np.float64))
        values = self._values(left, right)
        return (values, np.empty((len(left), len(left), 0))) if eval_gradient else values

    def _values(self, left: Floats, right: Floats) -> Floats:
        depth = check_depth(self.depth)
        lengths = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
        angle = _angles(_unit(left), _unit(right))
        kernel = np.cos(angle)
        for _ in range(depth - 1):
            below = 2.0 * np.sin(angle / 2) ** 2 + (angle * np.cos(angle) - np.sin(angle)) / np.pi  # 1 - cos theta_l+1
            kernel = kernel * (1.0 - angle / np.pi) + (1.0 - below)
            angle = 2.0 * np.arcsin(np.sqrt(np.clip(below / 2.0, 0.0, 1.0)))
        return np.asarray(lengths * kernel)

    def diag(self, X: Any) -> Floats:
        """k(x, x) = depth |x|^2.

        Parameters
        ----------
        X : array, shape (N, d)
            One point per row.

        Returns
        -------
        array, shape (N,)

        Raises
        ------
        InputError
            For a depth that is no whole number from 1 to 10,000.
        """
        points = np.atleast_2d(np.asarray(X, dtype=np.float64))
        return np.asarray(check_depth(self.depth) * np.einsum("ij,ij->i", points, points))

    def is_stationary(self) -> bool:
        """It depends on angles, not on differences.

        Returns
        -------
        bool
            Always False.
        """
        return False

    def __repr__(self) -> str:
        return f"NeuralTangentKernel(depth={self.depth})"


def _unit(points: Floats) -> Floats:
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(lengths > 0.0, lengths, 1.0))


def _angles(left: Floats, right: Floats) -> Floats:
    """Angles between unit vectors, exactly 0 for equal ones."""
    return np.asarray(2.0 * np.arctan2(cdist(left, right), cdist(left, -right)))


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
