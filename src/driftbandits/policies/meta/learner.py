"""Exponential weights over a few options, by which BOB chooses the size of its base."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from driftbandits.types import Floats


class Exp3:
    """Exponential weights over `size` options, of which one is tried in each of `rounds` rounds; rewards in [0, 1].

    exp3     gamma = min(1, sqrt(M ln M / ((e - 1) n))); log w_j += gamma x / (M p_j) for the option tried
    exp3p    gamma = min(3/5, 2 sqrt(0.6 M ln M / n)), alpha = 2 sqrt(ln(M n / delta));
             log w_j += gamma / (3 M) (x_j + alpha / sqrt(M n)) / p_j for all, x_j = x for the option tried and 0 else

    p = (1 - gamma) w / sum(w) + gamma / M. Only log w is kept, with largest value 0 (so that the published start of
    exp3p, the same weight for all, is a start at 1).

    Exp3 is from Auer et al. (2002) as Cheung et al. use it; Exp3.P holds with high probability and explores more.

    >>> learner = Exp3(2, rounds=10)
    >>> learner.update(0, 1.0)
    >>> bool(learner.probabilities[0] > 0.5)
    True
    """

    def __init__(
        self, size: int, *, rounds: int, learner: Literal["exp3", "exp3p"] = "exp3", failure_probability: float = 0.01
    ) -> None:
        self.cautious = learner == "exp3p"
        spread = size * math.log(size) / rounds
        self.exploration = (
            min(0.6, 2.0 * math.sqrt(0.6 * spread)) if self.cautious else min(1.0, math.sqrt(spread / (math.e - 1.0)))
        )
        self.bonus = 2.0 * math.sqrt(math.log(size * rounds / failure_probability)) / math.sqrt(size * rounds)
        self.log_weights: Floats = np.zeros(size)

    @property
    def probabilities(self) -> Floats:
        """Law over the options, shape (M,)."""
        weights = np.exp(self.log_weights)
        return np.asarray((1.0 - self.exploration) * weights / weights.sum() + self.exploration / len(weights))

    def update(self, tried: int, reward: float, law: Floats | None = None) -> None:
        """Learn the reward in [0, 1] of the option tried, drawn from `law` if that is not the present one."""
        law = self.probabilities if law is None else law
        step = self.exploration / len(law)
        if self.cautious:
            step /= 3.0
            self.log_weights += step * self.bonus / law
        self.log_weights[tried] += step * reward / law[tried]
        self.log_weights -= self.log_weights.max()
