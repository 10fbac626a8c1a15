"""Rewards of two values: whether every arm pays the low end of the range or one other value, and how often that one.

A click, a sale, a test that passed. At a rate of 3 % all that arms can differ by is a few hundredths of the range,
where other rewards may differ by all of it: signals must be looked for around the rate. And a single success, far
beyond all that was expected, is no surprise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.state.plausible import FARTHEST, ROUNDING

LOW = -1.0  # end of the range inside
LEAST_RATE = 1e-4


class Values:
    """The values that were seen. The first third value of an arm ends it for good.

    >>> values = Values(2)
    >>> for arm, reward in ((0, 1.0), (1, -1.0), (1, 0.5), (0, -1.0)):
    ...     values.see(arm, reward)
    >>> values.two, values.rate, values.deviation
    (True, 0.5, 1.0)
    >>> values.see(1, 0.25)
    >>> values.two
    False
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.clear()

    def clear(self) -> None:
        """Nothing was seen."""
        self._others: dict[int, float] = {}  # the value of every arm that is not the low end
        self._low_arms: set[int] = set()  # arms that have paid the low end
        self._third = False
        self._lows = self._highs = 0

    def see(self, arm: int, reward: float) -> None:
        """A reward."""
        if self._third:
            return
        if reward == LOW:
            self._low_arms.add(arm)
            self._lows += 1
        else:
            self._third = self._others.setdefault(arm, reward) != reward
            self._highs += 1

    @property
    def two(self) -> bool:
        """Whether both kinds of value were seen, of one arm at least (others may pay the same always), and no third."""
        return not self._third and not self._low_arms.isdisjoint(self._others)

    @property
    def rate(self) -> float:
        """How often a reward was not the low end, over all arms."""
        return self._highs / (self._lows + self._highs)

    @property
    def deviation(self) -> float:
        """The most that the mean rewards of arms should be thought to deviate by: the rate, or what it lacks of 1."""
        share = max(min(self.rate, 1.0 - self.rate), LEAST_RATE)
        return share * (max(self._others.values()) - LOW)

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "third": self._third,
            "lows": self._lows,
            "highs": self._highs,
            "low_arms": np.array(sorted(self._low_arms), dtype=np.int64),
            "valued": np.array(list(self._others), dtype=np.int64),
            "values": np.array(list(self._others.values()), dtype=np.float64),
        }

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self._third = state.flag("third")
        self._lows, self._highs = state.integer("lows", high=FARTHEST), state.integer("highs", high=FARTHEST)
        arms = state.array("valued", np.int64, (None,))
        low_arms = state.array("low_arms", np.int64, (None,))
        values = state.array("values", np.float64, (len(arms),))
        for some, rewards in ((arms, self._highs), (low_arms, self._lows)):
            states.check(bool(((some >= 0) & (some < self._size)).all()), "arms of two values")
            states.check(len(set(some.tolist())) == len(some) <= rewards, "arms of two values")
            states.check((len(some) > 0) == (rewards > 0), "number of two values")
        states.check(bool((np.abs(values) <= 1.0 + ROUNDING).all() and (values != LOW).all()), "two values")
        self._low_arms = set(low_arms.tolist())
        self._others = dict(zip(arms.tolist(), values.tolist(), strict=True))
