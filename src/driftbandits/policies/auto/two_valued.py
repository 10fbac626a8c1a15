"""Rewards of two values: have all rewards of every arm been the low end of the range or one other value of the arm?

They are then successes and failures, 1 for a click or the price for a sale, and what is to be learned of an arm is its
chance of success (`rate_units`). It begins when both kinds have been seen, and the first reward that is a third value
of its arm ends it for good.

What is expected of an arm of which nothing is known, the centre, is the mean over the arms of their chances. After the
first success it is little more than a guess, and all that was learned rests on it. So it is looked at anew whenever the
rarer kind has become twice as frequent, and the first few times everything is learned anew from the counts of every
arm: there is nothing yet to be said about changes. Later, only what is new begins with the new centre.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits.policies.auto.rate_units import LEAST_RATE, LOW, RateUnits
from driftbandits.state.plausible import FARTHEST, check_whole
from driftbandits.types import Floats, Ints

ROUNDING = 1e-9
RARER_FOR_A_FIRM_CENTRE = 32  # of the rarer kind
LEAST_MOVE = 0.1  # of the centre, relative to the rarer chance: less changes nothing


class News(Enum):
    """What a reward has done to the units that are learned in."""

    NONE = auto()
    LEARN_ANEW = auto()  # chances, from the counts of all arms, this reward among them
    NEW_UNITS = auto()  # chances about another centre; what is believed stays
    END = auto()  # it is a third value: rewards, from the counts of all arms


class Tally(NamedTuple):
    """The mean of an arm's rewards, in the coordinates learned in, and the variance of its noise."""

    arm: int
    mean: float
    noise: float


class TwoValued:
    """Values and counts of every arm.

    >>> rewards = TwoValued(2)
    >>> [rewards.take(arm, reward).name for arm, reward in [(0, -1.0), (1, -1.0), (0, 0.5), (0, 0.5), (0, 0.7)]]
    ['NONE', 'NONE', 'LEARN_ANEW', 'LEARN_ANEW', 'END']
    """

    def __init__(self, arms: int) -> None:
        self.begun = False
        self.over = False
        self.centre = 0.5
        self.value: Floats = np.full(arms, np.nan)  # of a success, inside; NaN where none was seen
        self.plays: Ints = np.zeros(arms, dtype=np.int64)
        self.successes: Ints = np.zeros(arms, dtype=np.int64)
        self.told = 0  # rewards counted
        self._won = 0
        self._units: RateUnits | None = None
        self._looked = 0  # how often the rarer kind had been seen when the centre was last looked at
        self._firm = False

    # --- rewards ------------------------------------------------------------------------------------------------

    def take(self, arm: int, reward: float) -> News:
        """Count a reward."""
        if self.over:
            return News.NONE
        success = reward > LOW + ROUNDING
        if success and self.value[arm] != reward:
            if not np.isnan(self.value[arm]):
                self.over = True
                return News.END if self.begun else News.NONE
            self.value[arm] = reward
            self._units = None
        self.plays[arm] += 1
        self.successes[arm] += success
        self.told += 1
        self._won += success
        return self._look()

    def is_success(self, reward: float) -> bool:
        """Whether it is not the low end of the range."""
        return reward > LOW + ROUNDING

    def _look(self) -> News:
        """Whether the centre is another now; looked at whenever the rarer kind was seen twice as often as then."""
        rarer = min(self._won, self.told - self._won)
        if rarer < max(2 * self._looked, 1):
            return News.NONE
        self._looked = rarer
        before, firm = self.centre, self._firm
        centre = self._mean_rate()
        self._firm = firm or rarer >= RARER_FOR_A_FIRM_CENTRE
        if self.begun and abs(centre - before) < LEAST_MOVE * min(before, 1.0 - before):
            return News.NONE
        self.centre, begun, self.begun, self._units = centre, self.begun, True, None
        return News.NEW_UNITS if firm and begun else News.LEARN_ANEW

    def _mean_rate(self) -> float:
        """Mean over the arms of their chances, each shrunk towards that of all rewards by about 1 / chance plays.

        That of all rewards would move to the chance of the arm that is played most.
        """
        pooled = (self._won + 0.5) / (self.told + 1.0)
        worth = 1.0 / min(pooled, 1.0 - pooled)
        mean = float(((self.successes + worth * pooled) / (self.plays + worth)).mean())
        return min(max(mean, LEAST_RATE), 1.0 - LEAST_RATE)

    # --- what is learned in -------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether chances of success are learned."""
        return self.begun and not self.over

    @property
    def units(self) -> RateUnits | None:
        """The coordinates of chances, if they are learned; an arm without a success is taken to pay what others do."""
        if self._units is None and self.active:
            self._units = RateUnits(self.centre, self._reach())
        return self._units if self.active else None

    def _reach(self) -> Floats:
        known = ~np.isnan(self.value)
        return np.where(known, self.value, self.value[known].mean()) - LOW

    def noise(self) -> float:
        """Variance of a reward about its mean, in the coordinates learned in."""
        units = self.units
        if units is not None:
            return units.noise
        plays = np.maximum(self.plays, 1)
        rates = (self.successes + self.centre) / (plays + 1.0)
        spread = np.square(self._reach()) * rates * (1.0 - rates)
        return float(plays @ spread / plays.sum())

    def tallies(self) -> list[Tally]:
        """What was counted, of every arm that was told of."""
        units, noise, reach = self.units, self.noise(), self._reach()
        found = []
        for arm in np.flatnonzero(self.plays).tolist():
            plays = int(self.plays[arm])
            rate = int(self.successes[arm]) / plays
            mean = LOW + float(reach[arm]) * rate if units is None else units.coordinate(rate)
            found.append(Tally(arm, mean, noise / plays))
        return found

    def forget(self, arms: Ints | slice) -> None:
        """These arms have changed: what was counted before says nothing of them."""
        self.plays[arms] = 0
        self.successes[arms] = 0
        self._add_up()
        self._looked = min(self._looked, RARER_FOR_A_FIRM_CENTRE // 2)

    def _add_up(self) -> None:
        self.told, self._won = int(self.plays.sum()), int(self.successes.sum())

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything."""
        return {
            "begun": self.begun,
            "over": self.over,
            "centre": self.centre,
            "value": np.where(np.isnan(self.value), LOW, self.value),
            "plays": self.plays.copy(),
            "successes": self.successes.copy(),
            "looked": self._looked,
            "firm": self._firm,
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`."""
        self.begun, self.over, self._firm = (state.flag(name) for name in ("begun", "over", "firm"))
        self.centre = state.number("centre")
        states.check(LEAST_RATE <= self.centre <= 1.0 - LEAST_RATE, "centre")
        value = state.array("value", np.float64, self.value.shape)
        states.check(bool((np.abs(value) <= 1.0 + ROUNDING).all()), "value")
        self.value = np.where(value > LOW + ROUNDING, value, np.nan)
        states.check(not self.begun or not bool(np.isnan(self.value).all()), "value")
        self.plays = state.array("plays", np.int64, self.plays.shape)
        self.successes = state.array("successes", np.int64, self.plays.shape)
        check_whole(self.plays, rounds, "plays")
        check_whole(self.successes, rounds, "successes")
        states.check(bool((self.successes <= self.plays).all()), "successes")
        self._looked = state.integer("looked", high=FARTHEST)
        self._add_up()
        self._units = None
