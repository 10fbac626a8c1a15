"""AutoBandit: no horizon, no noise level, no window, no threshold, no length scale to get right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self, Unpack

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.checks import check_count, check_probability, check_word
from driftbandits.memory import FLOAT_BYTES, check_memory
from driftbandits.policies.auto.beliefs import TERMS_GATHERED, Beliefs, Forecast
from driftbandits.policies.auto.carrying import carry
from driftbandits.policies.auto.explanation import Explanation, explain
from driftbandits.policies.auto.joint import observe_all
from driftbandits.policies.auto.many_samples import ManySamples
from driftbandits.policies.auto.mixture import MORE_SLOTS, Mixture
from driftbandits.policies.auto.moments import moments
from driftbandits.policies.auto.priors import SIGNAL_VARIANCES, Priors
from driftbandits.policies.auto.samples import REWARDS_TO_LAST, Samples
from driftbandits.policies.auto.together import MOST_SAID, NOISE_SAID, Together
from driftbandits.policies.auto.trial import Trial
from driftbandits.policies.auto.two_valued import News, TwoValued
from driftbandits.policies.auto.vigilance import Vigilance
from driftbandits.policies.auto.watch import CHANGE_ODDS, RegimeChange, Watch
from driftbandits.policies.core.arms_change import ArmsChange
from driftbandits.policies.core.base import Policy
from driftbandits.policies.core.facts import Family
from driftbandits.policies.core.guard import guarded
from driftbandits.policies.core.hooks import UNTIL_TOLD
from driftbandits.policies.core.laws import freeze
from driftbandits.policies.core.lengthscales import ARMS_TRIED_PER_FEATURE
from driftbandits.policies.core.looking import around, cut
from driftbandits.policies.core.pending import Feedback, Row
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.seeding import stream
from driftbandits.types import Bools, Floats, Ints

SAMPLES_PER_HYPOTHESIS = 32
DEFAULT_RANK = 100
BIRTH_DEVIATIONS = 2.0  # off what the leader expects, for hypotheses of a change to be born
LOCAL_BIRTH_DEVIATIONS = 2.5  # for the hypothesis that only this arm has changed
BIRTH_NATS = 1.5  # for both, by which one who knows nothing of the arm expected a success or a failure more
_LEAST_SAMPLED_WEIGHT = 1e-3  # weight of the hypotheses sampled: they are chosen anew long before


class Outlook(NamedTuple):
    """What was expected, by representatives: which stand for the arm played and the best, and rewards.

    Those of these two are those of the arms themselves.
    """

    place: int
    best: int
    expected: Floats  # (M,)


class AutoBandit(Policy):
    """The policy with nothing to set: it learns how fast the world moves, how noisy and how smooth it is.

    It keeps hypotheses about when the present world began and whether it drifts, each a Gaussian posterior, weighs them
    by how well they predicted, and plays an arm as often as it is best in samples of the mixture (Thompson sampling
    with an explicit law). After a surprise, hypotheses of a change are born: everything is new, much is, only the level
    of all arms is, only this arm is. Rewards of two values (0 or 1, 0 or the price) are learned as chances of success.
    Arms that look worse are looked at now and then, the more often the more could be won, and the more changes were
    found that way. What each part does is said in its file in `policies/auto`.

    There is no theorem about its regret. What holds by construction: the law recorded is the law drawn from, every
    allowed arm has at least floor / N, and one reward changes the odds between two hypotheses by at most e^4.

    Parameters
    ----------
    horizon : not needed; with one, more rounds are refused
    kernel : "auto" tries length scales an octave apart on the arms' points, and independent arms, whatever kernel the
        arms came with; "given" believes that kernel. Arms made from a kernel matrix or from features have no points to
        try: "auto" then tries that kernel and independent arms. On arms crossed with segments it tries length scales
        of the options times correlations of the segments (the given one, 0, 0.5 and 1)
    floor : share of probability spread evenly over the allowed arms, so that each has at least floor / N
    rank : beyond twice as many arms, the kernel is cut to this many features; what they leave out is not learned (half
        the variance at most, or InputError), and "auto" has no independent arms
    others : see `Policy`

    `with_arms` gives new arms what the hypotheses say of them, exactly where the kernel is given and not cut to `rank`
    features; beyond that approximately, and a prior of independent arms is given up where arms become too many for it.

    Of more than 1,024 arms, some are compared at a time: the law is that of the best arms found so far, and arms are
    looked at, and named in records of changes, by representatives (see `many_samples`).

    Rewards that come late count only for hypotheses not born after their round; drifting ones take them as new.
    Cost per round: about 20 products of an (R, R) matrix with a vector, R the number of arms or features.

    >>> policy = AutoBandit(ArmSet([[0.0], [0.5], [1.0]], names=["low", "mid", "high"]), seed=0)
    >>> for _ in range(200):
    ...     choice = policy.ask()
    ...     policy.tell(choice.id, [0.1, 0.5, 0.2][choice.arm])
    >>> int(policy.law().argmax()), bool(policy.law().min() >= 0.001 / 3)
    (1, True)
    >>> policy.explain().best[0].name
    'mid'
    """

    colour = "#EE3377"
    family = Family.NOTHING_TO_SET
    reports_changes = True
    # 2: looks by what can be won; 3: rarer where changes show by themselves; 4: rewards that say little wait for others
    behaviour = 4
    microseconds_per_round = 260.0

    def __init__(
        self,
        arms: ArmSet,
        *,
        kernel: Literal["auto", "given"] = "auto",
        floor: float = 0.001,
        rank: int = DEFAULT_RANK,
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        self.kernel = check_word("kernel", kernel, ("auto", "given"), cure="a kernel of your own goes into the ArmSet")
        self.floor = check_probability("floor", floor, zero=True)
        self.rank = check_count("rank", rank)
        self._check_room()

    def _check_room(self) -> None:
        """Refuse a rank that cannot be held, before the kernels are tried."""
        size = len(self.arms)
        if self.kernel == "given":
            return  # what its features need is known when they are cut
        if size <= 2 * self.rank:  # independent arms are among the kernels: each hypothesis has an (N, N) matrix
            numbers = (Mixture.capacity(len(SIGNAL_VARIANCES)) + MORE_SLOTS) * size**2
        else:
            numbers = min(size, ARMS_TRIED_PER_FEATURE * self.rank) ** 2 if self.arms.kernel is not None else 0
        check_memory(
            FLOAT_BYTES * numbers, f"rank={self.rank} with {size:,} arms", cure="take a smaller rank or fewer arms"
        )

    def _start(self, horizon: int | None) -> None:
        self._build()
        self._clock = self.rounds  # the next round of which nothing is told
        self._mixture.start(self.rounds)
        self._samples.choose(self._mixture.weights(), anew=True)
        self._think_over()

    def _build(self) -> None:
        priors = Priors(self.arms, auto=self.kernel == "auto", rank=self.rank)
        standing = self._standing = priors.representatives
        self._beliefs = Beliefs(priors, Mixture.capacity(priors.count) + MORE_SLOTS)
        self._mixture = Mixture(self._beliefs)
        sampling = Samples if standing.everyone else ManySamples
        self._samples = sampling(self._beliefs, SAMPLES_PER_HYPOTHESIS, stream(self.seed, "samples"))
        self._vigilance = Vigilance(priors, len(standing.numbers), together=standing.together)
        self._watch = Watch(self._beliefs, len(standing.numbers))
        self._trial = Trial(len(self.arms))
        self._two_valued = TwoValued(len(self.arms))
        self._together = Together()
        self._since_tidy = 0  # rewards learned
        self._glances: Floats = np.zeros(len(standing.numbers))  # probabilities of looks where all arms are allowed
        self._known_arms: dict[int, tuple[float, float]] = {}  # what the leader expects of arms whose rewards came
        self._known_law: Floats | None = None
        self._known_mean: Floats | None = None

    # --- acting -------------------------------------------------------------------------------------------------

    def _law(self) -> Floats:
        if self._known_law is None:
            self._known_law = freeze(self._compose(None))
        return self._known_law

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        """Samples vote for their best allowed arm: better than the law restricted, which may have no mass there."""
        return self._compose(mask), not bool(mask.all())

    def _stamp_within(self, mask: Bools | None) -> tuple[int, int]:
        """With a mask the tag is one more than the best allowed arm: what the arm played will be compared with."""
        version, _ = self._stamp()
        return version, 0 if mask is None else 1 + self._samples.best(self._mixture.weights(), mask)

    def _compose(self, mask: Bools | None) -> Floats:
        law = self._samples.frequencies(self._mixture.weights(), mask)
        looks = self._looks(mask)
        if looks is not None:
            law *= 1.0 - float(np.add.reduce(looks))
            law[self._standing.places] += looks
        trial = self._trial.law(mask)
        if trial is not None:
            law *= 1.0 - float(trial.sum())
            law += trial
        law *= 1.0 - self.floor
        law += self.floor / len(law) if mask is None else mask * (self.floor / np.count_nonzero(mask))
        return law

    def _looks(self, mask: Bools | None) -> Floats | None:
        """Probabilities of a look at every representative; None if none of them is allowed."""
        if mask is None:
            return self._glances
        offered = mask[self._standing.places]
        if not offered.any():
            return None
        return self._vigilance.law(self._standardised(), self._clock, offered)

    def _quiet_rounds(self) -> int:
        return UNTIL_TOLD  # time passes with what is told, looks included

    # --- learning -----------------------------------------------------------------------------------------------

    def _learn(self, feedback: Feedback) -> None:
        for row, reward in feedback.rows():
            self._learn_one(row, reward)

    def _learn_one(self, row: Row, reward: float) -> None:
        """Let a reward that says little wait, see `together`; learn any other at once, and those waiting before it."""
        news = self._two_valued.take(row.arm, reward)
        if news is not News.NONE or not self._lets_wait(row, reward):
            self._catch_up()
            self._learn_now(row, reward, news)

    def _lets_wait(self, row: Row, reward: float) -> bool:
        """Whether a reward waits; those waiting are learned with it if they are enough by now."""
        passed = row.id + 1 - self._clock
        waiting = self._waiting(row.arm, reward) if passed > 0 and self._standing.everyone else None
        if waiting is None:
            return False
        outlook, doubted, trying = self._outlook(row), self._vigilance.doubted, not self._trial.over
        self._beliefs.units = self._two_valued.units
        self._mixture.pass_time(passed, row.id)
        self._clock = row.id + 1
        self._together.add(row.arm, passed, *waiting)
        self._look_back(row, reward, outlook, on_time=True)
        if self._together.enough or self._since_tidy + len(self._together) >= self._samples.rewards_to_last:
            self._catch_up()
        elif trying or outlook.place != outlook.best or self._vigilance.doubted != doubted:
            self._think_over()
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
        if said > MOST_SAID and not len(self._together):
            return None
        if units is None:
            surprising = (reward - mean) ** 2 > BIRTH_DEVIATIONS**2 * (variance + noise)
            return None if surprising else (reward, said)
        success = self._two_valued.is_success(reward)
        surprising = units.surprise(mean, success=success) > BIRTH_NATS
        return None if surprising else (units.coordinate(float(success)), said)

    def _catch_up(self) -> None:
        """Learn the rewards that wait."""
        if not len(self._together):
            return
        arms, passed, rewards = self._together.take()
        joint = observe_all(self._beliefs, arms, passed, rewards)
        self._samples.pass_time(int(passed.sum()))
        self._samples.follow_all(arms, joint)
        self._mixture.update_all(joint.likelihood)
        self._tidy(len(arms))
        self._find_change()
        self._think_over()

    def _think_over(self) -> None:
        """What is expected, and what is looked at, from now on; it stays until something more is learned."""
        weights = self._mixture.weights()
        self._samples.seek(weights)
        self._known_arms.clear()
        self._known_law, self._known_mean = None, self._samples.expected(weights)  # the next reward needs it
        self._glances = self._vigilance.law(self._standardised(), self._clock)

    def _learn_now(self, row: Row, reward: float, news: News) -> None:
        """What was expected is read before time passes, and hypotheses are born before the reward is weighed."""
        beliefs, mixture, samples = self._beliefs, self._mixture, self._samples
        outlook = self._outlook(row)
        on_time = self._pass_time(row.id)
        told = self._in_coordinates(reward, news)
        if told is not None:
            forecast = self._forecast(row, told) if on_time else beliefs.forecast(row.arm)
            able = None if on_time else beliefs.birth[: beliefs.count] <= row.id
            step = beliefs.observe(forecast, told, able)
            samples.follow(row.arm, step)
            mixture.update(step.likelihood, able)
            self._tidy(1)
        self._look_back(row, reward, outlook, on_time=on_time, learned=True)
        self._think_over()

    def _outlook(self, row: Row) -> Outlook:
        """What was expected before a reward."""
        standing, expected = self._standing, self._expected()
        if standing.everyone:
            return Outlook(row.arm, row.tag - 1 if row.tag else int(expected.argmax()), expected)
        weights = self._mixture.weights()
        best = row.tag - 1 if row.tag else self._samples.best(weights)
        outlook = Outlook(standing.of(row.arm), standing.of(best), expected.copy())
        outlook.expected[[outlook.place, outlook.best]] = self._samples.mean(weights, np.array([row.arm, best]))
        return outlook

    def _in_coordinates(self, reward: float, news: News) -> float | None:
        """The reward as the beliefs want it, None if they have it already: see `two_valued`."""
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
        self._mixture.learn_anew(self._watch.regime, self._two_valued.tallies())
        self._samples.choose(self._mixture.weights(), anew=True)
        self._watch.restart()
        self._vigilance.trust()

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
        beliefs, mixture = self._beliefs, self._mixture
        forecast = beliefs.forecast(row.arm)
        births, local = self._surprises(forecast, reward)
        if not births:
            return forecast
        mixture.renew(row.id)
        if local and self._told_before(row.arm):  # else the arm is unlike its neighbours, not unlike itself
            mixture.suspect(row.arm, self._vigilance.chance(self._standing.of(row.arm), self._clock), row.id)
        return beliefs.forecast(row.arm)

    def _told_before(self, arm: int) -> bool:
        """Whether this is not the first reward of an arm; of one among very many, not its first play."""
        return bool(self._vigilance.told[arm] if self._standing.everyone else self._plays.counts[arm] > 1)

    def _surprises(self, forecast: Forecast, reward: float) -> tuple[bool, bool]:
        """Whether a reward is far enough off what the leader expects for births, and for that of a local change."""
        leader, units = self._mixture.leader(), self._beliefs.units
        if units is not None:
            enough = units.surprise(float(forecast.mean[leader]), success=reward > 0.0) > BIRTH_NATS
            return enough, enough
        surprise = abs(forecast.surprise(leader, reward, float(self._beliefs.noise[leader])))
        return surprise > BIRTH_DEVIATIONS, surprise > LOCAL_BIRTH_DEVIATIONS

    def _tidy(self, rewards: int) -> None:
        """Every few rewards let hypotheses be born and draw new samples; sooner if the weight moves."""
        mixture, samples = self._mixture, self._samples
        self._since_tidy += rewards
        full = self._since_tidy >= samples.rewards_to_last
        if full:
            self._since_tidy = 0
            if self._beliefs.gathered > TERMS_GATHERED // 3:  # samples are drawn from what is multiplied out
                self._beliefs.flush()
            mixture.prune()
            mixture.renew_in_time(self._clock)
        weights = mixture.weights()
        if full or samples.lacking(weights):
            samples.choose(weights, anew=full)
        if full:
            self._watch.settle(weights, samples.mean(weights, self._standing.places))

    def _look_back(self, row: Row, reward: float, outlook: Outlook, *, on_time: bool, learned: bool = False) -> None:
        """Was that a change, was the arm surprisingly good, and which arms count as seen by it?"""
        beliefs = self._beliefs
        leader, place = self._mixture.leader(), outlook.place
        deviation = math.sqrt(float(beliefs.noise[leader]))
        telling = on_time and beliefs.units is None  # of two values none is surprising
        if telling and place == outlook.best:
            self._vigilance.compare(reward, float(outlook.expected[place]), deviation, self._clock)
        if learned:
            self._find_change()
        if place == outlook.best:
            self._vigilance.trust(place)
        elif telling:
            self._vigilance.verify(place, outlook.best, reward, outlook.expected, deviation, self._clock)
        self._vigilance.confirm(place, reward, deviation)
        self._vigilance.see(place, int(beliefs.kind[leader]), row.id + 1)
        self._trial.count(row.arm)

    def _find_change(self) -> None:
        found = self._watch.find_change(self._mixture.weights(), self._clock)
        if found is not None:
            best = int(self._watch.before.argmax())
            self._vigilance.record(found.moved, found.birth, best, shift=found.shift)
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
            epoch=self._watch.epoch - 1,
            interval=(found.birth, self._clock),
            statistic=math.log(found.odds),
            threshold=math.log(CHANGE_ODDS),
            arms=self._standing.numbers[found.named].tolist(),
            before=found.named_before,
            after=found.named_after,
            forgot=found.forgot,
            odds=found.odds,
        )

    # --- beliefs ------------------------------------------------------------------------------------------------

    def _expected(self) -> Floats:
        """Expected rewards of the representatives, shape (M,)."""
        if self._known_mean is None:
            self._known_mean = self._samples.expected(self._mixture.weights())
        return self._known_mean

    def _estimate(self) -> Floats:
        return self._expected() if self._standing.everyone else self._samples.mean(self._mixture.weights())

    def _interval(self) -> tuple[Floats, Floats]:
        return around(*moments(self._beliefs, self._mixture.weights()))

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        if self._standing.everyone:
            return super()._glimpse(arms)
        weights = self._mixture.weights()
        return [self._samples.mean(weights, arms), *around(*moments(self._beliefs, weights, arms))]

    def _standardised(self) -> Floats:
        """The expected rewards on the scale of the priors."""
        units = self._beliefs.units
        return self._expected() if units is None else units.standardised(self._expected())

    @guarded
    def explain(self) -> Explanation:
        """What it believes now, in a few lines: print it, or read its fields.

        Returns
        -------
        Explanation
        """
        self._begin_once()
        return explain(
            self._mixture,
            self._watch,
            rounds=self.rounds,
            looks=self._vigilance.summary(self._standardised(), self._clock),
            changes=self.changes_found,
            names=self.arms.names,
            scale=self._scale,
            estimate=self._estimate(),
            interval=cut(self._interval()),
        )

    # --- state --------------------------------------------------------------------------------------------------

    def _carried_tags(self, tags: Ints, change: ArmsChange) -> Ints:
        """Of a best allowed arm that is gone nothing is left to compare with."""
        return np.where(tags > 0, change.target[np.maximum(tags - 1, 0)] + 1, tags)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._build()
        self._clock = old._clock
        carry(old, self, change)

    def _settings(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "floor": self.floor, "rank": self.rank}

    def _export(self) -> dict[str, Any]:
        parts = ("beliefs", "mixture", "samples", "vigilance", "watch", "two_valued", "trial", "together")
        return {
            "clock": self._clock,
            "since_tidy": self._since_tidy,
            "glances": self._glances.copy(),
            **{name: getattr(self, f"_{name}").export() for name in parts},
        }

    def _import(self, state: states.Reader) -> None:
        self._build()
        self._clock = state.integer("clock", high=self.rounds)
        self._two_valued.load(state.reader("two_valued"), rounds=self.rounds)
        self._beliefs.units = self._two_valued.units
        self._beliefs.load(state.reader("beliefs"), rounds=self.rounds)
        self._mixture.load(state.reader("mixture"), rounds=self.rounds)
        self._samples.load(state.reader("samples"))
        sampled = self._mixture.weights()[self._samples.rows]
        states.check(float(sampled.sum()) >= _LEAST_SAMPLED_WEIGHT, "hypotheses sampled")
        self._vigilance.load(state.reader("vigilance"), rounds=self._clock)
        self._watch.load(state.reader("watch"), rounds=self.rounds)
        self._trial.load(state.reader("trial"))
        self._together.load(state.reader("together"), arms=len(self.arms))
        self._since_tidy = state.integer("since_tidy", high=REWARDS_TO_LAST - 1)
        states.check(self._since_tidy + len(self._together) < REWARDS_TO_LAST, "rewards that wait")
        self._glances = state.array("glances", np.float64, self._glances.shape)
        states.check(bool((self._glances >= 0.0).all() and self._glances.sum() <= 1.0), "glances")
        tags = self._pending.rows()["tag"]
        states.check(bool(((tags >= 0) & (tags <= len(self.arms))).all()), "best allowed arms of open decisions")
