"""How AutoBandit learns: batches of uninformative rewards, all other rewards one by one, and what follows from them.

A base class of `AutoBandit`, which builds the parts used here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from driftbandits._util.linalg import first_largest
from driftbandits.errors import DoubtWarning
from driftbandits.policies.auto.batching import (
    LONGEST_GAP,
    MOST_SAID,
    MOST_WAITING,
    NOISE_SAID,
    RewardBatch,
    observe_all,
)
from driftbandits.policies.auto.beliefs import TERMS_GATHERED, Beliefs, Forecast
from driftbandits.policies.auto.change_report import CHANGE_ODDS, ChangeReport, RegimeChange
from driftbandits.policies.auto.doubts import Doubts, Misfit
from driftbandits.policies.auto.echoes import WHITE, Before, Memory
from driftbandits.policies.auto.exposures import Collected, Exposures
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, TYPICAL_SIGNAL_VARIANCE, Representatives
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.probing import Probing, Trial
from driftbandits.policies.auto.samples import REWARDS_TO_LAST, Samples
from driftbandits.policies.auto.successes import LOW, ROUNDING, News, RateUnits, TwoValued
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.text import label
from driftbandits.types import Bools, Floats, Ints

BIRTH_DEVIATIONS = 2.0  # deviation from the leader's prediction at which hypotheses of a change are born
LOCAL_BIRTH_DEVIATIONS = 2.5  # deviation at which the hypothesis of a change of this arm alone is born
_NOISE_CHECKED = (8, 16, 32, 64, 128)  # rewards
FAR_TOO_SMALL = 4.0  # times: the noise over what it was taken for
LATE_BEFORE_SILENCE = 8  # rewards that came late, before it is asked whether most decisions get none
BIRTH_NATS = 1.5  # the same for two-valued rewards: log-likelihood advantage of knowing nothing about the arm


class Outlook(NamedTuple):
    """Expected rewards of the representatives before a reward, and which of them represent the played and the best arm.

    The entries of these two are the expected rewards of the arms themselves.
    """

    place: int
    best: int
    expected: Floats  # (M,)


class Learning(Policy):
    """The part of AutoBandit that learns from rewards."""

    _clock: int  # the next round without a reward
    _standing: Representatives
    _beliefs: Beliefs
    _mixture: Mixture
    _samples: Samples
    _probing: Probing
    _change_report: ChangeReport
    _trial: Trial
    _two_valued: TwoValued
    _exposures: Exposures
    _doubts: Doubts
    _silence_checked: int = 0  # binary digits of the number of late rewards when it was last asked whether others come
    _batch: RewardBatch
    _memory: Memory
    _since_tidy: int  # rewards learned
    _renewal_due: bool  # whether hypotheses are to be born before the next reward
    _glances: Floats  # probabilities of probes if all arms are allowed
    _known_arms: dict[int, tuple[float, float]]  # the leader's predictions for arms that had rewards
    _known_law: Floats | None
    _known_mean: Floats | None
    _known_best: int  # the arm with the highest expected reward, if known

    @abstractmethod
    def _notice_silence(self) -> None:
        """Count open decisions from now on, if of most decisions nothing is heard."""

    def _learn(self, feedback: Feedback) -> None:
        if self._exposures.active:
            feedback = feedback.chosen(feedback.rewards > LOW + ROUNDING)
        for row, reward in feedback.rows():
            self._learn_one(row, reward)
        if self._exposures.active and self._exposures.step_is_due():
            self._learn_exposed()

    def _learn_one(self, row: Row, reward: float) -> None:
        """Add an uninformative reward to the batch, see `batching`; learn the batch and then any other reward at
        once. Where open decisions count, a reward waits for the next step, and only successes are news.
        """
        if self._exposures.active:
            if reward > LOW + ROUNDING:
                self._exposures.tell(row.id, row.arm, reward, self._time())
            return
        seen = self._monitor.delays.seen
        if seen >= LATE_BEFORE_SILENCE and seen.bit_length() > self._silence_checked:
            self._silence_checked = seen.bit_length()
            self._notice_silence()
            if self._exposures.active:
                return
        if self._two_valued.told in _NOISE_CHECKED:
            self._mend_noise()
        news = self._two_valued.take(row.arm, reward)
        if news is not News.NONE or not self._lets_wait(row, reward):
            self._catch_up()
            self._learn_now(row, reward, news)
            self._refresh()

    def _lets_wait(self, row: Row, reward: float) -> bool:
        """Whether a reward goes into the batch; the batch is learned if it is full by then."""
        passed = row.id + 1 - self._clock
        waits = 0 < passed <= LONGEST_GAP and self._standing.everyone and not self._beliefs.moody
        waiting = self._waiting(row, reward) if waits else None
        if waiting is None:
            return False
        outlook, doubted, trying = self._outlook(row), self._probing.doubted, not self._trial.over
        before = self._memory.before(row.arm, row.id)
        self._compare(row.arm, outlook, reward, before)
        self._beliefs.units = self._two_valued.units
        self._clock = row.id + 1
        self._batch.add(row.arm, passed, *waiting, before)
        self._memory.tell(row.arm, row.id, reward)
        self._review(row, reward, outlook, on_time=True)
        if self._batch.enough or self._draws_anew(len(self._batch)):
            self._catch_up()
            self._refresh()
        elif trying or outlook.place != outlook.best or self._probing.doubted != doubted:
            self._update_probes()
        return True

    def _waiting(self, row: Row, reward: float) -> tuple[float, float] | None:
        """A reward in the coordinates of the beliefs, and its information; None if it must be learned by itself.

        One that is too informative to wait is learned at once, together with the batch if there is one.
        """
        arm, leader, units = row.arm, self._mixture.leader(), self._two_valued.units
        if self._beliefs.model.item(leader) != WHITE and units is None:
            mean, variance, noise = self._beliefs.predicts(leader, arm, self._memory.before(arm, row.id))
        else:
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
        return None if surprising else (units.coordinate(self._two_valued.successes_in(arm, reward)), said)

    def _catch_up(self) -> None:
        """Learn the rewards of the batch."""
        if not len(self._batch):
            return
        arms, passed, rewards, befores = self._batch.take()
        before, after = int(passed[0]), int(passed[1:].sum())
        self._mixture.pass_time(before, self._clock - 1 - after)
        self._renew(self._clock - 1 - after)  # before the first of them, as if it had not waited
        self._mixture.pass_time(after, self._clock - 1)
        if not self._draws_anew(len(arms)):
            self._samples.pass_time(before + after)
        if len(arms) == 1:  # faster than a batch
            self._beliefs.pass_time(before)
            self._take_in(self._beliefs.forecast(int(arms[0]), befores[0]), float(rewards[0]))
        else:
            told_before = np.array(befores, dtype=np.float64) if self._beliefs.remembers else None
            joint = observe_all(
                self._beliefs, arms, passed, rewards, reference=self._mixture.reference(), befores=told_before
            )
            if not self._draws_anew(len(arms)):
                self._samples.follow_all(arms, joint)
            self._mixture.update_all(joint.likelihood, np.square(joint.scores) if self._beliefs.units is None else None)
            self._tidy(len(arms))
        self._find_change()
        self._invalidate()

    def _refresh(self) -> None:
        """Compute the expected rewards and the probing law; both stay valid until the next reward is learned."""
        self._samples.seek(self._mixture.weights())
        self._invalidate()
        self._update_probes()

    def _update_probes(self) -> None:
        """Compute the probing law."""
        self._probing.needed = self._rewards_needed()
        self._glances = self._probing.law(self._standardised(), self._clock)
        self._known_law = None

    def _rewards_needed(self) -> float:
        """Rewards of an arm until a success rate that is larger by a deviation of the prior shows; else 1."""
        units = self._two_valued.units
        return 1.0 if units is None else max(units.noise / (TYPICAL_SIGNAL_VARIANCE + LEVEL_VARIANCE), 1.0)

    def _invalidate(self) -> None:
        """Invalidate the cached estimates and law."""
        self._known_arms.clear()
        self._known_law = self._known_mean = None

    def _learn_now(self, row: Row, reward: float, news: News) -> None:
        """Learn a reward: read the predictions before time passes, and let hypotheses be born before the weights are
        updated.
        """
        beliefs, outlook = self._beliefs, self._outlook(row)
        on_time = self._pass_time(row.id)
        before = self._memory.before(row.arm, row.id)
        if on_time:
            self._compare(row.arm, outlook, reward, before)
        self._memory.tell(row.arm, row.id, reward)
        told = self._in_coordinates(row.arm, reward, news)
        if told is not None:
            forecast = self._forecast(row, told, before) if on_time else beliefs.forecast(row.arm)
            able = None if on_time else beliefs.birth[: beliefs.count] <= row.id
            self._take_in(forecast, told, able)
        self._review(row, reward, outlook, on_time=on_time, learned=True)

    def _take_in(self, forecast: Forecast, told: float, able: Bools | None = None) -> None:
        """Update the beliefs by one reward; hypotheses not in `able` are left alone."""
        step = self._beliefs.observe(forecast, told, able, self._mixture.reference())
        if not self._draws_anew(1):
            self._samples.follow(step)
        self._mixture.update(
            step.likelihood,
            able,
            np.square(step.residual) / step.total if able is None and self._beliefs.units is None else None,
        )
        self._tidy(1)

    def _time(self) -> float:
        """Now, as ages of decisions are counted: the caller's clock, or rounds."""
        return self._exposures.now if self._exposures.timed else float(self.rounds)

    def _learn_exposed(self) -> None:
        """Learn what decisions have said since the last step, whether their rewards have come or not."""
        found = self._exposures.collect(self._time(), self._two_valued.plays)
        if not len(found.arms):
            return
        if self._mixture.take_noise_for_white():
            self._samples.choose(self._mixture.weights(), anew=True)
        passed = max(self.rounds - self._clock, 0)
        self._clock += passed
        self._samples.pass_time(passed)
        self._mixture.pass_time(passed, self._clock - 1)
        news = self._two_valued.take_exposed(found, self._exposures.decisions)
        self._change_units(news)
        units = self._two_valued.units
        if units is None or news is News.LEARN_ANEW:
            self._beliefs.pass_time(passed)
        else:
            successes, paid, squares = np.zeros((3, len(found.arms)))
            for arm, reward in found.told:
                place = int(np.searchsorted(found.arms, arm))
                successes[place] += self._two_valued.successes_in(arm, reward)
                paid[place] += reward - LOW
                squares[place] += (reward - LOW) ** 2
            self._doubt_exposed(found, paid, squares, units)
            self._take_in_exposed(found.arms, passed, successes, found.exposure, units)
        if self._two_valued.over:
            self._wait_in_order()
        kind = int(self._beliefs.kind[self._mixture.leader()])
        for arm in found.arms.tolist():
            plays, last = int(self._plays.counts[arm]), int(self._plays.last[arm])
            self._probing.see(self._standing.of(arm), kind, last + 1, plays=plays)
        self._find_change()
        self._refresh()

    def _wait_in_order(self) -> None:
        """Most decisions are successes that pay amounts that vary: learn them as plain rewards. As the missing ones
        are learned when their decisions are closed, the others must not overtake them.
        """
        self._exposures.stop()
        if self.missing is not None:
            self.order, self._open_is_data = "asked", False

    def _doubt_exposed(self, found: Collected, paid: Floats, squares: Floats, units: RateUnits) -> None:
        """Compare what these arms' successes paid in all with what was expected of so many decisions."""
        expected = self._samples.mean(self._mixture.weights(), found.arms)
        missed = paid - found.exposure * (expected - LOW)
        variances = found.exposure * units.of(found.arms).noise_of(expected)
        for place, arm in enumerate(found.arms.tolist()):
            values = (part.item(place) for part in (missed, squares, variances, expected, found.exposure))
            self._doubt(self._doubts.add(self._standing.of(arm), *values))

    def _take_in_exposed(self, arms: Ints, passed: int, successes: Floats, exposure: Floats, units: RateUnits) -> None:
        """Update the beliefs by the successes of these arms among so many decisions; surprising ones give birth."""
        surprises = self._surprising(arms, successes, exposure, units)
        if len(surprises):
            self._renewal_due = False
            self._mixture.renew(self._clock - 1)
            for arm in surprises.tolist():
                if self._had_reward(arm):
                    self._mixture.suspect(
                        arm, self._probing.chance(self._standing.of(arm), self._clock), self._clock - 1
                    )
        else:
            self._renew(self._clock - 1)
        coordinates = (successes / exposure - units.centre) / units.spread
        for start in range(0, len(arms), MOST_WAITING):
            some = slice(start, start + MOST_WAITING)
            rounds = np.zeros(len(arms[some]), dtype=np.int64)
            rounds[0] = passed if start == 0 else 0
            joint = observe_all(self._beliefs, arms[some], rounds, coordinates[some], exposure[some])
            if not self._draws_anew(len(rounds)):
                self._samples.follow_all(arms[some], joint)
            self._mixture.update_all(joint.likelihood)
            self._tidy(len(rounds))

    def _surprising(self, arms: Ints, successes: Floats, exposure: Floats, units: RateUnits) -> Ints:
        """Arms of which one who knows nothing expected this more than the leader did."""
        leader = self._mixture.leader()
        means = np.array([[0.0, self._beliefs.expects(leader, arm)[0]] for arm in arms.tolist()]).T
        rates = units.rates(means)
        found = successes * np.log(rates) - exposure * rates
        return np.asarray(arms[(found[0] - found[1]) / units.dispersion > BIRTH_NATS])

    def _compare(self, arm: int, outlook: Outlook, reward: float, before: Before) -> None:
        """Compare a reward with what was expected of it."""
        expected, units = outlook.expected.item(outlook.place), self._two_valued.units
        transient = float(self._mixture.weights() @ self._beliefs.transient(arm, before))
        expected += transient if units is None else transient * units.sizes.item(arm)
        noise = (
            self._beliefs.scatter.item(self._mixture.leader()) if units is None else units.noise_of_one(arm, expected)
        )
        self._doubt(self._doubts.see(outlook.place, expected, reward, noise))

    def _doubt(self, found: Misfit | None) -> None:
        """Say that beliefs do not fit the rewards."""
        if found is None:
            return
        arm, names = -1 if found.arm < 0 else int(self._standing.numbers[found.arm]), self.arms.names
        whose = "all arms" if arm < 0 else f"arm {arm}" if names is None else label(names[arm])
        expected, came = (self._scale.outward(value) for value in (found.expected, found.came))
        self._monitor.notices.append(
            DoubtWarning(
                f"what is believed does not fit the rewards of {whose}: lately {expected:.3g} was expected of each and "
                f"{came:.3g} came, {abs(found.errors):.0f} standard errors apart. Check that rewards are told to the "
                f"decisions they belong to, in one unit, and that reward_range is right; until then do not trust the "
                f"estimates"
            )
        )

    def _outlook(self, row: Row) -> Outlook:
        """Expected rewards before a reward."""
        standing, expected = self._standing, self._expected()
        if standing.everyone:
            return Outlook(row.arm, row.tag - 1 if row.tag else self._known_best, expected)
        weights = self._mixture.weights()
        best = row.tag - 1 if row.tag else self._samples.best(weights)
        outlook = Outlook(standing.of(row.arm), standing.of(best), expected.copy())
        outlook.expected[[outlook.place, outlook.best]] = self._samples.mean(weights, np.array([row.arm, best]))
        return outlook

    def _in_coordinates(self, arm: int, reward: float, news: News) -> float | None:
        """The reward in the coordinates of the beliefs, or None if they already include it: see `successes`."""
        self._change_units(news)
        units = self._two_valued.units
        if news is News.LEARN_ANEW:
            return None
        return reward if units is None else units.coordinate(self._two_valued.successes_in(arm, reward))

    def _change_units(self, news: News) -> None:
        """Let the beliefs speak of rewards or of chances, as is due after a reward."""
        before, units = self._beliefs.units, self._two_valued.units
        self._beliefs.units = units
        if news is News.NEW_UNITS and before is not None and units is not None:
            self._beliefs.change_units(before, units)
            self._samples.choose(self._mixture.weights(), anew=True)
        elif news in (News.LEARN_ANEW, News.END):
            self._learn_anew(self._two_valued.noise())

    def _mend_noise(self) -> None:
        """Learn anew what was learned while the noise was taken for far too small: a few rewards weighed far too much,
        and what came after them looked like changes.
        """
        if self._two_valued.units is not None:
            return
        self._catch_up()
        noise = float(self._mixture.weights() @ self._beliefs.scatter)
        if noise > FAR_TOO_SMALL * self._beliefs.first_noise:
            self._learn_anew(noise)
            self._refresh()

    def _learn_anew(self, noise: float) -> None:
        """Restart from the counts of every arm, whose rewards have this variance about their mean."""
        self._beliefs.expect_noise(noise, self._two_valued.told)
        self._mixture.learn_anew(self._change_report.regime, self._two_valued.tallies(noise))
        self._samples.choose(self._mixture.weights(), anew=True)
        self._change_report.restart()
        self._probing.trust()

    def _pass_time(self, ident: int) -> bool:
        """Advance the clock past round `ident`; False if it is past it already, that is, for a late reward."""
        passed = ident + 1 - self._clock
        if passed <= 0:
            return False
        self._beliefs.pass_time(passed)
        self._samples.pass_time(passed)
        self._mixture.pass_time(passed, ident)
        self._clock = ident + 1
        return True

    def _forecast(self, row: Row, reward: float, before: Before) -> Forecast:
        """Predictions of the hypotheses for the arm; a reward that surprises the leader first gives birth to
        hypotheses.
        """
        births, local = self._surprises(row.arm, reward, before)
        if births:
            self._renewal_due = False
            self._mixture.renew(row.id)
            if local and self._had_reward(row.arm):  # otherwise it differs from its neighbours, not from its past
                chance = self._probing.chance(self._standing.of(row.arm), self._clock)
                self._mixture.suspect(row.arm, chance, row.id)
        else:
            self._renew(row.id)
        return self._beliefs.forecast(row.arm, before)

    def _renew(self, now: int) -> None:
        """Let hypotheses be born that are due, just before rewards that update their weights."""
        if self._renewal_due:
            self._renewal_due = False
            self._mixture.renew_in_time(now)

    def _had_reward(self, arm: int) -> bool:
        """Whether the arm had a reward before; with very many arms, whether it was played before."""
        return bool(self._probing.told[arm] if self._standing.everyone else self._plays.counts[arm] > 1)

    def _surprises(self, arm: int, reward: float, before: Before) -> tuple[bool, bool]:
        """Whether a reward is surprising enough for births, and for the birth of a local change."""
        leader, units = self._mixture.leader(), self._beliefs.units
        mean, variance, noise = self._beliefs.predicts(leader, arm, before)
        if units is not None:
            enough = units.surprise(mean, success=reward > 0.0) > BIRTH_NATS
            return enough, enough
        deviations = abs(reward - mean) / math.sqrt(variance + noise)
        return deviations > BIRTH_DEVIATIONS, deviations > LOCAL_BIRTH_DEVIATIONS

    def _draws_anew(self, rewards: int) -> bool:
        """Whether samples will be redrawn after so many more rewards: then the present ones need not be updated."""
        return self._since_tidy + rewards >= REWARDS_TO_LAST

    def _tidy(self, rewards: int) -> None:
        """Redraw samples and let hypotheses be born every few rewards; sooner if the weights move."""
        mixture, samples = self._mixture, self._samples
        full = self._draws_anew(rewards)
        self._since_tidy = 0 if full else self._since_tidy + rewards
        if full:
            mixture.prune()
            if self._beliefs.gathered > TERMS_GATHERED // 2:  # samples are drawn from the multiplied-out form
                self._beliefs.flush()
            self._renewal_due = True
        weights = mixture.weights()
        if full or samples.lacking(weights):
            samples.choose(weights, anew=full)
        if full:
            self._change_report.settle(weights, self._settled_means(weights))
        self._batch.allow(mixture.in_doubt(self._clock))

    def _settled_means(self, weights: Floats) -> Floats:
        """Expected rewards of the representatives, for change reports."""
        return self._samples.mean(weights, self._standing.places)

    def _review(self, row: Row, reward: float, outlook: Outlook, *, on_time: bool, learned: bool = False) -> None:
        """After a reward: report a change, repeat a surprising probe, and mark the arms that were seen."""
        beliefs = self._beliefs
        leader, place = self._mixture.leader(), outlook.place
        deviation = math.sqrt(float(beliefs.scatter[leader]))
        telling = on_time and beliefs.units is None  # no single two-valued reward is surprising
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
            self._doubts.forget()
            best = first_largest(self._change_report.before)
            self._probing.record(found.moved, found.birth, best, shift=found.shift)
            self._two_valued.forget(slice(None) if found.whole else self._moved_arms(found))
            self._report(found)

    def _moved_arms(self, found: RegimeChange) -> Ints:
        """All arms that were counted and whose representatives have moved."""
        if self._standing.everyone:
            return found.moved
        counted, moved = np.flatnonzero(self._two_valued.plays), set(found.moved.tolist())
        return np.array([arm for arm in counted.tolist() if self._standing.of(arm) in moved], dtype=np.int64)

    def _report(self, found: RegimeChange, part: str = "") -> None:
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
            part=part,
        )

    def _expected(self) -> Floats:
        """Expected rewards of the representatives, shape (M,)."""
        if self._known_mean is None:
            self._known_mean = self._samples.expected(self._mixture.weights())
            self._known_best = first_largest(self._known_mean)
        return self._known_mean

    def _standardised(self) -> Floats:
        """Expected rewards on the scale of the priors."""
        units = self._beliefs.units
        return self._expected() if units is None else units.standardised(self._expected())
