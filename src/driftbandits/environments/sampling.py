"""Random points on the unit sphere, as in the paper's experiments."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits.arms import ArmSet
from driftbandits.environments.checks import check_integer
from driftbandits.memory import FLOAT, check_memory
from driftbandits.seeding import check_seed, stream
from driftbandits.types import Floats


def sphere_points(generator: np.random.Generator, size: int, dimension: int) -> Floats:
    """Points drawn evenly from the unit sphere of R^dimension, shape (size, dimension).

    >>> points = sphere_points(stream(0, "doc"), 5, 3)
    >>> bool(np.allclose(np.linalg.norm(points, axis=1), 1.0))
    True
    """
    normals = generator.standard_normal((size, dimension))
    points: Floats = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return points


def sphere_arms(seed: int, *, size: int = 100, dimension: int = 10, kernel: Any = None) -> ArmSet:
    """Arms drawn evenly from the unit sphere by the stream (seed, "arms"); kernel RBF(0.2) unless given.

    A larger `size` keeps the first arms.

    >>> sphere_arms(3, size=20, dimension=2).points.shape
    (20, 2)
    """
    count = check_integer(size, "size", least=1)
    coordinates = check_integer(dimension, "dimension", least=1)
    check_memory(FLOAT * count * coordinates, f"{count:,} points in {coordinates:,} dimensions", cure="take fewer")
    points = sphere_points(stream(check_seed(seed), "arms"), count, coordinates)
    return ArmSet(points, kernel=RBF(0.2) if kernel is None else kernel)
