"""A second look at an arm that surprised: playing it alone for a while, as long as it keeps its promise.

The law of a block plays bad arms seldom and stays until the block ends. A bad arm that has become the best would be
seen once and then again long after. So a reward that is far beyond what was expected of its arm, and beyond the best
arm's, is followed up at once: the arm is played until its mean falls short of the best, or a martingale fires, or
it was played `wanted` times; then a new block begins that knows. This is a matter of regret alone: rounds of a look
follow no law of the epoch, so no stream ranks them, and an arm's martingale holds however its rounds are chosen.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from driftbandits import state as states
from driftbandits.state.plausible import FARTHEST, ROUNDING

LOOKS = 32  # rounds of a look at least
AGE = 8  # a block that ends with a look has lasted at least 1 / AGE of its length: blocks double, so they stay few
_SURPRISE = 3.0  # standard deviations of the noise


@dataclass
class Look:
    """A look at `arm` of at most `wanted` rounds: those asked for it, and the rewards told of them."""

    arm: int
    wanted: int
    asked: int = 0
    told: int = 0
    total: float = 0.0

    @property
    def left(self) -> int:
        """Rounds still to be asked."""
        return self.wanted - self.asked

    @property
    def kept(self) -> bool:
        """Whether the arm has kept its promise to the end."""
        return self.told == self.wanted

    def lose(self, rounds: int) -> bool:
        """Do without so many of the rounds asked; whether nothing is left of the look."""
        lost = min(rounds, self.asked - self.told)
        self.wanted -= lost
        self.asked -= lost
        return self.wanted <= 0

    def disappoints(self, reward: float, best: float, noise: float) -> bool:
        """Take in a reward; whether the arm's mean is by now a standard error below the best arm's."""
        self.told += 1
        self.total += reward
        return self.total / self.told + math.sqrt(noise / self.told) < best

    def export(self) -> dict[str, Any]:
        """As JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def load(cls, state: states.Reader, arms: int) -> Look:
        """Inverse of `export`."""
        arm, wanted = state.integer("arm", high=arms - 1), state.integer("wanted", low=1, high=FARTHEST)
        asked = state.integer("asked", high=wanted)
        told, total = state.integer("told", high=asked), state.number("total")
        states.check(abs(total) <= (1.0 + ROUNDING) * told, "rewards of a look")
        return cls(arm, wanted, asked, told, total)


def promises(reward: float, expected: float, best: float, noise: float) -> bool:
    """Whether a reward of an arm of which `expected` was expected deserves a look.

    The best arm is played anyway, and so are those that LOOKS rounds could not tell from it.

    >>> promises(0.9, 0.1, 0.8, 0.01), promises(0.7, 0.1, 0.8, 0.01), promises(0.9, 0.75, 0.8, 0.01)
    (True, False, False)
    """
    told_apart = best - expected > math.sqrt(noise / LOOKS)
    return told_apart and reward > best and reward - expected > _SURPRISE * math.sqrt(noise)
