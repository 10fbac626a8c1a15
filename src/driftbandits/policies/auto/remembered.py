"""The latest rewards, from which AutoBandit with contexts learns anew when the columns that matter are chosen again."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.types import Floats, Ints

MOST_REMEMBERED = 4096  # rewards
_COLUMNS = ("ids", "arms", "rewards", "codes", "residuals", "variances")


class Remembered:
    """The latest rewards told, each with its decision and the codes of its request."""

    def __init__(self, width: int) -> None:
        self._width = width
        self.size = 0
        self.ids, self.arms = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.rewards, self.codes = np.zeros(0), np.zeros((0, width))
        self.residuals, self.variances = np.zeros(0), np.ones(0)  # of what the leader expected; 0 and 1 of late rewards

    def add(self, ident: int, arm: int, reward: float, codes: Floats) -> None:
        """Remember one; beyond twice `MOST_REMEMBERED` the older half is dropped."""
        if self.size == len(self.ids):
            kept = slice(max(self.size - MOST_REMEMBERED, 0), self.size)
            room = min(max(2 * (kept.stop - kept.start), 256), 2 * MOST_REMEMBERED)
            for name in _COLUMNS:
                old = getattr(self, name)
                new = np.zeros((room, *old.shape[1:]), dtype=old.dtype)
                new[: kept.stop - kept.start] = old[kept]
                setattr(self, name, new)
            self.size = kept.stop - kept.start
        k = self.size
        self.ids[k], self.arms[k], self.rewards[k], self.codes[k] = ident, arm, reward, codes
        self.residuals[k], self.variances[k] = 0.0, 1.0
        self.size += 1

    def note(self, residual: float, variance: float) -> None:
        """How far the latest reward was from what was expected of it."""
        self.residuals[self.size - 1], self.variances[self.size - 1] = residual, variance

    def since(self, first_round: int) -> slice:
        """Those of decisions from this round on, at most `MOST_REMEMBERED`, in the order in which they were told."""
        late = np.flatnonzero(self.ids[: self.size] >= first_round)
        start = int(late[0]) if len(late) else self.size
        return slice(max(start, self.size - MOST_REMEMBERED), self.size)

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        k = self.size
        return {name: getattr(self, name)[:k].copy() for name in _COLUMNS}

    def load(self, state: states.Reader, *, rounds: int, arms: int) -> None:
        """Inverse of `export`."""
        self.ids = state.array("ids", np.int64, (None,))
        k = self.size = len(self.ids)
        self.arms = state.array("arms", np.int64, (k,))
        self.rewards = state.array("rewards", np.float64, (k,))
        self.codes = state.array("codes", np.float64, (k, self._width))
        self.residuals = state.array("residuals", np.float64, (k,))
        self.variances = state.array("variances", np.float64, (k,))
        states.check(bool((self.variances > 0).all() and np.isfinite(self.residuals).all()), "residuals")
        states.check(k <= 2 * MOST_REMEMBERED, "rewards remembered")
        states.check(bool(((self.ids >= 0) & (self.ids < rounds)).all()), "decisions remembered")
        states.check(bool(((self.arms >= 0) & (self.arms < arms)).all()), "arms remembered")
        states.check(bool((np.abs(self.rewards) <= 1.0 + 1e-9).all()), "rewards remembered")
        states.check(bool(np.isfinite(self.codes).all()), "contexts remembered")

    def renumbered(self, target: Ints) -> Remembered:
        """The same with arm a called target[a]; rewards of arms that are gone are left out."""
        moved = Remembered(self._width)
        arms = target[self.arms[: self.size]]
        kept = np.flatnonzero(arms >= 0)
        moved.size = len(kept)
        for name in _COLUMNS:
            setattr(moved, name, getattr(self, name)[kept])
        moved.arms = arms[kept]
        return moved
