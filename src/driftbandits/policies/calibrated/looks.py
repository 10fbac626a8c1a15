"""A second look at an arm that surprised: playing it alone for a while, as long as it keeps its promise.

The law of a block plays bad arms seldom and stays until the block ends. A bad arm that has become the best would be
seen once and then again long after. So a reward that is far beyond what was expected of its arm, and beyond the best
arm's, is followed up at once: the arm is played until its mean falls short of the best, or a martingale fires, or
it was played `wanted` times; then a new block begins that knows. Where rewards have two values only, a single one says
too little, and nothing is looked at twice. This is a matter of regret alone: rounds of a look follow no law of the
epoch, so no stream ranks them, and an arm's martingale holds however its rounds are chosen.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.state.plausible import FARTHEST, ROUNDING
from driftbandits.types import Bools, Floats, Ints

SHORTEST_LOOK = 32  # rounds
LEAST_AGE_SHARE = 8  # a block that ends with a look has lasted 1 / 8 of its length: blocks double, so they stay few
_SURPRISE = 3.0  # standard deviations of the noise


@dataclass
class Look:
    """One look at `arm` of at most `wanted` rounds: those asked for it, and the rewards told of them."""

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

    def disappoints(self, reward: float, best: float, noise_variance: float) -> bool:
        """Take in a reward; whether the arm's mean is by now a standard error below the best arm's."""
        self.told += 1
        self.total += reward
        return self.total / self.told + math.sqrt(noise_variance / self.told) < best

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


class SecondLooks:
    """At most one look at a time, by what the block expects and what is believed of the noise."""

    def __init__(self, surrogate: Surrogate) -> None:
        self._surrogate = surrogate
        self._look: Look | None = None
        self._first_round = 0  # of the block
        self._length = 0

    @property
    def look(self) -> Look | None:
        """The look under way, whether or not rounds of it are left to be asked."""
        return self._look

    @property
    def arm(self) -> int | None:
        """The arm to be played now."""
        return self._look.arm if self._look is not None and self._look.left > 0 else None

    @property
    def left(self) -> int:
        """Rounds of the look still to be asked."""
        return 0 if self._look is None else self._look.left

    @property
    def calls_for_a_block(self) -> bool:
        """Whether the arm has kept its promise to the end."""
        return self._look is not None and self._look.kept

    def open(self, first_round: int, length: int) -> None:
        """A block begins."""
        self._look = None
        self._first_round, self._length = first_round, length

    def ask(self, rounds: int) -> None:
        """The arm was asked for so many rounds."""
        if self._look is not None:
            self._look.asked += rounds

    def allow(self, mask: Bools) -> None:
        """A look ends where its arm may not be played."""
        if self._look is not None and not mask[self._look.arm]:
            self._look = None

    def surprise(self, arm: int, reward: float, round_: int, expected: Floats) -> None:
        """Begin a look if the reward promises enough and no other is being played."""
        if self.arm is not None or self._surrogate.two_valued:  # one of two values promises nothing
            return
        own, noise = float(expected[arm]), self._surrogate.noise_variance
        if surprises(reward, own, noise) and promises(reward, own, float(expected.max()), noise):
            age = round_ - self._first_round
            self._look = Look(arm, wanted=max(SHORTEST_LOOK, self._length // LEAST_AGE_SHARE - age))

    def tell(self, arm: int, reward: float, expected: Floats) -> None:
        """A reward of an arm that was looked at; the look ends if the arm disappoints."""
        look = self._look
        if look is None or look.arm != arm or look.told == look.asked:  # not a round of this look
            return
        if look.disappoints(reward, float(expected.max()), self._surrogate.noise_variance):
            self._look = None

    def lose(self, arms: Ints) -> None:
        """A look does without rounds whose rewards will never come."""
        if self._look is not None and self._look.lose(int(np.count_nonzero(arms == self._look.arm))):
            self._look = None

    def export(self) -> dict[str, Any]:
        """The look, if there is one."""
        return {"look": None if self._look is None else self._look.export()}

    def load(self, state: states.Reader, *, arms: int) -> None:
        """Inverse of `export`."""
        self._look = None if state.raw("look") is None else Look.load(state.reader("look"), arms)


def promises(reward: float, expected: float, best: float, noise_variance: float) -> bool:
    """Whether a reward of an arm of which `expected` was expected deserves a look.

    The best arm is played anyway, and so are those that SHORTEST_LOOK rounds could not tell from it.

    >>> promises(0.9, 0.1, 0.8, 0.01), promises(0.7, 0.1, 0.8, 0.01), promises(0.9, 0.75, 0.8, 0.01)
    (True, False, False)
    """
    told_apart = best - expected > math.sqrt(noise_variance / SHORTEST_LOOK)
    return told_apart and reward > best and surprises(reward, expected, noise_variance)


def surprises(reward: float, expected: float, noise_variance: float) -> bool:
    """Whether a reward is far beyond what was expected: seldom so, and found without looking at all arms."""
    return reward - expected > _SURPRISE * math.sqrt(noise_variance)
