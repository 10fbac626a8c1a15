"""Worlds of requests with contexts: what an arm earns depends on the request, and how it does changes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np

from driftbandits._util.checks import check_count, check_word
from driftbandits._util.seeding import check_seed, stream
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts, cyclic
from driftbandits.environments.noise import BernoulliNoise, Noise, TruncatedGaussianNoise
from driftbandits.environments.reward_functions import SphereWorld
from driftbandits.environments.truth import Piece
from driftbandits.errors import InputError
from driftbandits.types import Bools, Floats

Kind = Literal["stationary", "switch", "drift", "part", "mix", "rhythm", "useless"]
KINDS: tuple[Kind, ...] = ("stationary", "switch", "drift", "part", "mix", "rhythm", "useless")
PART_ABOVE = 0.8416  # of the first number of a request: a fifth of them
DAY = 24
ROUNDS_PER_HOUR = 20
_WAVES = 120  # cosines that a reward function is made of
_LENGTH = 2.0  # of a reward function, in deviations of a number of the request
_SIZE = 0.2  # deviation of rewards over requests and arms
_CLICKS = 0.05  # usual rate
_BLOCK = 4096  # rounds whose requests are drawn at once; changing it changes every request
_REQUESTS_COMPARED = 16
_TABLE = 256  # rounds whose means are computed at once
_TABLES_KEPT = 8


class Requests(SphereWorld):
    """Each round brings a request of `columns` numbers, of which two decide how much each arm earns.

    The reward of an arm is a smooth random function of these two, with a part that all arms share, plus noise.

    Parameters
    ----------
    arms : ArmSet of N arms; those with points earn alike where their points are near
    horizon : T
    kind : "stationary"; "switch": all functions are drawn anew in the middle; "drift": they turn into others and back;
        "part": in the middle they are drawn anew for the fifth of the requests with the largest first number alone;
        "mix": the functions stay, and the mean of the first number moves from -1.5 to 1.5; "rhythm": the first of the
        two is the hour of a day of 480 rounds, so that rewards change with it, but for nobody who knows it;
        "useless": as "switch", but what an arm earns does not depend on the request
    columns : numbers of each request, normal; all but the first two are noise
    clicks : whether rewards are 0 or 1, at rates about 5 %, in the place of numbers in [-1, 1]
    seed : of functions and requests; None draws one
    noise : of rewards that are no clicks
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For numbers out of their ranges.

    n rounds cost O(n N). What changes (`truth`) is measured for 16 fixed requests.

    >>> world = Requests.sample(kind="switch", seed=0, horizon=1_000, size=5)
    >>> world.contexts, world.requests(0, 3).shape, world.change_rounds.tolist()
    (Contexts(8), (3, 8), [500])
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        horizon: int,
        kind: Kind = "switch",
        columns: int = 8,
        clicks: bool = False,
        seed: int | None = 0,
        noise: Noise | None = None,
        name: str = "requests",
    ) -> None:
        self._kind: Kind = check_word("kind", kind, KINDS)
        self._columns = check_count("columns", columns, least=2)
        self._clicks = clicks
        self._seed = check_seed(seed)
        if clicks and noise is not None:
            raise InputError("clicks are 0 or 1 and have no other noise; leave noise out")
        points = arms.gauge.standardised(arms.points) if arms.dimension and not arms.independent else None
        self._waves = [_Functions(len(arms), points, self._seed, number) for number in range(2)]
        self._tables: dict[int, Floats] = {}
        usual = BernoulliNoise() if clicks else TruncatedGaussianNoise(0.1)
        ends = (0.0, 0.6) if clicks else (-0.9, 0.9)
        super().__init__(arms, horizon=horizon, noise=usual if noise is None else noise, mean_range=ends, name=name)

    @classmethod
    def sample(
        cls, *, seed: int | None = 0, size: int = 10, dimension: int = 0, horizon: int = 10_000, **settings: Any
    ) -> Self:
        """The world on arms without points, or evenly drawn from a cube.

        Parameters
        ----------
        seed : of all that is drawn
        size : number of arms
        dimension : of their points; 0 for arms that have nothing in common
        horizon : number of rounds
        settings : those of the class

        Returns
        -------
        Requests
        """
        number, count = check_seed(seed), check_count("size", size)
        if dimension:
            arms = ArmSet(stream(number, "arms").random((count, check_count("dimension", dimension))))
        else:
            arms = ArmSet.separate([f"arm {k}" for k in range(count)])
        return cls(arms, seed=number, horizon=horizon, **settings)

    @property
    def contexts(self) -> Contexts:
        """What is known of each request."""
        if self._kind == "rhythm":
            others = {f"x{k}": float for k in range(1, self._columns)}
            return Contexts(hour=cyclic(DAY), **others)
        return Contexts(self._columns)

    def requests(self, start: int, size: int = 1) -> Any:
        """The contexts of some rounds.

        Parameters
        ----------
        start, size : the rounds start, ..., start + size - 1

        Returns
        -------
        array, shape (size, columns), or columns by name where the hour is one
        """
        self._check_rounds(start, size)
        numbers = self._numbers(start, size) if size else np.empty((0, self._columns))
        if self._kind != "rhythm":
            return numbers
        hours = np.arange(start, start + size) / ROUNDS_PER_HOUR % DAY
        return {"hour": hours, **{f"x{k}": numbers[:, k] for k in range(1, self._columns)}}

    def _numbers(self, start: int, size: int) -> Floats:
        parts = []
        for block in range(start // _BLOCK, (start + size - 1) // _BLOCK + 1):
            first, last = max(start - block * _BLOCK, 0), min(start + size - block * _BLOCK, _BLOCK)
            parts.append(_block(self._seed, block, self._columns)[first:last])
        numbers = np.concatenate(parts)
        if self._kind == "mix":
            numbers[:, 0] += 3.0 * (np.arange(start, start + size) / max(self._horizon - 1, 1) - 0.5)
        return numbers

    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards for the requests of these rounds, (size, N)."""
        self._check_rounds(start, size)
        if not size:
            return np.empty((0, len(self._arms)))
        first = start // _TABLE
        tables = [self._table(number) for number in range(first, (start + size - 1) // _TABLE + 1)]
        return np.concatenate(tables)[start - first * _TABLE : start - first * _TABLE + size]

    def _table(self, number: int) -> Floats:
        """Means of a table of rounds: always of as many, so that rounding does not depend on what is asked."""
        if number not in self._tables:
            if len(self._tables) >= _TABLES_KEPT:
                self._tables.clear()
            rounds = np.arange(number * _TABLE, (number + 1) * _TABLE)
            numbers = np.ascontiguousarray(self._numbers(int(rounds[0]), _TABLE)[:, :2])
            if self._kind == "rhythm":
                angle = 2.0 * math.pi * rounds / (ROUNDS_PER_HOUR * DAY)
                numbers = np.column_stack([1.5 * np.cos(angle), 1.5 * np.sin(angle)])
            self._tables[number] = self._of(numbers, rounds)
        return self._tables[number]

    def _of(self, numbers: Floats, rounds: Any) -> Floats:
        """Mean rewards for requests whose deciding numbers are these, in these rounds."""
        first = self._waves[0].at(numbers)
        if self._kind == "useless":
            numbers = np.zeros_like(numbers)
            first = self._waves[0].at(numbers)
        if self._kind in ("switch", "part", "useless"):
            moved: Bools = rounds >= self._horizon // 2
            if self._kind == "part":
                moved = moved & (numbers[:, 0] > PART_ABOVE)
            values = np.where(np.broadcast_to(moved, len(numbers))[:, None], self._waves[1].at(numbers), first)
        elif self._kind == "drift":
            angle = np.broadcast_to(math.pi * rounds / self._horizon, len(numbers))[:, None]
            values = np.cos(angle) * first + np.sin(angle) * self._waves[1].at(numbers)
        else:
            values = first
        if self._clicks:
            return np.asarray(np.minimum(_CLICKS * np.exp(3.0 * values), 0.6))
        return np.asarray(np.clip(values, -0.9, 0.9))

    def _pieces(self) -> Iterator[Piece]:
        numbers = stream(self._seed, "requests compared").standard_normal((_REQUESTS_COMPARED, 2))
        numbers[:, 0] = np.linspace(-2.0, 2.0, _REQUESTS_COMPARED)
        for start in range(0, self._horizon, 256):
            rounds = np.arange(start, min(start + 256, self._horizon))
            yield rounds, np.stack([self._of(numbers, now).ravel() for now in rounds.tolist()])

    def _settings(self) -> dict[str, Any]:
        return {
            "horizon": self._horizon,
            "kind": self._kind,
            "columns": self._columns,
            "clicks": self._clicks,
            "seed": self._seed,
        }


class _Functions:
    """One random function of two numbers per arm: sums of cosines, with weights in common where points are near."""

    def __init__(self, arms: int, points: Floats | None, seed: int, number: int) -> None:
        rng = stream(seed, "functions", number)
        self._frequencies = rng.standard_normal((2, _WAVES)) / _LENGTH
        self._phases = rng.uniform(0.0, 2.0 * math.pi, _WAVES)
        common = rng.standard_normal(_WAVES)
        if points is None:
            own, level = rng.standard_normal((_WAVES, arms)), rng.standard_normal(arms)
        else:
            turns = (
                points @ rng.standard_normal((points.shape[1], _WAVES)) * 2.0 / max(np.ptp(points, axis=0).max(), 1e-9)
            )
            own = math.sqrt(2.0) * np.cos(turns + rng.uniform(0.0, 2.0 * math.pi, _WAVES)).T
            own *= rng.standard_normal(_WAVES)[:, None]
            level = own.mean(axis=0) * math.sqrt(_WAVES)
        scale = _SIZE * math.sqrt(2.0 / _WAVES)
        self._weights = scale * (0.6 * common[:, None] + own)
        self._level = 0.3 * _SIZE * level

    def at(self, numbers: Floats) -> Floats:
        """Values of all arms for requests, (n, N)."""
        return np.asarray(np.cos(numbers @ self._frequencies + self._phases) @ self._weights + self._level)


@lru_cache(maxsize=4)
def _block(seed: int, block: int, columns: int) -> Floats:
    return stream(seed, "requests", block).standard_normal((_BLOCK, columns))
