"""How AutoBandit learns: rewards that say little together, any other by itself, and what they mean for what is next.

Part of `AutoBandit`, which builds the parts that are put to use here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftbandits._util.linalg import first_largest
from driftbandits.policies.auto.batching import LONGEST_GAP, MOST_SAID, NOISE_SAID, RewardBatch, observe_all
from driftbandits.policies.auto.beliefs import TERMS_GATHERED, Beliefs, Forecast
from driftbandits.policies.auto.change_report import CHANGE_ODDS, ChangeReport, RegimeChange
from driftbandits.policies.auto.hypotheses import News, Representatives, TwoValued
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.probing import Probing, Trial
from driftbandits.policies.auto.samples import REWARDS_TO_LAST, Samples
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.types import Bools, Floats, Ints

BIRTH_DEVIATIONS = 2.0  # off what the leader expects, for hypotheses of a change to be born
LOCAL_BIRTH_DEVIATIONS = 2.5  # for the hypothesis that only this arm has changed
BIRTH_NATS = 1.5  # for both, by which one who knows nothing of the arm expected a success or a failure more


class Outlook(NamedTuple):
    """What was expected, by representatives: which stand for the arm played and the best, and rewards.

    Those of these two are those of the arms themselves.
    """

    place: int
    best: int
    expected: Floats  # (M,)


class Learning(Policy):
    """The half of AutoBandit that takes in rewards."""

    _clock: int  # the next round of which nothing is told
    _standing: Representatives
    _beliefs: Beliefs
    _mixture: Mixture
    _samples: Samples
    _probing: Probing
    _change_report: ChangeReport
    _trial: Trial
    _two_valued: TwoValued
    _batch: RewardBatch
    _since_tidy: int  # rewards learned
    _renewal_due: bool  # whether hypotheses are to be born before the next reward is weighed
    _glances: Floats  # probabilities of looks where all arms are allowed
    _known_arms: dict[int, tuple[float, float]]  # what the leader expects of arms whose rewards came
    _known_law: Floats | None
    _known_mean: Floats | None
    _known_best: int  # where it is highest, if it is known

    def _learn(self, feedback: Feedback) -> None:
        for row, reward in feedback.rows():
            self._learn_one(row, reward)

    def _learn_one(self, row: Row, reward: float) -> None:
        """Let a reward that says little wait, see `batching`; learn any other at once, and those waiting before it."""
        news = self._two_valued.take(row.arm, reward)
        if news is not News.NONE or not self._lets_wait(row, reward):
            self._catch_up()
            self._learn_now(row, reward, news)
            self._think_over()

    def _lets_wait(self, row: Row, reward: float) -> bool:
        """Whether a reward waits; those waiting are learned with it if they are enough by now."""
        passed = row.id + 1 - self._clock
        waiting = self._waiting(row.arm, reward) if 0 < passed <= LONGEST_GAP and self._standing.everyone else None
        if waiting is None:
            return False
        outlook, doubted, trying = self._outlook(row), self._probing.doubted, not self._trial.over
        self._beliefs.units = self._two_valued.units
        self._clock = row.id + 1
        self._batch.add(row.arm, passed, *waiting)
        self._look_back(row, reward, outlook, on_time=True)
        if self._batch.enough or self._draws_anew(len(self._batch)):
            self._catch_up()
            self._think_over()
        elif trying or outlook.place != outlook.best or self._probing.doubted != doubted:
            self._look_ahead()
        return True

    def _waiting(self, arm: int, reward: float) -> tuple[float, float] | None:
        """A reward in the coordinates learned in, and how much it says; None if it is to be learned by itself.

        One that says too much to wait is learned at once with those that wait, if there are any.
        """
        leader, units = self._mixture.leader(), self._two_valued.units
        if arm not in self._known_arms:
            self._known_arms[arm] = self._beliefs.expects(leader, arm)
        mean, variance = self._known_arms[arm]
        noise = self._beliefs.noise.item(leader)
        said = max(variance / noise, NOISE_SAID / self._beliefs.told)
        if said > MOST_SAID and not len(self._batch):
            return None
        if units is None:
            surprising = (reward - mean) ** 2 > BIRTH_DEVIATIONS**2 * (variance + noise)
            return None if surprising else (reward, said)
        success = self._two_valued.is_success(reward)
        surprising = units.surprise(mean, success=success) > BIRTH_NATS
        return None if surprising else (units.coordinate(float(success)), said)

    def _catch_up(self) -> None:
        """Learn the rewards that wait."""
        if not len(self._batch):
            return
        arms, passed, rewards = self._batch.take()
        before, after = int(passed[0]), int(passed[1:].sum())
        self._mixture.pass_time(before, self._clock - 1 - after)
        self._renew(self._clock - 1 - after)  # before the first of them, as if it had not waited
        self._mixture.pass_time(after, self._clock - 1)
        if not self._draws_anew(len(arms)):
            self._samples.pass_time(before + after)
        if len(arms) == 1:  # which is quicker by itself
            self._beliefs.pass_time(before)
            self._take_in(self._beliefs.forecast(int(arms[0])), float(rewards[0]))
        else:
            joint = observe_all(self._beliefs, arms, passed, rewards)
            if not self._draws_anew(len(arms)):
                self._samples.follow_all(arms, joint)
            self._mixture.update_all(joint.likelihood)
            self._tidy(len(arms))
        self._find_change()
        self._know_nothing()

    def _think_over(self) -> None:
        """What is expected, and what is looked at, from now on; it stays until something more is learned."""
        self._samples.seek(self._mixture.weights())
        self._know_nothing()
        self._look_ahead()

    def _look_ahead(self) -> None:
        """What is looked at from now on."""
        self._glances = self._probing.law(self._standardised(), self._clock)
        self._known_law = None

    def _know_nothing(self) -> None:
        """Read off what is believed anew when it is wanted next."""
        self._known_arms.clear()
        self._known_law = self._known_mean = None

    def _learn_now(self, row: Row, reward: float, news: News) -> None:
        """What was expected is read before time passes, and hypotheses are born before the reward is weighed."""
        beliefs, outlook = self._beliefs, self._outlook(row)
        on_time = self._pass_time(row.id)
        told = self._in_coordinates(reward, news)
        if told is not None:
            forecast = self._forecast(row, told) if on_time else beliefs.forecast(row.arm)
            able = None if on_time else beliefs.birth[: beliefs.count] <= row.id
            self._take_in(forecast, told, able)
        self._look_back(row, reward, outlook, on_time=on_time, learned=True)

    def _take_in(self, forecast: Forecast, told: float, able: Bools | None = None) -> None:
        """Learn one reward; hypotheses not `able` do not."""
        step = self._beliefs.observe(forecast, told, able)
        if not self._draws_anew(1):
            self._samples.follow(forecast.arm, step)
        self._mixture.update(step.likelihood, able)
        self._tidy(1)

    def _outlook(self, row: Row) -> Outlook:
        """What was expected before a reward."""
        standing, expected = self._standing, self._expected()
        if standing.everyone:
            return Outlook(row.arm, row.tag - 1 if row.tag else self._known_best, expected)
        weights = self._mixture.weights()
        best = row.tag - 1 if row.tag else self._samples.best(weights)
        outlook = Outlook(standing.of(row.arm), standing.of(best), expected.copy())
        outlook.expected[[outlook.place, outlook.best]] = self._samples.mean(weights, np.array([row.arm, best]))
        return outlook

    def _in_coordinates(self, reward: float, news: News) -> float | None:
        """The reward as the beliefs want it, None if they have it already: see `hypotheses`."""
        before, units = self._beliefs.units, self._two_valued.units
        self._beliefs.units = units
        if news is News.NEW_UNITS and before is not None and units is not None:
            self._beliefs.change_units(before, units)
            self._samples.choose(self._mixture.weights(), anew=True)
        elif news in (News.LEARN_ANEW, News.END):
            self._learn_anew()
        if news is News.LEARN_ANEW:
            return None
        return reward if units is None else units.coordinate(float(self._two_valued.is_success(reward)))

    def _learn_anew(self) -> None:
        """Start from what was counted of every arm."""
        self._beliefs.expect_noise(self._two_valued.noise(), self._two_valued.told)
        self._mixture.learn_anew(self._change_report.regime, self._two_valued.tallies())
        self._samples.choose(self._mixture.weights(), anew=True)
        self._change_report.restart()
        self._probing.trust()

    def _pass_time(self, ident: int) -> bool:
        """Move the clock behind round `ident`; False if it is there already, the reward late."""
        passed = ident + 1 - self._clock
        if passed <= 0:
            return False
        self._beliefs.pass_time(passed)
        self._samples.pass_time(passed)
        self._mixture.pass_time(passed, ident)
        self._clock = ident + 1
        return True

    def _forecast(self, row: Row, reward: float) -> Forecast:
        """What the hypotheses expect of the arm; a reward the leader did not expect gives birth to others first."""
        births, local = self._surprises(row.arm, reward)
        if births:
            self._renewal_due = False
            self._mixture.renew(row.id)
            if local and self._told_before(row.arm):  # else the arm is unlike its neighbours, not unlike itself
                chance = self._probing.chance(self._standing.of(row.arm), self._clock)
                self._mixture.suspect(row.arm, chance, row.id)
        else:
            self._renew(row.id)
        return self._beliefs.forecast(row.arm)

    def _renew(self, now: int) -> None:
        """Let hypotheses be born that are due, just before rewards that can weigh them."""
        if self._renewal_due:
            self._renewal_due = False
            self._mixture.renew_in_time(now)

    def _told_before(self, arm: int) -> bool:
        """Whether this is not the first reward of an arm; of one among very many, not its first play."""
        return bool(self._probing.told[arm] if self._standing.everyone else self._plays.counts[arm] > 1)

    def _surprises(self, arm: int, reward: float) -> tuple[bool, bool]:
        """Whether a reward is far enough off what the leader expects for births, and for that of a local change."""
        leader, units = self._mixture.leader(), self._beliefs.units
        mean, variance = self._beliefs.expects(leader, arm)
        if units is not None:
            enough = units.surprise(mean, success=reward > 0.0) > BIRTH_NATS
            return enough, enough
        deviations = abs(reward - mean) / math.sqrt(variance + self._beliefs.noise.item(leader))
        return deviations > BIRTH_DEVIATIONS, deviations > LOCAL_BIRTH_DEVIATIONS

    def _draws_anew(self, rewards: int) -> bool:
        """Whether samples are drawn anew after so many more rewards: those there are need not follow these."""
        return self._since_tidy + rewards >= REWARDS_TO_LAST

    def _tidy(self, rewards: int) -> None:
        """Every few rewards draw new samples and see that hypotheses are born; sooner if the weight moves."""
        mixture, samples = self._mixture, self._samples
        full = self._draws_anew(rewards)
        self._since_tidy = 0 if full else self._since_tidy + rewards
        if full:
            if self._beliefs.gathered > TERMS_GATHERED // 2:  # samples are drawn from what is multiplied out
                self._beliefs.flush()
            mixture.prune()
            self._renewal_due = True
        weights = mixture.weights()
        if full or samples.lacking(weights):
            samples.choose(weights, anew=full)
        if full:
            self._change_report.settle(weights, samples.mean(weights, self._standing.places))
        self._batch.allow(mixture.in_doubt(self._clock))

    def _look_back(self, row: Row, reward: float, outlook: Outlook, *, on_time: bool, learned: bool = False) -> None:
        """Was that a change, was the arm surprisingly good, and which arms count as seen by it?"""
        beliefs = self._beliefs
        leader, place = self._mixture.leader(), outlook.place
        deviation = math.sqrt(float(beliefs.noise[leader]))
        telling = on_time and beliefs.units is None  # of two values none is surprising
        if telling and place == outlook.best:
            self._probing.compare(reward, float(outlook.expected[place]), deviation, self._clock)
        if learned:
            self._find_change()
        if place == outlook.best:
            self._probing.trust(place)
        elif telling:
            self._probing.verify(place, outlook.best, reward, outlook.expected, deviation, self._clock)
        self._probing.confirm(place, reward, deviation)
        self._probing.see(place, int(beliefs.kind[leader]), row.id + 1)
        self._trial.count(row.arm)

    def _find_change(self) -> None:
        found = self._change_report.find_change(self._mixture.weights(), self._clock)
        if found is not None:
            best = first_largest(self._change_report.before)
            self._probing.record(found.moved, found.birth, best, shift=found.shift)
            self._two_valued.forget(slice(None) if found.whole else self._moved_arms(found))
            self._report(found)

    def _moved_arms(self, found: RegimeChange) -> Ints:
        """All arms of which something was counted and whose representatives have moved."""
        if self._standing.everyone:
            return found.moved
        counted, moved = np.flatnonzero(self._two_valued.plays), set(found.moved.tolist())
        return np.array([arm for arm in counted.tolist() if self._standing.of(arm) in moved], dtype=np.int64)

    def _report(self, found: RegimeChange) -> None:
        self._report_change(
            epoch=self._change_report.epoch - 1,
            interval=(found.birth, self._clock),
            statistic=math.log(found.odds),
            threshold=math.log(CHANGE_ODDS),
            arms=self._standing.numbers[found.named].tolist(),
            before=found.named_before,
            after=found.named_after,
            forgot=found.forgot,
            odds=found.odds,
        )

    def _expected(self) -> Floats:
        """Expected rewards of the representatives, shape (M,)."""
        if self._known_mean is None:
            self._known_mean = self._samples.expected(self._mixture.weights())
            self._known_best = first_largest(self._known_mean)
        return self._known_mean

    def _standardised(self) -> Floats:
        """The expected rewards on the scale of the priors."""
        units = self._beliefs.units
        return self._expected() if units is None else units.standardised(self._expected())
