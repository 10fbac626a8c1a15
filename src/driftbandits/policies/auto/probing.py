"""Probing: how often inferior arms are re-tested, and how new arms are tried.

Changes of an arm that is played are visible in its rewards. An arm that is not played costs its gap at every probe, and
an improvement that goes unnoticed costs its gain in every round. With n independent arms, each probed every D rounds,
probes cost n gap / D per round, and delays cost stakes D / 2; the sum is least at D = sqrt(2 n gap / stakes). So probes
are rarer where hidden changes are rare or gain little. Arms nearly as good as the best are probed most often, and a
probe of one arm counts for similar ones.

A surprising probe is repeated at once. A change counts as hidden if it is then recorded, the probed arm had not been
played for long, and the previously best arm turns out unchanged when it is played next: only the probe could show it.
If the best arm itself gave surprising rewards and has moved, the change was visible, and so may be the next: probes
become rarer, except for arms not played since a shift of the level was recorded, whose estimates rest on one reading.

Arms added later (`with_arms`) get a trial first, see below.

symbol  name      meaning
t                 rounds so far
n       regions   arms, similar ones counted as one
m       expected  hidden changes before any was found: `HIDDEN_AT_FIRST` sqrt(n)
h       hazard    hidden changes per round: (m + found) / (t + `ROUNDS_BEFORE_PROBES`)
G       hope      expected gain of an arm drawn from the prior, E (f - best)+
L       stakes    expected gain from hidden changes, per round: like the hazard, but a change expected a priori is worth
                  G, and one expected because another was found `WORTH_OF_FOUND`
g_a     gap       estimated gap between arm a and the best arm
v       shown     changes visible without a probe; 0 for arms not played since the last shift of the level
s       needed    rewards of an arm until a gain of a prior deviation shows, at least 1: many where successes are rare
D_a     interval  (1 + v) sqrt(2 n g_a / (L s)), the mean time between two probes of arm a or a similar one: a test of s
                  rewards costs s g_a, so tests are sqrt(s) times as far apart, and s probes each

New arms get a share of the rounds until their rewards carry twice as much information as the prior. The posterior of
the old arms is too confident about a new one, above all if the old ones are similar: an arm twice as good as the best
of twenty then seems next to impossible, and would be played a few times in a thousand rounds. But a new option is not
one more draw from the distribution of the old ones; somebody added it because they expect much of it. A trial is cheap:
its plays are counted once per arm, not per round.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits.policies.auto.beliefs import LARGEST_BELIEF
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, SIGNAL_VARIANCES, TYPICAL_SIGNAL_VARIANCE, Priors
from driftbandits.state.declared import Declared, array, count, number
from driftbandits.state.reader import FARTHEST, check_whole
from driftbandits.types import Bools, Floats, Ints

HIDDEN_AT_FIRST = 0.4  # expected number of hidden changes before any was found, per square root of the regions
WORTH_OF_FOUND = 0.3  # expected gain of one more hidden change after one was found; prior deviations are 0.45
ROUNDS_BEFORE_PROBES = 1000.0  # rounds without a hidden change, as prior evidence
_PROBE_FACTOR = 4.0 * math.gamma(1.25) ** 4  # so that the mean time between two probes is the interval
LARGEST_PROBE_SHARE = 0.2  # of the rounds
LEAST_TIME_UNSEEN = 0.2  # of all rounds, for a change to count as hidden: under drift none does
REPEAT_PROBE_DEVIATIONS = 2.5  # of the noise, above the expected reward
MOST_PROBES_IN_A_ROW = 4
REPEAT_PROBE_PROBABILITY = 0.9
_LEAST_STAKES = 1e-20
_PRIOR_DEVIATION = math.sqrt(TYPICAL_SIGNAL_VARIANCE + LEVEL_VARIANCE)


class ProbingSummary(NamedTuple):
    """How often inferior arms are probed, and why."""

    share: float  # probability that the next round is a probe
    every: float  # rounds between two probes of an inferior arm or a similar one, median over these arms
    found: int  # hidden changes
    shown: int  # changes visible without a probe


class Probing(Declared):
    """When every arm was last played, and the probability of probing it now.

    `together` is the number of arms per segment: a play in one segment does not settle a doubt in another.
    """

    def __init__(self, priors: Priors, arms: int, *, together: int | None = None) -> None:
        self._batch = arms if together is None else together  # arms of a segment, one after the other
        self.hidden = 0  # hidden changes found
        self.shown = 0  # changes visible without a probe
        self._shifted = 0  # the round of the last shift of the level
        self._seen: Floats = np.zeros(arms)
        self._latest: tuple[int, int, int] | None = None  # arm, prior and round of the last `see`, to be noted
        self.told: Ints = np.zeros(arms, dtype=np.int64)  # rewards of every arm itself
        self._priors = priors
        self.needed = 1.0  # rewards until a gain shows; not saved, for it follows from the units
        self._kind = -1
        self.doubted = -1  # arm to probe again
        self._again = 0
        self._reference = 0.0
        self._stale, self._stale_since = -1, 0  # last arm with a surprising reward after a long time unplayed, and when
        self._rival, self._rival_worth = -1, 0.0  # the best arm then, and its expected reward
        self._claimed = -1  # the same arm once a change is recorded, until it is played again
        self._startled = 0  # rounds up to and including the last surprising reward of the best arm

    def see(self, arm: int, kind: int, now: int, *, plays: int = FARTHEST) -> None:
        """Note a reward of `arm` from round `now` - 1; arms similar under the likeliest prior count as seen too.

        Where decisions count in part, an arm has no more rewards than `plays`.
        """
        latest = self._latest
        if latest is not None and latest[0] == arm and latest[1] == kind:
            now = max(now, latest[2])
        else:
            self._note_seen()
        self._kind, self._latest = kind, (arm, kind, now)
        self.told[arm] += self.told.item(arm) < plays

    @property
    def seen(self) -> Floats:
        """Rounds of the last reward of every arm or a similar one, (N,)."""
        self._note_seen()
        return self._seen

    @seen.setter
    def seen(self, seen: Floats) -> None:
        self._seen, self._latest = seen, None

    def _note_seen(self) -> None:
        """Mark the similar arms as seen. Most rewards come from one arm many times in a row: only the last is noted."""
        if self._latest is not None:
            arm, kind, now = self._latest
            np.maximum(self._seen, now, out=self._seen, where=self._priors.alike(kind, arm))
            self._latest = None

    def _regions(self) -> float:
        return self._priors.regions(self._kind) if self._kind >= 0 else float(len(self._seen))

    def chance(self, arm: int, now: int) -> float:
        """Probability that `arm` has changed since its last reward."""
        regions = self._regions()
        hazard = (HIDDEN_AT_FIRST * math.sqrt(regions) + self.hidden) / (now + ROUNDS_BEFORE_PROBES)
        return min(max(hazard / regions * (now - float(self.seen[arm])), 1e-4), 0.1)

    def intervals(self, mean: Floats, now: int, mask: Bools | None = None) -> Floats:
        """Mean time between two probes of every arm or a similar one, (N,)."""
        gaps, scale = self._squares(mean, now, mask)
        return np.asarray(np.sqrt(scale * gaps))

    def _squares(self, mean: Floats, now: int, mask: Bools | None) -> tuple[Floats, float]:
        """The squares of `intervals`, as gaps, (N,), and the factor to multiply them by."""
        regions = self._regions()
        best = mean.item(mean.argmax()) if mask is None else float(mean[mask].max())
        won = HIDDEN_AT_FIRST * math.sqrt(regions) * _expected_gain(best) + WORTH_OF_FOUND * self.hidden
        stakes = max(won / (now + ROUNDS_BEFORE_PROBES), _LEAST_STAKES)
        gaps = np.maximum(best - mean, 0.1 * _PRIOR_DEVIATION)
        if self.shown:
            gaps[self.seen > self._shifted] *= (1 + self.shown) ** 2
        return gaps, 2.0 * regions / (stakes * self.needed)

    def trust(self, best: int | None = None) -> None:
        """Drop the doubted arm: always, or only if it is in the segment of `best`, which was played."""
        if best is None or not self._elsewhere(best):
            self.doubted = -1

    def _elsewhere(self, arm: int) -> bool:
        """Whether the doubted arm is in another segment than `arm`."""
        return self.doubted >= 0 and self.doubted // self._batch != arm // self._batch

    def verify(self, arm: int, best: int, reward: float, expected: Floats, deviation: float, now: int) -> None:
        """Probe an arm again if its reward was surprisingly high: one reward proves nothing, four in a row do.

        `best` is another arm, and `expected` are the expected rewards of all arms, (N,).
        """
        if self._elsewhere(arm) and reward - expected[arm] <= REPEAT_PROBE_DEVIATIONS * deviation:
            return
        if arm != self.doubted:
            self._reference, self._again = float(expected[arm]), 0
        good_enough = reward > float(expected[best]) - deviation
        surprising = good_enough and reward - self._reference > REPEAT_PROBE_DEVIATIONS * deviation
        if surprising and self._again == 0 and now - self.seen[arm] > LEAST_TIME_UNSEEN * now:
            self._stale, self._stale_since = arm, now
            self._rival, self._rival_worth = best, float(expected[best])
        self._again += 1
        self.doubted = arm if surprising and self._again < MOST_PROBES_IN_A_ROW else -1

    def compare(self, reward: float, expected: float, deviation: float, now: int) -> None:
        """Note whether a reward of the best arm is surprising: then a change is visible without a probe."""
        if abs(reward - expected) > REPEAT_PROBE_DEVIATIONS * deviation:
            self._startled = now

    def record(self, moved: Ints, birth: int, best: int, *, shift: bool = False) -> None:
        """A change of the arms `moved` since round `birth` was recorded: did `best`, the best arm, show it, or a probe?

        It is visible in the best arm only if this arm has moved and gave a surprising reward: one reward in eighty is
        surprising by chance, and after a full reset arms that were not played count as moved. `shift`: the change is a
        shift of the level of all arms.
        """
        if shift:
            self._shifted = birth
        if best in moved and self._startled > birth:
            self.shown += 1
        elif self._stale in moved and birth >= self._stale_since - 1:
            self._claimed = self._rival

    def confirm(self, arm: int, reward: float, deviation: float) -> None:
        """Count a hidden change if `arm` was the best one before a probe found a change, and has not moved."""
        if arm == self._claimed:
            self._claimed = -1
            self.hidden += abs(reward - self._rival_worth) <= REPEAT_PROBE_DEVIATIONS * deviation

    def law(self, mean: Floats, now: int, mask: Bools | None = None) -> Floats:
        """Probability of probing every arm, (N,); the sum is at most `LARGEST_PROBE_SHARE` unless an arm is doubted."""
        if self._kind < 0:
            return np.zeros(len(mean))
        unseen: Floats = now - self.seen
        gaps, scale = self._squares(mean, now, mask)
        # (unseen / interval)^3 / interval: the third power, not the first, spaces the probes of an arm more evenly, so
        # that fewer of them find as much
        rate = unseen * unseen * unseen / (gaps * gaps * self._priors.crowds(self._kind))
        rate *= _PROBE_FACTOR / scale**2
        if mask is not None:
            rate = rate * mask
        total = float(np.add.reduce(rate))
        if total > LARGEST_PROBE_SHARE:
            rate *= LARGEST_PROBE_SHARE / total
        if self.doubted >= 0 and (mask is None or mask[self.doubted]):
            rate *= 1.0 - REPEAT_PROBE_PROBABILITY
            rate[self.doubted] += REPEAT_PROBE_PROBABILITY
        return rate

    def summary(self, mean: Floats, now: int) -> ProbingSummary:
        """What `explain` says about `law`."""
        worse = np.delete(self.intervals(mean, now), int(mean.argmax()))
        every = float(np.median(worse)) if len(worse) else math.inf
        return ProbingSummary(float(self.law(mean, now).sum()), every, self.hidden, self.shown)

    saved = (
        count("hidden"),
        count("shown"),
        count("shifted", high="rounds"),
        count("startled", high="rounds"),
        array("seen", within=(0, "rounds")),
        array("told"),
        count("kind", low=-1),
        count("doubted", low=-1),
        count("again", high=MOST_PROBES_IN_A_ROW),
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
PRIORS_WORTH = 2.0  # information of a trial in units of the prior's; with half of it, one good arm in nine seems bad
_WIDEST_VARIANCE = max(SIGNAL_VARIANCES) + LEVEL_VARIANCE


def plays_of_a_trial(noise: float) -> int:
    """Number of rewards, with this noise variance, that carry twice the information of the widest prior.

    >>> plays_of_a_trial(0.01), plays_of_a_trial(12.0)
    (4, 80)
    """
    return min(max(math.ceil(PRIORS_WORTH * noise / _WIDEST_VARIANCE - 1e-9), LEAST_PLAYS), MOST_PLAYS)


class Trial(Declared):
    """Remaining trial plays of every arm.

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
        """Start a trial of these arms."""
        self.left[arms] = plays
        self.over = not self.left.any()

    def count(self, arm: int) -> None:
        """Count a reward of `arm`."""
        if not self.over and self.left[arm]:
            self.left[arm] -= 1
            self.over = not self.left.any()

    def law(self, mask: Bools | None = None) -> Floats | None:
        """Probability of a trial play of every arm, or None if no arm is on trial."""
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
