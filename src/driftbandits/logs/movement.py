"""How the rewards of a log move, if they do: not at all, at times, all the time, or with a rhythm.

Every way to move is weighed against standing still by a Bayes factor: how much better it explains the rewards.

symbol   name      meaning
y_i      scores    reward of row i, clipped (below), less the mean of its cell, over the deviation of the cell's noise
n, s     counts,   rows of every cell in every bin of time, and the sum of their scores; (bins, cells)
         sums
d_c                by how many deviations cell c moved: normal about 0 with variance g, for every g of `SIZES`
B_c                Bayes factor of cell c for a way to move, with the level of the cell free
r        SHARES    share of the cells that move
B                  mean over r and g of the product over cells of (1 - r) + r B_c, and the same for one d of all cells;
                   then the mean over all times at which the world may have changed, or all periods

Means of Bayes factors are 1 or less on average while nothing moves, and no more depends on how the arms were chosen:
what the policy that logged did cancels. So they reach 1 / a with probability a at most, as far as means of scores are
normal. That is why scores are clipped, and why a cell counts only where it has enough rows on either side for its own
kurtosis. The deviation comes from differences of neighbouring rewards, which hardly notice a change.

Clipping: at the outer 5 % of the values that are not the cell's most frequent one. Rewards of two values stay as they
are, zeros among amounts stay zeros, and heavy tails cannot decide. It does not move a change in time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from driftbandits.logs.log import Log, cells_of
from driftbandits.types import Floats, Ints

SIZES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
SHARES = (0.02, 0.2, 0.5, 0.98)
BINS = 512
PERIOD_BINS = 4_096
LEAST_CYCLES = 4  # of a rhythm, within the log
MOST_CELLS = 200  # that are looked at, those played most
_CLIPPED = 0.05
_LEAST_OTHERS = 20  # values that are not the most frequent, to be clipped
_POOLED = 4.0  # rows that the mean deviation of all cells counts beside a cell's own
_LEAST_SIDE = 4.0
_PER_KURTOSIS = 10.0
_COSINES = 16
GENEROUS = 2.9  # nats by which the bound on false alarms is; see the evidence of logs
_LEAST_BINS = 16  # of a stretch in which a change is searched
_MOST_CHANGES = 60


@dataclass(frozen=True)
class Scores:
    """Scores of the rows that are looked at: places in the log, cells from 0, and which cells of the log these are.

    deviation : of the noise of every cell, in units of rewards
    least : rows of every cell that must stand on either side of a change
    """

    row: Ints
    cell: Ints
    value: Floats
    cells: Ints
    deviation: Floats
    least: Floats
    rows: int

    def less(self, part: Floats) -> Scores:
        """The same rows with something taken from their scores."""
        return Scores(self.row, self.cell, self.value - part, self.cells, self.deviation, self.least, self.rows)


def scores_of(log: Log) -> Scores:
    """Scores of a log all of whose rewards are known."""
    cells = cells_of(log)
    plays = np.bincount(cells)
    chosen = np.argsort(-plays, kind="stable")[:MOST_CELLS]
    chosen = np.sort(chosen[plays[chosen] >= 2 * _LEAST_SIDE])
    place = np.full(len(plays), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    row = np.flatnonzero(place[cells] >= 0)
    cell = place[cells[row]]
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=len(chosen)))
    value = np.empty(len(row))
    squares, kurtosis = np.zeros(len(chosen)), np.zeros(len(chosen))
    for k, own in enumerate(np.split(order, ends[:-1]) if len(chosen) else []):
        clipped = _clipped(log.reward[row[own]])
        value[own] = clipped - clipped.mean()
        squares[k] = 0.5 * float(np.square(np.diff(clipped)).sum())
        spread = float(value[own] @ value[own])
        kurtosis[k] = len(own) * float((value[own] ** 4).sum()) / spread**2 if spread > 0 else 1.0
    count = np.bincount(cell, minlength=len(chosen)) - 1.0
    pooled = float(squares.sum()) / max(float(count.sum()), 1.0)
    deviation = np.sqrt((squares + _POOLED * pooled) / (count + _POOLED)) if pooled > 0 else np.ones(len(chosen))
    least = np.maximum(_LEAST_SIDE, _PER_KURTOSIS * (kurtosis - 2.0))
    return Scores(row, cell, value / deviation[cell], chosen, deviation, least, len(log))


def _clipped(rewards: Floats) -> Floats:
    """Rewards of a cell, the outer values that are not its most frequent one clipped."""
    values, counts = np.unique(rewards, return_counts=True)
    others = rewards[rewards != values[counts.argmax()]]
    if len(others) < _LEAST_OTHERS:
        return rewards
    low, high = np.quantile(others, (_CLIPPED, 1.0 - _CLIPPED))
    common = float(values[counts.argmax()])
    return np.clip(rewards, min(low, common), max(high, common))


@dataclass(frozen=True)
class _Table:
    """Rows and sums of scores of every cell up to every bin, (bins + 1, cells)."""

    counts: Floats
    sums: Floats
    least: Floats


def _binned(scores: Scores, place: Ints, bins: int) -> tuple[Floats, Floats]:
    """Rows and sums of scores by bin and cell."""
    size = len(scores.cells)
    key = place * size + scores.cell
    counts = np.bincount(key, minlength=bins * size).reshape(bins, size).astype(np.float64)
    sums = np.bincount(key, weights=scores.value, minlength=bins * size).reshape(bins, size)
    return counts, np.asarray(sums, dtype=np.float64)


def _mixed(cells: Floats, common: Floats) -> Floats:
    """log B of log B_c (sizes, ..., cells) and of one movement of all cells (sizes, ...)."""
    parts = [np.logaddexp(math.log1p(-r), math.log(r) + cells).sum(axis=-1) for r in SHARES]
    found = np.stack([*parts, common])
    return np.asarray(logsumexp(found, axis=(0, 1)) - math.log(found.shape[0] * found.shape[1]))


def _of_means(difference: Floats, variance: Floats) -> Floats:
    """log B_c of a difference of means with this variance, for every size: (sizes, ...); 0 where it is infinite."""
    sizes = np.array(SIZES).reshape(-1, *[1] * np.ndim(difference))
    with np.errstate(invalid="ignore"):
        gain = sizes / (variance + sizes)
        found = 0.5 * np.log1p(-gain) + 0.5 * np.square(difference) / variance * gain
    return np.asarray(np.where(np.isfinite(variance), found, 0.0))


def _change_evidence(table: _Table, first: int, last: int) -> tuple[Ints, Floats]:
    """Bins from which a world may be new, between two, and log B of each."""
    places = np.arange(first + 1, last)
    before, after = table.counts[places] - table.counts[first], table.counts[last] - table.counts[places]
    sums, rest = table.sums[places] - table.sums[first], table.sums[last] - table.sums[places]
    able = (before >= table.least) & (after >= table.least)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(able, 1.0 / before + 1.0 / after, np.inf)
        difference = np.where(able, rest / after - sums / before, 0.0)
    weight = 1.0 / variance
    total = weight.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        common = _of_means(
            np.where(total > 0, (difference * weight).sum(axis=1) / total, 0.0),
            np.where(total > 0, 1.0 / total, np.inf),
        )
    return places, _mixed(_of_means(difference, variance), common)


def evidence_of_means(difference: Floats, variance: Floats) -> Floats:
    """log of the mean over sizes of B_c, of differences of means with these variances."""
    return np.asarray(logsumexp(_of_means(difference, variance), axis=0) - math.log(len(SIZES)))


def log_mean(logs: Floats) -> float:
    """Logarithm of a mean of numbers, of which the logarithms are given."""
    return float(logsumexp(logs) - math.log(len(logs)))


def _stretches(bins: int) -> list[tuple[int, int]]:
    """The whole, halves and those between them, quarters, and so on."""
    found, length = [], bins
    while length >= _LEAST_BINS:
        step = max(length // 2, 1)
        found += [(first, first + length) for first in range(0, bins - length + 1, step)]
        length //= 2
    return found or [(0, bins)]


@dataclass(frozen=True)
class Season:
    """A period in the unit of the log's clock, between which ends it lies, and log B.

    The ends are those of whole numbers of cycles: a log of nine and a half weeks does not tell 6.6 days from 7.4.
    """

    period: float
    low: float
    high: float
    evidence: float


@dataclass(frozen=True)
class Movement:
    """How the world of a log moves.

    kind : "still", "switches", "drifts" or "rhythm"
    evidence : log of the mean of all Bayes factors against standing still
    slopes : whether rewards move between the changes too
    """

    kind: str
    evidence: float
    season: Season | None = None
    slopes: bool = False


def stretch_means(scores: Scores, jumps: Sequence[int]) -> Floats:
    """Of every row the mean score of its cell between the jumps around it."""
    part = np.searchsorted(np.array(jumps, dtype=np.int64), scores.row, side="right")
    key = part * len(scores.cells) + scores.cell
    count = np.maximum(np.bincount(key), 1)
    return np.asarray((np.bincount(key, weights=scores.value) / count)[key])


def _table(scores: Scores) -> tuple[_Table, int]:
    bins = min(BINS, scores.rows)
    of_row = scores.row * bins // scores.rows
    counts, sums = (
        np.vstack([np.zeros(len(scores.cells)), np.cumsum(part, axis=0)]) for part in _binned(scores, of_row, bins)
    )
    return _Table(counts, sums, scores.least), bins


def switches(scores: Scores, enough: float) -> tuple[float, tuple[int, ...]]:
    """log B of any one change somewhere, and rows of all changes found."""
    table, bins = _table(scores)
    tried = {stretch: _change_evidence(table, *stretch) for stretch in _stretches(bins)}
    means = {stretch: log_mean(logs) for stretch, (_, logs) in tried.items()}
    others = [mean for stretch, mean in means.items() if stretch != (0, bins)]
    whole = means[0, bins]
    any_change = log_mean(np.array([whole, log_mean(np.array(others))])) if others else whole
    price = enough + math.log(len(tried))
    found: list[int] = []
    free = sorted(means, key=lambda stretch: -means[stretch])
    if any_change >= enough:
        price_of_first = min(enough, max(means.values()))
        while free and len(found) < _MOST_CHANGES:
            best = free[0]
            if means[best] < (price if found else price_of_first):
                break
            places, logs = tried[best]
            place = int(places[logs.argmax()])
            found.append(place)
            free = [stretch for stretch in free if not stretch[0] < place < stretch[1]]
            bounds = [0, *sorted(found), bins]
            here = bounds.index(place)
            for stretch in ((bounds[here - 1], place), (place, bounds[here + 1])):
                if stretch not in tried and stretch[1] - stretch[0] >= 2:
                    tried[stretch] = _change_evidence(table, *stretch)
                    means[stretch] = log_mean(tried[stretch][1])
                    free.append(stretch)
            free.sort(key=lambda stretch: -means[stretch])
    found = _settled(table, sorted(found), bins, enough)
    rows = tuple(int(np.ceil(place * scores.rows / bins)) for place in found)
    return any_change, rows


def clearest_first(scores: Scores, jumps: Sequence[int]) -> list[tuple[int, float]]:
    """Changes at some rows, the clearest first, each with log B of all up to it."""
    table, bins = _table(scores)
    row_of = {min(max(round(row * bins / scores.rows), 1), bins - 1): row for row in jumps}
    open_: list[tuple[float, int, int, int]] = []

    def consider(first: int, last: int) -> None:
        inside = [place for place in row_of if first < place < last]
        if inside:
            places, logs = _change_evidence(table, first, last)
            near = [float(logs[max(k - first - 3, 0) : k - first + 2].max()) for k in inside]
            best = inside[int(np.argmax(near))]
            heapq.heappush(open_, (math.log(2.0 * len(places)) - float(logsumexp(logs)), best, first, last))

    consider(0, bins)
    found, total = [], math.log(2.0)  # that there is one at all costs nothing here, only where and whether one more
    while open_:
        less, place, first, last = heapq.heappop(open_)
        total -= less
        found.append((row_of[place], total))
        consider(first, place)
        consider(place, last)
    return found


def _settled(table: _Table, found: list[int], bins: int, enough: float) -> list[int]:
    """Changes placed anew between their neighbours; the least certain left out until all are certain."""
    while True:
        for _ in range(2):
            gains = []
            for k in range(len(found)):
                first, last = (found[k - 1] if k else 0), (found[k + 1] if k + 1 < len(found) else bins)
                places, logs = _change_evidence(table, first, last)
                found[k] = int(places[logs.argmax()])
                gains.append(log_mean(logs))
        if len(found) <= 1 or min(gains) >= enough:
            return found
        del found[int(np.argmin(gains))]


def drift_evidence(scores: Scores, jumps: Sequence[int]) -> float:
    """log B of lines, and of walks: cosines whose variances are those of a walk; between jumps levels are free."""
    bins = min(BINS, scores.rows)
    of_row = scores.row * bins // scores.rows
    counts, _ = _binned(scores, of_row, bins)
    _, sums = _binned(scores.less(stretch_means(scores, jumps)), of_row, bins)
    parts = np.searchsorted(
        np.array([int(j * bins // scores.rows) for j in jumps], dtype=np.int64), np.arange(bins), side="right"
    )
    time = (np.arange(bins) + 0.5) / bins
    order = np.arange(1, _COSINES + 1)
    line = math.sqrt(12.0) * (time - 0.5)[:, None]
    walk = np.cos(np.pi * order * time[:, None]) * (math.sqrt(2.0) / (np.pi * order))
    able = counts.sum(axis=0) >= 2.0 * scores.least
    if not able.any():
        return 0.0
    counts, sums = counts[:, able], sums[:, able]
    return log_mean(np.array([_of_shape(shape, counts, sums, parts) for shape in (line, walk)]))


def _of_shape(waves: Floats, counts: Floats, sums: Floats, parts: Ints) -> float:
    """log B of paths that are sums of waves (bins, k), in bins of these parts."""
    squares = np.einsum("bc,bk,bl->ckl", counts, waves, waves, optimize=True)
    for part in range(int(parts[-1]) + 1):
        own = parts == part
        level = counts[own].T @ waves[own]
        squares -= np.einsum("ck,cl->ckl", level, level) / np.maximum(counts[own].sum(axis=0), 1e-9)[:, None, None]
    sides = sums.T @ waves  # levels are out of the scores already
    common = _of_waves(squares.sum(axis=0)[None], sides.sum(axis=0)[None])[:, 0]
    return float(_mixed(_of_waves(squares, sides), common))


def _of_waves(squares: Floats, sides: Floats) -> Floats:
    """log B_c of coefficients (..., k) normal about 0, for every size: (sizes, ...)."""
    eye = np.eye(squares.shape[-1])
    found = []
    for size in SIZES:
        system = eye + size * squares
        solved = np.linalg.solve(system, size * sides[..., None])[..., 0]
        found.append(0.5 * (sides * solved).sum(axis=-1) - 0.5 * np.linalg.slogdet(system)[1])
    return np.array(found)


class Waves:
    """The periods of a log, in its clock: log B of all, and the likeliest."""

    def __init__(self, log: Log, scores: Scores) -> None:
        self.evidence, self.season = 0.0, None
        clock = log.clock - log.clock[0]
        length = float(clock[-1]) * (1.0 + 1.0 / max(len(log) - 1, 1))
        if length <= 0.0 or scores.rows < 16 * LEAST_CYCLES:
            return
        bins = min(PERIOD_BINS, 2 ** int(math.log2(scores.rows)))
        self._place = np.minimum((clock[scores.row] / length * bins).astype(np.int64), bins - 1)
        counts, sums = _binned(scores, self._place, bins)
        able = counts.sum(axis=0) >= 2.0 * scores.least
        if not able.any():
            return
        halves = np.arange(2 * LEAST_CYCLES, bins // 2)  # half cycles
        square, side = _normal_equations(counts[:, able], sums[:, able], halves, bins)
        cells = _of_pairs(square, side)
        common = _of_pairs(square.sum(axis=1), side.sum(axis=1))
        logs = _mixed(cells, common)
        self.evidence = log_mean(logs)
        cycles = 0.5 * float(halves[int(logs.argmax())])
        self.season = Season(length / cycles, length / (cycles + 0.5), length / (cycles - 0.5), self.evidence)
        self._angle = 2.0 * np.pi * cycles * (self._place + 0.5) / bins

    def without(self, scores: Scores) -> Scores:
        """Scores less the wave of the likeliest period, cell by cell."""
        design = np.stack([np.ones(len(self._angle)), np.cos(self._angle), np.sin(self._angle)])
        size = len(scores.cells)
        square = np.array(
            [[np.bincount(scores.cell, weights=one * two, minlength=size) for two in design] for one in design]
        ).transpose(2, 0, 1)
        side = np.array([np.bincount(scores.cell, weights=one * scores.value, minlength=size) for one in design]).T
        solved = np.linalg.solve(square + 1e-6 * np.eye(3), side[..., None])[..., 0]
        return scores.less((design.T * solved[scores.cell]).sum(axis=1))


def _normal_equations(counts: Floats, sums: Floats, halves: Ints, bins: int) -> tuple[Floats, Floats]:
    """Of cosine and sine with the level out, for every number of half cycles and cell: squares (a, b, c), and sides."""
    turn = np.exp(-1j * np.pi * np.arange(2 * bins) / (2 * bins))[:, None]  # to the middle of a bin
    rows = np.fft.fft(counts, 2 * bins, axis=0) * turn
    side = (np.fft.fft(sums, 2 * bins, axis=0) * turn)[halves]
    total, one, twice = counts.sum(axis=0), rows[halves], rows[2 * halves]
    cos, sin = one.real, -one.imag
    squares = (
        0.5 * (total + twice.real) - cos * cos / total,
        -0.5 * twice.imag - cos * sin / total,
        0.5 * (total - twice.real) - sin * sin / total,
    )
    return np.stack(squares, axis=-1), np.stack([side.real, -side.imag], axis=-1)


def _of_pairs(squares: Floats, sides: Floats) -> Floats:
    """As `_of_waves`, for two coefficients each with squares (..., 3): the corners and the middle of a matrix."""
    cc, cs, ss = np.moveaxis(squares, -1, 0)
    c, s = np.moveaxis(sides, -1, 0)
    found = []
    for size in SIZES:
        a, b, d = 1.0 + size * cc, size * cs, 1.0 + size * ss
        det = a * d - b * b
        found.append(0.5 * size * (c * c * d - 2.0 * b * c * s + s * s * a) / det - 0.5 * np.log(det))
    return np.array(found)
