"""Random points on the unit sphere, as in the paper's experiments, and the worlds that are drawn on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.checks import check_count
from driftbandits.environments.base import Environment
from driftbandits.memory import FLOAT_BYTES, check_memory
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
    count = check_count("size", size)
    coordinates = check_count("dimension", dimension)
    check_memory(
        FLOAT_BYTES * count * coordinates, f"{count:,} points in {coordinates:,} dimensions", cure="take fewer"
    )
    points = sphere_points(stream(check_seed(seed), "arms"), count, coordinates)
    return ArmSet(points, kernel={"name": "rbf", "length_scale": 0.2} if kernel is None else kernel)


class SphereWorld(Environment):
    """A world that can be drawn by a seed: on arms from the unit sphere, with all else drawn from the same seed.

    A subclass takes `seed` as a setting, or says in `_on_drawn_arms` what it draws instead.
    """

    @classmethod
    def sample(
        cls,
        *,
        seed: int | None = 0,
        size: int = 100,
        dimension: int = 10,
        kernel: Any = None,
        horizon: int = 10_000,
        **settings: Any,
    ) -> Self:
        """World on arms drawn evenly from the unit sphere.

        `settings` are those of the class.

        Parameters
        ----------
        seed : of the arms and of all else that is drawn; None draws one
        size : number of arms
        dimension : of the sphere
        kernel : of the arms; RBF(0.2) by default
        horizon : number of rounds
        settings : those of the class

        Returns
        -------
        a world of this class

        Raises
        ------
        InputError
            For settings that do not exist or do not fit.
        """
        number = check_seed(seed)
        arms = sphere_arms(number, size=size, dimension=dimension, kernel=kernel)
        return cls._on_drawn_arms(arms, seed=number, horizon=horizon, **settings)

    @classmethod
    def _on_drawn_arms(cls, arms: ArmSet, *, seed: int, **settings: Any) -> Self:
        build: Callable[..., Self] = cls
        return build(arms, seed=seed, **settings)
