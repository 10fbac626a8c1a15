"""Reward functions: drawn from the kernel's space, and cosines."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import FLOAT_BYTES, check_count, check_memory, check_positive
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.base import (
    LARGEST_TABLE,
    Environment,
    check_arm_set,
    check_array,
    check_finite,
    check_room,
)
from driftbandits.environments.noise import PAPER_NOISE, Noise
from driftbandits.environments.truth import Piece
from driftbandits.errors import InputError
from driftbandits.types import Floats, read_only


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

    def _settings(self) -> dict[str, Any]:
        """What its constructor takes by name, as the attributes of these names."""
        parameters = inspect.signature(type(self)).parameters.values()
        names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in ("noise", "name")]
        return {name: getattr(self, f"_{name}") for name in names}


Knots = Sequence[tuple[int, float]]

STILL: Knots = ((0, 0.0),)
SLOW_DRIFT: Knots = ((1000, 0.0), (3000, math.pi), (4000, math.pi), (6000, 2 * math.pi))


class CosineBandit(SphereWorld):
    """Mean rewards r_t(x) = peak cos(frequency x'theta + phase(t)) + offset.

    The phase is piecewise linear through knots (round, phase) and constant before the first and after the
    last one; it is kept for every round, O(T) numbers. Knots past the horizon are allowed: the drift is then
    cut. `SLOW_DRIFT` is the paper's schedule with its times read as rounds from 0, so round 1001 is the first
    that differs.

    Parameters
    ----------
    arms : ArmSet of N arms
    theta : array, shape (d,), the direction of the wave
    horizon : T
    phase : knots with rising rounds
    peak, frequency : 0.8 and 3 in the paper
    noise : distribution of rewards around their means; by default the paper's
    offset : added to all means
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For arms, knots or numbers that do not fit, each with its cure.

    Appendix "Additional experiments" of the paper: with `sample(seed=...)` the stationary bandit, there with
    d = 8 and 256 arms; with `sample(seed=..., size=100, dimension=10, phase=SLOW_DRIFT)` the slowly varying
    one.

    >>> world = CosineBandit.sample(seed=0, size=100, dimension=10, phase=SLOW_DRIFT)
    >>> world.change_rounds[[0, 1999, 2000, 3999]], world.segments
    (array([1001, 3000, 4001, 6000]), 4001)
    """

    def __init__(
        self,
        arms: ArmSet,
        theta: npt.ArrayLike,
        *,
        horizon: int,
        phase: Knots = STILL,
        noise: Noise = PAPER_NOISE,
        peak: float = 0.8,
        frequency: float = 3.0,
        offset: float = 0.0,
        name: str = "cosine",
    ) -> None:
        self._theta = check_array(theta, "theta", shape=(check_arm_set(arms).dimension,))
        self._peak = check_positive("peak", peak)
        self._frequency = check_finite("frequency", frequency)
        self._offset = check_finite("offset", offset)
        self._phase = _check_knots(phase)
        self._phases: Floats = read_only(_phases(self._phase, check_count("horizon", horizon)))
        self._angles: Floats = self._frequency * (arms.points @ self._theta)
        mean_range = (self._offset - self._peak, self._offset + self._peak)
        super().__init__(arms, horizon=horizon, noise=noise, mean_range=mean_range, name=name)

    @classmethod
    def sample(cls, *, size: int = 256, dimension: int = 8, **settings: Any) -> Self:
        """World with theta (stream (seed, "theta")) and `size` arms drawn evenly from the unit sphere.

        The kernel of the arms, which the means do not use, is RBF(0.2) unless given; `settings` are those of
        `SphereWorld.sample` and of the class.

        Parameters
        ----------
        size : number of arms
        dimension : of the sphere
        settings : those of `SphereWorld.sample` and of the class

        Returns
        -------
        CosineBandit
        """
        return super().sample(size=size, dimension=dimension, **settings)

    @classmethod
    def _on_drawn_arms(cls, arms: ArmSet, *, seed: int, **settings: Any) -> Self:
        return cls(arms, sphere_points(stream(seed, "theta"), 1, arms.dimension)[0], **settings)

    @property
    def phases(self) -> Floats:
        """Phase in every round, shape (T,), read-only."""
        return self._phases

    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards, shape (size, N)."""
        self._check_rounds(start, size)
        return self._waves(self._phases[start : start + size])

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,), in O(n)."""
        chosen = self._check_choice(start, arms)
        return self._wave(self._angles[chosen] + self._phases[start : start + len(chosen)])

    def best(self, start: int, size: int = 1) -> Floats:
        """Largest mean of each round, shape (size,); a stretch of constant phase is worked out once."""
        self._check_rounds(start, size)
        phases = self._phases[start : start + size]
        new = _differs(phases)
        heights = [rows.max(axis=1) for rows in self._row_chunks(phases[new])]
        largest: Floats = np.concatenate([np.empty(0), *heights])[np.cumsum(new) - 1]
        return largest

    def _waves(self, phases: Floats) -> Floats:
        return self._wave(self._angles[None, :] + phases[:, None])

    def _wave(self, angles: Floats) -> Floats:
        values: Floats = self._peak * np.cos(angles) + self._offset
        return values

    def _row_chunks(self, phases: Floats) -> Iterator[Floats]:
        rows = max(1, LARGEST_TABLE // len(self._arms))
        for first in range(0, len(phases), rows):
            yield self._waves(phases[first : first + rows])

    def _pieces(self) -> Iterator[Piece]:
        rounds = np.flatnonzero(_differs(self._phases))
        done = 0
        for rows in self._row_chunks(self._phases[rounds]):
            yield rounds[done : done + len(rows)], rows
            done += len(rows)

    def _settings(self) -> dict[str, Any]:
        return {"theta": self._theta.tolist(), **super()._settings()}


def _phases(knots: tuple[tuple[int, float], ...], horizon: int) -> Floats:
    """Phase of each round, shape (horizon,): exactly constant where two knots are level."""
    check_room(2 * horizon, f"the phases of {horizon:,} rounds")
    times = [time for time, _ in knots]
    heights = [height for _, height in knots]
    phases: Floats = np.interp(np.arange(horizon), times, heights)
    return phases


def _differs(phases: Floats) -> npt.NDArray[np.bool_]:
    """Whether each phase differs from the one before; the first always does."""
    new = np.ones(len(phases), dtype=np.bool_)
    new[1:] = phases[1:] != phases[:-1]
    return new


def _check_knots(knots: Knots) -> tuple[tuple[int, float], ...]:
    try:
        pairs = [(time, height) for time, height in knots]
    except (TypeError, ValueError):
        raise InputError(f"phase must be knots (round, phase), such as ((0, 0.0),), got {knots!r}") from None
    given = tuple(
        (check_count("a knot's round", time, least=0), check_finite("a knot's phase", height)) for time, height in pairs
    )
    if not given:
        raise InputError("phase must have at least one knot (round, phase); a constant phase is ((0, 0.0),)")
    for (before, _), (after, _) in pairwise(given):
        if before >= after:
            raise InputError(
                f"the knots' rounds must rise, but {before} comes before {after}; for a jump use two rounds"
            )
    return given
