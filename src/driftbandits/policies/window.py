"""The rewards of the last rounds, for policies that forget what leaves a sliding window."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits.errors import StateError
from driftbandits.policies import state as states

Observation = tuple[int, float]  # arm, reward


class Window:
    """Keeps the rewards told of the last `length` rounds asked, by round; `first` is the first round that counts.

    When round t is decided the window holds rounds t - length to t - 1. Rewards may come late: one whose round has left
    is refused. Memory: at most `length` observations.

    >>> window = Window(2, first=0)
    >>> window.put(0, arm=5, reward=0.1), window.put(1, arm=6, reward=0.2), window.put(2, arm=7, reward=0.3)
    (None, None, (5, 0.1))
    """

    def __init__(self, length: int, *, first: int) -> None:
        self.length = length
        self._first = first
        self._cleared = first  # rounds before this one have left
        self._kept: dict[int, Observation] = {}

    def accepts(self, ident: int, now: int) -> bool:
        """Whether round `ident` is still inside when round `now` is next."""
        return ident >= now - self.length and ident >= self._first

    def put(self, ident: int, arm: int, reward: float) -> Observation | None:
        """Keep an observation; give the one that leaves with it, if it was there."""
        self._kept[ident] = (arm, reward)
        if self._cleared == ident - self.length:
            self._cleared += 1
        return self._kept.pop(ident - self.length, None)

    def due(self, now: int) -> bool:
        """Whether rounds have to leave before round `now` is decided."""
        return now - self.length > self._cleared

    def expire(self, now: int) -> list[Observation]:
        """Let them leave."""
        gone = [self._kept.pop(ident, None) for ident in range(self._cleared, now - self.length)]
        self._cleared = max(self._cleared, now - self.length)
        return [observation for observation in gone if observation is not None]

    def export(self) -> dict[str, Any]:
        """State as JSON values and arrays."""
        rounds = sorted(self._kept)
        return {
            "length": self.length,
            "first": self._first,
            "cleared": self._cleared,
            "rounds": np.array(rounds, dtype=np.int64),
            "arms": np.array([self._kept[ident][0] for ident in rounds], dtype=np.int64),
            "rewards": np.array([self._kept[ident][1] for ident in rounds], dtype=np.float64),
        }

    @classmethod
    def load(cls, state: states.Reader, *, now: int, arms: int) -> Window:
        """Inverse of `export`."""
        window = cls(state.integer("length", low=1), first=state.integer("first", high=now))
        window._cleared = state.integer("cleared", high=now)
        rounds = state.array("rounds", np.int64, (None,))
        played = state.array("arms", np.int64, rounds.shape)
        rewards = state.array("rewards", np.float64, rounds.shape)
        if ((played < 0) | (played >= arms)).any() or ((rounds < 0) | (rounds >= now)).any():
            raise StateError("the window in the state holds unknown arms or rounds not yet asked")
        window._kept = {int(t): (int(a), float(y)) for t, a, y in zip(rounds, played, rewards, strict=True)}
        return window
