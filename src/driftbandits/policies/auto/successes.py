"""Rewards that are mostly 0 and sometimes an amount: AutoBandit learns chances of success, and what a success pays.

Coordinates in which rewards of two values are chances of success, and the way to rewards and back.

symbol  name     shape  meaning
q_a                     chance of success of arm a: its reward is -1 + reach_a with it, -1 otherwise, inside
x_a                     what the hypotheses believe in: q_a = centre + spread x_a
p       centre          what is expected of an arm of which nothing is known
s       spread          such that no prior has a larger deviation of q than min(p, 1 - p)
        reach    (N,)   what a success has above a failure

All arms have the same variance of the noise in these coordinates, p (1 - p) / s^2: the mean of an arm that is like no
other is then that of a Beta posterior, (k + 1) / (n + 1 / p) where the deviation of the prior is p. Were the variance
that of what is believed now, failures of an arm that had none but failures would weigh the most, and good arms that
begin badly be given up. What is known of an arm's chance is read with the variance of that chance, q (1 - q) instead of
p (1 - p), and skewed as a Gamma law is.

Rewards of two values: have all rewards of every arm been the low end of the range or one other value of the arm?

They are then successes and failures, 1 for a click or the price for a sale, and what is to be learned of an arm is its
chance of success (see above). It begins when both kinds have been seen.

A third value of an arm makes successes amounts that vary, such as the value of a basket. A reward then counts as
reward / reach successes, where reach is what a success of the arm paid on average when everything was last learned
anew. So the expected reward of an arm converges to the mean of its rewards, whatever the distribution of the amounts.
The variance of the noise grows by the dispersion, E[v^2] / E[v]^2 of the amounts v of successes, and evidence between
hypotheses is divided by it (quasi-likelihood). Once more than half of the rewards are successes, they are learned as
plain rewards from then on.

What is expected of an arm of which nothing is known, the centre, is the mean over the arms of their chances. After the
first success it is little more than a guess, and all that was learned rests on it. So it is estimated anew whenever the
rarer kind has become twice as frequent, and the first few times everything is learned anew from the counts of every
arm: there is nothing yet to be said about changes. Later, only what is new begins with the new centre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from driftbandits import state as states
from driftbandits.policies.auto.exposures import Collected
from driftbandits.policies.auto.hypotheses import LEVEL_VARIANCE, SIGNAL_VARIANCES
from driftbandits.state.declared import Declared, Value, added, array, count, flag, number
from driftbandits.state.reader import check_whole
from driftbandits.types import Floats, Ints

LOW = -1.0  # the reward of a failure, inside
LEAST_RATE = 1e-4
SHRUNK_BY = 0.02  # of its distance to the centre every chance is taken nearer to it, so that none is ruled out
_USUAL_SPREAD = 0.5  # one unit of rewards inside, where a success reaches from -1 to 1
_WIDEST_DEVIATION = math.sqrt(max(SIGNAL_VARIANCES) + LEVEL_VARIANCE)
LARGEST_RATIO = _USUAL_SPREAD * _WIDEST_DEVIATION / LEAST_RATE  # of two spreads


@dataclass(frozen=True, slots=True)
class RateUnits:
    """What a coordinate means.

    >>> units = RateUnits(0.02, np.array([2.0, 1.0]))
    >>> units.rewards(np.zeros(2)).round(3).tolist()
    [-0.96, -0.98]
    >>> round(units.spread * _WIDEST_DEVIATION, 3)
    0.02
    """

    centre: float
    reach: Floats
    dispersion: float = 1.0
    spread: float = field(init=False)

    def __post_init__(self) -> None:
        rarer = min(self.centre, 1.0 - self.centre)
        object.__setattr__(self, "spread", min(rarer / _WIDEST_DEVIATION, _USUAL_SPREAD))

    def of(self, arms: Ints | slice) -> RateUnits:
        """The same for some of the arms."""
        return RateUnits(self.centre, self.reach[arms], self.dispersion)

    @property
    def noise(self) -> float:
        """Variance of the noise."""
        return self.centre * (1.0 - self.centre) * self.dispersion / self.spread**2

    @property
    def slowness(self) -> float:
        """How many rewards say as much as one does where both kinds are as frequent."""
        return 0.25 * self.dispersion / (self.centre * (1.0 - self.centre))

    @property
    def sizes(self) -> Floats:
        """Rewards per coordinate, for every arm."""
        return self.reach * self.spread

    def coordinate(self, rate: float) -> float:
        """The coordinate of an arm with this chance, or (1 and 0) of a success and a failure."""
        return (rate - self.centre) / self.spread

    def rates(self, coordinates: Floats) -> Floats:
        """Chances, none of them ruled out."""
        bare = np.minimum(np.maximum(self.centre + self.spread * coordinates, LEAST_RATE), 1.0 - LEAST_RATE)
        return np.asarray(bare + SHRUNK_BY * (self.centre - bare))

    def likelihood(self, coordinates: Floats, *, success: bool) -> Floats:
        """Log probability of a success, or of a failure, where these coordinates are expected."""
        rates = self.rates(coordinates)
        return np.log(rates) if success else np.log1p(-rates)

    def surprise(self, coordinate: float, *, success: bool) -> float:
        """Nats by which one who knows nothing of the arm expected this more than one who expects `coordinate`."""
        ignorant, expected = self.likelihood(np.array([0.0, coordinate]), success=success).tolist()
        return float(ignorant - expected) / self.dispersion

    def evidence(self, coordinates: Floats, told: Floats | np.float64) -> Floats:
        """Quasi-likelihood (log) of rewards `told` as coordinates where `coordinates` are expected; both broadcast."""
        rates = self.rates(coordinates)
        if self.dispersion == 1.0:
            return np.where(told > 0.0, np.log(rates), np.log1p(-rates))
        successes = self.centre + self.spread * told
        return np.asarray((successes * np.log(rates) + (1.0 - successes) * np.log1p(-rates)) / self.dispersion)

    def evidence_of_many(self, means: Floats, variances: Floats, told: Floats, weights: Floats) -> Floats:
        """Log probability of `told` on average over so many decisions (`weights`), up to what is common to all.

        Successes are a Poisson number of a Gamma chance, with this mean and variance in coordinates: a negative
        binomial law, which takes fractions of decisions too. Both numbers are scaled by how much less (chances are not
        small) or more (amounts vary) successes scatter than a Poisson number.
        """
        scale = weights / ((1.0 - self.centre) * self.dispersion)
        rates = self.rates(means)
        shape = np.square(rates) / (self.spread**2 * self._relative_noise(rates) * variances)
        successes, expected = np.maximum(self.centre + self.spread * told, 0.0) * scale, rates * scale
        found = gammaln(successes + shape) - gammaln(shape) - shape * np.log1p(expected / shape)
        return np.asarray(found + successes * np.log(rates / (shape + expected)))

    # --- rewards ------------------------------------------------------------------------------------------------

    def rewards(self, coordinates: Floats) -> Floats:
        """Expected rewards, inside; arms are the last axis."""
        return LOW + self.reach * self.rates(coordinates)

    def variances(self, coordinates: Floats, variances: Floats) -> Floats:
        """Variances of the expected rewards of all arms where those of the coordinates are `variances`."""
        return np.square(self.sizes) * self._relative_noise(self.rates(coordinates)) * variances

    def noise_of(self, rewards: Floats) -> Floats:
        """Variance of a single reward of every arm where these are expected, shape (N,)."""
        return np.asarray((rewards - LOW) * (LOW + self.reach * self.dispersion - rewards))

    def noise_of_one(self, arm: int, reward: float) -> float:
        """The same of one arm."""
        return (reward - LOW) * max(LOW + self.reach.item(arm) * self.dispersion - reward, 0.0)

    def _relative_noise(self, rates: Floats) -> Floats:
        return np.asarray(rates * (1.0 - rates) / (self.centre * (1.0 - self.centre)))

    def sampled_rewards(self, samples: Floats) -> Floats:
        """Rewards of samples of the coordinates, shape (k, m, N), from (k, m + 1, N) with the means before them.

        The rarer of success and failure is given a Gamma law of the right mean and variance by Wilson and Hilferty's
        cube of a normal variable: a few failures more or less do not rule an arm out, as its normal law would.
        """
        means = samples[:, :1]
        rates = self.rates(means)
        rare = rates < 0.5
        base = np.where(rare, rates, 1.0 - rates)
        third = np.where(rare, self.spread, -self.spread) * np.sqrt(self._relative_noise(rates)) / (3.0 * base)
        root = (samples[:, 1:] - means) * third
        root += 1.0 - np.square(root).sum(axis=1, keepdims=True) / root.shape[1]
        np.maximum(root, 0.0, out=root)
        drawn = root * root * root  # of the rarer kind, over its mean
        drawn *= np.where(rare, self.reach * base, -self.reach * base)
        drawn += np.where(rare, LOW, LOW + self.reach)
        return np.asarray(drawn)

    def standardised(self, rewards: Floats) -> Floats:
        """Rewards on the scale of the priors: 0 is what is expected of an arm that is like any other."""
        reach = float(self.reach.mean())
        return np.asarray((rewards - (LOW + reach * self.centre)) / (reach * self.spread))


ROUNDING = 1e-9
RARER_FOR_A_FIRM_CENTRE = 32  # of the rarer kind
LEAST_MOVE = 0.1  # of the centre, relative to the rarer chance: less changes nothing
REWARDS_FOR_A_SHARE = 32  # before so many, nobody can say whether most rewards are successes
COUNTED = 128  # rewards, at least, though they be neither successes nor failures: see `Learning._mend_noise`
_FAR_FROM_USUAL = 2.0  # times, up or down: what an arm pays is then measured anew
_WORTH_OF_USUAL = 2.0  # successes, of what successes of all arms pay where that of one is estimated


class News(Enum):
    """What a reward has done to the units that are learned in."""

    NONE = auto()
    LEARN_ANEW = auto()  # chances, from the counts of all arms, this reward among them
    NEW_UNITS = auto()  # chances about another centre; what is believed stays
    END = auto()  # most rewards are successes of many values: plain rewards, from the counts of all arms


class Tally(NamedTuple):
    """The mean of an arm's rewards, in the coordinates learned in, and the variance of its noise."""

    arm: int
    mean: float
    noise: float


class TwoValued(Declared):
    """Values and counts of every arm.

    >>> rewards = TwoValued(2)
    >>> [rewards.take(arm, reward).name for arm, reward in [(0, -1.0), (1, -1.0), (0, 0.5), (0, 0.5), (0, 0.7)]]
    ['NONE', 'NONE', 'LEARN_ANEW', 'LEARN_ANEW', 'LEARN_ANEW']
    >>> rewards.varying, rewards.successes_in(0, -1.0), rewards.successes_in(0, 0.7) > 1.0
    (True, 0.0, True)
    """

    def __init__(self, arms: int) -> None:
        self.begun = False
        self.over = False
        self.centre = 0.5
        self.value: Floats = np.full(arms, np.nan)  # of a success, inside; NaN where none was seen
        self.plays: Floats = np.zeros(arms)  # decisions that are known to be successes or failures, see `exposures`
        self.successes: Ints = np.zeros(arms, dtype=np.int64)
        self.varying = False  # whether successes of an arm differ
        self.dispersion = 1.0
        self.paid: Floats = np.zeros(arms)  # by successes, above a failure
        self.squares: Floats = np.zeros(arms)  # of what each paid
        self.told = 0.0  # plays counted, of all arms
        self._won = 0
        self._units: RateUnits | None = None
        self._looked = 0  # how often the rarer kind had been seen when the centre was last looked at
        self._firm = False

    # --- rewards ------------------------------------------------------------------------------------------------

    def take(self, arm: int, reward: float) -> News:
        """Count a reward."""
        success = reward > LOW + ROUNDING
        if self.over:
            if self.told <= COUNTED:
                self._count(arm, reward, success)
            return News.NONE
        varies = success and not self.varying and self._is_third(arm, reward)
        if self._is_dense(self.told):
            news = self._end()
            if news is News.NONE:
                self._count(arm, reward, success)
            return news
        self._count(arm, reward, success)
        return self._news(varies, [arm] if success else [])

    def _count(self, arm: int, reward: float, success: bool) -> None:
        self.plays[arm] += 1
        self.told += 1
        if success:
            self._count_success(arm, reward - LOW)

    def take_exposed(self, found: Collected, decisions: int) -> News:
        """Count exposures and successes; there were so many decisions so far."""
        if self._is_dense(decisions):
            return self._end()
        self.plays[found.arms] += found.exposure
        self.told = float(self.plays.sum())  # as in a state that was read: sums of fractions depend on their order
        varies = False
        for arm, reward in found.told:
            varies |= not self.varying and self._is_third(arm, reward)
            self._count_success(arm, reward - LOW)
        return self._news(varies, [arm for arm, _ in found.told])

    def _end(self) -> News:
        self.over = True
        return News.END if self.begun else News.NONE

    def _news(self, varies: bool, successful: list[int]) -> News:
        """What rewards, among them successes of these arms, have done to the units; `varies`: to the first of many."""
        if varies:
            return self._begin_varying()
        news = self._look()
        if news is News.NONE and any(self._pays_otherwise(arm) for arm in successful):
            self._measure_amounts(anew=True)
            return News.LEARN_ANEW
        return news

    def _is_third(self, arm: int, reward: float) -> bool:
        """Whether a success of the arm paid something else before; its first success is noted."""
        if self.value[arm] == reward:
            return False
        if not np.isnan(self.value[arm]):
            return True
        self.value[arm] = reward
        self._units = None
        return False

    def _is_dense(self, decisions: float) -> bool:
        """Whether successes vary and most of so many decisions are successes."""
        return self.varying and decisions >= REWARDS_FOR_A_SHARE and 2 * self._won > decisions

    def _count_success(self, arm: int, paid: float) -> None:
        self.successes[arm] += 1
        self._won += 1
        self.paid[arm] += paid
        self.squares[arm] += paid * paid

    def _begin_varying(self) -> News:
        self.varying = True
        self._look()
        if not self.begun:  # no failure yet
            return News.NONE
        self._measure_amounts(anew=True)
        return News.LEARN_ANEW

    def _measure_amounts(self, *, anew: bool) -> None:
        """Estimate the dispersion of amounts and, if everything is learned anew, what a success of each arm pays."""
        if not self.varying:
            return
        if anew:
            had = self.successes > 0
            usual = self.paid.sum() / self._won if self._won else float(self._reach().mean())
            own = (self.paid + _WORTH_OF_USUAL * usual) / (self.successes + _WORTH_OF_USUAL)
            self.value = np.where(had, LOW + own, np.nan) if had.any() else self.value
        reach = self._reach()
        squares, amounts = float((self.squares / reach**2).sum()), float((self.paid / reach).sum())
        self.dispersion = max((squares + _WORTH_OF_USUAL) / (amounts + _WORTH_OF_USUAL), 1.0)
        self._units = None

    def _pays_otherwise(self, arm: int) -> bool:
        """Whether successes of the arm pay far from what it was measured to pay: a chance above 1 would be needed.

        Checked at its first success, its second, its fourth and so on, so everything is learned anew only a few times.
        """
        count = int(self.successes[arm])
        if self.units is None or not self.varying or count & (count - 1):
            return False
        ratio = float(self.paid[arm]) / count / float(self.units.reach[arm])
        return not 1.0 / _FAR_FROM_USUAL < ratio < _FAR_FROM_USUAL

    def successes_in(self, arm: int, reward: float) -> float:
        """How many successes a reward counts for: 1 or 0, or what it is over what a success of the arm usually pays."""
        units = self.units
        if not self.is_success(reward):
            return 0.0
        return (reward - LOW) / float(units.reach[arm]) if self.varying and units is not None else 1.0

    def is_success(self, reward: float) -> bool:
        """Whether it is not the low end of the range."""
        return reward > LOW + ROUNDING

    def _look(self) -> News:
        """Whether the centre is another now; looked at whenever the rarer kind was seen twice as often as then."""
        rarer = int(min(self._won, self.told - self._won))
        if rarer < max(2 * self._looked, 1):
            return News.NONE
        self._looked = rarer
        before, firm = self.centre, self._firm
        centre = self._mean_rate()
        self._firm = firm or rarer >= RARER_FOR_A_FIRM_CENTRE
        moved = abs(centre - before) >= LEAST_MOVE * min(before, 1.0 - before)
        if self.begun and not (moved or (self.varying and not firm)):
            return News.NONE
        self.centre, begun, self.begun, self._units = centre, self.begun, True, None
        news = News.NEW_UNITS if firm and begun else News.LEARN_ANEW
        self._measure_amounts(anew=news is News.LEARN_ANEW)
        return news

    def _mean_rate(self) -> float:
        """Mean over the arms of their chances, each shrunk towards that of all rewards by about 1 / chance plays.

        That of all rewards would move to the chance of the arm that is played most.
        """
        pooled = min((self._won + 0.5) / (self.told + 1.0), 1.0 - LEAST_RATE)
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
            self._units = RateUnits(self.centre, self._reach(), self.dispersion)
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
        if self.varying:
            return float((self.squares - np.square(self.paid) / plays).sum() / plays.sum())
        rates = (self.successes + self.centre) / (plays + 1.0)
        spread = np.square(self._reach()) * rates * (1.0 - rates)
        return float(plays @ spread / plays.sum())

    def tallies(self, noise: float) -> list[Tally]:
        """What was counted, of every arm that was told of, where this is the variance of a reward about its mean."""
        units, reach = self.units, self._reach()
        found = []
        for arm in np.flatnonzero(self.plays).tolist():
            plays = float(self.plays[arm])
            successes = float(self.paid[arm] / reach[arm]) if self.varying else int(self.successes[arm])
            rate = successes / plays
            mean = LOW + float(reach[arm]) * rate if units is None else units.coordinate(rate)
            found.append(Tally(arm, mean, noise / plays))
        return found

    def forget(self, arms: Ints | slice) -> None:
        """These arms have changed: what was counted before says nothing of them."""
        for counted in (self.plays, self.successes, self.paid, self.squares):
            counted[arms] = 0
        self._add_up()
        self._looked = min(self._looked, RARER_FOR_A_FIRM_CENTRE // 2)

    def _add_up(self) -> None:
        self.told, self._won = float(self.plays.sum()), int(self.successes.sum())

    # --- state --------------------------------------------------------------------------------------------------

    saved = (
        flag("begun"),
        flag("over"),
        number("centre", within=(LEAST_RATE, 1.0 - LEAST_RATE)),
        Value(
            "value",
            lambda value: np.where(np.isnan(value), LOW, value),
            lambda state, _, now, __: _read_value(state, now.shape),
        ),
        Value("plays", lambda plays: _written_plays(plays), lambda state, _, now, __: _read_plays(state, now.shape)),
        array("successes"),
        count("looked"),
        flag("firm"),
        added(flag("varying")),
        added(number("dispersion", within=(1.0, None))),
        added(array("paid", within=(0.0, None))),
        added(array("squares", within=(0.0, None))),
    )

    def _check_state(self, *, rounds: int = 0, **known: Any) -> None:
        states.check(not self.begun or not bool(np.isnan(self.value).all()), "value")
        states.check(float(self.plays.sum()) <= (1.0 + ROUNDING) * rounds, "plays")
        check_whole(self.successes, rounds, "successes")
        limit = (2.0 + ROUNDING) * self.successes * (1.0 + ROUNDING)
        states.check(bool((self.paid <= limit).all() and (self.squares <= 2.0 * limit).all()), "paid")
        self._add_up()
        self._units = None
        if not self.varying and not self.paid.any():  # a state written before amounts could vary
            reach = np.where(np.isnan(self.value), LOW, self.value) - LOW
            self.paid, self.squares = self.successes * reach, self.successes * reach**2


def _written_plays(plays: Floats) -> Floats | Ints:
    """Plays of every arm: whole numbers, unless open decisions are counted in part."""
    whole = plays.astype(np.int64)
    return whole if bool((whole == plays).all()) else plays.copy()


def _read_plays(state: states.Reader, shape: tuple[int, ...]) -> Floats:
    """Inverse of `_written_plays`."""
    raw = state.raw("plays")
    whole = isinstance(raw, np.ndarray) and raw.dtype == np.int64
    plays = state.array("plays", np.int64 if whole else np.float64, shape).astype(np.float64)
    states.check(bool((plays >= 0.0).all()), "plays")
    return plays


def _read_value(state: states.Reader, shape: tuple[int, ...]) -> Floats:
    """What a success of each arm pays, NaN where that is not known; a state has the low end there."""
    value = state.array("value", np.float64, shape)
    states.check(bool((np.abs(value) <= 1.0 + ROUNDING).all()), "value")
    return np.where(value > LOW + ROUNDING, value, np.nan)
