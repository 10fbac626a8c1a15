"""Rewards that wait until no earlier decision is open, so that they are learned in the order of their rounds.

A reward that comes quickly because it is good would otherwise overtake the bad ones asked before it, and the learner
would see a sample that is too good at first and too bad later.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.policies.core.pending import ROW, Feedback, Row
from driftbandits.policies.core.renumbered import GONE
from driftbandits.state.plausible import ROUNDING
from driftbandits.types import Floats

HELD_BEFORE_WARNING = 1_000  # rewards behind one decision that is open


class Line:
    """Decisions with their rewards, both final, in the order of their ids. Memory: what waits.

    >>> line = Line()
    >>> for number in (3, 1, 2):
    ...     line.hold(Row(id=number, arm=0, law=0, tag=0, probability=1.0), 0.5)
    >>> [row.id for row, _ in line.release(before=3).rows()], len(line)
    ([1, 2], 1)
    """

    def __init__(self) -> None:
        self.warned = False  # whether its length was complained of
        self._heap: list[tuple[int, int, int, int, float, float]] = []  # a row and its reward

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def first(self) -> float:
        """Id of the first decision that waits; infinite where none does."""
        return self._heap[0][0] if self._heap else math.inf

    def hold(self, row: Row, reward: float) -> None:
        """Let one reward wait."""
        heapq.heappush(self._heap, (*row, reward))

    def hold_many(self, rows: npt.NDArray[np.void], rewards: Floats) -> None:
        """Let rewards wait, one per row."""
        for row, reward in zip(rows.tolist(), rewards.tolist(), strict=True):
            heapq.heappush(self._heap, (*row, reward))

    def release(self, before: float) -> Feedback:
        """Take out what waited of rounds before this one, in their order."""
        ready = []
        while self._heap and self._heap[0][0] < before:
            ready.append(heapq.heappop(self._heap))
        return _feedback(ready)

    def is_long(self) -> bool:
        """Whether so much waits that it is to be complained of; once."""
        if len(self._heap) <= HELD_BEFORE_WARNING or self.warned:
            return False
        self.warned = True
        return True

    def rows(self) -> npt.NDArray[np.void]:
        """Copy of the decisions that wait, oldest first."""
        return np.array([item[:5] for item in sorted(self._heap)], dtype=ROW)

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        rewards = np.array([item[5] for item in sorted(self._heap)], dtype=np.float64)
        return {"rows": self.rows(), "rewards": rewards, "warned": self.warned}

    @classmethod
    def load(cls, state: states.Reader, *, rounds: int, arms: int, pending: npt.NDArray[np.void]) -> Line:
        """Inverse of `export`; with these decisions open, every reward that waits has an earlier one to wait for."""
        line = cls()
        line.warned = state.flag("warned")
        rows = state.array("rows", ROW, (None,))
        rewards = state.array("rewards", np.float64, rows.shape)
        ids, p = rows["id"], rows["probability"]
        if len(ids):
            oldest = int(pending["id"][0]) if len(pending) else math.inf
            apart = not np.isin(ids, pending["id"]).any()
            states.check(bool((np.diff(ids) > 0).all() and oldest < ids[0] and ids[-1] < rounds and apart), "held ids")
            states.check(bool(((rows["arm"] >= GONE) & (rows["arm"] < arms)).all()), "arms of held rewards")
            states.check(bool(((p > 0) & (p <= 1 + 1e-9)).all()), "probabilities of held rewards")
            states.check(bool((np.abs(rewards) <= 1.0 + ROUNDING).all()), "held rewards")
        line.hold_many(rows, rewards)
        return line


def _feedback(items: list[tuple[int, int, int, int, float, float]]) -> Feedback:
    rows = np.array([item[:5] for item in items], dtype=ROW)
    return Feedback.of(rows, np.array([item[5] for item in items], dtype=np.float64))
