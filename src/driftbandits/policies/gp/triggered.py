"""ET-GP-UCB: GPUCB that starts anew when one reward is too far from what it predicted."""

from __future__ import annotations

import math
from typing import Any, Self

from driftbandits import state as states
from driftbandits.policies.core.arms_change import ArmsChange
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.state.plausible import FARTHEST, told_at_most


def trigger_threshold(*, deviation: float, noise: float, observations: int, failure_probability: float) -> float:
    """How far reward number `observations` (from 1) may lie from its prediction: sqrt(2 log(2 pi_t / delta)) (sd + R).

    With pi_t = pi^2 t^2 / 6, the chance that any reward of a world that stays exceeds it is at most
    `failure_probability`, if the model's prior and noise are right.

    >>> round(trigger_threshold(deviation=0.0, noise=0.1, observations=100, failure_probability=0.01), 3)
    0.548
    """
    log_term = math.log(2.0 * math.pi**2 * observations**2 / (6.0 * failure_probability))
    return math.sqrt(2.0 * log_term) * (deviation + noise)


class EventTriggeredGPUCB(GPUCB):
    """ET-GP-UCB (Brunzema et al. 2022): GPUCB that drops its data when a reward is too far from its prediction.

    It fires at |y - mean(x)| > sqrt(2 log(2 pi_t / delta)) (sd(x) + R), `trigger_threshold`; t counts the rewards of
    the epoch. The reward that fired belongs to the new epoch and opens it. Each firing is recorded in `changes`.
    Cheap, needs no knowledge of the drift, and quick after a flip of the arm in play; it never notices a change of
    arms it does not play, nor a drift slower than its posterior can follow, and a single outlier (noise with heavier
    tails than `noise` says) makes it forget everything.

    Parameters
    ----------
    noise : R, of the index and of the trigger; too small a value means false alarms
    failure_probability : delta, of the index and of the trigger
    others : see `GPUCB`

    With a `ridge` above the noise's variance, as by default, the trigger is on the safe side.

    The constants of the trigger follow Brunzema et al. as far as we could confirm them. Rewards of rounds before the
    one that fired, told after it, are counted in `late`. Cost per round: that of `GPUCB`.

    >>> from driftbandits.arms import ArmSet
    >>> policy = EventTriggeredGPUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _adds_only = False

    label = "ET-GP-UCB"
    colour = "#CC6677"
    reports_changes = True

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._epoch = 0
        self._epoch_start = self.rounds
        self._told = 0  # in this epoch

    def _add(self, ident: int, arm: int, reward: float) -> None:
        if ident < self._epoch_start:
            self.late += 1
            return
        posterior = self._posterior
        predicted = float(posterior.mean[arm])
        threshold = trigger_threshold(
            deviation=math.sqrt(max(float(posterior.variance[arm]), 0.0)),
            noise=self._noise,
            observations=self._told + 1,
            failure_probability=self.failure_probability,
        )
        if abs(reward - predicted) > threshold:
            self._fire(ident, arm, predicted, reward, threshold)
        posterior.add(arm, reward)
        self._told += 1

    def _fire(self, ident: int, arm: int, predicted: float, reward: float, threshold: float) -> None:
        self._report_change(
            epoch=self._epoch,
            interval=(ident, ident + 1),
            statistic=abs(reward - predicted),
            threshold=threshold,
            arms=[arm],
            before=[predicted],
            after=[reward],
        )
        self._posterior.reset()
        self._epoch += 1
        self._epoch_start = ident
        self._told = 0

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._epoch, self._epoch_start, self._told = old._epoch, old._epoch_start, old._told

    def _export(self) -> dict[str, Any]:
        return {**super()._export(), "epoch": self._epoch, "epoch_start": self._epoch_start, "told": self._told}

    def _import(self, state: states.Reader) -> None:
        super()._import(state)
        self._epoch = state.integer("epoch", high=FARTHEST)
        self._epoch_start = state.integer("epoch_start", high=self.rounds)
        most = told_at_most(self.rounds, self._pending.rows(), since=self._epoch_start)
        self._told = state.integer("told", high=max(most, 0))
        states.check(float(self._posterior.weights.sum()) == self._told, "number of rewards of the epoch")
