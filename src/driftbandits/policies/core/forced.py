"""Rounds in which an arm is played because it is its turn, whatever the policy believes of it."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from driftbandits.policies.core.optimistic import OptimisticPolicy
from driftbandits.types import Bools, Floats


class ForcedRounds(OptimisticPolicy):
    """An optimistic policy with forced rounds: it plays the arm whose turn it is with probability 1.

    A subclass says whose turn it is in `_forced`. Where that arm is not allowed, it gives its turn to the best
    allowed one.
    """

    @abstractmethod
    def _forced(self) -> int | None:
        """The arm whose turn it is, if the next round is a forced one; a pure function of the state."""

    def _quiet_rounds(self) -> int:
        return 1  # whose turn it is changes with the round

    def _law(self) -> Floats:
        arm = self._forced()
        if arm is None:
            return super()._law()
        law = np.zeros(len(self.arms))
        law[arm] = 1.0
        return law

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        arm = self._forced()
        if arm is None:
            return super()._law_within(mask)
        return (self._law(), False) if mask[arm] else (super()._law_within(mask)[0], True)


def forced_cycle(*, arms: int, horizon: int, episode: int, exploration: float) -> int:
    """Rounds from one pass through `arms` arms to the next in episode k (from 1); 0 where there are none.

    The share of forced rounds is alpha_k = exploration sqrt(k arms log T / T), so a cycle has floor(arms / alpha_k)
    rounds, the first `arms` of them forced.

    >>> forced_cycle(arms=10, horizon=10_000, episode=1, exploration=1.0)
    104
    """
    share = exploration * math.sqrt(episode * arms * math.log(horizon) / horizon)
    return math.floor(arms / min(share, 1.0)) if share > 0 else 0
