"""The Gaussian process that `CalibratedOPKB` believes in: which kernel, how large a signal, how much noise.

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
from functools import cached_property
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.detection.ledger import Ledger, Totals
from driftbandits.policies.calibrated.evidence import (
    NOISE_VARIANCES,
    SIGNAL_VARIANCES,
    SIGNALS_TRIED,
    log_evidence,
    nearest_signal,
)
from driftbandits.policies.calibrated.posterior import Posterior, Prior
from driftbandits.policies.calibrated.two_values import Values
from driftbandits.policies.core.lengthscales import leading_features, other_kernels
from driftbandits.state.plausible import ROUNDING
from driftbandits.ties import first_largest
from driftbandits.types import Floats, Ints

_ENORMOUS = 1e15  # evidence in nats: a reward brings 1e5 at most
_UNBELIEVABLE = 1e6  # mean of rewards of at most 1
RANK = 100  # most features of a kernel, where there are more than twice as many arms


class Surrogate:
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

    def prepare(self) -> None:
        """Nothing that takes long."""

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

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            **self._ledger.export(),
            **self._values.export(),
            "closed": self.closed.copy(),
            "prior_mean": self.prior_mean.copy(),
            "kernel": self.kernel,
            "signal": self.signal,
            "noise_variance": self.noise_variance,
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`."""
        self.begin()
        self._ledger.load(state, rounds=rounds)
        self._values.load(state)
        self.closed = state.array("closed", np.float64, self.closed.shape)
        self.prior_mean = state.array("prior_mean", np.float64, (self._size,))
        self.kernel = state.integer("kernel", high=len(self.kernels) - 1)
        self.signal, self.noise_variance = state.number("signal"), state.number("noise_variance")
        for believed, tried in ((self.signal, SIGNAL_VARIANCES), (self.noise_variance, NOISE_VARIANCES)):
            inside = (1.0 - ROUNDING) * tried.min() <= believed <= (1.0 + ROUNDING) * tried.max()
            states.check(bool(inside), "signal or noise")
        states.check(bool((np.abs(self.closed) <= _ENORMOUS).all()), "evidence of earlier epochs")
        states.check(bool((np.abs(self.prior_mean) <= _UNBELIEVABLE).all()), "prior mean")

    def check(self, *, told: int, looked: bool, largest: float) -> None:
        """Rounds may have been kept from before the epoch, so their number says nothing."""
