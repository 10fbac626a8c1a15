"""The neural tangent kernel of a fully connected ReLU network of infinite width, in closed form.

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

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Kernel

from driftbandits._util.checks import check_depth
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
