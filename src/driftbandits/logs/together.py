"""Evidence that several arms changed at the same time, each in its own way: what single arms do not show.

symbol  name      meaning
p                 rank of a reward among the earlier ones of its cell: uniform and independent while nothing moves
s       starts    rows at which the world may have changed, evenly over the log
b_j     factors   bets on one rank, each 1 on average: that the odds of p <= cut are other ones, and powers of p
F_cs              mean over j of the product of b_j over the ranks of cell c since s
r       SHARES    share of the cells that move
W_s               mean over r of the product over cells of (1 - r) + r F_cs; 1 before s
evidence          mean over s of W_s

Every W_s is a martingale from 1: whichever cell is played next, its rank is uniform. So is their mean, and by Ville's
inequality it ever reaches 1 / a with probability a at most, whatever policy logged. Looking at it only now and then,
every `step` rows, takes nothing from that. Starts are few since a log, unlike a stream, has an end that is known: that
and the arms' common time are why it sees changes that a martingale per arm cannot afford to see.
"""

from __future__ import annotations

import math

import numpy as np

from driftbandits.detection.wagers import POWERS, raised_ranks
from driftbandits.types import Floats, Ints

STARTS = 64
_CUTS = (1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 15 / 16)
_ODDS = (2 / 5, 2 / 3, 3 / 2, 5 / 2)
BETS = len(_CUTS) * len(_ODDS) + len(POWERS)
_LOOKS = 2_000  # at the evidence, about
_MOST_ENTRIES = 4_000_000  # of the table of sums: 32 MB


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


class Together:
    """The evidence of all cells together, over the `rows` that are left of a log.

    >>> rng = np.random.default_rng(0)
    >>> ranks, cells = rng.random(900), rng.integers(0, 3, 900)
    >>> later = np.arange(900) >= 600
    >>> ranks = np.where(later, np.where(cells == 0, ranks**1.5, 1 - (1 - ranks) ** 1.5), ranks)  # one rose, two fell
    >>> together = Together(900, 3)
    >>> for rank, cell in zip(ranks.tolist(), cells.tolist()):
    ...     together.see(rank, cell)
    >>> together.evidence > 1e3
    True
    """

    def __init__(self, rows: int, cells: int) -> None:
        number = max(min(STARTS, rows, _MOST_ENTRIES // (BETS * cells)), 1)
        self.step = max(rows // _LOOKS, 1)
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


def locate_together(rewards: Floats, cells: Ints, least: int) -> tuple[int, int, int]:
    """Where all cells changed at once: the likeliest first row of the new world, and the ends of a 95 % interval.

    Normal rewards of one variance; every cell has a mean before and another after. Every row but the `least` first and
    last is equally likely beforehand.

    >>> cells = np.array([0, 1] * 6)
    >>> rewards = np.where(np.arange(12) < 6, [0.0, 1.0] * 6, [1.0, 0.0] * 6) + 0.01 * np.cos(np.arange(12))
    >>> locate_together(rewards, cells, 2)
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
    weights = np.exp(logs - logs.max())
    path = np.cumsum(weights / weights.sum())
    low, high = (int(places[min(int(np.searchsorted(path, q)), len(places) - 1)]) for q in (0.025, 0.975))
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
