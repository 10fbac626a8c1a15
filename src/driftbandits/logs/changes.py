"""Changes in a log: how its world moves, when it changed, and the parts of a log between changes.

When: the interval of a change holds every row that explains the rewards nearly as well as the best one.

symbol   name       meaning
z_i      value      score of row i (see `logs.movement`): its noise has variance 1 or so
d_c      step       by how much cell c moved; the level before, and where there are rows enough a slope, are free
L(k)     profile    log likelihood of a change at row k, the levels and d_c at their likeliest, or nearly
x        drop       how much less than the largest L may be inside the interval
v        variances  of the noise just before and just after, in units of the score's

If the change is at k, L(j) - L(k) goes on from k to either side as a walk whose mean falls by d^2 / 2 and whose
variance grows by d^2 v a row, so that its largest value exceeds x with probability exp(-(x + 0.583 d sqrt(v)) / v): the
second part is what a walk in steps lacks to a continuous one (Siegmund 1985). x is such that both sides stay below it
with 95 % (97.5 % where slopes are free, which costs more than this counts). Nothing is said of the law of the noise:
its variance on either side is the rewards' own. A likelihood of normal rewards with a variance of their own on either
side would not do: rewards of two values follow no such law.

Only rows near the change count, about `_NEAR` / d^2 on either side, and not beyond the changes next to it. So slow
drift around it does no harm, the more so as slopes are free where there are rows enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from driftbandits._util.checks import as_floats, check_count
from driftbandits.errors import InputError
from driftbandits.logs.log import Log, clock_words
from driftbandits.logs.movement import (
    BINS,
    GENEROUS,
    Movement,
    Scores,
    Waves,
    clearest_first,
    drift_evidence,
    evidence_of_means,
    log_mean,
    scores_of,
    stretch_means,
    switches,
)
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Floats, Ints

FALSE_ALARM = 0.05
_CONFIDENCE, _WITH_SLOPES = 0.95, 0.975  # that the walks stay below x, the more where slopes are free
_OVERSHOOT = 0.583  # Siegmund's constant: 0.5826
_NEAR = 300.0  # of d^2: rows on either side from which a change is dated
_FOR_SLOPES = 250.0  # of d^2 on either side, from which on slopes are free
_MOST_BESIDE_DRIFT = 8  # changes that are tried with drift between them
_CLEAR, _CLEAR_BESIDE_DRIFT = 2.0, 4.0  # nats beyond chance, in the rows from which a change is dated
_MORE_CHANGES_COST = 4.0  # nats by which more changes must be better than fewer with drift between them


@dataclass(frozen=True)
class LogChange:
    """A change found in a log: rows count from 0 among the rows with a reward.

    row : the first of the new world, as it seems; `interval`: rows between which it lies with 95 %
    found : row from which on the log knows of it
    cells : arms (and segments) that moved, by their numbers; `common`: all by the same
    """

    row: int
    interval: tuple[int, int]
    found: int
    cells: tuple[int, ...]
    common: bool


@dataclass(frozen=True)
class Changes:
    """How a world moves, and its changes in the order of time."""

    movement: Movement
    changes: tuple[LogChange, ...]


def find_changes(log: Log, *, false_alarm: float = FALSE_ALARM) -> Changes:
    """How a log's world moves; rows without a reward are left out and not counted.

    That it moves although it does not has probability `false_alarm` at most.
    """
    log = log.take(log.known)
    scores = scores_of(log)
    enough = math.log(1.0 / false_alarm) - GENEROUS
    if not len(scores.cells):
        return Changes(Movement("still", 0.0), ())
    waves = Waves(log, scores)
    change, jumps = switches(scores, enough)
    drifts = drift_evidence(scores, ())
    evidence = log_mean(np.array([change, drifts, waves.evidence]))
    if evidence < enough:
        return Changes(Movement("still", evidence), ())
    found, slopes, moves = _without_rhythm(scores, jumps, drifts)
    if waves.evidence >= max(moves, change):
        rest = waves.without(scores)
        change, jumps = switches(rest, enough)
        drifts = drift_evidence(rest, ())
        found, slopes, moves = _without_rhythm(rest, jumps if change >= enough else (), drifts)
        return Changes(Movement("rhythm", evidence, waves.season, slopes and moves >= enough), found)
    later = Waves(log, scores.less(stretch_means(scores, [one.row for one in found]))) if found and not slopes else None
    season = later.season if later is not None and later.evidence >= enough else None
    return Changes(Movement("switches" if found else "drifts", evidence, season, slopes), found)


def _without_rhythm(scores: Scores, jumps: Sequence[int], drifts: float) -> tuple[tuple[LogChange, ...], bool, float]:
    """The changes, whether rewards drift between them, and log B of both together.

    The best of: all changes, drift alone, and drift beside the clearest change, the two clearest, and so on.
    """
    path = clearest_first(scores, jumps)
    ways = [(drifts, 0)]
    rows = [row for row, _ in path]
    for number, (_, evidence) in enumerate(path[:_MOST_BESIDE_DRIFT], start=1):
        ways.append((evidence + drift_evidence(scores, sorted(rows[:number])), number))
    whole = path[-1][1] if path else -math.inf
    fewer = [way for way in ways if 0 < way[1] < len(path) and way[0] >= whole - _MORE_CHANGES_COST]
    moves, number = max(fewer or ways)
    if not fewer and whole >= moves:
        return date_changes(scores, jumps), False, whole
    return date_changes(scores, sorted(rows[:number]), drifts=True), True, moves


def date_changes(scores: Scores, jumps: Sequence[int], *, drifts: bool = False) -> tuple[LogChange, ...]:
    """Dates of changes near some rows, each between its neighbours; those that no cell shows are left out."""
    rows = list(jumps)
    ends = [(row, row) for row in rows]
    found: list[LogChange] = []
    for _ in range(3):
        bounds = [(0, 0), *ends, (scores.rows, scores.rows)]
        dated = (_dated(scores, bounds[k][1], bounds[k + 2][0], row, drifts=drifts) for k, row in enumerate(rows))
        found = sorted({one.row: one for one in dated if one is not None}.values(), key=lambda one: one.row)
        rows, ends = [one.row for one in found], [one.interval for one in found]
    return tuple(found)


def _dated(scores: Scores, first: int, last: int, near: int, *, drifts: bool) -> LogChange | None:
    """The change near a row, dated from rows between two; None where no cell moved."""
    step = _Step.of(scores, first, last, near)
    if step is None or not first < near < last:
        return None
    row = near
    for coarse in (2 * scores.rows // BINS, 0):  # a change is known to a bin at first
        freedom = 1 if step.common else int(np.count_nonzero(step.moved))
        reach = max(int(_NEAR * (1.0 + 0.1 * freedom) / step.information), coarse, 8)
        begin, end = max(first, row - reach), min(last, row + reach)
        window = _Window.of(scores, begin, end, step)
        slopes = drifts or min(row - begin, end - row) * step.information >= _FOR_SLOPES
        profile = window.profile(slopes)
        if not len(profile):
            return None
        best = int(profile.argmax())
        row = int(window.row[1 + best])
        step = _Step.of(scores, begin, end, row) or step
    chance = math.log1p((end - begin) * step.information) + 0.5 * freedom
    if window.profile(drifts).max() < chance + (_CLEAR_BESIDE_DRIFT if drifts else _CLEAR):
        return None
    inside = np.flatnonzero(profile >= profile[best] - window.drop(best + 1, slopes=slopes))
    low, high = int(window.row[inside[0]]) + 1, int(window.row[inside[-1] + 1])
    cells = tuple(scores.cells[np.flatnonzero(step.moved)].tolist())
    return LogChange(row, (low, high), window.known_from(best + 1), cells, step.common)


@dataclass(frozen=True)
class _Step:
    """By how much every cell moved, and how much a row says of it on average."""

    size: Floats
    moved: Bools
    common: bool
    information: float

    @classmethod
    def of(cls, scores: Scores, first: int, last: int, row: int) -> _Step | None:
        """Between two rows at a third; None where no cell has rows on both sides."""
        begin, middle, end = (int(k) for k in np.searchsorted(scores.row, (first, row, last)))
        number = len(scores.cells)
        counts, means = [], []
        for part in (slice(begin, middle), slice(middle, end)):
            count = np.bincount(scores.cell[part], minlength=number).astype(np.float64)
            counts.append(count)
            means.append(
                np.bincount(scores.cell[part], weights=scores.value[part], minlength=number) / np.maximum(count, 1)
            )
        able = (counts[0] > 0) & (counts[1] > 0)
        if not able.any():
            return None
        weight = np.where(able, counts[0] * counts[1] / np.maximum(counts[0] + counts[1], 1), 0.0)
        difference = np.where(able, means[1] - means[0], 0.0)
        with np.errstate(divide="ignore"):
            own = evidence_of_means(difference, 1.0 / weight)
        same = float(difference @ weight / weight.sum())
        share = np.bincount(scores.cell[begin:end], minlength=number) / max(end - begin, 1)
        common = number > 1 and float(evidence_of_means(np.array([same]), np.array([1.0 / weight.sum()]))[0]) > float(
            np.maximum(own, 0.0).sum()
        )
        moved = able if common else able & (own >= min(0.0, float(own[able].max())))
        size = np.where(moved, same if common else difference, 0.0)
        information = float(share @ np.square(size))
        return cls(size, moved, common, information) if information > 0 else None


@dataclass(frozen=True)
class _Window:
    """Rows near a change of the cells that moved: rows of the log, cells from 0, scores."""

    row: Ints
    cell: Ints
    value: Floats
    step: _Step

    @classmethod
    def of(cls, scores: Scores, first: int, last: int, step: _Step) -> _Window:
        """Between two rows."""
        begin, end = (int(k) for k in np.searchsorted(scores.row, (first, last)))
        kept = begin + np.flatnonzero(step.moved[scores.cell[begin:end]])
        return cls(scores.row[kept], scores.cell[kept], scores.value[kept], step)

    def profile(self, slopes: bool) -> Floats:
        """L for a change at every row but the first, shape (rows - 1,)."""
        order = np.argsort(self.cell, kind="stable")
        own, value, time = self.cell[order], self.value[order], self.row[order].astype(np.float64)
        new = np.concatenate([[True], own[1:] != own[:-1]])
        group = np.cumsum(new) - 1
        begin = np.flatnonzero(new)
        size = np.bincount(group).astype(np.float64)
        time -= (np.bincount(group, weights=time) / size)[group]
        rest = value - (np.bincount(group, weights=value) / size)[group]
        before = np.arange(len(own)) - begin[group] + 1.0
        known = before * (size[group] - before) / size[group]
        if slopes:
            squares = np.bincount(group, weights=np.square(time))
            slope = np.bincount(group, weights=time * rest) / np.maximum(squares, 1e-9)
            rest = rest - slope[group] * time
            crossed = _sums_by(time, begin, group)
            known = np.maximum(known - np.square(crossed) / np.maximum(squares, 1e-9)[group], 0.0)
        sums = _sums_by(rest, begin, group)
        last = np.concatenate([new[1:], [True]])
        known[last] = sums[last] = 0.0
        if self.step.common:
            total, much = (_in_time(part, new, order) for part in (sums, known))
            return _gain(total, much, float(np.square(self.step.size).max()))[:-1]
        gain = _gain(sums, known, float(np.square(self.step.size[self.step.moved]).mean()))
        return _in_time(gain, new, order)[:-1]

    def drop(self, place: int, *, slopes: bool = False) -> float:
        """x for a change at a place in the window."""
        size = self.step.size[self.cell]
        late = np.arange(len(self.row)) >= place
        noise = self.value - _means_of(self.value, 2 * self.cell + late)
        steps = np.square(size)
        variances = []
        for part in (~late, late):
            total = float(steps[part].sum())
            variances.append(max(float(steps[part] @ np.square(noise[part])) / total, 1e-12) if total > 0 else 1.0)
        deviation = math.sqrt(float(steps.mean()))

        def missed(x: float) -> float:
            inside = (1.0 - math.exp(-(x + _OVERSHOOT * deviation * math.sqrt(v)) / v) for v in variances)
            return math.prod(inside) - (_WITH_SLOPES if slopes else _CONFIDENCE)

        return float(brentq(missed, 0.0, 100.0 * max(variances))) if missed(0.0) < 0 else 0.0

    def known_from(self, place: int) -> int:
        """The first row from which on the rewards since the change speak clearly for it."""
        size_of = self.step.size
        size = size_of[self.cell]
        late = np.arange(len(self.row)) >= place
        count = np.maximum(np.bincount(self.cell[~late], minlength=len(size_of)), 1)
        level: Floats = np.bincount(self.cell[~late], weights=self.value[~late], minlength=len(size_of)) / count
        told = np.cumsum(size[late] * (self.value[late] - level[self.cell[late]] - 0.5 * size[late]))
        enough = math.log(len(self.row) / FALSE_ALARM)
        rows = self.row[late]
        return int(rows[int((told >= enough).argmax())]) if (told >= enough).any() else int(rows[-1])


def _means_of(values: Floats, group: Ints) -> Floats:
    count = np.maximum(np.bincount(group), 1)
    return np.asarray((np.bincount(group, weights=values) / count)[group])


def _sums_by(values: Floats, begin: Ints, group: Ints) -> Floats:
    """Running sums within groups that stand one after the other."""
    sums = np.cumsum(values)
    return np.asarray(sums - np.concatenate([[0.0], sums])[begin][group])


def _gain(sums: Floats, known: Floats, size: float) -> Floats:
    """Log likelihood gained by steps of about this squared size, of sums of residuals and what these know of them."""
    return np.asarray(0.5 * np.square(sums) / (known + 1.0 / size))


def _in_time(values: Floats, new: Bools, order: Ints) -> Floats:
    """Values that stand by cell, as sums over cells in the order of the rows."""
    step = values - np.where(new, 0.0, np.concatenate([[0.0], values[:-1]]))
    steps = np.empty(len(values))
    steps[order] = step
    return np.cumsum(steps)


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
    ends = (clock_words(log, float(log.time[row])).removeprefix("time ") for row in (first, last - 1))
    return f"times {' to '.join(ends)}"


def _segments(log: Log) -> Pieces:
    if log.segment is None:
        raise InputError("by='segment' needs a column 'segment' in the log")
    return Pieces(tuple(Piece(name, log.segment == k) for k, name in enumerate(log.segment_names)))


def _stretches(log: Log) -> Pieces:
    """Changes are searched in every other row and evaluated on the rest, so that estimates are not too good."""
    searched = np.zeros(len(log), dtype=bool)
    searched[::2] = True
    half = log.take(searched)
    places = sorted({2 * change.row for change in find_changes(half).changes})
    pieces = tuple(
        Piece(piece.label, piece.rows & ~searched)
        for piece in _between(log, [place for place in places if 0 < place < len(log)])
        if (piece.rows & ~searched).any()
    )
    return Pieces(pieces, "changes were searched for in every other row; intervals use the rest")
