"""How much a world changes: its change rounds, L_T, V_T and how often the best arm changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driftbandits.types import Bools, Floats, Ints, read_only

# rounds (k,) in rising order and their means (k, N), NaN where not offered, the same until the next listed round
Piece = tuple[Ints, Floats]


@dataclass(frozen=True)
class Truth:
    """How a world changes: what a change detector should have found.

    Where arms are not always offered, a change and its size are those of the arms offered in both of two consecutive
    rounds (so an arm that is away for a while may come back changed without one), and the best arm is the best offered.

    Parameters
    ----------
    change_rounds : the first rounds (from 0) of each new reward function
    variation : V_T = sum_t max_x |r_{t+1}(x) - r_t(x)|
    best_arm_changes : the least number of times a player who always plays a best arm has to change it (so ties and
        their order do not count)

    >>> truth = Truth(np.array([300, 700]), variation=1.5, best_arm_changes=2)
    >>> truth.segments
    3
    """

    change_rounds: Ints
    variation: float
    best_arm_changes: int

    @property
    def segments(self) -> int:
        """L_T, the number of stretches with one reward function."""
        return 1 + len(self.change_rounds)


def measure(pieces: Iterable[Piece]) -> Truth:
    """Measure the changes of a world that comes in pieces of bounded size, in order of rounds.

    >>> rows = np.array([[0.0, 0.5], [0.0, 0.5], [0.75, 0.5]])
    >>> measure([(np.arange(3), rows)])
    Truth(change_rounds=array([2]), variation=0.75, best_arm_changes=1)
    """
    changes: list[Ints] = []
    steps: list[Floats] = []
    best = _BestArms()
    last: Floats | None = None
    for rounds, means in pieces:
        joined = means if last is None else np.concatenate([last, means])
        step = np.fmax.reduce(np.abs(np.diff(joined, axis=0)), axis=1, initial=0.0)  # fmax passes over NaN
        changed = step > 0
        changes.append(rounds[len(rounds) - len(step) :][changed])
        steps.append(step[changed])
        best.follow(means)
        last = means[-1:]
    none = [np.empty(0)]
    return Truth(
        change_rounds=read_only(np.concatenate([*none, *changes]).astype(np.int64)),
        variation=float(np.concatenate([*none, *steps]).sum()),
        best_arm_changes=best.changes,
    )


def significant_shifts(means: npt.ArrayLike, *, width: float = 1.0) -> Ints:
    """Rounds of significant shifts (Suk and Kpotufe 2022): since the last one, every arm has cost too much to be kept.

    An arm costs too much if in some stretch of n rounds since then its gaps to the best arm add up to sqrt(N n) or
    more. Changes after which some arm may still be played all along are none. The bound that goes with it is
    sqrt(N (1 + number of shifts) T) for dynamic regret.

    Parameters
    ----------
    means : mean rewards of all rounds, shape (T, N)
    width : of the range of rewards, which the definition has as 1

    Returns
    -------
    array of rounds, rising

    O(T^2) for every arm that is never given up.

    >>> means = np.repeat([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1]], 100, axis=0)
    >>> significant_shifts(means)
    array([203])
    """
    table = np.asarray(means, dtype=np.float64)
    gaps = (np.nanmax(table, axis=1, keepdims=True) - table) / width
    rounds, size = gaps.shape
    roots = np.sqrt(size * np.arange(rounds + 1))
    sums = np.concatenate([np.zeros((1, size)), np.cumsum(np.nan_to_num(gaps, nan=1.0), axis=0)])
    shifts: list[int] = []
    start = 0
    while start < rounds:
        ends = [_first_costly(sums[start:, arm], roots) for arm in range(size)]
        if (end := start + max(ends)) >= rounds:
            break
        shifts.append(end)
        start = end
    return np.array(shifts, dtype=np.int64)


def _first_costly(sums: Floats, roots: Floats) -> int:
    """The first t (from 0) with sums[t + 1] - sums[s] >= sqrt(N (t + 1 - s)) for some s <= t, or what is beyond."""
    for end in range(1, len(sums)):
        if (sums[end] - sums[:end] >= roots[end:0:-1]).any():
            return end - 1
    return len(sums)


class _BestArms:
    """Counts changes of the best arm: keep the arms best so far; when none is left, count and start anew."""

    def __init__(self) -> None:
        self.changes = 0
        self._kept: Bools | None = None

    def follow(self, means: Floats) -> None:
        best: Bools = means == np.fmax.reduce(means, axis=1, keepdims=True)
        new = np.concatenate([[True], (best[1:] != best[:-1]).any(axis=1)])
        for row in best[new]:
            if self._kept is None:
                self._kept = row
                continue
            both = self._kept & row
            if not both.any():
                self.changes += 1
                both = row
            self._kept = both
