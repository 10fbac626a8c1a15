"""Linear bandits, r_t(x) = <theta_t, x>, whose theta jumps at given rounds or turns steadily.

symbol    name         shape, meaning
x         points       (N, d), the arms' coordinates
theta_t   thetas       (n, d) of n rounds, ||theta_t|| = norm <= 1
u, v      plane        (2, d), two directions at right angles that span the circle on which theta turns
w         speed        radians per round
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import check_count, check_probability
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.base import check_arm_set, check_finite, check_room
from driftbandits.environments.noise import PAPER_NOISE, Noise
from driftbandits.environments.reward_functions import SphereWorld, sphere_points
from driftbandits.environments.switching import SeededSwitches
from driftbandits.errors import InputError
from driftbandits.types import Floats, read_only

LinearSwitchKind = Literal["flip", "redraw"]
ONE_TURN = 2 * math.pi / 10_000  # radians per round: back at the start after the paper's horizon
_ROUNDING = 1e-12  # of inner products, relative


class LinearWorld(SphereWorld):
    """A linear world that can be drawn by a seed, on arms with the linear kernel <x, y>.

    With that kernel the rewards have RKHS norm ||theta||, times the root of `arms.scale` where arms are longer than 1.
    """

    @classmethod
    def sample(
        cls,
        *,
        seed: int | None = None,
        dimension: int = 10,
        kernel: Any = None,
        horizon: int = 10_000,
        box_error: float | None = None,
        **settings: Any,
    ) -> Self:
        """World on `size` arms drawn evenly from the unit sphere; the kernel is <x, y> unless given.

        With `box_error`, the arms fill the largest cube in the unit ball, with sides 2 / sqrt(d), discretised with this
        error (see `ArmSet.box`): as many arms as that takes, and the same for every seed. `settings` are those of
        `SphereWorld.sample` and of the class.

        Parameters
        ----------
        seed : of the arms and of all else that is drawn; None draws one
        dimension : of the sphere
        kernel : of the arms; <x, y> by default
        horizon : number of rounds
        box_error : fill a cube with arms instead, with this error
        settings : those of `SphereWorld.sample` and of the class

        Returns
        -------
        a world of this class

        Raises
        ------
        InputError
            For settings that do not exist or do not fit.
        """
        linear = {"name": "linear"} if kernel is None else kernel
        if box_error is None:
            return super().sample(seed=seed, dimension=dimension, kernel=linear, horizon=horizon, **settings)
        if "size" in settings:
            raise InputError("the arms of a box follow from box_error; leave size out, or box_error")
        half = 1.0 / math.sqrt(check_count("dimension", dimension))
        arms = ArmSet.box([(-half, half)] * dimension, error=box_error, kernel=linear)
        return cls._on_drawn_arms(arms, seed=check_seed(seed), horizon=horizon, **settings)


class SwitchingLinear(SeededSwitches, LinearWorld):
    """Rewards <theta, x> whose theta jumps at `switches`.

    Theta of segment s is drawn evenly from the sphere of radius `norm`, by the stream (seed, "theta", s). At a switch:

    - "flip": theta becomes -theta; the second switch flips back.
    - "redraw": a new, independent draw.

    Parameters
    ----------
    arms : ArmSet of N arms
    horizon : T
    switches : rising rounds in [1, T), each the first of a new theta; () is a stationary linear bandit
    kind : what happens at each switch
    seed : of theta; None draws one, shown by the repr
    norm : ||theta||, in (0, 1]
    noise : distribution of rewards around their means; by default the paper's
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For switches that do not rise or lie outside the rounds, and a norm outside (0, 1].

    >>> world = SwitchingLinear.sample(seed=3, dimension=2, switches=(1500, 5000), kind="redraw")
    >>> world.change_rounds, world.segments, world.thetas.shape
    (array([1500, 5000]), 3, (3, 2))
    >>> bool(np.allclose(world.means(2000)[0], world.arms.points @ world.thetas[1]))
    True
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        switches: Sequence[int] = (),
        kind: LinearSwitchKind = "flip",
        seed: int | None = None,
        noise: Noise = PAPER_NOISE,
        norm: float = 0.8,
        name: str = "linear/switching",
    ) -> None:
        rounds = self._check_changes(
            arms, horizon=horizon, switches=switches, kind=kind, kinds=get_args(LinearSwitchKind), seed=seed
        )
        self._norm = check_probability("norm", norm, one=True)
        points = arms.points
        check_room((len(rounds) + 1) * sum(points.shape), f"the rewards of {len(rounds) + 1:,} segments")
        self._thetas: Floats = read_only(self._draw(len(rounds) + 1, arms.dimension))
        values = [points @ theta for theta in self._thetas]  # one by one: the same numbers however many there are
        super().__init__(arms, values, horizon=horizon, switches=rounds, noise=noise, name=name)

    @property
    def thetas(self) -> Floats:
        """Theta of each segment, shape (S, d), read-only."""
        return self._thetas

    def _draw(self, segments: int, dimension: int) -> Floats:
        if self._kind == "flip":
            signs = (-1.0) ** np.arange(segments)
            return np.asarray(signs[:, None] * self._one(0, dimension))
        return np.array([self._one(segment, dimension) for segment in range(segments)])

    def _one(self, segment: int, dimension: int) -> Floats:
        direction = sphere_points(stream(self._seed, "theta", segment), 1, dimension)[0]
        return np.asarray(self._norm * direction)


class DriftingLinear(LinearWorld):
    """Rewards <theta_t, x> whose theta turns steadily on a great circle of the sphere of radius `norm`:

        theta_t = norm (cos(w t) u + sin(w t) v), t = 0, 1, ..., T - 1,

    with u and v at right angles, drawn by the stream (seed, "plane"). Every round changes theta by the same amount,
    ||theta_{t+1} - theta_t|| = 2 norm |sin(w / 2)|. The sum over rounds is `path_length`, which papers on linear
    bandits call the variation. `variation`, as in all worlds, is that of the rewards, V_T = sum_t max_x |r_{t+1}(x) -
    r_t(x)|: at most path_length max ||x||, and nearly that where the arms fill the sphere.

    Parameters
    ----------
    arms : ArmSet of N arms
    horizon : T
    speed : w, radians per round; by default one turn in 10,000 rounds, and 0 stands still
    seed : of the circle; None draws one, shown by the repr
    norm : ||theta||, in (0, 1]
    noise : distribution of rewards around their means; by default the paper's
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For arms on a line, where there is nothing to turn in, and numbers out of their ranges.

    A cosine and a sine per round are kept, O(T) numbers.

    >>> world = DriftingLinear.sample(seed=3, dimension=2, horizon=1000, speed=0.001)
    >>> bool(np.allclose(world.means(700)[0], world.arms.points @ world.thetas(700)[0]))
    True
    >>> round(world.path_length, 6), bool(world.variation <= world.path_length), world.segments
    (0.7992, True, 1000)
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        speed: float = ONE_TURN,
        seed: int | None = None,
        noise: Noise = PAPER_NOISE,
        norm: float = 0.8,
        name: str = "linear/drifting",
    ) -> None:
        self._speed = check_finite("speed", speed)
        self._seed = check_seed(seed)
        self._norm = check_probability("norm", norm, one=True)
        points = check_arm_set(arms).points
        if arms.dimension < 2:
            raise InputError("a turning theta needs arms in at least 2 dimensions, got 1; use SwitchingLinear")
        rounds = check_count("horizon", horizon)
        check_room(2 * rounds, f"the angles of {rounds:,} rounds")
        angles = self._speed * np.arange(rounds)
        self._turn: Floats = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self._plane = self._norm * _right_angle(sphere_points(stream(self._seed, "plane"), 2, arms.dimension))
        self._along: Floats = self._plane @ points.T  # (2, N)
        largest = self._norm * float(np.linalg.norm(points, axis=1).max()) * (1.0 + _ROUNDING)
        super().__init__(arms, horizon=rounds, noise=noise, mean_range=(-largest, largest), name=name)

    @property
    def seed(self) -> int:
        """Seed of the circle."""
        return self._seed

    @property
    def path_length(self) -> float:
        """Sum over rounds of ||theta_{t+1} - theta_t||."""
        return (self._horizon - 1) * 2.0 * self._norm * abs(math.sin(self._speed / 2.0))

    def thetas(self, start: int, size: int = 1) -> Floats:
        """Theta of rounds start, ..., start + size - 1, shape (size, d).

        Parameters
        ----------
        start : the first round
        size : how many rounds

        Returns
        -------
        array, shape (size, d)
        """
        self._check_rounds(start, size)
        return np.asarray(self._turn[start : start + size] @ self._plane)

    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards, shape (size, N)."""
        self._check_rounds(start, size)
        cosines, sines = self._turn[start : start + size].T
        return self._mixed(cosines[:, None], sines[:, None], self._along[0], self._along[1])

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,), in O(n)."""
        chosen = self._check_choice(start, arms)
        cosines, sines = self._turn[start : start + len(chosen)].T
        return self._mixed(cosines, sines, self._along[0, chosen], self._along[1, chosen])

    @staticmethod
    def _mixed(cosines: Floats, sines: Floats, first: Floats, second: Floats) -> Floats:
        """Entry by entry and not as a matrix product, whose rounding would depend on how many rounds are asked for."""
        return np.asarray(cosines * first + sines * second)


def _right_angle(pair: Floats) -> Floats:
    """The first of two directions, and the second turned away from it to a right angle, shape (2, d).

    >>> _right_angle(np.array([[1.0, 0.0], [0.6, 0.8]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    first, second = pair
    across = second - (second @ first) * first
    across -= (across @ first) * first  # a second time, where the two were nearly the same
    return np.array([first, across / np.linalg.norm(across)])
