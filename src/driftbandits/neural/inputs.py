"""Points as a network without biases wants them: on a sphere, no two in the same direction."""

from __future__ import annotations

import numpy as np

from driftbandits.types import Floats

_EQUAL_SHARE = 1e-9  # of the spread of the points: lengths that differ by less are equal


def on_sphere(points: Floats) -> Floats:
    """Points of length 1, different for different points, shape (N, d) or (N, d + 1).

    A network without biases sees only directions: it cannot tell prices 1 and 2 apart but by a factor, and nothing can
    be learned at the origin. Points of equal length, as in the paper, are divided by it and nothing else. Others are
    centred, divided by the largest length R, and lifted to the sphere by one more coordinate, sqrt(1 - |x|^2 / R^2).

    >>> on_sphere(np.array([[0.0], [1.0], [2.0]]))
    array([[-1.,  0.],
           [ 0.,  1.],
           [ 1.,  0.]])
    """
    lengths = np.linalg.norm(points, axis=1)
    centred = points - points.mean(axis=0)
    radius = float(np.linalg.norm(centred, axis=1).max())
    if float(lengths.min()) > 0.0 and float(np.ptp(lengths)) <= _EQUAL_SHARE * radius:
        return np.asarray(points / lengths.max())
    scaled = centred / radius if radius > 0.0 else centred
    height = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", scaled, scaled), 0.0))
    return np.column_stack([scaled, height])
