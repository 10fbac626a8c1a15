"""Changes in a log: one conformal martingale per arm, one for what all arms share, one for all arms at one time.

Rewards of an arm in the order of its plays are independent draws from one distribution as long as nothing moves,
whatever policy chose when to play it. So the ranks of an arm's rewards among its own earlier ones are uniform, and so
are the ranks of all arms in the order of the rounds: the first find a change of one arm, the second one that all arms
share, and `Joint` one in which arms go different ways at the same time. Weights are not used: they change with
the law of the policy that logged, although nothing moves. Where requests come in segments, an arm in a segment counts
as an arm, so that a changed mix of requests is no change.

A third of `false_alarm` goes to each of the last two, a third is shared by the arms. After an alarm what alarmed
starts anew, with the same promise.

The third is evidence that several arms changed at the same time, each in its own way: what single arms do not show.

symbol  name      meaning
p                 rank of a reward among the earlier ones of its cell: uniform and independent while nothing moves
s       starts    rows at which the world may have changed, evenly over the log
b_j     factors   bets on one rank, each 1 on average: that the odds of p <= cut are other ones, and powers of p
F_cs              mean over j of the product of b_j over the ranks of cell c since s
r       SHARES    share of the cells that move
W_s               mean over r of the product over cells of (1 - r) + r F_cs; 1 before s
evidence          mean over s of W_s

Every W_s is a martingale from 1: whichever cell is played next, its rank is uniform. So is their mean, and by Ville's
inequality it ever reaches 1 / a with probability a at most, whatever policy logged. Checking it only now and then,
every `step` rows, takes nothing from that. Starts are few since a log, unlike a stream, has an end that is known: that
and the arms' common time are why it sees changes that a martingale per arm cannot afford to see.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from driftbandits._util.checks import as_floats, check_count
from driftbandits._util.seeding import stream
from driftbandits.detection.drift_detector import EXACT
from driftbandits.detection.ranks import Ranked
from driftbandits.detection.wagers import POWERS, Wagers, raised_ranks
from driftbandits.errors import InputError
from driftbandits.logs.log import Log, cells_of
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Floats, Ints

STARTS = 64
_CUTS = (1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 15 / 16)
_ODDS = (2 / 5, 2 / 3, 3 / 2, 5 / 2)
BETS = len(_CUTS) * len(_ODDS) + len(POWERS)
_CHECKS = 2_000  # of the evidence, about
_MOST_ENTRIES = 4_000_000  # of the table of sums: 32 MB


FALSE_ALARM = 0.05
_CREDIBLE = 0.95  # of the interval of a change's time
_LEAST_AROUND = 2  # numbers on either side of a change
_LEAST_VARIANCE = 1e-3  # of the numbers' own, so that two equal numbers prove nothing


def _share_logs() -> Floats:
    """Logarithms of the bets on odds, for a rank below the first cut, between the first and the second, ..."""
    cut, odds = (grid.ravel() for grid in np.meshgrid(_CUTS, _ODDS))
    share = odds * cut / (1.0 - cut + odds * cut)
    middle = 0.5 * (np.array([0.0, *_CUTS]) + np.array([*_CUTS, 1.0]))
    return np.asarray(np.log(np.where(middle[:, None] <= cut, share / cut, (1.0 - share) / (1.0 - cut))))


_SHARE_LOGS = _share_logs()


def log_factors(ranks: Floats) -> Floats:
    """Logarithms of b_j of every rank, shape (ranks, BETS)."""
    return np.hstack([_SHARE_LOGS[np.searchsorted(_CUTS, ranks)], np.log(raised_ranks(ranks))])


class Joint:
    """The evidence of all cells together, over the `rows` that are left of a log.

    >>> rng = np.random.default_rng(0)
    >>> ranks, cells = rng.random(900), rng.integers(0, 3, 900)
    >>> later = np.arange(900) >= 600
    >>> ranks = np.where(later, np.where(cells == 0, ranks**1.5, 1 - (1 - ranks) ** 1.5), ranks)  # one rose, two fell
    >>> joint = Joint(900, 3)
    >>> for rank, cell in zip(ranks.tolist(), cells.tolist()):
    ...     joint.see(rank, cell)
    >>> joint.evidence > 1e3
    True
    """

    def __init__(self, rows: int, cells: int) -> None:
        number = max(min(STARTS, rows, _MOST_ENTRIES // (BETS * cells)), 1)
        self.step = max(rows // _CHECKS, 1)
        spacing = max(rows // (number * self.step), 1) * self.step
        self.starts: Ints = spacing * np.arange(number)  # multiples of a step
        self.evidence = 1.0
        chances = np.array([1.0 / max(cells, 2), 0.5, 0.9])
        self._still, self._moving = (np.log(part)[:, None, None] for part in (1.0 - chances, chances))
        self._sums = np.zeros((cells, number, BETS))
        self._terms = np.zeros((len(chances), cells, number))  # log of (1 - r) + r F
        self._total = np.zeros((len(chances), number))  # log of the product over cells
        self._seen = 0
        self._ranks: list[float] = []
        self._cells: list[int] = []

    def see(self, rank: float, cell: int) -> None:
        """Take in a rank; the evidence changes every `step` rows."""
        self._ranks.append(rank)
        self._cells.append(cell)
        if len(self._ranks) == self.step:
            self._settle()

    def _settle(self) -> None:
        begun = int(np.searchsorted(self.starts, self._seen, side="right"))
        cells, place = np.unique(self._cells, return_inverse=True)
        gains = np.zeros((len(cells), BETS))
        np.add.at(gains, place, log_factors(np.array(self._ranks)))
        sums = self._sums[cells, :begun] + gains[:, None, :]
        self._sums[cells, :begun] = sums
        most = sums.max(axis=2)
        factor = most + np.log(np.exp(sums - most[:, :, None]).mean(axis=2))
        terms = np.logaddexp(self._still, self._moving + factor)
        self._total[:, :begun] += (terms - self._terms[:, cells, :begun]).sum(axis=1)
        self._terms[:, cells, :begun] = terms
        self._seen += len(self._ranks)
        self._ranks, self._cells = [], []
        self.evidence = float(np.exp(np.logaddexp.reduce(self._total, axis=None) - math.log(self._total.size)))


def locate_joint(rewards: Floats, cells: Ints, least: int) -> tuple[int, int, int]:
    """Where all cells changed at once: the likeliest first row of the new world, and the ends of a 95 % interval.

    Normal rewards of one variance; every cell has a mean before and another after. Every row but the `least` first and
    last is equally likely beforehand.

    >>> cells = np.array([0, 1] * 6)
    >>> rewards = np.where(np.arange(12) < 6, [0.0, 1.0] * 6, [1.0, 0.0] * 6) + 0.01 * np.cos(np.arange(12))
    >>> locate_joint(rewards, cells, 2)
    (6, 6, 6)
    """
    size = len(rewards)
    places = np.arange(least, size - least + 1)
    if not len(places):
        return size - 1, 0, size - 1
    explained = _explained(rewards, cells)
    counts = np.bincount(cells)
    means = np.bincount(cells, weights=rewards) / np.maximum(counts, 1)
    spread = float(np.square(rewards - means[cells]).sum())
    left = np.maximum(spread - explained[places - 1], 1e-6 * spread + 1e-300)
    logs = -0.5 * size * np.log(left)
    return _likeliest(places, logs)


def _likeliest(places: Ints, logs: Floats) -> tuple[int, int, int]:
    """The likeliest of some places, by their log likelihoods, and the ends of a 95 % interval."""
    weights = np.exp(logs - logs.max())
    path = np.cumsum(weights / weights.sum())
    tail = 0.5 * (1.0 - _CREDIBLE)
    low, high = (int(places[min(int(np.searchsorted(path, q)), len(places) - 1)]) for q in (tail, 1.0 - tail))
    return int(places[weights.argmax()]), low, high


def _explained(rewards: Floats, cells: Ints) -> Floats:
    """By how much the sum of squares falls if every cell has another mean after row k than up to it, for every k."""
    order = np.argsort(cells, kind="stable")
    own, x = cells[order], rewards[order]
    first = np.concatenate([[True], own[1:] != own[:-1]])
    group = np.cumsum(first) - 1
    begin = np.flatnonzero(first)
    size = np.diff([*begin, len(x)])[group]
    before = np.arange(len(x)) - begin[group] + 1
    sums = np.cumsum(x) - np.concatenate([[0.0], np.cumsum(x)])[begin][group]
    total = np.bincount(group, weights=x)[group]
    after = np.maximum(size - before, 1)
    gain = sums**2 / before + np.where(size > before, (total - sums) ** 2 / after, 0.0) - total**2 / size
    step = gain - np.where(first, 0.0, np.concatenate([[0.0], gain[:-1]]))
    steps = np.empty(len(x))
    steps[order] = step
    return np.cumsum(steps)


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
    martingales = _Martingales(rewards, cells, false_alarm, max(len(played), 1))
    uniforms = 1.0 - stream(seed, "changes of a log").random(len(rewards))  # none is 0
    for row, (reward, cell, u) in enumerate(zip(rewards.tolist(), cells.tolist(), uniforms.tolist(), strict=True)):
        martingales.see(row, reward, cell, u)
    return tuple(
        change if change.cell < 0 else replace(change, cell=int(played[change.cell])) for change in martingales.found
    )


class _Martingales:
    """All martingales of a log, whose `number` cells have numbers from 0 on."""

    def __init__(self, rewards: Floats, cells: Ints, false_alarm: float, number: int) -> None:
        self._rewards, self._cells, self._number = rewards, cells, number
        self._threshold, self._own_threshold = 3.0 / false_alarm, 3.0 * number / false_alarm
        self.found: list[LogChange] = []
        self._start_all(0)

    def _start_all(self, row: int) -> None:
        self._begun, self._begun_of = row, dict[int, int]()
        self._ranks, self._wagers = dict[int, Ranked](), dict[int, Wagers]()
        self._common, self._common_ranks = Wagers(), list[float]()
        self._joint = Joint(len(self._rewards) - row, self._number)

    def see(self, row: int, reward: float, cell: int, u: float) -> None:
        """Take in the reward of a row."""
        ranks = self._ranks.get(cell)
        if ranks is None:
            ranks = self._ranks[cell] = Ranked(exact=EXACT)
            self._wagers[cell] = Wagers()
            self._begun_of.setdefault(cell, self._begun)
        own = self._wagers[cell]
        rank = ranks.see(reward, u)
        self._common_ranks.append(rank)
        common = self._common.see(rank)
        self._joint.see(rank, cell)
        if own.see(rank) >= self._own_threshold:
            self._alarm_of(cell, own, row)
        elif common >= self._threshold:
            self._alarm_of_all(row, self._common.kind, locate(-ndtri(np.array(self._common_ranks))))
        elif self._joint.evidence >= self._threshold:
            part = slice(self._begun, row + 1)
            self._alarm_of_all(row, "moved", locate_joint(self._rewards[part], self._cells[part], _LEAST_AROUND))

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
    return _likeliest(places, logs)


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
    """The alarm with the shortest interval dates the change best."""
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


@dataclass(frozen=True)
class Piece:
    """Rows that belong together: which (n,), and what texts call them."""

    label: str
    rows: Bools


@dataclass(frozen=True)
class Pieces:
    """All of them, and what must be known to read their intervals."""

    pieces: tuple[Piece, ...]
    note: str = ""


def pieces_of(log: Log, by: Any) -> Pieces:
    """The parts that `by` names: a number of windows, ends of windows, "changes" or "segment"."""
    if by is None:
        return Pieces(())
    if isinstance(by, str):
        if by == "segment":
            return _segments(log)
        if by == "changes":
            return _stretches(log)
        raise InputError(f"by must be a number of windows, their ends, 'changes' or 'segment', got {shown(by)}")
    if np.ndim(by) == 0:
        number = check_count("by", by, cure="it is the number of windows")
        if number > len(log):
            raise InputError(f"by={number} windows are more than {counted(len(log), 'row')}; take fewer")
        ends = np.arange(1, number) * len(log) // number
        return Pieces(_between(log, ends.tolist()))
    return Pieces(_between(log, _places(log, by)))


def _places(log: Log, ends: Any) -> list[int]:
    """Rows at which windows end, from ends in rounds or times."""
    try:
        given = as_floats(ends)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"by must be a number of windows, their ends, 'changes' or 'segment', got {shown(ends)}"
        ) from None
    if given.ndim != 1 or not (np.diff(given) > 0).all():
        raise InputError(f"the ends of windows must rise, got {shown(ends)}")
    return [int(place) for place in np.unique(np.searchsorted(log.clock, given)) if 0 < place < len(log)]


def _between(log: Log, ends: Sequence[int]) -> tuple[Piece, ...]:
    bounds = [0, *ends, len(log)]
    rows = np.arange(len(log))
    return tuple(
        Piece(_span(log, first, last), (rows >= first) & (rows < last)) for first, last in itertools.pairwise(bounds)
    )


def _span(log: Log, first: int, last: int) -> str:
    if log.time is None:
        return f"rounds {log.round[first]} to {log.round[last - 1]}"
    return f"times {log.time[first]:.10g} to {log.time[last - 1]:.10g}"


def _segments(log: Log) -> Pieces:
    if log.segment is None:
        raise InputError("by='segment' needs a column 'segment' in the log")
    return Pieces(tuple(Piece(name, log.segment == k) for k, name in enumerate(log.segment_names)))


def _stretches(log: Log) -> Pieces:
    """Changes are searched in every other row and evaluated on the rest, so that estimates are not too good."""
    searched = np.zeros(len(log), dtype=bool)
    searched[::2] = True
    half = log.take(searched)
    places = sorted({2 * episode.row for episode in episodes(find_changes(half), len(half))})
    pieces = tuple(
        Piece(piece.label, piece.rows & ~searched)
        for piece in _between(log, [place for place in places if 0 < place < len(log)])
        if (piece.rows & ~searched).any()
    )
    return Pieces(pieces, "changes were searched for in every other row; intervals use the rest")
