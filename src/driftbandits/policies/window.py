"""Policies that forget by a size (window, period, discount), and the sliding window itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_count
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError
from driftbandits.policies.algorithm import DeclaredState
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Row
from driftbandits.state.declared import Value
from driftbandits.state.reader import ROUNDING
from driftbandits.types import Floats, Ints


class SizedPolicy(DeclaredState, Policy):
    """A policy with a size, the setting called `_size_name`. `BanditOverBandit` tries sizes of such a policy."""

    _size_name: ClassVar[str]
    _usual_size: ClassVar[float]  # where neither the size nor how the world moves is told
    _size: float | None  # None: to be computed

    @property
    def _told_drift(self) -> float | None:
        """What was told of how the world moves, to compute the size from; None for nothing."""
        return None

    def _set_size(self, size: float | None) -> None:
        """Keep the size as given; without one, where the drift is told, it is computed, which needs a horizon."""
        self._size = self._usual_size if size is None and self._told_drift is None else size
        self.needs_horizon = self._size is None

    def _setting(self, name: str) -> Any:
        return self._size if name == self._size_name else super()._setting(name)

    @abstractmethod
    def _compute_size(self, horizon: int) -> float:
        """The size for a known horizon."""

    def _resolve_size(self, horizon: int | None) -> float:
        """The size given, or the computed one."""
        if self._size is not None:
            return self._size
        if horizon is None:
            raise InputError(f"{self._size_name}=None needs a horizon")
        return self._compute_size(horizon)


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

    def left(self, now: int) -> int:
        """For how many rounds, `now` the first of them, nothing has to leave; at least 1, once what is due has left."""
        return max(self._cleared + self.length + 1 - now, 1)

    def expire(self, now: int) -> list[Observation]:
        """Let them leave."""
        gone = [self._kept.pop(ident, None) for ident in range(self._cleared, now - self.length)]
        self._cleared = max(self._cleared, now - self.length)
        return [observation for observation in gone if observation is not None]

    def renumbered(self, target: Ints) -> Window:
        """A copy in which arm a is called target[a]; where that is negative, its rewards are left out."""
        window = Window(self.length, first=self._first)
        window._cleared = self._cleared
        numbers = target.tolist()
        window._kept = {t: (numbers[arm], y) for t, (arm, y) in self._kept.items() if numbers[arm] >= 0}
        return window

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
    def load(cls, state: states.Reader, *, now: int) -> Window:
        """Inverse of `export`."""
        window = cls(state.integer("length", low=1), first=state.integer("first", high=now))
        window._cleared = state.integer("cleared", low=window._first, high=max(window._first, now - window.length))
        rounds = state.array("rounds", np.int64, (None,))
        played = state.array("arms", np.int64, rounds.shape)
        rewards = state.array("rewards", np.float64, rounds.shape)
        inside = (rounds >= window._cleared) & (rounds < now) & (played >= 0)
        states.check(bool(inside.all()), "rounds of the window")
        states.check(bool((np.diff(rounds) > 0).all()), "order of the rounds of the window")
        states.check(bool((np.abs(rewards) <= 1.0 + ROUNDING).all()), "rewards of the window")
        window._kept = {int(t): (int(a), float(y)) for t, a, y in zip(rounds, played, rewards, strict=True)}
        return window

    def check_untold(self, rounds: Ints) -> None:
        """Refuse a state in which the rewards of these rounds, which are to come, are kept already."""
        states.check(self._kept.keys().isdisjoint(rounds.tolist()), "rounds of the window, of which some are not told,")

    def check_totals(self, counts: Floats, sums: Floats) -> None:
        """Refuse a state whose counts and sums of the arms' rewards are not those of what is kept."""
        arms = np.array([arm for arm, _ in self._kept.values()], dtype=np.int64)
        rewards = np.array([reward for _, reward in self._kept.values()], dtype=np.float64)
        size = len(counts)
        states.check(int(arms.max(initial=-1)) < size, "arms of the window")
        states.check(bool((np.bincount(arms, minlength=size) == counts).all()), "counts of the window")
        off = np.abs(np.bincount(arms, weights=rewards, minlength=size) - sums)
        states.check(bool((off <= 1e-6).all()), "sums of the window")


class WindowedPolicy(SizedPolicy):
    """What policies with a sliding window share, whatever they compute from the rewards in it."""

    _size_name: ClassVar[str] = "window"
    _window: Window

    def __init__(self, arms: ArmSet, *, window: int | None = None, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self._set_size(None if window is None else check_count("window", window))

    @property
    def window(self) -> int | None:
        """Rounds kept; None before the first round if it is to be computed."""
        return self._window.length if self._phase_length else self._size  # type: ignore[return-value]

    def _open_window(self, horizon: int | None) -> None:
        self._window = Window(int(self._resolve_size(horizon)), first=self.rounds)

    def _due(self) -> bool:
        return self._window.due(self.rounds)

    def _turn(self) -> None:
        for arm, reward in self._window.expire(self.rounds):
            self._take_back(arm, reward)

    def _learn_one(self, row: Row, reward: float) -> None:
        if self._window.accepts(row.id, self.rounds):
            self._exchange(row.arm, reward, self._window.put(row.id, row.arm, reward))
        else:
            self.late += 1

    @abstractmethod
    def _exchange(self, arm: int, reward: float, leaving: Observation | None) -> None:
        """Learn a reward, and undo what the one has taught that leaves the window with it."""

    @abstractmethod
    def _take_back(self, arm: int, reward: float) -> None:
        """Undo what a reward that leaves the window has taught."""

    @abstractmethod
    def _totals(self) -> tuple[Floats, Floats]:
        """Numbers and sums of the rewards in the window, one of each per arm that is kept."""

    _saved: ClassVar[tuple[Value, ...]] = (
        Value(
            "window",
            Window.export,
            lambda state, key, _, found: Window.load(state.reader(key), now=found("rounds")),
            attribute="_window",
        ),
    )

    def _check_state(self) -> None:
        super()._check_state()
        states.check(self._window.length == self._size or self._size is None, "length of the window")
        self._window.check_totals(*self._totals())
        self._window.check_untold(self._awaited()["id"])
