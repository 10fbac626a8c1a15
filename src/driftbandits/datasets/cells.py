"""Recorded rewards by round and arm: one, many or none per cell.

| symbol | name    | shape  | meaning                                              |
|--------|---------|--------|------------------------------------------------------|
| T, N   |         |        | rounds and arms                                      |
|        | values  | (F,)   | recorded rewards, cell by cell, rising in each cell  |
|        | first   | (T, N) | where a cell begins in `values`                      |
|        | count   | (T, N) | how many a cell has; 0 where the arm was not there   |
|        | means   | (T, N) | mean of a cell; NaN where it is empty                |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driftbandits.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Cells:
    """Recorded rewards of T rounds and N arms, several or none per cell; build them with `collect` or `from_table`."""

    values: Floats
    first: Ints
    count: Ints
    means: Floats

    def __len__(self) -> int:
        return len(self.first)

    @property
    def offered(self) -> Bools:
        """Where there is anything to draw, shape (T, N)."""
        return self.count > 0

    def rows(self, rounds: Ints | slice) -> Cells:
        """The same record with these rounds, in this order."""
        return Cells(self.values, self.first[rounds], self.count[rounds], self.means[rounds])

    def draw(self, rounds: Ints, arms: npt.NDArray[np.integer], uniforms: Floats) -> Floats:
        """One recorded reward per cell, each as likely as any other, rising in the uniform; all (n,)."""
        chosen = (uniforms * self.count[rounds, arms]).astype(np.int64)
        drawn: Floats = self.values[self.first[rounds, arms] + chosen]
        return drawn

    def ends(self) -> tuple[Floats, Floats]:
        """Smallest and largest reward of every cell, NaN where it is empty, each (T, N)."""
        low = np.where(self.offered, self.values[np.where(self.offered, self.first, 0)], np.nan)
        last = np.where(self.offered, self.first + self.count - 1, 0)
        return low, np.where(self.offered, self.values[last], np.nan)


def collect(rounds: Ints, arms: Ints, rewards: Floats, *, shape: tuple[int, int]) -> Cells:
    """Sort recorded rewards, given with their rounds and arms, each (F,), into T x N cells.

    >>> cells = collect(np.array([1, 0, 1]), np.array([0, 1, 0]), np.array([0.5, 1.0, 0.25]), shape=(2, 2))
    >>> cells.count, cells.means[1, 0]
    (array([[0, 1], [2, 0]]), np.float64(0.375))
    >>> cells.draw(np.array([1, 1]), np.array([0, 0]), np.array([0.4, 0.6]))
    array([0.25, 0.5 ])
    """
    number = rounds * shape[1] + arms
    order = np.lexsort((rewards, number))
    count = np.bincount(number, minlength=shape[0] * shape[1])
    total = np.bincount(number, weights=rewards, minlength=len(count))
    first = np.cumsum(count) - count
    means = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return Cells(rewards[order], first.reshape(shape), count.reshape(shape), means.reshape(shape))


def from_table(table: Floats) -> Cells:
    """Cells of one reward each from a (T, N) table, none where it is NaN."""
    rounds, arms = np.nonzero(np.isfinite(table))
    return collect(rounds, arms, table[rounds, arms], shape=(table.shape[0], table.shape[1]))
