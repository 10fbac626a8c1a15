"""How often every arm was played, and when last: two numbers per arm, whatever the age of the policy."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.state.plausible import check_whole
from driftbandits.types import Ints

NEVER = -1  # as the round in which an arm was last played


class Plays:
    """Rounds in which every arm was drawn, told or not, and the last of them.

    A live request adds one number to each list, so they are arrays of the interpreter, which take a third of the time
    that NumPy needs for a single entry; `counts` and `last` are views of them.

    >>> plays = Plays(3)
    >>> plays.add(2, 0)
    >>> plays.add_many(np.array([2, 1]), np.array([1, 2]))
    >>> plays.counts.tolist(), plays.last.tolist()
    ([0, 1, 2], [-1, 2, 1])
    """

    __slots__ = ("_counts", "_last")

    def __init__(self, arms: int) -> None:
        self._counts = array("q", bytes(8 * arms))
        self._last = array("q", [NEVER]) * arms

    @property
    def counts(self) -> Ints:
        """Rounds in which each arm was drawn, shape (N,); a view."""
        return np.frombuffer(self._counts, dtype=np.int64)

    @property
    def last(self) -> Ints:
        """The last of them, -1 for an arm never drawn, shape (N,); a view."""
        return np.frombuffer(self._last, dtype=np.int64)

    def add(self, arm: int, round_: int) -> None:
        """`arm` was drawn in `round_`."""
        self._counts[arm] += 1
        self._last[arm] = round_

    def add_many(self, arms: Ints, rounds: Ints) -> None:
        """These arms were drawn in these rounds, which grow."""
        np.add.at(self.counts, arms, 1)
        np.maximum.at(self.last, arms, rounds)

    def rearranged(self, origins: Ints) -> Plays:
        """The same for other arms: the k-th is what arm `origins[k]` is here, or new where that is -1."""
        fresh, kept = Plays(len(origins)), origins >= 0
        fresh.counts[kept], fresh.last[kept] = self.counts[origins[kept]], self.last[origins[kept]]
        return fresh

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        return {"counts": self.counts.copy(), "last": self.last.copy()}

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`, after `rounds` rounds."""
        shape = (len(self._counts),)
        counts, last = (state.array(name, np.int64, shape) for name in ("counts", "last"))
        check_whole(counts, rounds, "plays of the arms")
        # an arm drawn k times was last drawn in round k - 1 at the earliest, and no two arms in the same round
        seen = last[counts > 0]
        fine = bool(((last >= counts - 1) & (last < rounds) & ((counts > 0) == (last >= 0))).all())
        states.check(fine and len(np.unique(seen)) == len(seen), "rounds in which arms were last played")
        self.counts[:], self.last[:] = counts, last
