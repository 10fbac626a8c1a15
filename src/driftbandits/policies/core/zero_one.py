"""Rewards of 0 and 1 told under the default range: whoever counts clicks forgot to declare reward_range=(0, 1).

In the range (-1, 1) a failure is the middle and not the low end: arms look half as different as they are, and
AutoBandit does not see that its rewards have two values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.errors import ZeroOneRewardsWarning
from driftbandits.state.plausible import FARTHEST
from driftbandits.types import Floats

DEFAULT_RANGE = (-1.0, 1.0)
REWARDS_NEEDED = 100  # with both kinds among them


class ZeroOne:
    """Counts rewards of 0 and of 1 as long as there are no others, until there are enough to say so, once.

    >>> rewards = ZeroOne(DEFAULT_RANGE)
    >>> any(rewards.see(0.0) for _ in range(99)), rewards.see(1.0), rewards.see(1.0)
    (False, True, False)
    """

    __slots__ = ("looking", "ones", "zeros")

    def __init__(self, reward_range: tuple[float, float]) -> None:
        self.looking = reward_range == DEFAULT_RANGE  # the internal scale is then the user's
        self.zeros = 0
        self.ones = 0

    def see(self, reward: float) -> bool:
        """A reward was told; whether it is time to warn."""
        if reward == 0.0:
            self.zeros += 1
        elif reward == 1.0:
            self.ones += 1
        else:
            self._stop()
        return self._enough()

    def see_all(self, rewards: Floats) -> bool:
        """Rewards were told together; whether it is time to warn."""
        zeros, ones = int(np.count_nonzero(rewards == 0.0)), int(np.count_nonzero(rewards == 1.0))
        self.zeros += zeros
        self.ones += ones
        if zeros + ones < len(rewards):
            self._stop()
        return self._enough()

    def _stop(self) -> None:
        """Rewards are something else; how many were 0 or 1 before that does not matter."""
        self.looking, self.zeros, self.ones = False, 0, 0

    def _enough(self) -> bool:
        enough = self.looking and self.zeros > 0 and self.ones > 0 and self.zeros + self.ones >= REWARDS_NEEDED
        self.looking = self.looking and not enough
        return enough

    def warning(self) -> ZeroOneRewardsWarning:
        """What is to be said to whoever told."""
        return ZeroOneRewardsWarning(
            f"all {self.zeros + self.ones} rewards so far are 0 or 1, and the declared range is the default (-1, 1): "
            f"pass reward_range=(0, 1), so that 0 is a failure and not a middling reward"
        )

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        return {"looking": self.looking, "zeros": self.zeros, "ones": self.ones}

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        looking = state.flag("looking")
        states.check(self.looking or not looking, "looking")
        self.looking = looking
        self.zeros, self.ones = (state.integer(name, high=FARTHEST) for name in ("zeros", "ones"))
