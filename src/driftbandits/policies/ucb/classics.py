"""The textbook's policies for arms that stay: UCB1, kl-UCB and epsilon-greedy. None forgets unless it is told to."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Unpack

import numpy as np

from driftbandits._util.checks import check_positive, check_probability
from driftbandits.arms import ArmSet
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.optimistic import Optimism, RandomisedRounds
from driftbandits.policies.ucb.ucb import DiscountedUCB, bernoulli_upper, bounded_interval
from driftbandits.types import Floats


class UCB1(DiscountedUCB):
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002): mean + scale sqrt(2 log t / n) for rewards in [0, 1].

    Its defaults are not enough where rewards change: it assumes that nothing does. Take `DiscountedUCB` or
    `SlidingWindowUCB` there, its forgetting forms.

    Parameters
    ----------
    scale : multiplies the width; 1 in theory, and much too wide where rewards span less than their range
    others : see `Policy`

    t counts the rewards told. Cost per round: O(N).

    >>> policy = UCB1(ArmSet([[0.0], [1.0]]), reward_range=(0, 1), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _usual_size: ClassVar[float] = 1.0

    def __init__(self, arms: ArmSet, *, scale: float = 1.0, **common: Unpack[CommonSettings]) -> None:
        super().__init__(arms, scale=scale, **common)
        self._noise = 2.0  # [-1, 1] is twice as long as [0, 1]

    def _interval(self) -> tuple[Floats, Floats]:
        return bounded_interval(self._means.mean, self._means.weights)

    def _settings(self) -> dict[str, Any]:
        return {"scale": self.scale}


class KLUCB(UCB1):
    """kl-UCB (Garivier and Cappe 2011): the largest mean q with n kl(mean, q) <= log t + c log log t.

    Its defaults are not enough where rewards change: it assumes that nothing does. Take `GLRklUCB`, which restarts it
    at changes.

    Parameters
    ----------
    exploration : c; 0 as its authors play it, 3 in theory
    others : see `Policy`

    kl is that of two-valued rewards, which holds for all within the range. t counts the rewards told. Cost per round:
    O(N), with some five steps of Newton's method.

    >>> policy = KLUCB(ArmSet([[0.0], [1.0]]), reward_range=(0, 1), seed=0)
    >>> policy.tell(policy.ask().id, 1.0)
    """

    def __init__(self, arms: ArmSet, *, exploration: float = 0.0, **common: Unpack[CommonSettings]) -> None:
        super().__init__(arms, **common)
        self.exploration = check_positive("exploration", exploration, zero=True)

    def _index(self) -> Floats:
        weights = self._means.weights
        told = math.log(max(self._total, 1.0))
        level = told + self.exploration * math.log(max(told, 1.0))
        upper = bernoulli_upper(self._means.mean, level / np.maximum(weights, 1.0))
        return np.where(weights > 0.0, upper, np.inf)

    def _optimism(self, arm: int) -> Optimism:
        value = min(float(self._index()[arm]), 1.0)
        return Optimism(value=value, width=value - float(self._means.mean[arm]))

    def _settings(self) -> dict[str, Any]:
        return {"exploration": self.exploration}


class EpsilonGreedy(RandomisedRounds, DiscountedUCB):
    """epsilon-greedy: the arm with the largest mean, and with probability epsilon any arm.

    Its defaults are not enough where rewards change. Take a `discount` there: every arm keeps a probability of
    epsilon / N, so changes are followed, at a price that never ends.

    Parameters
    ----------
    epsilon : the share of rounds that explore, in (0, 1]
    decay : c of epsilon_n-greedy (Auer, Cesa-Bianchi and Fischer 2002): the share is min(epsilon, c N / t); None for a
        share that stays
    discount : gamma in (0, 1], by which weights of rewards fade per round; default 1, nothing fades
    switches : how often the world changes, for a computed discount
    noise : R, of `interval` alone, in the user's units; default a tenth of half the reward range
    others : see `Policy`

    Cost per round: O(N).

    >>> policy = EpsilonGreedy(ArmSet([[0.0], [1.0]]), epsilon=0.2, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _usual_size: ClassVar[float] = 1.0

    def __init__(self, arms: ArmSet, *, epsilon: float = 0.1, decay: float | None = None, **settings: Any) -> None:
        super().__init__(arms, scale=0.0, **settings)
        self.epsilon = check_probability("epsilon", epsilon, one=True)
        self.decay = None if decay is None else check_positive("decay", decay)

    def _random_share(self) -> float:
        if self.decay is None:
            return self.epsilon
        return min(self.epsilon, self.decay * len(self.arms) / (self.rounds - self._first + 1))

    def _settings(self) -> dict[str, Any]:
        settings = {name: value for name, value in super()._settings().items() if name != "scale"}
        return {**settings, "epsilon": self.epsilon, "decay": self.decay}
