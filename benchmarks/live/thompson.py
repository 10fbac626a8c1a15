"""The baseline: Thompson sampling with a Beta prior per arm, which knows that rewards are successes and failures."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

import driftbandits as db
from driftbandits.policies.inputs import CommonSettings
from driftbandits.types import Floats

FAILURES = 40.0  # Beta(1, 40): a chance of 2.4 % before any reward


class BetaThompson(db.Policy):
    """Plays the arm that is best in one draw from Beta posteriors; `values` are what successes pay, if not all alike.

    The law is all on that arm: the draw follows from the seed and the round, so it is a function of the state.
    """

    def __init__(self, arms: db.ArmSet, *, values: tuple[float, ...] = (), **common: Unpack[CommonSettings]) -> None:
        super().__init__(arms, **common)
        self.values = tuple(values)

    def _start(self, horizon: int | None) -> None:  # noqa: ARG002
        self._won = np.ones(len(self.arms))
        self._lost = np.full(len(self.arms), FAILURES)

    def _law(self) -> Floats:
        drawn = self._generator("thompson").beta(self._won, self._lost)
        law = np.zeros(len(self.arms))
        law[int((drawn * self._paid()).argmax())] = 1.0
        return law

    def _stamp(self) -> tuple[int, int]:
        return self.rounds, 0  # a law of its own in every round

    def _paid(self) -> Floats:
        return np.array(self.values) if self.values else np.ones(len(self.arms))

    def _learn(self, feedback: db.Feedback) -> None:
        success = feedback.rewards > -1.0
        np.add.at(self._won, feedback.arms, success)
        np.add.at(self._lost, feedback.arms, ~success)

    def _estimate(self) -> Floats:
        return np.asarray(2.0 * self._won / (self._won + self._lost) - 1.0)

    def _export(self) -> dict[str, Any]:
        return {"won": self._won.copy(), "lost": self._lost.copy()}

    def _import(self, state: db.StateReader) -> None:
        self._won = state.array("won", np.float64, (len(self.arms),))
        self._lost = state.array("lost", np.float64, (len(self.arms),))
