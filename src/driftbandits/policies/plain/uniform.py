"""The control that learns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from driftbandits import state as states
from driftbandits.policies.core.arms_change import ArmsChange
from driftbandits.policies.core.base import Policy
from driftbandits.policies.core.facts import Family
from driftbandits.policies.core.laws import freeze
from driftbandits.policies.core.pending import Feedback, Row
from driftbandits.policies.plain.widths import bounded_interval
from driftbandits.state.plausible import check_sums, check_whole, told_at_most
from driftbandits.types import Floats, Ints


class Uniform(Policy):
    """Plays every arm with the same probability, always: the control that learns nothing.

    `estimate` is the mean of all rewards of each arm. Cost per round: that of a draw. Its settings are those that every
    policy has.

    >>> from driftbandits.arms import ArmSet
    >>> Uniform(ArmSet([[0.0], [1.0]]), seed=0).law().tolist()
    [0.5, 0.5]
    """

    colour = "#888888"
    family = Family.PLAIN
    microseconds_per_round = 1.5
    _interval_kept = 1  # the numbers of rewards

    def _start(self, horizon: int | None) -> None:
        self._prepare()

    def _prepare(self) -> None:
        self._even: Floats = freeze(np.full(len(self.arms), 1.0 / len(self.arms)))
        self._sums: Floats = np.zeros((2, len(self.arms)))  # rewards, counts

    def _law(self) -> Floats:
        return self._even

    def _stamp(self) -> tuple[int, int]:
        return self._renumbered.count, 0  # one law as long as the arms stay

    def _steady(self) -> int:
        return max(self._phase_left(), 1)

    def _learn(self, feedback: Feedback) -> None:
        np.add.at(self._sums[0], feedback.arms, feedback.rewards)
        np.add.at(self._sums[1], feedback.arms, 1.0)

    def _learn_one(self, row: Row, reward: float) -> None:
        self._sums[0, row.arm] += reward
        self._sums[1, row.arm] += 1.0

    def _estimate(self) -> Floats:
        return np.asarray(self._sums[0] / np.maximum(self._sums[1], 1.0))

    def _interval(self) -> tuple[Floats, Floats]:
        return bounded_interval(self._estimate(), self._sums[1])

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        return [self._estimate()[arms], self._sums[1][arms]]

    def _interval_from(self, estimate: Floats, kept: Floats) -> tuple[Floats, Floats]:
        return bounded_interval(estimate, kept[0])

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._prepare()
        self._sums = change.carry(old._sums, 0.0)

    def _export(self) -> dict[str, Any]:
        return {"sums": self._sums.copy()}

    def _import(self, state: states.Reader) -> None:
        self._prepare()
        self._sums = state.array("sums", np.float64, self._sums.shape)
        rewards, counts = self._sums
        check_whole(counts, told_at_most(self.rounds, self._pending.rows()), "number of rewards")
        check_sums(counts, rewards, "sums of rewards")
