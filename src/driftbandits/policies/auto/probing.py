"""Probing: how often inferior arms are re-tested, and how new arms are tried.

An arm that is played shows its changes by itself. One that is not costs its gap at every probe, and a change for the
better that goes unseen costs its gain in every round. With n independent things to probe, each every D rounds, probes
cost n gap / D per round and lose stakes D / 2, least at D = sqrt(2 n gap / stakes): the rarer hidden changes are and
the less they can win, the rarer the probes. Arms nearly as good are probed most often, and a probe of one arm is a
probe of similar ones.

A probe that surprises is repeated at once. Where a change is then recorded, the arm had long been unseen, and the one
that was best before is as good as ever when it is played next, the change was hidden: no other would have shown it.
Where the best arm itself surprised and has moved, the change showed by itself, and so may the next: probes become
rarer, but not of arms unseen since a shift of the level was recorded: what is believed of them rests on one reading.

Arms that come later (`with_arms`) are tried first, see below.

symbol  name      meaning
t                 rounds so far
n       regions   arms, those alike counted as one
m       expected  hidden changes before any was found: `HIDDEN_AT_FIRST` sqrt(n)
h       hazard    hidden changes per round: (m + found) / (t + `ROUNDS_BEFORE_LOOKS`)
G       hope      what an arm drawn anew from the prior is expected to win, E (f - best)+
L       stakes    what hidden changes are expected to win more in every round: as the hazard, but each of those expected
                  at first wins G, and one like each of those found `WORTH_OF_FOUND`
g_a     gap       by how much arm a is thought worse than the best
v       shown     changes that showed by themselves; 0 for arms unseen since the last shift of the level
D_a     interval  (1 + v) sqrt(2 n g_a / L), the mean time between two probes of arm a or a similar one

A share of the rounds goes to new arms until their own rewards say twice as much as the prior does. What was learned of
the old arms says how good a new one may be, and if they are much alike it is a great deal: an arm twice as good as the
best of twenty is next to impossible then, and would be played a few times in a thousand rounds. But a new option is not
one more draw from the old ones; it was added because somebody expects much of it. A trial costs little: its plays are
counted once per arm, not per round.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits.policies.auto.beliefs import LARGEST_BELIEF
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, SIGNAL_VARIANCES, TYPICAL_SIGNAL_VARIANCE, Priors
from driftbandits.state.declared import Declared, array, count, number
from driftbandits.state.reader import check_whole
from driftbandits.types import Bools, Floats, Ints

HIDDEN_AT_FIRST = 0.4  # hidden changes that are expected before any was found, times the root of the regions
WORTH_OF_FOUND = 0.3  # what one more hidden change is expected to win where one was found; prior deviations are 0.45
ROUNDS_BEFORE_LOOKS = 1000.0  # for which the world is taken to have stood
_LOOK_FACTOR = 4.0 * math.gamma(1.25) ** 4  # so that the mean time between two looks is the interval
LARGEST_LOOK_SHARE = 0.2  # of the rounds
LEAST_TIME_UNSEEN = 0.2  # of all rounds, for a change to have been hidden: where all drifts, none of them is
SECOND_LOOK_DEVIATIONS = 2.5  # of the noise, above what was expected
MOST_LOOKS_IN_A_ROW = 4
SECOND_LOOK_PROBABILITY = 0.9
_LEAST_STAKES = 1e-20
_PRIOR_DEVIATION = math.sqrt(TYPICAL_SIGNAL_VARIANCE + LEVEL_VARIANCE)


class Looks(NamedTuple):
    """How often arms that look worse are looked at, and why."""

    share: float  # probability that the next round is a look
    every: float  # rounds between two looks at such an arm or its like, in the median over them
    found: int  # hidden changes
    shown: int  # changes that showed by themselves


class Probing(Declared):
    """When every arm was last looked at, and the probability of looking at it now.

    `together`: how many arms a segment has. What is played in one says nothing of a doubt about another.
    """

    def __init__(self, priors: Priors, arms: int, *, together: int | None = None) -> None:
        self._batch = arms if together is None else together  # arms of a segment, one after the other
        self.hidden = 0  # hidden changes found
        self.shown = 0  # changes that showed by themselves
        self._shifted = 0  # the round of the last shift of the level
        self._seen: Floats = np.zeros(arms)
        self._latest: tuple[int, int, int] | None = None  # arm, prior and round of the last `see`, not yet in `_seen`
        self.told: Ints = np.zeros(arms, dtype=np.int64)  # rewards of every arm itself
        self._priors = priors
        self._kind = -1
        self.doubted = -1  # arm to look at again
        self._again = 0
        self._reference = 0.0
        self._stale, self._stale_since = -1, 0  # the last arm that surprised when it had long been unseen, and when
        self._rival, self._rival_worth = -1, 0.0  # the best arm then, and what was expected of it
        self._claimed = -1  # the same arm once a change is recorded, until it is played again
        self._startled = 0  # rounds until the best arm last surprised, that round among them

    def see(self, arm: int, kind: int, now: int) -> None:
        """A reward of round `now` - 1 of `arm` was told; arms alike under the likeliest prior count as seen then."""
        latest = self._latest
        if latest is not None and latest[0] == arm and latest[1] == kind:
            now = max(now, latest[2])
        else:
            self._note_seen()
        self._kind, self._latest = kind, (arm, kind, now)
        self.told[arm] += 1

    @property
    def seen(self) -> Floats:
        """Rounds at which the arms, or arms like them, were last told of, (N,)."""
        self._note_seen()
        return self._seen

    @seen.setter
    def seen(self, seen: Floats) -> None:
        self._seen, self._latest = seen, None

    def _note_seen(self) -> None:
        """Rewards mostly come of one arm many times in a row: of these, the last is noted for its like."""
        if self._latest is not None:
            arm, kind, now = self._latest
            np.maximum(self._seen, now, out=self._seen, where=self._priors.alike(kind, arm))
            self._latest = None

    def _regions(self) -> float:
        return self._priors.regions(self._kind) if self._kind >= 0 else float(len(self._seen))

    def chance(self, arm: int, now: int) -> float:
        """Probability that `arm` has changed unseen since it was last looked at."""
        regions = self._regions()
        hazard = (HIDDEN_AT_FIRST * math.sqrt(regions) + self.hidden) / (now + ROUNDS_BEFORE_LOOKS)
        return min(max(hazard / regions * (now - float(self.seen[arm])), 1e-4), 0.1)

    def intervals(self, mean: Floats, now: int, mask: Bools | None = None) -> Floats:
        """Mean time between two looks at every arm or its like, (N,)."""
        gaps, scale = self._squares(mean, now, mask)
        return np.asarray(np.sqrt(scale * gaps))

    def _squares(self, mean: Floats, now: int, mask: Bools | None) -> tuple[Floats, float]:
        """The squares of `intervals`, as gaps, (N,), and what these are to be multiplied by."""
        regions = self._regions()
        best = mean.item(mean.argmax()) if mask is None else float(mean[mask].max())
        won = HIDDEN_AT_FIRST * math.sqrt(regions) * _expected_gain(best) + WORTH_OF_FOUND * self.hidden
        stakes = max(won / (now + ROUNDS_BEFORE_LOOKS), _LEAST_STAKES)
        gaps = np.maximum(best - mean, 0.1 * _PRIOR_DEVIATION)
        if self.shown:
            gaps[self.seen > self._shifted] *= (1 + self.shown) ** 2
        return gaps, 2.0 * regions / stakes

    def trust(self, best: int | None = None) -> None:
        """No arm needs a second look: none at all, or none beside the best arm, which was played."""
        if best is None or not self._elsewhere(best):
            self.doubted = -1

    def _elsewhere(self, arm: int) -> bool:
        """Whether an arm is doubted that is never offered together with `arm`."""
        return self.doubted >= 0 and self.doubted // self._batch != arm // self._batch

    def verify(self, arm: int, best: int, reward: float, expected: Floats, deviation: float, now: int) -> None:
        """Look again at an arm that was surprisingly good: one reward never convinces, four in a row do.

        `best` is another arm, and `expected` are the rewards that were expected of all, (N,).
        """
        if self._elsewhere(arm) and reward - expected[arm] <= SECOND_LOOK_DEVIATIONS * deviation:
            return
        if arm != self.doubted:
            self._reference, self._again = float(expected[arm]), 0
        good_enough = reward > float(expected[best]) - deviation
        surprising = good_enough and reward - self._reference > SECOND_LOOK_DEVIATIONS * deviation
        if surprising and self._again == 0 and now - self.seen[arm] > LEAST_TIME_UNSEEN * now:
            self._stale, self._stale_since = arm, now
            self._rival, self._rival_worth = best, float(expected[best])
        self._again += 1
        self.doubted = arm if surprising and self._again < MOST_LOOKS_IN_A_ROW else -1

    def compare(self, reward: float, expected: float, deviation: float, now: int) -> None:
        """A reward of the arm that was thought best: does a change show by itself?"""
        if abs(reward - expected) > SECOND_LOOK_DEVIATIONS * deviation:
            self._startled = now

    def record(self, moved: Ints, birth: int, best: int, *, shift: bool = False) -> None:
        """A change of the arms `moved` since round `birth` is recorded: did the arm that was `best` show it, or a look?

        Neither sign alone is enough for the first: one reward in eighty surprises, and where all is thought new, arms
        that were not played count as moved. `shift`: it is taken for a shift of the level of all arms.
        """
        if shift:
            self._shifted = birth
        if best in moved and self._startled > birth:
            self.shown += 1
        elif self._stale in moved and birth >= self._stale_since - 1:
            self._claimed = self._rival

    def confirm(self, arm: int, reward: float, deviation: float) -> None:
        """Was this the best arm before a look found a change? If it has not moved, that change was a hidden one."""
        if arm == self._claimed:
            self._claimed = -1
            self.hidden += abs(reward - self._rival_worth) <= SECOND_LOOK_DEVIATIONS * deviation

    def law(self, mean: Floats, now: int, mask: Bools | None = None) -> Floats:
        """Probability of a look at every arm, (N,); in all at most `LARGEST_LOOK_SHARE` unless an arm is doubted."""
        if self._kind < 0:
            return np.zeros(len(mean))
        unseen: Floats = now - self.seen
        gaps, scale = self._squares(mean, now, mask)
        # (unseen / interval)^3 / interval: its third power, not the first, for then looks at an arm are spaced more
        # evenly, which finds as much by fewer
        rate = unseen * unseen * unseen / (gaps * gaps * self._priors.crowds(self._kind))
        rate *= _LOOK_FACTOR / scale**2
        if mask is not None:
            rate = rate * mask
        total = float(np.add.reduce(rate))
        if total > LARGEST_LOOK_SHARE:
            rate *= LARGEST_LOOK_SHARE / total
        if self.doubted >= 0 and (mask is None or mask[self.doubted]):
            rate *= 1.0 - SECOND_LOOK_PROBABILITY
            rate[self.doubted] += SECOND_LOOK_PROBABILITY
        return rate

    def summary(self, mean: Floats, now: int) -> Looks:
        """What `law` does, for people."""
        worse = np.delete(self.intervals(mean, now), int(mean.argmax()))
        every = float(np.median(worse)) if len(worse) else math.inf
        return Looks(float(self.law(mean, now).sum()), every, self.hidden, self.shown)

    saved = (
        count("hidden"),
        count("shown"),
        count("shifted", high="rounds"),
        count("startled", high="rounds"),
        array("seen", within=(0, "rounds")),
        array("told"),
        count("kind", low=-1),
        count("doubted", low=-1),
        count("again", high=MOST_LOOKS_IN_A_ROW),
        number("reference", within=(-LARGEST_BELIEF, LARGEST_BELIEF)),
        count("stale", low=-1),
        count("stale_since", high="rounds"),
        count("rival", low=-1),
        number("rival_worth", within=(-LARGEST_BELIEF, LARGEST_BELIEF)),
        count("claimed", low=-1),
    )

    def _check_state(self, *, rounds: int = 0, **known: Any) -> None:
        check_whole(self.told, rounds, "told")
        states.check(self._kind < self._priors.count, "kind")
        places = max(self.doubted, self._stale, self._rival, self._claimed)
        states.check(places < len(self.told), "arms that are probed")


def _expected_gain(best: float) -> float:
    """E (f - best)+ for f normal with mean 0 and the prior's variance."""
    z = best / _PRIOR_DEVIATION
    tail = 0.5 * math.erfc(z / math.sqrt(2.0))
    return max(_PRIOR_DEVIATION * (math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * tail), 0.0)


TRIAL_SHARE = 0.1  # of the rounds, for all arms on trial together
LEAST_PLAYS, MOST_PLAYS = 4, 1_000  # of a trial
PRIORS_WORTH = 2.0  # plays that say so many times what the prior says; after half, one good arm in nine seems bad
_WIDEST_VARIANCE = max(SIGNAL_VARIANCES) + LEVEL_VARIANCE


def plays_of_a_trial(noise: float) -> int:
    """Rewards with this variance of the noise that say twice as much of an arm as the widest prior.

    >>> plays_of_a_trial(0.01), plays_of_a_trial(12.0)
    (4, 80)
    """
    return min(max(math.ceil(PRIORS_WORTH * noise / _WIDEST_VARIANCE - 1e-9), LEAST_PLAYS), MOST_PLAYS)


class Trial(Declared):
    """How many plays every arm is still to have.

    >>> trial = Trial(4)
    >>> trial.begin(np.array([2, 3]), plays=1)
    >>> trial.law().tolist()
    [0.0, 0.0, 0.05, 0.05]
    >>> trial.count(3)
    >>> trial.law().tolist()
    [0.0, 0.0, 0.1, 0.0]
    """

    def __init__(self, arms: int) -> None:
        self.left: Ints = np.zeros(arms, dtype=np.int64)
        self.over = True

    def begin(self, arms: Ints, plays: int) -> None:
        """Let these arms be tried."""
        self.left[arms] = plays
        self.over = not self.left.any()

    def count(self, arm: int) -> None:
        """A reward of `arm` was told."""
        if not self.over and self.left[arm]:
            self.left[arm] -= 1
            self.over = not self.left.any()

    def law(self, mask: Bools | None = None) -> Floats | None:
        """Probability of a play for its trial, of every arm, or None if there is none to try."""
        if self.over:
            return None
        tried: Bools = self.left > 0
        if mask is not None:
            tried &= mask
        return np.asarray(tried * (TRIAL_SHARE / max(int(np.count_nonzero(tried)), 1)), dtype=np.float64)

    saved = (array("left"),)

    def _check_state(self, **known: Any) -> None:
        check_whole(self.left, MOST_PLAYS, "left")
        self.over = not self.left.any()
