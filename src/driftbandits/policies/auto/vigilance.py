"""How often to look at arms that look worse, in case one of them has become better unseen.

An arm that is played shows its changes by itself. One that is not costs its gap at every look, and a change for the
better that goes unseen costs its gain in every round. Looking every D rounds costs gap / D + hazard gain D / 2 per
round, least at D = sqrt(2 gap / (hazard gain)): the rarer hidden changes are, the rarer the looks, and a world that
never had one is hardly looked at.

symbol  name      meaning
h       hazard    probability per round of a hidden change: (first + found, `HAZARD_...`) / rounds so far
G       gain      expected gain if an arm is drawn anew from the prior, E (f - best)+
D_a     gap       by how much arm a is thought worse than the best
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.policies.auto.beliefs import LARGEST_BELIEF
from driftbandits.policies.auto.priors import LEVEL_VARIANCE, TYPICAL_SIGNAL_VARIANCE, Priors
from driftbandits.state.plausible import FARTHEST, check_whole
from driftbandits.types import Bools, Floats, Ints

HAZARD_AT_FIRST = 0.004
HAZARD_PER_HIDDEN_CHANGE = 0.02
MOST_HAZARD_FROM_FOUND = 0.1
LARGEST_LOOK_SHARE = 0.2  # of the rounds
SECOND_LOOK_DEVIATIONS = 2.5  # of the noise, above what was expected
MOST_LOOKS_IN_A_ROW = 4
SECOND_LOOK_PROBABILITY = 0.9
_PRIOR_DEVIATION = math.sqrt(TYPICAL_SIGNAL_VARIANCE + LEVEL_VARIANCE)


class Vigilance:
    """When every arm was last looked at, and the probability of looking at it now.

    `together`: how many arms a segment has. What is played in one says nothing of a doubt about another.
    """

    def __init__(self, priors: Priors, arms: int, *, together: int | None = None) -> None:
        self._together = arms if together is None else together  # arms of a segment, one after the other
        self.hidden = 0.0  # hidden changes found
        self.seen: Floats = np.zeros(arms)  # rounds at which the arms, or arms like them, were last told of
        self.told: Ints = np.zeros(arms, dtype=np.int64)  # rewards of every arm itself
        self._priors = priors
        self._kind = -1
        self.doubted = -1  # arm to look at again
        self._again = 0
        self._reference = 0.0

    def see(self, arm: int, kind: int, now: int) -> None:
        """A reward of round `now` - 1 of `arm` was told; arms alike under the likeliest prior count as seen then."""
        self._kind = kind
        np.maximum(self.seen, now, out=self.seen, where=self._priors.alike(kind, arm))
        self.told[arm] += 1

    def _hazard(self, now: int) -> float:
        return (HAZARD_AT_FIRST + min(HAZARD_PER_HIDDEN_CHANGE * self.hidden, MOST_HAZARD_FROM_FOUND)) / (now + 1.0)

    def chance(self, arm: int, now: int) -> float:
        """Probability that `arm` has changed unseen since it was last looked at."""
        return min(max(self._hazard(now) * (now - float(self.seen[arm])), 1e-4), 0.1)

    def trust(self, best: int | None = None) -> None:
        """No arm needs a second look: none at all, or none beside the best arm, which was played."""
        if best is None or not self._elsewhere(best):
            self.doubted = -1

    def _elsewhere(self, arm: int) -> bool:
        """Whether an arm is doubted that is never offered together with `arm`."""
        return self.doubted >= 0 and self.doubted // self._together != arm // self._together

    def verify(self, arm: int, reward: float, expected: float, best: float, deviation: float) -> None:
        """Look again at an arm that was surprisingly good: one reward never convinces, four in a row do."""
        if self._elsewhere(arm) and reward - expected <= SECOND_LOOK_DEVIATIONS * deviation:
            return
        if arm != self.doubted:
            self._reference, self._again = expected, 0
        surprising = reward - self._reference > SECOND_LOOK_DEVIATIONS * deviation and reward > best - deviation
        self._again += 1
        self.doubted = arm if surprising and self._again < MOST_LOOKS_IN_A_ROW else -1

    def law(self, mean: Floats, now: int, mask: Bools | None = None) -> Floats:
        """Probability of a look at every arm, (N,); in all at most `LARGEST_LOOK_SHARE` unless an arm is doubted."""
        if self._kind < 0:
            return np.zeros(len(mean))
        best = mean.item(mean.argmax()) if mask is None else float(mean[mask].max())
        hazard = self._hazard(now)
        gaps = np.maximum(best - mean, 0.1 * _PRIOR_DEVIATION)
        rate = hazard * _expected_gain(best) / gaps * (now - self.seen) / self._priors.crowds(self._kind)
        if mask is not None:
            rate = rate * mask
        total = float(np.add.reduce(rate))
        if total > LARGEST_LOOK_SHARE:
            rate *= LARGEST_LOOK_SHARE / total
        if self.doubted >= 0 and (mask is None or mask[self.doubted]):
            rate *= 1.0 - SECOND_LOOK_PROBABILITY
            rate[self.doubted] += SECOND_LOOK_PROBABILITY
        return rate

    def export(self) -> dict[str, Any]:
        """Rounds and count."""
        return {
            "hidden": self.hidden,
            "seen": self.seen.copy(),
            "told": self.told.copy(),
            "kind": self._kind,
            "doubted": self.doubted,
            "again": self._again,
            "reference": self._reference,
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`."""
        self.hidden = state.number("hidden")
        states.check(self.hidden <= FARTHEST, "hidden")
        self.seen = state.array("seen", np.float64, self.seen.shape)
        states.check(self.hidden >= 0, "hidden")
        states.check(bool(((self.seen >= 0) & (self.seen <= rounds)).all()), "seen")
        self.told = state.array("told", np.int64, self.told.shape)
        self._kind = state.integer("kind", low=-1, high=self._priors.count - 1)
        self.doubted = state.integer("doubted", low=-1, high=len(self.seen) - 1)
        check_whole(self.told, rounds, "told")
        self._again = state.integer("again", high=MOST_LOOKS_IN_A_ROW)
        self._reference = state.number("reference")
        states.check(abs(self._reference) <= LARGEST_BELIEF, "reference")


def _expected_gain(best: float) -> float:
    """E (f - best)+ for f normal with mean 0 and the prior's variance."""
    z = best / _PRIOR_DEVIATION
    tail = 0.5 * math.erfc(z / math.sqrt(2.0))
    return max(_PRIOR_DEVIATION * (math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * tail), 0.0)
