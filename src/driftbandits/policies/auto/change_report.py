"""Says when the world has changed: the weight has left the hypotheses born before the last change.

A reward seldom decides it alone, and a wild one never does: it counts by at most `mixture.MOST_NATS_PER_REWARD` nats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits._util.linalg import SLACK, first_largest
from driftbandits.policies.auto.beliefs import LARGEST_BELIEF, Beliefs
from driftbandits.policies.auto.hypotheses import TYPICAL_SIGNAL_VARIANCE
from driftbandits.policies.auto.mixture import LEVEL_SHIFT, LOCAL, RESET
from driftbandits.state.declared import Declared, array, count, flag
from driftbandits.types import Bools, Floats, Ints

CHANGE_ODDS = 1e4  # of a change, against none since the last one
SETTLED_WEIGHT = 0.5  # of all but the fresh hypotheses, for what is believed to be kept for comparison
_KNOWN_ARM_VARIANCE = 0.25 * TYPICAL_SIGNAL_VARIANCE  # below, a hypothesis knows the arm
_MOVED_DEVIATIONS = 2.0  # by which an arm must differ to have moved
_NAMED_DEVIATIONS = 3.0  # by which it must differ from what was forgotten of it, to be named: of many arms some do by 2
_LEAST_VARIANCE = 1e-12
_LEAST_FORGOTTEN = 1e-6  # share of what is known of an arm, below which nothing of it was forgotten


@dataclass(frozen=True, slots=True)
class RegimeChange:
    """A change: the hypothesis that explains it, and what it says. Rewards are on the internal scale.

    `moved` is what decisions rest on: arms that are known well, and unlike what was believed when all was settled.
    `named` is what people are told: those, and arms that are clearly unlike what was forgotten of them.
    """

    birth: int
    odds: float
    moved: Ints
    before: Floats  # of the arms that moved
    after: Floats
    named: Ints
    named_before: Floats
    named_after: Floats
    forgot: str
    whole: bool  # nothing of what was known stays
    shift: bool  # all that was known stays but the level


class ChangeReport(Declared):
    """Compares the weight of hypotheses born after round `regime` with that of the steady ones born before."""

    def __init__(self, beliefs: Beliefs, arms: int) -> None:
        self.regime = 0
        self.began = 0  # round in which the present world began, as the last record says
        self.epoch = 0
        self.before: Floats = np.zeros(arms)  # what was believed before the hypotheses of a change had much weight
        self._settled = False
        self._beliefs = beliefs
        self._arms = beliefs.priors.representatives.numbers  # of whom all is said here, by their places among them

    def settle(self, weights: Floats, mean: Floats) -> None:
        """Keep what is believed now, unless it is hypotheses of a change not yet found that believe it."""
        if float(weights[self.fresh(len(weights))].sum()) < 1.0 - SETTLED_WEIGHT:
            self.before, self._settled = mean, True

    def restart(self) -> None:
        """All was learned anew: there is nothing yet to compare with."""
        self._settled = False

    def fresh(self, count: int) -> Bools:
        """Which of the first `count` hypotheses were born after the last change was found."""
        return np.asarray(self._beliefs.birth[:count] > self.regime)

    def find_change(self, weights: Floats, now: int) -> RegimeChange | None:
        """The change that the weights show, if they do; everything born until `now` is then old.

        Drifting hypotheses say nothing about it: they are neither before a change nor after. But they must not lead.
        """
        beliefs = self._beliefs
        leader = first_largest(weights)
        if not self.regime < beliefs.birth[leader] < now:  # born just now, it has not explained a reward yet
            return None
        fresh = self.fresh(len(weights))
        new = float(weights[fresh].sum())
        before = np.where(~fresh & (beliefs.rate[: len(weights)] == 0), weights, 0.0)
        old = float(before.sum())
        if new < 0.5 or new < CHANGE_ODDS * old:
            return None
        steady = first_largest(before, slack=SLACK * old) if old > 0 else None
        if not self._settled and steady is not None:
            self.before, self._settled = beliefs.reading(steady, self._arms)[0], True
        found = self._describe(leader, new / max(old, 1e-300), steady)
        self.regime, self.began = now, found.birth
        self.epoch += 1
        return found

    def _describe(self, row: int, odds: float, steady: int | None) -> RegimeChange:
        beliefs = self._beliefs
        mean, variance = beliefs.reading(row, self._arms)
        difference, size = np.abs(mean - self.before), beliefs.sizes
        known = variance < _KNOWN_ARM_VARIANCE * size**2
        least = 0.1 * math.sqrt(TYPICAL_SIGNAL_VARIANCE) * size
        moved = known & (difference > _MOVED_DEVIATIONS * np.sqrt(variance) + least)
        arms = np.flatnonzero(moved)
        told = self.before
        if steady is not None:
            forgotten, clear = self._forgotten(row, steady, mean, variance, least)
            better = clear if beliefs.units is not None else clear & ~moved  # a change of rates shows slowly
            told, moved = np.where(better, forgotten, self.before), moved | clear
        named = np.flatnonzero(moved)
        origin, birth = int(beliefs.origin[row]), int(beliefs.birth[row])
        forgot = {
            RESET: f"all rewards before round {birth}",
            LEVEL_SHIFT: f"the level of all rewards before round {birth}, not their differences",
            LOCAL: "what it knew of the arms that moved",
        }.get(origin, f"part of what rewards before round {birth} said")
        return RegimeChange(
            birth=birth,
            odds=odds,
            moved=arms,
            before=self.before[arms],
            after=mean[arms],
            named=named,
            named_before=told[named],
            named_after=mean[named],
            forgot=forgot,
            whole=origin == RESET,
            shift=origin == LEVEL_SHIFT,
        )

    def _forgotten(self, row: int, steady: int, mean: Floats, variance: Floats, least: Any) -> tuple[Floats, Bools]:
        """What `steady` knew of every arm and `row` no longer believes, and of whom `row` clearly says something else.

        Both were told the same since `row` was born. A change that shows slowly is followed by drifting hypotheses, so
        that what was believed last is no longer what was before it. But of an arm with mean m and variance v under
        each, 1 / v is what is known and m / v adds up over rewards: the difference is what came before, without it.
        """
        (m, v), (m_old, v_old) = self._coordinates(row), self._coordinates(steady)
        forgotten = 1.0 / v_old - 1.0 / v
        told = forgotten > _LEAST_FORGOTTEN / v_old
        forgotten = np.where(told, forgotten, 1.0)
        before, spread = (m_old / v_old - m / v) / forgotten, 1.0 / forgotten
        if self._beliefs.units is not None:
            units = self._beliefs.units.of(self._arms)
            before, spread = units.rewards(before), units.variances(before, spread)
        clear = np.abs(mean - before) > _NAMED_DEVIATIONS * np.sqrt(variance + spread) + least
        return before, told & clear

    def _coordinates(self, row: int) -> tuple[Floats, Floats]:
        """Mean and variance of what a hypothesis learns of every arm: `Beliefs.reading` before it becomes rewards."""
        beliefs, rows = self._beliefs, self._beliefs.priors.rows
        covariance, kind = beliefs.covariance(row), int(beliefs.kind[row])
        if rows is None:
            mean, variance = beliefs.mean[row, :-1][self._arms], np.diagonal(covariance)[:-1][self._arms]
        else:
            mean = rows.rewards(kind, beliefs.mean[row], self._arms)
            variance = rows.variances(kind, covariance, self._arms)
        return mean, np.maximum(variance, _LEAST_VARIANCE)

    saved = (
        count("regime", high="rounds"),
        count("began", high="regime"),
        count("epoch"),
        array("before", within=(-LARGEST_BELIEF, LARGEST_BELIEF)),
        flag("settled"),
    )
