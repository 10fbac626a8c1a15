"""What AutoBandit's hypotheses are about: priors of the reward function, their features, rewards of two values.

Many arms read the coordinates through features; those of a kernel are held once, whatever the size of its signal.

symbol  name       shape    meaning
phi_a   features   (N, r)   of one kernel
s, l                        variances of the signal and of the level that all arms share
h_a                (R,)     (sqrt(s) phi_a, zeros, sqrt(l)): the reward of arm a is h_a' x, see below

Where there are very many arms, some represent all: which arms were seen and which have moved is recorded of these.

An arm is represented by the nearest of them: by its point, or by its features where there are no points. Up to
`MOST_REPRESENTATIVES` arms represent themselves. Where arms are options in segments, some options represent all, in
every segment the same.

What the reward function may look like before any reward: one Gaussian prior per length scale.

symbol  name      shape
c                 number of a prior
P_c     prior     covariance of all arms' rewards: signal K_c + level 1 1'
h_a     row       (R,), how arm a reads the coordinates: f(a) = h_a' x
x                 (R,), the coordinates; N(0, P) in them

Few arms are their own coordinates: h_a is a unit vector, and reading costs nothing. Many arms are linear in R - 1
features of the kernel; P is then the identity. In both cases the level that all arms share is the last coordinate. Only
new arms need it where arms are coordinates (`arm_migration`): what is known of the level they share, of the rest what
the kernel says.

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
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import FLOAT_BYTES, check_memory
from driftbandits.arms import ArmSet
from driftbandits.arms.kernels import some_rows
from driftbandits.policies.length_scales import PairKernel, candidates, cut_features, pair_kernels
from driftbandits.state.declared import Declared, Value, array, count, flag, number
from driftbandits.state.reader import check_whole
from driftbandits.types import Bools, Floats, Ints

ARMS_AT_A_TIME = 4096  # where all arms are gone through: what is computed on the way stays small


class Readings:
    """Rows h_a of all priors; prior c has kernel c modulo the number of kernels."""

    def __init__(self, features: Sequence[Floats], signals: Floats, level: float, width: int) -> None:
        self._features = features
        self._signals = np.sqrt(signals)
        self._level = math.sqrt(level)
        self._width = width
        self.size = len(features[0])
        self._latest: tuple[int, Floats] = (-1, np.zeros((0, width)))

    def kernel(self, kind: int) -> int:
        """Number of the kernel of a prior."""
        return kind % len(self._features)

    def of(self, kind: int, arms: Ints | slice = slice(None)) -> Floats:
        """Rows of these arms under one prior, shape (M, R)."""
        phi = self._features[self.kernel(kind)][arms]
        rows = np.zeros((len(phi), self._width))
        np.multiply(phi, self._signals[kind], out=rows[:, : phi.shape[1]])
        rows[:, -1] = self._level
        return rows

    def one(self, kinds: Ints, arm: int) -> Floats:
        """The row of one arm under each of these priors, shape (n, R)."""
        if self._latest[0] != arm:  # one arm is read several times when its reward is told
            rows = np.zeros((len(self._features), self._width))
            for row, phi in zip(rows, self._features, strict=True):
                row[: phi.shape[1]] = phi[arm]
            self._latest = (arm, rows)
        read = self._latest[1][kinds % len(self._features)]
        read *= self._signals[kinds, None]
        read[:, -1] = self._level
        return read

    def some(self, arms: Ints) -> Readings:
        """The same of some arms, copied: they are numbered anew."""
        return Readings([phi[arms] for phi in self._features], np.square(self._signals), self._level**2, self._width)

    def rewards(self, kind: int, coordinates: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """What coordinates (..., R) say of these arms, shape (..., M)."""
        phi = self._features[self.kernel(kind)][arms]
        signal = (self._signals[kind] * coordinates[..., : phi.shape[1]]).astype(phi.dtype, copy=False)
        rewards = np.asarray(signal @ phi.T, dtype=np.float64)
        rewards += self._level * coordinates[..., -1:]
        return rewards

    def rewards_of_each(self, kinds: Ints, coordinates: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """`rewards` for several priors, each with coordinates (m, R) of its own: (k, m, R) to (k, m, M).

        Those of one kernel are read together, in one product.
        """
        kernels = kinds % len(self._features)
        distinct = sorted(set(kernels.tolist()))
        if len(distinct) == 1:  # as nearly always: nothing to put together
            return self._rewards_of_kernel(distinct[0], kinds, coordinates, arms)
        places = [np.flatnonzero(kernels == kernel) for kernel in distinct]
        parts = [
            self._rewards_of_kernel(kernel, kinds[mine], coordinates[mine], arms)
            for kernel, mine in zip(distinct, places, strict=True)
        ]
        return np.asarray(np.concatenate(parts)[np.argsort(np.concatenate(places))])

    def _rewards_of_kernel(self, kernel: int, kinds: Ints, coordinates: Floats, arms: Ints | slice) -> Floats:
        """`rewards_of_each` where all priors have this kernel."""
        phi = self._features[kernel][arms]
        signal = self._signals[kinds, None, None] * coordinates[:, :, : phi.shape[1]]
        read = signal.reshape(-1, phi.shape[1]).astype(phi.dtype, copy=False) @ phi.T
        rewards = read.reshape(len(kinds), -1, len(phi)).astype(np.float64, copy=False)
        rewards += self._level * coordinates[:, :, -1:]
        return rewards

    def variances(self, kind: int, covariance: Floats, arms: Ints | slice = slice(None)) -> Floats:
        """Variances of these arms' rewards where the coordinates have this covariance, shape (M,)."""
        numbers = np.arange(self.size)[arms]
        found = np.empty(len(numbers))
        for start in range(0, len(numbers), ARMS_AT_A_TIME):
            some = slice(start, start + ARMS_AT_A_TIME)
            rows = self.of(kind, numbers[some])
            found[some] = np.einsum("ar,ar->a", rows @ covariance, rows)
        return np.maximum(found, 0.0)


MOST_REPRESENTATIVES = 1024


class Representatives:
    """Numbers of the representatives among the arms, growing; `together` of them belong to each segment.

    >>> few = Representatives(ArmSet([[0.0], [0.5], [1.0]]))
    >>> few.everyone, few.of(2)
    (True, 2)
    >>> many = Representatives(ArmSet(np.linspace(0.0, 1.0, 5_000)[:, None]))
    >>> many.everyone, len(many.numbers), bool(abs(many.numbers[many.of(3_210)] - 3_210) < 50)
    (False, 1024, True)
    """

    def __init__(self, arms: ArmSet, most: int = MOST_REPRESENTATIVES) -> None:
        crossing = arms.crossing
        self._options = arms if crossing is None else crossing.options
        segments = 1 if crossing is None else len(crossing.names)
        self._size = len(self._options)
        self.everyone = len(arms) <= most
        self._chosen = _some(self._size, self._size if self.everyone else max(most // segments, 1))
        self.together = len(self._chosen)
        self.numbers: Ints = (np.arange(segments)[:, None] * self._size + self._chosen).ravel()
        self.places: Ints | slice = slice(None) if self.everyone else self.numbers  # to take them from what is of all
        self._points = None if self.everyone else self._point(self._chosen)

    def of(self, arm: int) -> int:
        """Which of the representatives stands for `arm`."""
        if self._points is None:
            return arm
        segment, option = divmod(arm, self._size)
        distances = np.square(self._points - self._point(np.array([option]))).sum(axis=1)
        return segment * self.together + int(distances.argmin())

    def _point(self, options: Ints) -> Floats:
        """Where options are, (M, d): their points as distances are measured, or their features."""
        if self._options.kernel is None:
            return self._options.features[options]
        return self._options.gauge.standardised(self._options.points[options])


def _some(size: int, most: int) -> Ints:
    """So many numbers below `size`, growing, spread at random: every tenth of a grid would lie in a few columns."""
    if size <= most:
        return np.arange(size)
    return np.sort(np.random.default_rng(0).permutation(size)[:most])


SIGNAL_VARIANCES = (0.2, 0.05)  # of an arm's reward about the level, on the scale [-1, 1]
TYPICAL_SIGNAL_VARIANCE = 0.1  # between them, where one number must do
LEVEL_VARIANCE = 0.1  # of the level that all arms share
_ALIKE_SQUARED_CORRELATION = 0.75  # above, a look at one arm is a look at the other, though the kernel be too smooth
_LEAST_SQUARED_LENGTH = 1e-12
_ARMS_COUNTED = 800  # among which those alike are counted


class Priors:
    """The priors of all candidate kernels and sizes of the signal, in coordinates common to them.

    `length_scales` has one entry per prior: None for the kernel the arms came with, 0 for independent arms. So have
    `pairs` and `correlations` where arms are options in segments.
    """

    def __init__(self, arms: ArmSet, *, auto: bool, rank: int) -> None:
        self.pairs: tuple[PairKernel, ...] = ()  # the kernels, where they are tried and arms are options in segments
        if auto and arms.crossing is not None:
            pairs = pair_kernels(arms.crossing, rank)
            tried = [(pair.length_scale, pair.features) for pair in pairs]
            self.pairs = tuple(pairs * len(SIGNAL_VARIANCES))
        elif auto:
            tried = candidates(arms, rank)
        else:
            tried = [(None, cut_features(arms.features, rank))]
        self.length_scales = tuple(scale for scale, _ in tried) * len(SIGNAL_VARIANCES)
        self._features = [features for _, features in tried] * len(SIGNAL_VARIANCES)
        self._directions: dict[int, Floats] = {}
        self._crowds: dict[int, Floats] = {}
        self._regions: dict[int, float] = {}
        self._alike: dict[int, Bools] = {}
        self.count = len(self._features)
        signals = np.repeat(SIGNAL_VARIANCES, len(tried))
        widest = max(features.shape[1] for features in self._features)
        self.direct = 2 * widest + 2 > len(arms)  # arms are their own coordinates
        self.rows: Readings | None = None  # how arms read the coordinates, unless they are their own
        self.representatives = Representatives(arms, len(arms) if self.direct else MOST_REPRESENTATIVES)
        self._check_room(len(arms), widest)
        self.size = len(arms)
        if self.direct:
            self.width = len(arms) + 1
            self.prior = np.full((self.count, self.width, self.width), LEVEL_VARIANCE)
            for prior, signal, phi in zip(self.prior, signals, self._features, strict=True):
                prior[:-1, :-1] += signal * phi @ phi.T
        else:
            self.width = widest + 1
            self.prior = np.broadcast_to(np.eye(self.width), (self.count, self.width, self.width))
            self.rows = Readings(self._features[: len(tried)], signals, LEVEL_VARIANCE, self.width)

    @property
    def correlations(self) -> tuple[float | None, ...]:
        """Those of segments, where arms are options in segments: None for the one they came with."""
        return tuple(pair.correlation for pair in self.pairs)

    def _check_room(self, size: int, widest: int) -> None:
        """Refuse priors that cannot be held; what is learned takes several times as much again."""
        numbers = self.count * size**2 if self.direct else self.count // len(SIGNAL_VARIANCES) * size * widest
        cure = f"take a smaller rank (the widest kernel has {widest:,} features), or fewer arms"
        check_memory(FLOAT_BYTES * numbers, f"{self.count} priors of {size:,} arms", cure=cure)

    def features(self, kind: int) -> Floats:
        """Features of the kernel of a prior, (N, r)."""
        return self._features[kind]

    def bump(self, kind: int, arm: int) -> Floats:
        """Coordinates u such that u u' is the part of the prior, without the level, that a reward of `arm` sees."""
        if self.rows is None:
            column = self.prior[kind, arm] - LEVEL_VARIANCE
            return np.asarray(column / math.sqrt(max(float(column[arm]), _LEAST_SQUARED_LENGTH)))
        row = self.rows.of(kind, np.array([arm]))[0]
        row[-1] = 0.0
        return np.asarray(row / math.sqrt(max(float(row @ row), _LEAST_SQUARED_LENGTH)))

    def alike(self, kind: int, arm: int) -> Bools:
        """Arms of which a reward of `arm` says much, itself among them; of representatives, as all below."""
        unit = self._units(kind)
        if not self.direct and len(unit) > MOST_REPRESENTATIVES:  # one option of very many segments: too many pairs
            return _near(unit, unit[arm : arm + 1], arm)[:, 0]
        if kind not in self._alike:
            self._alike[kind] = _near(unit, unit, np.arange(len(unit)))
        return np.asarray(self._alike[kind][arm])

    def crowds(self, kind: int) -> Floats:
        """How many arms each arm is alike with, shape (N,); counted on some of them where there are many."""
        if kind not in self._crowds:
            unit = self._units(kind)
            some = some_rows(unit, _ARMS_COUNTED)
            alike = np.square(unit @ some.T) > _ALIKE_SQUARED_CORRELATION
            self._crowds[kind] = np.maximum(np.count_nonzero(alike, axis=1) * (len(unit) / len(some)), 1.0)
        return self._crowds[kind]

    def regions(self, kind: int) -> float:
        """How many arms there are, those alike counted as one."""
        if kind not in self._regions:
            self._regions[kind] = float((1.0 / self.crowds(kind)).sum())
        return self._regions[kind]

    def _units(self, kind: int) -> Floats:
        """Features of length 1 of the representatives, whose products are correlations."""
        if kind not in self._directions:
            phi = self._features[kind]
            if not self.representatives.everyone:
                phi = phi[self.representatives.numbers]
            squared = np.maximum(np.square(phi).sum(axis=1), _LEAST_SQUARED_LENGTH)
            self._directions[kind] = phi / np.sqrt(squared)[:, None]
        return self._directions[kind]


def _near(unit: Floats, others: Floats, own: int | Ints) -> Bools:
    """Which of `unit` each of the `others` says much of; these are rows `own` of `unit`."""
    near: Bools = np.square(unit @ others.T) > _ALIKE_SQUARED_CORRELATION
    near[own, np.arange(len(others))] = True
    return near


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


def _added(value: Value) -> Value:
    """A value that states written before amounts could vary do not have: it is as it is at the beginning."""

    def read(state: states.Reader, key: str, now: Any, found: Any) -> Any:
        return value.read(state, key, now, found) if state.has(key) else now

    return Value(value.name, value.write, read)


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
        self.plays: Ints = np.zeros(arms, dtype=np.int64)
        self.successes: Ints = np.zeros(arms, dtype=np.int64)
        self.varying = False  # whether successes of an arm differ
        self.dispersion = 1.0
        self.paid: Floats = np.zeros(arms)  # by successes, above a failure
        self.squares: Floats = np.zeros(arms)  # of what each paid
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
        varies = success and not self.varying and self._is_third(arm, reward)
        if self._is_dense():
            self.over = True
            return News.END if self.begun else News.NONE
        self.plays[arm] += 1
        self.told += 1
        if success:
            self._count_success(arm, reward - LOW)
        if varies:
            return self._begin_varying()
        news = self._look()
        if news is News.NONE and success and self._pays_otherwise(arm):
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

    def _is_dense(self) -> bool:
        """Whether successes vary and most rewards are successes."""
        return self.varying and self.told >= REWARDS_FOR_A_SHARE and 2 * self._won > self.told

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
        rarer = min(self._won, self.told - self._won)
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

    def tallies(self) -> list[Tally]:
        """What was counted, of every arm that was told of."""
        units, noise, reach = self.units, self.noise(), self._reach()
        found = []
        for arm in np.flatnonzero(self.plays).tolist():
            plays = int(self.plays[arm])
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
        self.told, self._won = int(self.plays.sum()), int(self.successes.sum())

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
        array("plays"),
        array("successes"),
        count("looked"),
        flag("firm"),
        _added(flag("varying")),
        _added(number("dispersion", within=(1.0, None))),
        _added(array("paid", within=(0.0, None))),
        _added(array("squares", within=(0.0, None))),
    )

    def _check_state(self, *, rounds: int = 0, **known: Any) -> None:
        states.check(not self.begun or not bool(np.isnan(self.value).all()), "value")
        check_whole(self.plays, rounds, "plays")
        check_whole(self.successes, rounds, "successes")
        states.check(bool((self.successes <= self.plays).all()), "successes")
        limit = (2.0 + ROUNDING) * self.successes * (1.0 + ROUNDING)
        states.check(bool((self.paid <= limit).all() and (self.squares <= 2.0 * limit).all()), "paid")
        self._add_up()
        self._units = None
        if not self.varying and not self.paid.any():  # a state written before amounts could vary
            reach = np.where(np.isnan(self.value), LOW, self.value) - LOW
            self.paid, self.squares = self.successes * reach, self.successes * reach**2


def _read_value(state: states.Reader, shape: tuple[int, ...]) -> Floats:
    """What a success of each arm pays, NaN where that is not known; a state has the low end there."""
    value = state.array("value", np.float64, shape)
    states.check(bool((np.abs(value) <= 1.0 + ROUNDING).all()), "value")
    return np.where(value > LOW + ROUNDING, value, np.nan)
