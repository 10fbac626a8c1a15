"""Worlds whose reward function is constant between switches: S vectors of N numbers, whatever the horizon."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.arms import ArmSet
from driftbandits.checks import check_count
from driftbandits.environments.base import Environment, Shape
from driftbandits.environments.checks import check_arm_set, check_array
from driftbandits.environments.noise import Noise, usual_noise
from driftbandits.environments.truth import Piece
from driftbandits.errors import InputError
from driftbandits.showing import counted
from driftbandits.types import Floats, read_only


class Piecewise(Environment):
    """Mean rewards constant between switches: r_t = values[s] in rounds switches[s-1] <= t < switches[s].

    Parameters
    ----------
    arms : ArmSet of N arms
    values : array, shape (S, N)
        One reward vector per segment.
    horizon : T, the number of rounds
    switches : S - 1 rising rounds in [1, T)
        Each is the first round of the next segment.
    noise : distribution of rewards around their means; default `usual_noise` of them
    name : what tables and plots call this world

    Raises
    ------
    InputError
        For switches that do not rise or lie outside the rounds, and values of another shape.

    Memory is O(S N), and n rounds cost O(n), whatever N.

    >>> arms = ArmSet([[0.0], [1.0]])
    >>> world = Piecewise(arms, [[0.0, 0.5], [0.75, 0.5]], horizon=1_000_000, switches=(300,))
    >>> world.means(299, 2)
    array([[0.  , 0.5 ],
           [0.75, 0.5 ]])
    >>> world.variation
    0.75
    """

    def __init__(
        self,
        arms: ArmSet,
        values: npt.ArrayLike,
        *,
        horizon: int,
        switches: Sequence[int] = (),
        noise: Noise | None = None,
        name: str = "piecewise",
    ) -> None:
        self._switches = check_switches(switches, check_count("horizon", horizon))
        shape = (len(self._switches) + 1, len(check_arm_set(arms)))
        table = check_array(values, "values (one row per segment)", shape=shape)
        self._values = table
        self._best: Floats = read_only(table.max(axis=1))
        self._starts = [0, *self._switches]
        mean_range = (float(table.min()), float(table.max()))
        chosen = usual_noise(*mean_range) if noise is None else noise
        super().__init__(arms, horizon=horizon, noise=chosen, mean_range=mean_range, name=name)

    @property
    def switches(self) -> tuple[int, ...]:
        """First round of each segment but the first."""
        return self._switches

    @property
    def values(self) -> Floats:
        """Reward vector of each segment, shape (S, N), read-only."""
        return self._values

    def means(self, start: int, size: int = 1) -> Floats:
        """Mean rewards, shape (size, N)."""
        self._check_rounds(start, size)
        parts = [
            np.broadcast_to(self._values[s], (stop - first, len(self._arms)))
            for s, first, stop in self._overlaps(start, start + size)
        ]
        return np.concatenate(parts)

    def means_of(self, start: int, arms: npt.ArrayLike) -> Floats:
        """Means of the arms chosen in rounds start, start + 1, ..., shape (n,)."""
        chosen = self._check_choice(start, arms)
        stop = start + len(chosen)
        parts = [
            self._values[s].take(chosen[first - start : last - start]) for s, first, last in self._overlaps(start, stop)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def best(self, start: int, size: int = 1) -> Floats:
        """Largest mean of each round, shape (size,)."""
        self._check_rounds(start, size)
        overlaps = self._overlaps(start, start + size)
        return np.concatenate([np.full(stop - first, self._best[s]) for s, first, stop in overlaps])

    def _overlaps(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Segments that meet rounds start to stop - 1, as (segment, first, last + 1); never empty."""
        segment = bisect_right(self._starts, start) - 1
        if segment == len(self._switches) or stop <= self._switches[segment]:
            return [(segment, start, stop)]
        ends = [start, *(end for end in self._switches[segment:] if end < stop), stop]
        return [(segment + i, first, last) for i, (first, last) in enumerate(pairwise(ends))]

    def _pieces(self) -> Iterator[Piece]:
        for start, row in zip(self._starts, self._values, strict=True):
            yield np.array([start]), row[None, :]

    def _settings(self) -> dict[str, Any]:
        return {"values": Shape(self._values.shape), "horizon": self._horizon, "switches": self._switches}


def check_switches(switches: Sequence[int], horizon: int) -> tuple[int, ...]:
    """Give switches as a tuple of strictly rising rounds in [1, horizon)."""
    given = tuple(check_count("a switch", switch) for switch in switches)
    for before, after in pairwise(given):
        if before >= after:
            raise InputError(f"switches must rise, but {before} comes before {after}; sort them and drop repeats")
    if given and given[-1] >= horizon:
        raise InputError(
            f"the switch at round {given[-1]} is outside the horizon of {counted(horizon, 'round')}; drop it"
        )
    return given
