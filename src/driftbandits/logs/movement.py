"""Changes in a log: one conformal martingale per arm, one for what all arms share, one for all arms at one time.

Rewards of an arm in the order of its plays are independent draws from one distribution as long as nothing moves,
whatever policy chose when to play it. So the ranks of an arm's rewards among its own earlier ones are uniform, and so
are the ranks of all arms in the order of the rounds: the first find a change of one arm, the second one that all arms
share, and `logs.together` one in which arms go different ways at the same time. Weights are not used: they change with
the law of the policy that logged, although nothing moves. Where requests come in segments, an arm in a segment counts
as an arm, so that a changed mix of requests is no change.

A third of `false_alarm` goes to each of the last two, a third is shared by the arms. After an alarm what alarmed
starts anew, with the same promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from driftbandits.detection.ranks import UrnRanks
from driftbandits.detection.wagers import Wagers
from driftbandits.logs.cells import cells_of
from driftbandits.logs.log import Log
from driftbandits.logs.together import Together, locate_together
from driftbandits.seeding import stream
from driftbandits.types import Floats, Ints

FALSE_ALARM = 0.05
_CREDIBLE = 0.95  # of the interval of a change's time
_LEAST_AROUND = 2  # numbers on either side of a change
_LEAST_VARIANCE = 1e-3  # of the numbers' own, so that two equal numbers prove nothing


@dataclass(frozen=True)
class LogChange:
    """A change found in a log: rows count from 0 among the rows with a reward.

    row : the first of the new world, as it seems; `interval`: rows between which it lies with about 95 % (approximate)
    since : where the stretch began in which it lies for certain, but for the false alarm; `found`: row of the alarm
    cell : arm (and segment) that changed, by its number; -1: all arms together
    kind : "rose", "fell", "spread" or "gathered"; for all arms together it speaks of their ranks, or is "moved" where
        arms went different ways
    """

    row: int
    interval: tuple[int, int]
    since: int
    found: int
    cell: int
    kind: str


def find_changes(log: Log, *, false_alarm: float = FALSE_ALARM, seed: int = 0) -> tuple[LogChange, ...]:
    """Changes in the order of their alarms; rows without a reward are left out and not counted."""
    known = log.known
    rewards = log.reward[known]
    played, cells = np.unique(cells_of(log)[known], return_inverse=True)
    watch = _Watch(rewards, cells, false_alarm, max(len(played), 1))
    draws = stream(seed, "changes of a log").random((len(rewards), 2))
    for row, (reward, cell, (tie, u)) in enumerate(zip(rewards.tolist(), cells.tolist(), draws.tolist(), strict=True)):
        watch.see(row, reward, cell, tie, u)
    return tuple(
        change if change.cell < 0 else replace(change, cell=int(played[change.cell])) for change in watch.found
    )


class _Watch:
    """All martingales of a log, whose `number` cells have numbers from 0 on."""

    def __init__(self, rewards: Floats, cells: Ints, false_alarm: float, number: int) -> None:
        self._rewards, self._cells, self._number = rewards, cells, number
        self._threshold, self._own_threshold = 3.0 / false_alarm, 3.0 * number / false_alarm
        self.found: list[LogChange] = []
        self._start_all(0)

    def _start_all(self, row: int) -> None:
        self._begun, self._begun_of = row, dict[int, int]()
        self._ranks, self._wagers = dict[int, UrnRanks](), dict[int, Wagers]()
        self._common, self._common_ranks = Wagers(), list[float]()
        self._together = Together(len(self._rewards) - row, self._number)

    def see(self, row: int, reward: float, cell: int, tie: float, u: float) -> None:
        """Take in the reward of a row."""
        ranks = self._ranks.get(cell)
        if ranks is None:
            ranks = self._ranks[cell] = UrnRanks()
            self._wagers[cell] = Wagers()
            self._begun_of.setdefault(cell, self._begun)
        own = self._wagers[cell]
        rank = ranks.see(reward, tie, u)
        self._common_ranks.append(rank)
        common = self._common.see(rank)
        self._together.see(rank, cell)
        if own.see(rank) >= self._own_threshold:
            self._alarm_of(cell, own, row)
        elif common >= self._threshold:
            self._alarm_of_all(row, self._common.kind, locate(-ndtri(np.array(self._common_ranks))))
        elif self._together.evidence >= self._threshold:
            part = slice(self._begun, row + 1)
            self._alarm_of_all(row, "moved", locate_together(self._rewards[part], self._cells[part], _LEAST_AROUND))

    def _alarm_of(self, cell: int, wagers: Wagers, row: int) -> None:
        since = self._begun_of[cell]
        rows = since + np.flatnonzero(self._cells[since : row + 1] == cell)
        place, low, high = locate(self._rewards[rows])
        interval = (int(rows[low]), int(rows[high]))
        self.found.append(LogChange(int(rows[place]), interval, since, row, cell, wagers.kind))
        del self._ranks[cell], self._wagers[cell]
        self._begun_of[cell] = row + 1

    def _alarm_of_all(self, row: int, kind: str, where: tuple[int, int, int]) -> None:
        place, low, high = (self._begun + one for one in where)
        self.found.append(LogChange(place, (low, high), self._begun, row, -1, kind))
        self._start_all(row + 1)


def locate(numbers: Floats) -> tuple[int, int, int]:
    """Where numbers changed once: the likeliest first number of the new world, and the ends of a 95 % interval.

    Normal numbers with one mean and variance before and another after, every place equally likely beforehand.

    >>> locate(np.array([0.1, -0.2, 0.0, 0.3, -0.1, 5.2, 4.9, 5.1, 5.3]))
    (5, 5, 5)
    """
    size = len(numbers)
    places = np.arange(_LEAST_AROUND, size - _LEAST_AROUND + 1)
    if not len(places):
        return size - 1, 0, size - 1
    sums, squares = (np.concatenate([[0.0], np.cumsum(x)]) for x in (numbers, np.square(numbers)))
    floor = _LEAST_VARIANCE * float(numbers.var()) or 1.0
    before = squares[places] / places - np.square(sums[places] / places)
    after_size = size - places
    after = (squares[-1] - squares[places]) / after_size - np.square((sums[-1] - sums[places]) / after_size)
    logs = -0.5 * (places * np.log(before + floor) + after_size * np.log(after + floor))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    path = np.cumsum(weights)
    tail = 0.5 * (1.0 - _CREDIBLE)
    low, high = (int(places[min(int(np.searchsorted(path, q)), len(places) - 1)]) for q in (tail, 1.0 - tail))
    return int(places[weights.argmax()]), low, high


@dataclass(frozen=True)
class Episode:
    """Alarms that tell of one change: its likeliest row, an interval, the cells that moved (none: all together)."""

    row: int
    interval: tuple[int, int]
    found: int
    cells: tuple[int, ...]
    common: bool
    alarms: tuple[LogChange, ...]


def episodes(changes: Sequence[LogChange], rows: int) -> tuple[Episode, ...]:
    """Alarms whose intervals touch, or nearly, are one change; in the order of time."""
    reach = max(10, rows // 100)
    groups: list[list[LogChange]] = []
    for change in sorted(changes, key=lambda one: one.interval):
        if groups and change.interval[0] <= max(one.interval[1] for one in groups[-1]) + reach:
            groups[-1].append(change)
        else:
            groups.append([change])
    return tuple(_episode(group) for group in groups)


def _episode(group: list[LogChange]) -> Episode:
    """The alarm with the shortest interval knows best when it was."""
    sharpest = min(group, key=lambda one: one.interval[1] - one.interval[0])
    cells = tuple(sorted({one.cell for one in group if one.cell >= 0}))
    return Episode(
        row=sharpest.row,
        interval=sharpest.interval,
        found=sharpest.found,
        cells=cells,
        common=any(one.cell < 0 for one in group),
        alarms=tuple(group),
    )


def least_changes(changes: Sequence[LogChange]) -> int:
    """How many changes there were at least: the most alarms whose stretches, from start to alarm, do not overlap.

    Each stretch has a change in it for certain, but for its false alarm.
    """
    number, free = 0, -math.inf
    for change in sorted(changes, key=lambda one: one.found):
        if change.since > free:
            number, free = number + 1, change.found
    return number
