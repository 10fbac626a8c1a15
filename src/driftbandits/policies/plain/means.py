"""Mean rewards of arms that are learned each by itself.

symbol    name            shape, meaning
n, s      weights, sums   (N,) of the rewards of each arm: counted, in a window, or discounted
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.policies.core.arms_change import ArmsChange
from driftbandits.policies.core.optimistic import Optimism
from driftbandits.state.plausible import check_sums
from driftbandits.types import Floats


class ArmMeans:
    """Weighted mean reward of every arm, with what an index needs of it kept up to date arm by arm.

    >>> means = ArmMeans(2)
    >>> means.shift(0, 1.0, 0.5)
    >>> means.index(2.0).tolist()
    [2.5, inf]
    """

    def __init__(self, size: int) -> None:
        self.weights: Floats = np.zeros(size)
        self.sums: Floats = np.zeros(size)
        self.refresh()

    def shift(self, arm: int, weight: float, reward: float) -> None:
        """Add `weight` (or take it away) at `reward`."""
        total = float(self.weights[arm]) + weight
        if total > 0.0:
            value = float(self.sums[arm]) + weight * reward
            self.weights[arm], self.sums[arm] = total, value
            self._start[arm] = value / total
            self._radius[arm] = 1.0 / math.sqrt(total)
        else:
            self.clear(arm)

    def clear(self, arm: int) -> None:
        """Forget one arm."""
        self.weights[arm] = self.sums[arm] = self._radius[arm] = 0.0
        self._start[arm] = np.inf

    def fade(self, factor: float) -> None:
        """Multiply all weights."""
        self.weights *= factor
        self.sums *= factor
        self.refresh()

    def refresh(self) -> None:
        """Compute means and radii from weights and sums."""
        seen = self.weights > 0.0
        safe = np.where(seen, self.weights, 1.0)
        self._start: Floats = np.where(seen, self.sums / safe, np.inf)  # the mean; infinite where nothing is known
        self._radius: Floats = np.where(seen, 1.0 / np.sqrt(safe), 0.0)

    @property
    def mean(self) -> Floats:
        """Mean of every arm, 0 where nothing is known."""
        return np.where(self.weights > 0.0, self._start, 0.0)

    def index(self, width: float | Floats) -> Floats:
        """Give mean + width / sqrt(weight), infinite where nothing is known."""
        return np.asarray(self._start + width * self._radius)

    def optimism(self, arm: int, width: float) -> Optimism:
        """Value and width of one arm; of an arm not seen, the whole range [-1, 1]."""
        if self.weights[arm] == 0.0:
            return Optimism(value=1.0, width=1.0)
        own = width * float(self._radius[arm])
        return Optimism(value=float(self._start[arm]) + own, width=own)

    def carried(self, change: ArmsChange) -> ArmMeans:
        """What is known of the kept arms; of new ones nothing is."""
        means = ArmMeans(len(change.new))
        means.weights, means.sums = change.carry(self.weights, 0.0), change.carry(self.sums, 0.0)
        means.refresh()
        return means

    def export(self) -> dict[str, Any]:
        """Weights and sums."""
        return {"weights": self.weights.copy(), "sums": self.sums.copy()}

    def load(self, state: states.Reader, *, slack: float = 0.0) -> None:
        """Inverse of `export`; `slack` is what removals may leave behind of a sum."""
        self.weights = state.array("weights", np.float64, self.weights.shape)
        self.sums = state.array("sums", np.float64, self.weights.shape)
        check_sums(self.weights, self.sums, "means of the arms", slack=slack)
        self.refresh()
