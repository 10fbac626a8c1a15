"""GLR-klUCB: one kl-UCB index and one change test per arm.

symbol    name           meaning
kl        divergence     of two rewards' distributions with these means
n         pulls of an arm since its restart
tau       round of the last restart
alpha_k   share of forced rounds in episode k (from 1), see `forced_cycle`

The test is that of `detection.glr`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_positive, check_probability, check_word
from driftbandits.arms import ArmSet
from driftbandits.detection.glr import (
    History,
    bernoulli_divergence,
    carry_histories,
    check_same_rewards,
)
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Row
from driftbandits.policies.optimistic import Episodes, Optimism, forced_cycle
from driftbandits.policies.ucb.ucb import ArmByArm, ArmMeans, bernoulli_upper, noisy_interval
from driftbandits.state.declared import array, count
from driftbandits.state.reader import ROUNDING, check_whole
from driftbandits.types import Floats


class GLRklUCB(Episodes, ArmByArm):
    """GLR-klUCB (Besson, Kaufmann, Maillard and Seznec 2022): kl-UCB restarted when a test finds a change.

    Index: the largest q with n kl(mean, q) <= log(t - tau). Every episode goes through all arms once, and again every
    floor(N / alpha_k) rounds, so that changes of arms not in play are found in the end. Knows neither when nor how
    often the world changes. No kernel: after a restart all arms are learned anew, each by itself, and it is not made
    for slow drift.

    Parameters
    ----------
    divergence : "gaussian" (default, (x - y)^2 / (2 R^2)) or "bernoulli" (any rewards in the range, wider)
    noise : R, of the Gaussian divergence, in the user's units; default a tenth of half the reward range; noise that is
        really larger means false alarms
    failure_probability : delta of the test; default 1 / sqrt(horizon)
    threshold : "practical" or "theory", see `glr_threshold`
    exploration : alpha_0; the theory has 1 (with 100 arms and 10,000 rounds, three rounds in ten); 0 for none
    restart : "global" forgets every arm, "local" the one that changed
    test_every : pulls of an arm between its tests
    split_every : pulls between the splits tried; doubled for an arm whenever it has 512 of them, which bounds memory
    scale : multiplies the index's width; 1 in theory
    others : see `Policy`

    Rewards enter an arm's history in the order told; those of rounds asked before the arm's restart are counted in
    `late`. Cost per round: O(N), and at most 512 numbers at a test.

    >>> policy = GLRklUCB(ArmSet([[0.0], [1.0]]), horizon=1000, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        divergence: Literal["gaussian", "bernoulli"] = "gaussian",
        noise: float | None = None,
        failure_probability: float | None = None,
        threshold: Literal["practical", "theory"] = "practical",
        exploration: float = 0.02,
        restart: Literal["global", "local"] = "global",
        test_every: int = 10,
        split_every: int = 5,
        scale: float = 0.5,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.divergence = check_word("divergence", divergence, ("gaussian", "bernoulli"))
        self.threshold = check_word("threshold", threshold, ("practical", "theory"))
        self.restart = check_word("restart", restart, ("global", "local"))
        self.noise = None if noise is None else check_positive("noise", noise)
        self.failure_probability = (
            None if failure_probability is None else check_probability("failure_probability", failure_probability)
        )
        self.exploration = check_positive("exploration", exploration, zero=True)
        self.test_every = check_count("test_every", test_every)
        self.split_every = check_count("split_every", split_every)
        self.scale = check_positive("scale", scale, zero=True)
        self._noise = self._scale.noise(self.noise)
        self.needs_horizon = self.exploration > 0 or failure_probability is None

    def _start(self, horizon: int | None) -> None:
        self._length = 0 if horizon is None else horizon  # 0: not needed
        self._episode = 1
        self._origin = self.rounds  # of the episode
        self._since = np.full(len(self.arms), self.rounds, dtype=np.int64)  # restart of each arm
        self._prepare_state()
        self._histories: dict[int, History] = {}
        self._derive()

    def _derive(self) -> None:
        """What follows from the state: the level of the test and the cycle of forced rounds."""
        size, length = len(self.arms), self._length
        self._delta = (
            self.failure_probability if self.failure_probability is not None else 1.0 / math.sqrt(max(length, 2))
        )
        self._cycle = (
            forced_cycle(arms=size, horizon=length, episode=self._episode, exploration=self.exploration)
            if length
            else 0
        )
        self._common = int(self._since[0]) if (self._since == self._since[0]).all() else None

    # --- deciding -----------------------------------------------------------------------------------------------

    def _levels(self) -> float | Floats:
        """What n kl may reach, for each arm or for all alike."""
        if self._common is not None:
            return self.scale**2 * math.log(self.rounds - self._common + 1)
        return np.asarray(self.scale**2 * np.log(self.rounds - self._since + 1))

    def _width(self) -> float | Floats:
        return self._noise * np.sqrt(2.0 * self._levels())

    def _index(self) -> Floats:
        if self.divergence == "gaussian":
            return super()._index()
        weights = self._means.weights
        upper = bernoulli_upper(self._means.mean, self._levels() / np.maximum(weights, 1.0))
        return np.where(weights > 0.0, upper, np.inf)

    def _optimism(self, arm: int) -> Optimism:
        if self._means.weights[arm] == 0.0:
            return Optimism(value=1.0, width=1.0)
        value = float(self._index()[arm])
        return Optimism(value=value, width=value - float(self._means.mean[arm]))

    def _interval(self) -> tuple[Floats, Floats]:
        if self.divergence == "gaussian":
            return noisy_interval(self._means.mean, self._means.weights, self._noise)
        return super()._interval()

    # --- learning -----------------------------------------------------------------------------------------------

    def _learn_one(self, row: Row, reward: float) -> None:
        ident, arm = row.id, row.arm
        if ident < self._since[arm]:
            self.late += 1
            return
        self._means.shift(arm, 1.0, reward)
        history = self._histories.get(arm)
        if history is None:
            history = self._histories[arm] = History(self.split_every)
        history.add(reward, ident)
        if history.pulls % self.test_every == 0:
            self._test(ident, arm, rule=self.threshold, failure_probability=self._delta)

    def _kl(self, left: Floats, right: float) -> Floats:
        return super()._kl(left, right) if self.divergence == "gaussian" else bernoulli_divergence(left, right)

    def _begin_episode(self, arm: int) -> None:
        self._origin = self.rounds
        if self.restart == "global":
            self._means = ArmMeans(len(self.arms))
            self._histories.clear()
            self._since[:] = self.rounds
        else:
            self._means.clear(arm)
            del self._histories[arm]
            self._since[arm] = self.rounds
        self._derive()

    # --- state --------------------------------------------------------------------------------------------------

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._length, self._episode, self._origin = old._length, old._episode, old._origin
        self._since = change.carry(old._since, self.rounds)
        self._means = old._means.carried(change)
        self._histories = carry_histories(old._histories, change.target)
        self._derive()

    _saved = (
        count("length"),
        count("episode", low=1),
        count("origin", low="phase_start", high="rounds"),
        array("since", np.int64, ("arms",), within=("phase_start", "rounds")),
    )

    def _check_state(self) -> None:
        length = 0 if self.horizon is None and not self.needs_horizon else self._phase_length
        states.check(self._length == length, "length")
        check_whole(self._means.weights, self._most_told(), "number of rewards")
        check_same_rewards(self._histories, self._means.weights, self._means.sums, slack=ROUNDING)
        self._derive()
