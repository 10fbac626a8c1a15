"""UCB with a change test for every arm: M-UCB by two halves of a window, CUSUM-UCB by cumulative sums.

symbol    name          meaning
n, s      weights, sums of the rewards of each arm since its restart, see `ArmMeans`
tau       origin        round of the last restart of all arms
Rewards of the tests are on [0, 1], as in both papers; indices are on the internal scale, which is twice as long.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_positive, check_probability
from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Row
from driftbandits.policies.optimistic import ForcedRounds, RandomisedRounds
from driftbandits.policies.ucb.ucb import ArmByArm, ArmMeans
from driftbandits.state.declared import Value, array, count
from driftbandits.state.reader import ROUNDING, check_whole
from driftbandits.types import Floats


class RestartedUCB(ArmByArm):
    """What both share: UCB on the rewards since the restart of each arm, and records of the changes that were found."""

    reports_changes = True

    def __init__(self, arms: ArmSet, *, scale: float = 1.0, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self.scale = check_positive("scale", scale, zero=True)

    def _start(self, horizon: int | None) -> None:
        self._length = 0 if horizon is None else horizon  # 0: not needed
        self._prepare_state()
        self._since = np.full(len(self.arms), self.rounds, dtype=np.int64)
        self._epoch = 0

    @abstractmethod
    def _elapsed(self) -> float:
        """What the logarithm of the width is taken of."""

    def _width(self) -> float:
        return 2.0 * self.scale * math.sqrt(math.log(max(self._elapsed(), 1.0)))

    def _found(self, row: Row, statistic: float, threshold: float, *, before: float, after: float) -> None:
        """Record a change of the arm of `row`."""
        self._report_change(
            epoch=self._epoch,
            interval=(int(self._since[row.arm]), row.id + 1),
            statistic=statistic,
            threshold=threshold,
            arms=[row.arm],
            before=[before],
            after=[after],
        )
        self._epoch += 1

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._length, self._epoch = old._length, old._epoch
        self._since = change.carry(old._since, self.rounds)
        self._means = old._means.carried(change)

    _saved: ClassVar[tuple[Value, ...]] = (
        count("length"),
        count("epoch"),
        array("since", np.int64, ("arms",), within=("phase_start", "rounds")),
    )

    def _check_state(self) -> None:
        length = 0 if self.horizon is None and not self.needs_horizon else self._phase_length
        states.check(self._length == length, "length")
        check_whole(self._means.weights, self._most_told(), "number of rewards")


class MUCB(ForcedRounds, RestartedUCB):
    """M-UCB (Cao, Wen, Kveton and Xie 2019): UCB1 that restarts when two halves of an arm's window differ too much.

    Every floor(N / gamma) rounds all arms are played once. An arm with at least `window` rewards since the restart
    raises the alarm when the sums of the two halves of its last `window` differ by more than b; then all is forgotten.

    Its defaults are not enough for many arms: the width of its theory explores them for thousands of rounds. Take a
    smaller `scale`.

    Parameters
    ----------
    window : w, even; the theory's follows from the smallest change to be found, which nobody knows
    threshold : b, on rewards in [0, 1]; default sqrt(w / 2 log(2 N T^2)), as in theory
    exploration : gamma in (0, 1], the share of forced rounds; None for the theory's sqrt(switches N (2 b + 3 sqrt(w)) /
        (2 T)), which is all of them unless the horizon is long
    switches : M - 1, how often the world changes, for the theory's gamma
    scale : multiplies the index's width sqrt(2 log(t - tau) / n); 1 in theory
    others : see `Policy`

    Rewards of rounds asked before a restart and told after it are counted in `late`. Cost per round: O(N + w).

    >>> policy = MUCB(ArmSet([[0.0], [1.0]]), window=100, horizon=1000, reward_range=(0, 1), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        window: int = 200,
        threshold: float | None = None,
        exploration: float | None = 0.1,
        switches: float = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.window = check_count("window", window, least=2)
        if window % 2:
            raise InputError(f"window must be even, got {window}: its halves are compared; take {window + 1}")
        self.threshold = None if threshold is None else check_positive("threshold", threshold)
        self.exploration = None if exploration is None else check_probability("exploration", exploration, one=True)
        self.switches = check_positive("switches", switches, zero=True)
        self.needs_horizon = threshold is None or exploration is None

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._recent: Floats = np.zeros((len(self.arms), self.window))
        self._derive()

    def _derive(self) -> None:
        """What follows from the state: b, and the cycle of forced rounds."""
        size, length = len(self.arms), self._length
        usual = math.sqrt(0.5 * self.window * math.log(2.0 * size * max(length, 1) ** 2))
        self._b = usual if self.threshold is None else self.threshold
        share = self.exploration
        if share is None:
            reach = 2.0 * self._b + 3.0 * math.sqrt(self.window)
            share = min(math.sqrt(self.switches * size * reach / (2.0 * length)), 1.0)
        self._cycle = math.floor(size / share) if share > 0.0 else 0

    def _forced_since(self) -> int:
        return int(self._since.min())

    def _elapsed(self) -> float:
        return float(self.rounds - self._since.min())

    def _width(self) -> float:
        return math.sqrt(2.0) * super()._width()

    def _learn_one(self, row: Row, reward: float) -> None:
        arm, half = row.arm, self.window // 2
        if row.id < self._since[arm]:
            self.late += 1
            return
        place = int(self._means.weights[arm]) % self.window
        self._means.shift(arm, 1.0, reward)
        recent = self._recent[arm]
        recent[place] = reward
        if self._means.weights[arm] < self.window:
            return
        in_order = np.roll(recent, -place - 1)
        before, after = float(in_order[:half].sum()), float(in_order[half:].sum())
        gap = 0.5 * abs(after - before)  # of rewards in [0, 1]
        if gap > self._b:
            self._found(row, gap, self._b, before=before / half, after=after / half)
            self._means = ArmMeans(len(self.arms))
            self._since[:] = self.rounds

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._since[:] = old._since.min()
        self._recent = change.carry(old._recent.T, 0.0).T.copy()
        self._derive()

    _saved = (array("recent", np.float64, ("arms", "window"), within=(-1.0 - ROUNDING, 1.0 + ROUNDING)),)

    def _check_state(self) -> None:
        super()._check_state()
        self._derive()


class CUSUMUCB(RandomisedRounds, RestartedUCB):
    """CUSUM-UCB (Liu, Lee and Shroff 2018): UCB that restarts an arm when its rewards leave their first mean.

    With u the mean of an arm's first `warmup` rewards since its restart, every later reward y on [0, 1] adds
    y - u - drift to one sum and u - y - drift to another, both kept at 0 or above; one above `threshold` is an alarm,
    and the arm is forgotten. With probability `exploration` any arm is played, so that changes of all are found.

    Parameters
    ----------
    warmup : M, rewards behind the mean that later ones are compared with
    drift : epsilon, changes up to which are let pass, on [0, 1]
    threshold : h; with noise of deviation r a false alarm is rare where 2 drift h / r^2 is large
    exploration : alpha in [0, 1), the share of rounds that explore
    scale : multiplies the index's width sqrt(log n_t / n), with n_t all rewards in use; 1 in its paper
    others : see `Policy`

    Its paper sets h and alpha from the number of changes; the defaults here are ours. Rewards of rounds asked before an
    arm's restart and told after it are counted in `late`. Cost per round: O(N).

    >>> policy = CUSUMUCB(ArmSet([[0.0], [1.0]]), reward_range=(0, 1), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    def __init__(
        self,
        arms: ArmSet,
        *,
        warmup: int = 50,
        drift: float = 0.05,
        threshold: float = 5.0,
        exploration: float = 0.05,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.warmup = check_count("warmup", warmup)
        self.drift = check_positive("drift", drift, zero=True)
        self.threshold = check_positive("threshold", threshold)
        self.exploration = check_probability("exploration", exploration, zero=True)

    def _start(self, horizon: int | None) -> None:
        super()._start(horizon)
        self._tests: Floats = np.zeros((3, len(self.arms)))  # first mean, and both sums, on [0, 1]

    def _random_share(self) -> float:
        return self.exploration

    def _elapsed(self) -> float:
        return float(self._means.weights.sum())

    def _learn_one(self, row: Row, reward: float) -> None:
        arm = row.arm
        if row.id < self._since[arm]:
            self.late += 1
            return
        self._means.shift(arm, 1.0, reward)
        told, value, test = int(self._means.weights[arm]), 0.5 * (reward + 1.0), self._tests[:, arm]
        if told <= self.warmup:
            test[0] += (value - test[0]) / told
            return
        gap = value - test[0]
        test[1] = max(test[1] + gap - self.drift, 0.0)
        test[2] = max(test[2] - gap - self.drift, 0.0)
        statistic, first = float(test[1:].max()), 2.0 * float(test[0]) - 1.0
        if statistic > self.threshold:
            since = (float(self._means.sums[arm]) - self.warmup * first) / (told - self.warmup)
            self._found(row, statistic, self.threshold, before=first, after=since)
            self._means.clear(arm)
            test[:] = 0.0
            self._since[arm] = self.rounds

    def _carry(self, old: Self, change: ArmsChange) -> None:
        super()._carry(old, change)
        self._tests = change.carry(old._tests, 0.0)

    _saved = (array("tests", np.float64, (3, "arms")),)

    def _check_state(self) -> None:
        super()._check_state()
        fitting = (self._tests >= 0.0) & (
            self._tests <= np.array([[1.0 + ROUNDING], [self.threshold], [self.threshold]])
        )
        states.check(bool(fitting.all()), "tests")
