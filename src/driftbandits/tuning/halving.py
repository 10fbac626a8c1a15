"""Synchronous successive halving: which points continue depends on the scores of a whole rung, and on nothing else.

So it does not matter who played what, where, or in which order: the scores alone tell how far a search is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits.tuning.spaces import Origin, Values

Rungs = Sequence[tuple[int, int]]  # (points kept, tuning seeds played so far)
Slot = tuple[int, int]  # (number of the tuning seed, number of the world)
Regrets = Mapping[Slot, float]  # final regrets of one point
LEAST_REGRET = 1e-6  # has a logarithm
Score = Callable[[Regrets, Sequence[Slot]], float]


@dataclass(frozen=True)
class Standing:
    """How far a search is: the points still in it, best first, and what they have yet to play in this rung."""

    alive: tuple[int, ...]
    missing: Mapping[int, tuple[Slot, ...]]

    @property
    def finished(self) -> bool:
        """Whether the last rung is played."""
        return not self.missing


def mean_regret(regrets: Regrets, over: Sequence[Slot]) -> float:
    """Mean final regret over these slots."""
    return float(np.mean([regrets[slot] for slot in over]))


def geometric_mean_regret(regrets: Regrets, over: Sequence[Slot]) -> float:
    """Geometric mean over worlds of the mean final regret in each: no world counts for more because it has more.

    >>> round(geometric_mean_regret({(0, 0): 1.0, (0, 1): 100.0}, [(0, 0), (0, 1)]), 9)
    10.0
    """
    worlds = sorted({world for _, world in over})
    means = [mean_regret(regrets, [slot for slot in over if slot[1] == world]) for world in worlds]
    return float(np.exp(np.mean(np.log(np.maximum(means, LEAST_REGRET)))))


def standing(regrets: Sequence[Regrets], rungs: Rungs, *, worlds: int, score: Score = mean_regret) -> Standing:
    """Where a search stands, given the regrets of every point; the least score is best, of equals the lower number.

    >>> halves = ((4, 1), (2, 2))
    >>> standing([{(0, 0): r} for r in (5.0, 2.0, 9.0, 3.0)], halves, worlds=1)
    Standing(alive=(1, 3), missing={1: ((1, 0),), 3: ((1, 0),)})
    """
    alive = list(range(len(regrets)))
    played = 0
    for keep, seeds in rungs:
        alive = _ranked(alive, regrets, slots(played, worlds), score)[:keep]
        missing = {p: tuple(s for s in slots(seeds, worlds) if s not in regrets[p]) for p in alive}
        if any(missing.values()):
            return Standing(tuple(alive), {p: left for p, left in missing.items() if left})
        played = seeds
    return Standing(tuple(_ranked(alive, regrets, slots(played, worlds), score)), {})


def slots(seeds: int, worlds: int) -> list[Slot]:
    """The first `seeds` tuning seeds in every world."""
    return [(seed, world) for seed in range(seeds) for world in range(worlds)]


def count_cells(points: int, rungs: Rungs, *, worlds: int) -> int:
    """The number of cells in a search over `points` points.

    >>> count_cells(32, ((32, 1), (8, 4), (2, 16)), worlds=1)
    80
    """
    total, played = 0, 0
    for keep, seeds in rungs:
        total += min(keep, points) * (seeds - played) * worlds
        played = seeds
    return total


def _ranked(alive: Sequence[int], regrets: Sequence[Regrets], over: Sequence[Slot], score: Score) -> list[int]:
    if not over:
        return list(alive)
    return sorted(alive, key=lambda point: (score(regrets[point], over), point))


@dataclass(frozen=True)
class PointScore:
    """A point that was tried: the cells it played, and its mean final regret over them."""

    number: int
    origin: Origin
    values: Values
    cells: int
    regret: float


@dataclass(frozen=True)
class BestSettings:
    """The best point of a search: its settings as plain values, its mean regret on tuning seeds, where it comes from.

    `cells` is the budget, all cells of the search; `scores` has every point, the longest alive and best first.
    """

    name: str
    policy: str
    values: Values
    settings: Mapping[str, Any]
    origin: Origin
    regret: float
    cells: int
    scores: tuple[PointScore, ...]


@dataclass(frozen=True)
class Tuned:
    """A finished command: the best settings of every search, the file they were written to, and what it cost.

    `cells` is the budget of all searches together and `played` what this process played of it: less where an earlier
    run or another machine had played the rest. `seconds` is the time this process took, `storage` the URL of the
    studies without its password.
    """

    best: tuple[BestSettings, ...]
    path: Path
    storage: str
    cells: int
    played: int
    seconds: float
