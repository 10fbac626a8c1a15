"""Change reports: a change is reported once the weight has left the hypotheses born before it.

One reward seldom decides, and an outlier never does: it counts for at most `mixture.MOST_NATS_PER_REWARD` nats.
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
from driftbandits.state.declared import Declared, added, array, count, flag
from driftbandits.types import Bools, Floats, Ints

CHANGE_ODDS = 1e4  # of a change, against none since the last one
SETTLED_WEIGHT = 0.5  # weight of the older hypotheses above which the current estimates become the reference
_KNOWN_ARM_VARIANCE = 0.25 * TYPICAL_SIGNAL_VARIANCE  # below it, an arm counts as known
_MOVED_DEVIATIONS = 2.0  # difference from the reference above which an arm has moved
_NAMED_DEVIATIONS = 3.0  # difference from the forgotten estimate above which an arm is named; by chance, some reach 2
_LEAST_VARIANCE = 1e-12
_LEAST_FORGOTTEN = 1e-6  # share of the information about an arm below which nothing of it was forgotten


@dataclass(frozen=True, slots=True)
class RegimeChange:
    """A change and the hypothesis that explains it. Rewards are on the internal scale.

    `moved` are the arms that decisions depend on: known well, and different from the last settled estimates.
    `named` are the arms that the record names: these, and arms clearly different from their forgotten estimates.
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
    whole: bool  # everything was forgotten
    shift: bool  # only the level was forgotten


class ChangeReport(Declared):
    """Compares the weight of hypotheses born after round `regime` with that of the steady ones born before."""

    def __init__(self, beliefs: Beliefs, arms: int) -> None:
        self.regime = 0
        self.began = 0  # round of the last recorded change
        self.epoch = 0
        self.before: Floats = np.zeros(arms)  # estimates before the hypotheses of a change had much weight
        self._latest: Floats = np.zeros(arms)  # the same at the last call of `settle`, when a change may have begun
        self._settled = False
        self._beliefs = beliefs
        self._arms = beliefs.priors.representatives.numbers  # the arms compared here; indices below are into this array

    def settle(self, weights: Floats, mean: Floats) -> None:
        """Keep the estimates of the last call as the reference, unless hypotheses of an unreported change dominate.

        Not the current ones: who drifts follows a change before it is believed.
        """
        if float(weights[self.fresh(len(weights))].sum()) < 1.0 - SETTLED_WEIGHT:
            self.before, self._latest, self._settled = self._latest if self._settled else mean, mean, True

    def restart(self) -> None:
        """Learning has restarted: there is no reference to compare with yet."""
        self._settled = False

    def fresh(self, count: int) -> Bools:
        """Which of the first `count` hypotheses were born after the last reported change."""
        return np.asarray(self._beliefs.birth[:count] > self.regime)

    def find_change(self, weights: Floats, now: int) -> RegimeChange | None:
        """The change that the weights imply, or None; afterwards everything born up to `now` counts as old.

        Drifting hypotheses are neither before nor after a change, so they do not count; but none of them may lead.
        """
        beliefs = self._beliefs
        leader = first_largest(weights)
        if not self.regime < beliefs.birth[leader] < now:  # a new one has not explained a reward yet
            return None
        fresh = self.fresh(len(weights))
        new = float(weights[fresh].sum())
        before = np.where(~fresh & (beliefs.rate[: len(weights)] == 0), weights, 0.0)
        old = float(before.sum())
        if new < 0.5 or new < CHANGE_ODDS * old:
            return None
        steady = first_largest(before, slack=SLACK * old) if old > 0 else None
        if not self._settled and steady is not None:
            before, _, informed = self._before(leader, steady)
            self.before = np.where(informed, before, beliefs.reading(steady, self._arms)[0])
            self._settled = True
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
        reference = self.before
        if steady is not None:
            forgotten, clear = self._forgotten(row, steady, mean, variance, least)
            better = clear if beliefs.units is not None else clear & ~moved  # success rates change visibly only slowly
            reference, moved = np.where(better, forgotten, self.before), moved | clear
        named = np.flatnonzero(moved)
        origin, birth = int(beliefs.origin[row]), int(beliefs.birth[row])
        forgot = {
            RESET: f"all rewards before round {birth}",
            LEVEL_SHIFT: f"the level of all rewards before round {birth}, not their differences",
            LOCAL: "all rewards of the arms that moved",
        }.get(origin, f"part of the information from before round {birth}")
        return RegimeChange(
            birth=birth,
            odds=odds,
            moved=arms,
            before=self.before[arms],
            after=mean[arms],
            named=named,
            named_before=reference[named],
            named_after=mean[named],
            forgot=forgot,
            whole=origin == RESET,
            shift=origin == LEVEL_SHIFT,
        )

    def _forgotten(self, row: int, steady: int, mean: Floats, variance: Floats, least: Any) -> tuple[Floats, Bools]:
        """The estimates that `steady` has and `row` has forgotten, and the arms for which `row` clearly differs."""
        before, spread, informed = self._before(row, steady)
        clear = np.abs(mean - before) > _NAMED_DEVIATIONS * np.sqrt(variance + spread) + least
        return before, informed & clear

    def _before(self, row: int, steady: int) -> tuple[Floats, Floats, Bools]:
        """What rewards before `row` was born say of every arm: mean, variance, and whether they say anything.

        Both hypotheses got the same rewards since `row` was born. While a change shows slowly, drifting hypotheses
        follow it, so the last estimates are no longer those from before the change. But for an arm with mean m and
        variance v, both the information 1 / v and m / v are sums over rewards: the difference between the two
        hypotheses is exactly the part from before the change.
        """
        (m, v), (m_old, v_old) = self._coordinates(row), self._coordinates(steady)
        forgotten = 1.0 / v_old - 1.0 / v
        informed = forgotten > _LEAST_FORGOTTEN / v_old
        forgotten = np.where(informed, forgotten, 1.0)
        before, spread = (m_old / v_old - m / v) / forgotten, 1.0 / forgotten
        if self._beliefs.units is not None:
            units = self._beliefs.units.of(self._arms)
            before, spread = units.rewards(before), units.variances(before, spread)
        return before, spread, informed

    def _coordinates(self, row: int) -> tuple[Floats, Floats]:
        """Mean and variance of every arm's coordinate under a hypothesis: `Beliefs.reading` before its link."""
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
        added(array("latest", within=(-LARGEST_BELIEF, LARGEST_BELIEF))),
        flag("settled"),
    )
