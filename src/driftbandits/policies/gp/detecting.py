"""GPUCB with change detection: ET-GP-UCB by single rewards, DAL-GP-UCB by tests of a few arms.

DAL-GP-UCB: GPUCB with a change test for each of a few arms, which it visits now and then whatever it believes.

symbol    name           meaning
C, n_C    cover          the arms that are watched, and their number
alpha_k   share of forced rounds in episode k (from 1), exploration sqrt(k n_C log T / T)
tau       round of the last restart
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_positive
from driftbandits.arms.arm_set import ArmSet
from driftbandits.detection.detector import kernel_cover
from driftbandits.detection.glr import (
    carry_histories,
    check_same_rewards,
)
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Row
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.policies.optimistic import WatchedCover
from driftbandits.state.declared import count
from driftbandits.state.reader import ROUNDING


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
    """ET-GP-UCB (Brunzema et al. 2022): GPUCB that discards its data when a reward is too far from its prediction.

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

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> policy = EventTriggeredGPUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _adds_only = False

    reports_changes = True

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._epoch = 0
        self._epoch_start = self.rounds
        self._told = 0  # in this epoch

    def _learn_one(self, row: Row, reward: float) -> None:
        ident, arm = row.id, row.arm
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

    _saved = (count("epoch"), count("epoch_start", high="rounds"), count("told"))

    def _check_state(self) -> None:
        states.check(self._told <= self._most_told(self._epoch_start), "told")
        states.check(float(self._posterior.weights.sum()) == self._told, "number of rewards of the epoch")


class DetectionAugmentedGPUCB(WatchedCover, GPUCB):
    """DAL (Gerogiannis, Huang, Bose and Veeravalli 2025) around GP-UCB: restarted when a watched arm has changed.

    A cover of a few arms is watched (`kernel_cover`: each tells most of what those before it leave open). Every episode
    goes through the cover once, and again every floor(n_C / alpha_k) rounds; in all other rounds GPUCB plays. So the
    schedule of forced rounds is fixed, and the law is a point mass in them. Each reward of a watched arm enters its
    generalised likelihood ratio test (`detection.glr`), and an alarm forgets everything. Knows neither when nor how
    often the world changes, and finds changes of arms that it does not play. Bad at changes that the cover does not
    see, and at drift too slow for its tests; its forced rounds cost what the cover's arms cost.

    Parameters
    ----------
    cover : how many arms are watched at most; fewer where the kernel has a lower rank, and then none is overlooked
    exploration : alpha_0; the theory has 1, a tenth of all rounds with 10 arms in 10,000 rounds; 0 for none, then a
        change is found only where GPUCB plays a watched arm
    noise : R, of the index and of the tests, in the user's units; default a tenth of half the reward range. Noise that
        is really larger means false alarms; half the range is safe for any rewards
    failure_probability : delta, of the index and of all tests together: each test has delta / n_C
    others : see `GPUCB`

    Followed as far as we could confirm it: forced rounds and test are those of `GLRklUCB` (Besson et al. 2022), on the
    cover instead of all arms. Ours: how the cover is chosen, and that rewards of forced rounds teach GPUCB too, and
    those it chose itself enter the tests. Rewards of rounds asked before a restart and told after it are counted in
    `late`. Cost per round: that of `GPUCB`, and at most 512 numbers for a test.

    >>> policy = DetectionAugmentedGPUCB(ArmSet([[0.0], [0.5], [1.0]]), horizon=1000, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _adds_only = False

    def __init__(self, arms: ArmSet, *, cover: int = 10, exploration: float = 0.3, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self.cover = check_count("cover", cover)
        self.exploration = check_positive("exploration", exploration, zero=True)
        if self.noise is not None:
            check_positive("noise", self.noise, cure="the change tests divide by it")

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._watched = kernel_cover(self._own_basis(), self.cover).tolist()
        self._episode = 1
        self._open_episode()

    def _open_episode(self) -> None:
        self._posterior.reset()
        super()._open_episode()

    def _learn_present(self, row: Row, reward: float) -> None:
        GPUCB._learn_one(self, row, reward)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """The episode goes on; watched arms that are gone make room for new ones, whose tests begin with them."""
        super()._carry(old, change)
        kept = change.renumber(old._watched)
        untold = self._posterior.weights[: len(self.arms)] == 0.0
        best = kernel_cover(self._own_basis(), self.cover).tolist()
        self._watched = [*kept, *(arm for arm in best if untold[arm] and arm not in kept)][: self.cover]
        if not self._watched:
            self._start_with_arms(change, epoch=old._episode - 1)
            return
        self._episode, self._origin = old._episode, old._origin
        self._histories = carry_histories(old._histories, change.target)
        self._derive()

    # --- state --------------------------------------------------------------------------------------------------

    def _check_state(self) -> None:
        super()._check_state()
        most = self._most_told(self._origin)
        states.check(float(self._posterior.weights.sum()) <= most, "number of rewards of the episode")
        of_cover = np.isin(np.arange(len(self.arms)), self._watched)
        known = (part[: len(self.arms)] for part in (self._posterior.weights, self._posterior.sums))
        weights, sums = (np.where(of_cover, part, 0.0) for part in known)
        check_same_rewards(self._histories, weights, sums, slack=ROUNDING)
