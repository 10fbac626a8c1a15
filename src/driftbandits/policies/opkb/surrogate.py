"""The Gaussian process that `CalibratedOPKB` believes in: which kernel, how large a signal, how much noise.

Rewards of two values: whether every arm pays the low end of the range or one other value, and how often that one.

A click, a sale, a test that passed. At a rate of 3 % all that arms can differ by is a few hundredths of the range,
where other rewards may differ by all of it: signals must be measured relative to the rate. And a single success, far
beyond all that was expected, is no surprise.

How likely rewards are under a kernel, a size of the signal and a noise, on a grid of both.

symbol     name              shape
K          Phi Phi'          (N, N), the kernel
kappa      SIGNAL_VARIANCES  prior variance of an arm's reward about the level
s^2        NOISE_VARIANCES   variance of the noise
           LEVEL_VARIANCE    prior variance of the level that all arms share
n, ybar    counts            (a,) how often each arm was seen, and its mean reward
G          D^1/2 Phi on the arms seen, D = diag(n)

The rewards of an arm say the same as their mean, which has variance s^2 / n, and what they scatter about it. With
z = D^1/2 ybar ~ N(0, kappa G G' + LEVEL_VARIANCE n^1/2 n^1/2' + s^2 I), one eigendecomposition of G'G gives the whole
grid.

The Gaussian process of `CalibratedOPKB` given the rewards of an epoch: means and deviations, of all arms or a few.

symbol     name              meaning
F          _scaled           sqrt(kappa) Phi with a column of sqrt(LEVEL_VARIANCE), (N, r + 1): rewards are m0 + F x
A          factor            I + F' diag(n) F / s^2, (r + 1, r + 1): the precision of x given the rewards; its factor
w          weights           (r + 1,) the mean of x

Reward function and changes are new in every epoch; kernel, signal and noise are not, so their evidence is added up over
epochs. Everything is chosen anew when a block begins, and stays while it lasts.

symbol     name              meaning
m0         prior_mean        (N,) what is expected before any reward of the epoch: 0, or the mean of the last epoch
kappa      signal            prior variance of an arm's reward about the level
s^2        noise_variance    variance of the noise
           closed            log evidence of earlier epochs, (kernels, signals, noises)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits._util.linalg import cholesky, first_largest
from driftbandits.arms import ArmSet
from driftbandits.detection.ledger import Ledger, Totals
from driftbandits.policies.length_scales import leading_features, other_kernels
from driftbandits.policies.opkb.parts import FeatureSource
from driftbandits.state.declared import array, count, number, read, write
from driftbandits.state.reader import FARTHEST, ROUNDING
from driftbandits.types import Floats, Ints

LOW = -1.0  # end of the range inside
LEAST_RATE = 1e-4
MANY_LOWS = 16  # rewards at the low end, before amounts that vary are worth a word


class Values:
    """The values that were seen. The first third value of an arm ends it for good.

    >>> values = Values(2)
    >>> for arm, reward in ((0, 1.0), (1, -1.0), (1, 0.5), (0, -1.0)):
    ...     values.see(arm, reward)
    >>> values.two, values.rate, values.deviation
    (True, 0.5, 1.0)
    >>> values.see(1, 0.25)
    >>> values.two
    False
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.clear()

    def clear(self) -> None:
        """Nothing was seen."""
        self._others: dict[int, float] = {}  # the value of every arm that is not the low end
        self._low_arms: set[int] = set()  # arms that have paid the low end
        self._third = False
        self._lows = self._highs = 0

    def see(self, arm: int, reward: float) -> None:
        """A reward."""
        if self._third:
            return
        if reward == LOW:
            self._low_arms.add(arm)
            self._lows += 1
        else:
            self._third = self._others.setdefault(arm, reward) != reward
            self._highs += 1

    @property
    def two(self) -> bool:
        """Whether both kinds of value were seen, of one arm at least (others may pay the same always), and no third."""
        return not self._third and not self._low_arms.isdisjoint(self._others)

    @property
    def varies(self) -> bool:
        """Whether most rewards were the low end, and the others paid amounts that vary."""
        return self._third and self._lows >= MANY_LOWS and self._lows > self._highs

    @property
    def rate(self) -> float:
        """How often a reward was not the low end, over all arms."""
        return self._highs / (self._lows + self._highs)

    @property
    def deviation(self) -> float:
        """The most that the mean rewards of arms should be thought to deviate by: the rate, or what it lacks of 1."""
        share = max(min(self.rate, 1.0 - self.rate), LEAST_RATE)
        return share * (max(self._others.values()) - LOW)

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "third": self._third,
            "lows": self._lows,
            "highs": self._highs,
            "low_arms": np.array(sorted(self._low_arms), dtype=np.int64),
            "valued": np.array(list(self._others), dtype=np.int64),
            "values": np.array(list(self._others.values()), dtype=np.float64),
        }

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self._third = state.flag("third")
        self._lows, self._highs = state.integer("lows", high=FARTHEST), state.integer("highs", high=FARTHEST)
        arms = state.array("valued", np.int64, (None,))
        low_arms = state.array("low_arms", np.int64, (None,))
        values = state.array("values", np.float64, (len(arms),))
        for some, rewards in ((arms, self._highs), (low_arms, self._lows)):
            states.check(bool(((some >= 0) & (some < self._size)).all()), "arms of two values")
            states.check(len(set(some.tolist())) == len(some) <= rewards, "arms of two values")
            states.check((len(some) > 0) == (rewards > 0), "number of two values")
        states.check(bool((np.abs(values) <= 1.0 + ROUNDING).all() and (values != LOW).all()), "two values")
        self._low_arms = set(low_arms.tolist())
        self._others = dict(zip(arms.tolist(), values.tolist(), strict=True))


SIGNAL_VARIANCES: Floats = 0.25 ** np.arange(12.0)  # where rewards span [-1, 1]
SIGNALS_TRIED = 5  # 1 to 1/256, or as many from a smaller one on where rewards have two values
NOISE_VARIANCES: Floats = 1e-4 * 2.0 ** (np.arange(28) / 2)  # standard deviations of 0.01 to 1.1
LEVEL_VARIANCE = 1.0


def nearest_signal(variance: float) -> int:
    """Place of the first signal to be tried where arms should not be thought to differ by more than `variance`.

    >>> nearest_signal(1.0), nearest_signal(0.0036), nearest_signal(1e-30)
    (0, 4, 7)
    """
    last = len(SIGNAL_VARIANCES) - SIGNALS_TRIED
    return min(int(np.abs(np.log(SIGNAL_VARIANCES / variance)).argmin()), last)


def log_evidence(features: Floats, totals: Totals) -> Floats:
    """log p(rewards | kappa, s^2) for every pair, shape (signals, noises), up to a constant of the rewards alone."""
    seen = np.flatnonzero(totals.counts)
    if not len(seen):
        return np.zeros((len(SIGNAL_VARIANCES), len(NOISE_VARIANCES)))
    counts = totals.counts[seen]
    ones: Floats = np.sqrt(counts)
    means = totals.sums[seen] / counts
    scatter = max(float((totals.squares[seen] - counts * np.square(means)).sum()), 0.0)
    z, G = ones * means, ones[:, None] * features[seen]
    values, vectors = np.linalg.eigh(G.T @ G)
    values = np.maximum(values, 0.0)
    z_, ones_ = vectors.T @ (G.T @ z), vectors.T @ (G.T @ ones)
    signal, noise = SIGNAL_VARIANCES[:, None, None], NOISE_VARIANCES[None, :, None]
    shrink = signal / (noise + signal * values)  # (signals, noises, r)

    def product(one: Floats, other: Floats, inner: float) -> Floats:
        """one' (kappa G G' + s^2 I)^-1 other, given both by the eigenvectors, and their inner product."""
        return np.asarray((inner - shrink @ (one * other)) / NOISE_VARIANCES)

    level = 1.0 + LEVEL_VARIANCE * product(ones_, ones_, float(ones @ ones))
    fit = product(z_, z_, float(z @ z)) - LEVEL_VARIANCE * np.square(product(z_, ones_, float(z @ ones))) / level
    log_det = counts.sum() * np.log(NOISE_VARIANCES) + np.log1p(signal * values / noise).sum(axis=2) + np.log(level)
    return np.asarray(-0.5 * (log_det + fit + scatter / NOISE_VARIANCES))


_ARMS_AT_ONCE = 1024


@dataclass(frozen=True)
class Prior:
    """What is believed before any reward of the epoch."""

    features: Floats
    mean: Floats
    signal: float
    noise_variance: float


class Posterior:
    """What is believed of every arm, given totals of the rewards of all."""

    def __init__(self, prior: Prior, totals: Totals) -> None:
        self._prior = prior
        seen = np.flatnonzero(totals.counts)
        F, counts = _scaled(prior.features[seen], prior.signal), totals.counts[seen]
        A = (F.T * counts) @ F / prior.noise_variance
        A[np.diag_indices_from(A)] += 1.0
        surprise = totals.sums[seen] - counts * prior.mean[seen]
        self._factor = cholesky(A, what="precision of rewards")
        self._weights = self._factor.solve(F.T @ surprise / prior.noise_variance)

    @cached_property
    def mean(self) -> Floats:
        """Of every arm's reward, shape (N,)."""
        arms = np.arange(len(self._prior.mean))
        pieces = np.array_split(arms, math.ceil(len(arms) / _ARMS_AT_ONCE))  # which stay in the cache
        return np.concatenate([self.mean_of(piece) for piece in pieces])

    def mean_of(self, arms: Ints) -> Floats:
        """Of the rewards of these arms."""
        F = _scaled(self._prior.features[arms], self._prior.signal)
        return np.asarray(self._prior.mean[arms] + F @ self._weights)

    def deviation_of(self, arms: Ints) -> Floats:
        """Standard deviations of the rewards of these arms: of F x with x ~ N(w, A^-1)."""
        spread = self._factor.half_solve(_scaled(self._prior.features[arms], self._prior.signal).T)
        return np.asarray(np.sqrt(np.einsum("ra,ra->a", spread, spread)))


def _scaled(features: Floats, signal: float) -> Floats:
    F = np.empty((len(features), features.shape[1] + 1))
    F[:, :-1] = math.sqrt(signal) * features
    F[:, -1] = math.sqrt(LEVEL_VARIANCE)
    return F


_ENORMOUS = 1e15  # evidence in nats: a reward brings 1e5 at most
_UNBELIEVABLE = 1e6  # mean of rewards of at most 1
RANK = 100  # most features of a kernel, where there are more than twice as many arms


class Surrogate(FeatureSource):
    """Features of the likeliest kernel (a `FeatureSource`), and the rounds of the epoch.

    `auto` tries length scales beside the kernel of the arms; `keeps`: whether a new epoch goes on with the rounds of
    the old one that belong to it, else only with what they say of its mean.
    """

    def __init__(self, arms: ArmSet, *, auto: bool, keeps: bool) -> None:
        self._arm_set = arms
        self._auto = auto
        self._keeps = keeps
        self._size = len(arms)
        self._ledger = Ledger(len(arms))
        self._values = Values(len(arms))

    @cached_property
    def _tried(self) -> list[tuple[float | None, Floats]]:
        """Length scales (None: the arms' own kernel; 0: independent arms) and features of every kernel tried."""
        arms = self._arm_set
        others = other_kernels(arms, RANK) if self._auto else []
        own = leading_features(arms.features, RANK) if others else arms.features
        return [*([] if own is None else [(None, own)]), *others]

    @property
    def length_scales(self) -> tuple[float | None, ...]:
        """Of every kernel tried; None is the arms' own kernel, 0 independent arms."""
        return tuple(scale for scale, _ in self._tried)

    @property
    def kernels(self) -> list[Floats]:
        """Features of every kernel tried."""
        return [features for _, features in self._tried]

    @property
    def first(self) -> Floats:
        """Features of the finest kernel: where nothing is known, its design explores."""
        return self._tried[-1][1]

    @property
    def present(self) -> Floats:
        """Features of the kernel believed."""
        return self._tried[self.kernel][1]

    @property
    def told(self) -> int:
        """Rewards of the epoch."""
        return self._ledger.told

    def begin(self) -> None:
        """Nothing is known."""
        self.closed: Floats = np.zeros((len(self.kernels), len(SIGNAL_VARIANCES), len(NOISE_VARIANCES)))
        self.prior_mean: Floats = np.zeros(self._size)
        self._ledger.clear()
        self._values.clear()
        self._known: tuple[int, Posterior] | None = None
        self.follows, self.shift = False, 0.0
        self._believe(self.closed)

    def observe(self, arms: Ints, rewards: Floats, rounds: Ints) -> None:
        """Keep rewards of the epoch."""
        for arm, reward, round_ in zip(arms.tolist(), rewards.tolist(), rounds.tolist(), strict=True):
            self.observe_one(arm, reward, round_)

    def observe_one(self, arm: int, reward: float, round_: int) -> None:
        """Keep one reward."""
        self._values.see(arm, reward)
        self._ledger.observe_one(arm, reward, round_)

    # --- belief -------------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """A block begins: choose kernel, signal and noise; whether the kernel is another than before."""
        before = self.kernel
        self._known = None
        self._believe(self.closed + self._evidence(self._ledger.totals()))
        return self.kernel != before

    @property
    def two_valued(self) -> bool:
        """Whether every arm pays the low end of the range or one other value."""
        return self._values.two

    @property
    def amounts_vary(self) -> bool:
        """Whether most rewards were the low end of the range, and the others paid amounts that vary."""
        return self._values.varies

    def _believe(self, evidence: Floats) -> None:
        """The likeliest kernel, and the geometric means of signal and noise under it (every pair as likely before)."""
        first = nearest_signal(self._values.deviation**2) if self.two_valued else 0
        tried = slice(first, first + SIGNALS_TRIED)
        weights = np.exp(evidence[:, tried] - evidence[:, tried].max())
        self.kernel = first_largest(weights.sum(axis=(1, 2)))  # rewards of a single arm tell none from another
        here = weights[self.kernel] / weights[self.kernel].sum()
        self.signal = math.exp(float(here.sum(axis=1) @ np.log(SIGNAL_VARIANCES[tried])))
        self.noise_variance = math.exp(float(here.sum(axis=0) @ np.log(NOISE_VARIANCES)))

    def _evidence(self, totals: Totals) -> Floats:
        """Of the rewards themselves, whatever the prior mean: it is the size of functions, not of changes."""
        return np.array([log_evidence(features, totals) for features in self.kernels])

    def posterior(self) -> Posterior:
        """What is believed now."""
        if self._known is None or self._known[0] != self.told:
            self._known = (self.told, self._given(self._ledger.totals()))
        return self._known[1]

    def mean(self) -> Floats:
        """Posterior mean of every arm's reward, shape (N,)."""
        return self.posterior().mean

    def _given(self, totals: Totals) -> Posterior:
        return Posterior(Prior(self.present, self.prior_mean, self.signal, self.noise_variance), totals)

    # --- epochs -------------------------------------------------------------------------------------------------

    def forget(self, since: int | None) -> None:
        """Keep the rounds from `since` on, and of those before what they say of kernel, signal and noise.

        The old mean becomes the prior mean if it fits the rounds from `since` on better than its level does; `shift` is
        then by how much it is off, squared.
        """
        if since is None:
            return
        before, after = self._ledger.cut(since)
        old_mean = self._given(before).mean
        self.closed += self._evidence(before)
        off, level = after.squared_error(old_mean), np.full(self._size, old_mean.mean())
        self.follows = off < after.squared_error(level)
        self.prior_mean = old_mean if self.follows else np.zeros(self._size)
        self.shift = max(off / after.counts.sum() - self.noise_variance, 0.0) if self.follows else 0.0
        if self._keeps:
            self._ledger.forget(since)
        else:
            self._ledger.clear()
        self._known = None

    def mean_before(self, first_round: int) -> Floats:
        """Posterior mean of every arm's reward by the rounds before `first_round` alone, shape (N,)."""
        return self._given(self._ledger.cut(first_round)[0]).mean

    def totals(self) -> Totals:
        """Rewards of the epoch."""
        return self._ledger.totals()

    def since(self, first_round: int) -> Totals:
        """Rewards of the rounds from `first_round` on."""
        return self._ledger.cut(first_round)[1]

    # --- state --------------------------------------------------------------------------------------------------

    _saved = (
        array("closed", within=(-_ENORMOUS, _ENORMOUS)),
        array("prior_mean", within=(-_UNBELIEVABLE, _UNBELIEVABLE)),
        count("kernel"),
        number("signal"),
        number("noise_variance"),
    )

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {**self._ledger.export(), **self._values.export(), **write(self._saved, self)}

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`."""
        self.begin()
        self._ledger.load(state, rounds=rounds)
        self._values.load(state)
        read(self._saved, self, state, {})
        states.check(self.kernel < len(self.kernels), "kernel")
        for believed, tried in ((self.signal, SIGNAL_VARIANCES), (self.noise_variance, NOISE_VARIANCES)):
            inside = (1.0 - ROUNDING) * tried.min() <= believed <= (1.0 + ROUNDING) * tried.max()
            states.check(bool(inside), "signal or noise")

    def check(self, *, told: int, probed: bool, largest: float) -> None:
        """Rounds may have been kept from before the epoch, so their number says nothing."""
