"""Synchronous successive halving: who goes on is a function of the scores of a whole rung, and of nothing else.

So it does not matter who played what, where, or in which order, and whoever has the scores can say where a search
stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Rungs = Sequence[tuple[int, int]]  # (points kept, tuning seeds played so far)
Slot = tuple[int, int]  # (number of the tuning seed, number of the world)
Regrets = Mapping[Slot, float]  # final regrets of one point


@dataclass(frozen=True)
class Standing:
    """How far a search is: the points still in it, best first, and what they have yet to play in this rung."""

    alive: tuple[int, ...]
    missing: Mapping[int, tuple[Slot, ...]]

    @property
    def finished(self) -> bool:
        """Whether the last rung is played."""
        return not self.missing


def standing(regrets: Sequence[Regrets], rungs: Rungs, *, worlds: int) -> Standing:
    """Where a search stands, given the regrets of every point. Of equals, the point with the lower number is better.

    >>> halves = ((4, 1), (2, 2))
    >>> standing([{(0, 0): r} for r in (5.0, 2.0, 9.0, 3.0)], halves, worlds=1)
    Standing(alive=(1, 3), missing={1: ((1, 0),), 3: ((1, 0),)})
    """
    alive = list(range(len(regrets)))
    played = 0
    for keep, seeds in rungs:
        alive = _ranked(alive, regrets, slots(played, worlds))[:keep]
        missing = {p: tuple(s for s in slots(seeds, worlds) if s not in regrets[p]) for p in alive}
        if any(missing.values()):
            return Standing(tuple(alive), {p: left for p, left in missing.items() if left})
        played = seeds
    return Standing(tuple(_ranked(alive, regrets, slots(played, worlds))), {})


def slots(seeds: int, worlds: int) -> list[Slot]:
    """The first `seeds` tuning seeds in every world."""
    return [(seed, world) for seed in range(seeds) for world in range(worlds)]


def mean_regret(regrets: Regrets, over: Sequence[Slot]) -> float:
    """Mean final regret over these slots."""
    return float(np.mean([regrets[slot] for slot in over]))


def count_cells(points: int, rungs: Rungs, *, worlds: int) -> int:
    """Cells that a search of so many points takes.

    >>> count_cells(32, ((32, 1), (8, 4), (2, 16)), worlds=1)
    80
    """
    total, played = 0, 0
    for keep, seeds in rungs:
        total += min(keep, points) * (seeds - played) * worlds
        played = seeds
    return total


def _ranked(alive: Sequence[int], regrets: Sequence[Regrets], over: Sequence[Slot]) -> list[int]:
    if not over:
        return list(alive)
    return sorted(alive, key=lambda point: (mean_regret(regrets[point], over), point))
