"""Exp3.S: exponential weights that share a little with every arm, for rewards chosen by an adversary that switches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.checks import check_positive, check_probability
from driftbandits.errors import InputError
from driftbandits.policies.core.base import Policy
from driftbandits.policies.core.facts import Family
from driftbandits.policies.core.hooks import UNTIL_TOLD
from driftbandits.policies.core.pending import Feedback, Row
from driftbandits.policies.plain.means import ArmMeans
from driftbandits.state.plausible import ROUNDING, check_whole, told_at_most
from driftbandits.types import Floats


def exp3s_exploration(*, horizon: int, switches: float, arms: int) -> float:
    """Gamma of Exp3.S: min(1, sqrt(N (S log(N T) + e) / ((e - 1) T))), S = switches + 1 stretches (their Cor. 8.2).

    >>> round(exp3s_exploration(horizon=10_000, switches=1, arms=10), 3)
    0.122
    """
    hardness = (switches + 1.0) * math.log(arms * horizon) + math.e
    return min(1.0, math.sqrt(arms * hardness / ((math.e - 1.0) * horizon)))


class Exp3S(Policy):
    """Exp3.S (Auer, Cesa-Bianchi, Freund and Schapire 2002): law (1 - gamma) w / sum(w) + gamma / N.

    A reward x in [0, 1] of arm a, drawn with probability p, multiplies w_a by exp(gamma x / (N p)); then every weight
    gains e alpha / N times the sum of all, which bounds how long a switch takes to follow. Weights are kept as
    logarithms.

    It assumes nothing of the rewards but their range, and pays for it: with the default exploration, a hundred arms and
    ten thousand rounds, four rounds in ten are uniform draws. A control, not a recommendation.

    Its defaults are not enough with a hundred arms and 10,000 rounds: it must be told a horizon many times as long.

    Parameters
    ----------
    switches : how often the best arm changes, to compute gamma from; knowledge that the ADA family does without
    exploration : gamma in (0, 1]; by default from `switches` and the horizon, `exp3s_exploration`
    share : alpha; by default 1 / horizon
    others : see `Policy`

    A reward counts whenever it comes, over the probability its arm was drawn with. `estimate` is the mean of all
    rewards of each arm; the law does not use it. Cost per round: O(N).

    >>> policy = Exp3S(ArmSet([[0.0], [1.0]]), horizon=1000, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    label = "Exp3.S"
    family = Family.PLAIN
    microseconds_per_round = 30.0

    def __init__(
        self,
        arms: ArmSet,
        *,
        switches: float = 1,
        exploration: float | None = None,
        share: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.switches = check_positive("switches", switches, zero=True)
        self._given_exploration = (
            None if exploration is None else check_probability("exploration", exploration, one=True)
        )
        self._given_share = None if share is None else check_positive("share", share, zero=True)
        self.needs_horizon = exploration is None or share is None

    @property
    def exploration(self) -> float | None:
        """The gamma in use; None before the first round if it is to be computed."""
        return self._gamma if self._phase_length else self._given_exploration

    @property
    def share(self) -> float | None:
        """The alpha in use; None before the first round if it is to be computed."""
        return self._alpha if self._phase_length else self._given_share

    def _start(self, horizon: int | None) -> None:
        size = len(self.arms)
        gamma, alpha = self._given_exploration, self._given_share
        if horizon is not None:
            if gamma is None:
                gamma = exp3s_exploration(horizon=horizon, switches=self.switches, arms=size)
            if alpha is None:
                alpha = 1.0 / horizon
        if gamma is None or alpha is None:
            raise InputError("exploration=None and share=None need a horizon")
        self._gamma, self._alpha = gamma, alpha
        self._first = self.rounds
        self._log_weights: Floats = np.full(size, -math.log(size))  # the weights sum to 1
        self._means = ArmMeans(size)

    def _law(self) -> Floats:
        weights = np.exp(self._log_weights)
        return np.asarray((1.0 - self._gamma) / weights.sum() * weights + self._gamma / len(weights))

    def _quiet_rounds(self) -> int:
        return UNTIL_TOLD

    def _learn(self, feedback: Feedback) -> None:
        for row, reward in feedback.rows():
            self._learn_one(row, reward)

    def _learn_one(self, row: Row, reward: float) -> None:
        if row.id < self._first:
            self.late += 1
            return
        size = len(self.arms)
        logs = self._log_weights
        logs[row.arm] += self._gamma / size * (0.5 * (reward + 1.0) / row.probability)
        if self._alpha > 0.0:  # the share is of the sum before this reward, which is 1
            logs = np.logaddexp(logs, math.log(self._alpha / size) + 1.0)
        top = float(logs.max())
        self._log_weights = logs - (top + math.log(float(np.exp(logs - top).sum())))
        self._means.shift(row.arm, 1.0, reward)

    def _estimate(self) -> Floats:
        return self._means.mean

    def _settings(self) -> dict[str, Any]:
        return {"switches": self.switches, "exploration": self._given_exploration, "share": self._given_share}

    def _export(self) -> dict[str, Any]:
        return {
            "log_weights": self._log_weights.copy(),
            "means": self._means.export(),
            "gamma": self._gamma,
            "alpha": self._alpha,
            "first": self._first,
        }

    def _import(self, state: states.Reader) -> None:
        size = len(self.arms)
        self._log_weights = state.array("log_weights", np.float64, (size,))
        self._means = ArmMeans(size)
        self._means.load(state.reader("means"))
        self._gamma = state.number("gamma")
        self._alpha = state.number("alpha")
        self._first = state.integer("first", low=self._phase_start, high=self.rounds)
        gamma, alpha = self._given_exploration, self._given_share
        if gamma is None:
            gamma = exp3s_exploration(horizon=self._phase_length, switches=self.switches, arms=size)
        alpha = 1.0 / self._phase_length if alpha is None else alpha
        states.check(math.isclose(self._gamma, gamma, rel_tol=ROUNDING), "exploration")
        states.check(math.isclose(self._alpha, alpha, rel_tol=ROUNDING), "share")
        most = told_at_most(self.rounds, self._pending.rows(), since=self._first)
        check_whole(self._means.weights, most, "number of rewards")
        self._check_logarithms()

    @np.errstate(all="ignore")
    def _check_logarithms(self) -> None:
        """Refuse weights that do not sum to 1, and open decisions that no law can have drawn."""
        total = float(np.exp(self._log_weights).sum())
        states.check(abs(total - 1.0) <= ROUNDING, "weights")
        rows = self._awaited()
        drawn = rows["probability"][rows["id"] >= self._first]
        states.check(bool((drawn >= (1.0 - ROUNDING) * self._gamma / len(self.arms)).all()), "pending probabilities")
