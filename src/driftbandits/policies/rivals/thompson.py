"""Thompson sampling with a law that is known: votes of samples from the posterior.

By arm the posterior is Gaussian, or Beta for two-valued rewards, with a discount or a window; on the kernel and on the
points it is that of GPUCB and LinUCB, and of their discounted and drifting forms.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg.lapack

from driftbandits._util.checks import check_count, check_word
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import KernelError
from driftbandits.policies.base import Policy
from driftbandits.policies.gp.gpucb import GPUCB, LinUCB
from driftbandits.policies.gp.timevarying import TimeVaryingGPUCB
from driftbandits.policies.gp.weighted import DiscountedLinUCB, WeightedGPUCB
from driftbandits.policies.ucb.ucb import DiscountedUCB, PlainUCB, SlidingWindowUCB
from driftbandits.types import Bools, Floats

_JITTER = 1e-9  # relative to the largest variance: arms alike have a singular covariance


class PosteriorSampling(Policy):
    """Plays an arm with the probability that it is best, found as the share of `samples` in which it is.

    Thompson sampling draws one sample and plays its best arm, with a probability that is an integral. Here the law is
    the share of votes among `samples` samples, drawn anew in every round; the arm is drawn from it, so its probability
    is exact, and over the samples it is played as often as Thompson sampling plays it. To be named before the class
    whose beliefs are sampled, of which it takes the place of the law.
    """

    _numbers_rounds = True
    _pick = Policy._pick
    _weigh = Policy._weigh
    _choose_one = Policy._choose_one

    def __init__(self, arms: ArmSet, *, samples: int = 64, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self.samples = check_count("samples", samples)

    @abstractmethod
    def _sampled(self, rng: np.random.Generator, count: int) -> Floats:
        """Rewards of all arms drawn from the posterior, (count, N)."""

    def _votes(self, allowed: Bools | None = None) -> tuple[Floats, bool]:
        """The share of samples in which each allowed arm is best, and whether one that is not allowed ever is."""
        sampled = self._sampled(self._generator("samples"), self.samples)
        best, removed = sampled.argmax(axis=1), False
        if allowed is not None and not allowed[best].all():
            best, removed = np.where(allowed, sampled, -np.inf).argmax(axis=1), True
        return np.bincount(best, minlength=len(self.arms)) / self.samples, removed

    def _law(self) -> Floats:
        return self._votes()[0]

    def _law_within(self, mask: Bools) -> tuple[Floats, bool]:
        return self._votes(mask)

    def _stamp(self) -> tuple[int, int]:
        return self.rounds, 0

    def _quiet_rounds(self) -> int:
        return 1


def correlated(rng: np.random.Generator, count: int, covariance: Floats, features: Floats | None) -> Floats:
    """Normal numbers, (count, N), of this covariance, (r, r), in the coordinates of the features (None: the arms).

    >>> drawn = correlated(np.random.default_rng(0), 2, np.zeros((2, 2)), np.eye(3)[:, :2])
    >>> drawn.shape, bool(np.abs(drawn).max() < 1e-3)
    ((2, 3), True)
    """
    matrix = np.array(covariance, order="F")
    matrix.flat[:: len(matrix) + 1] += _JITTER * max(float(covariance.diagonal().max()), 1.0)
    factor, info = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    if info != 0:
        raise KernelError(f"the posterior could not be sampled: its covariance is not one (LAPACK info {info})")
    drawn = rng.standard_normal((count, len(matrix))) @ factor.T
    return np.asarray(drawn if features is None else drawn @ features.T)


class _ArmSampling(PosteriorSampling, PlainUCB):
    """What both forms share: the posterior of every arm by itself, from the weights and sums of its rewards.

    With n the weight of an arm's rewards and s their sum, on the internal scale [-1, 1]:
    gaussian   N(s / (n + R^2), scale^2 R^2 / (n + R^2)): a normal prior of variance 1, half the range, and noise R
    beta       Beta(1 + (n + s) / 2, 1 + (n - s) / 2) on [-1, 1]: successes and failures; others are some of both
    """

    def __init__(
        self, arms: ArmSet, *, prior: Literal["gaussian", "beta"] = "gaussian", scale: float = 1.0, **settings: Any
    ) -> None:
        super().__init__(arms, scale=scale, **settings)
        self.prior = check_word("prior", prior, ("gaussian", "beta"))

    def _counted(self) -> tuple[Floats, Floats]:
        """Weights and sums of the rewards, now."""
        return self._means.weights, self._means.sums

    def _sampled(self, rng: np.random.Generator, count: int) -> Floats:
        weights, sums = self._counted()
        if self.prior == "beta":
            successes, failures = 0.5 * (weights + sums), 0.5 * (weights - sums)
            drawn = rng.beta(1.0 + np.maximum(successes, 0.0), 1.0 + np.maximum(failures, 0.0), (count, len(weights)))
            return np.asarray(2.0 * drawn - 1.0)
        variance = max(self._noise, 1e-6) ** 2
        total = weights + variance
        spread = self.scale * np.sqrt(variance / total)
        return np.asarray(sums / total + spread * rng.standard_normal((count, len(weights))))


class ThompsonSampling(_ArmSampling, DiscountedUCB):
    """Thompson sampling (Thompson 1933), each arm learned by itself; with a discount, Raj and Kalyani (2017).

    Its defaults are not enough where rewards change: it assumes that nothing does. Take a `discount` then. It learns
    nothing of an arm from its neighbours, so many arms take it long.

    Parameters
    ----------
    prior : "gaussian", or "beta" for rewards at both ends of the range (0 and 1, say), where its posterior is exact
    discount : gamma in (0, 1], by which all weights fade per round, back to the prior; default 1, nothing fades, or
        from `switches` and the horizon, `plain_discount`
    switches : how often the world changes, for a computed discount
    scale : multiplies the deviations of the Gaussian posterior
    noise : R, deviation of the noise, in the user's units; default a tenth of half the reward range
    samples : samples per round, whose votes are the law
    others : see `Policy`

    Cost per round: O(N samples).

    >>> policy = ThompsonSampling(ArmSet([[0.0], [1.0]]), prior="beta", reward_range=(0, 1), seed=0)
    >>> policy.tell(policy.ask().id, 1.0)
    """

    _usual_size: ClassVar[float] = 1.0

    def _counted(self) -> tuple[Floats, Floats]:
        return self._fade * self._means.weights, self._fade * self._means.sums


class SlidingWindowThompson(_ArmSampling, SlidingWindowUCB):
    """SW-TS (Trovo, Paladino, Restelli and Gatti 2020): Thompson sampling on the rewards of the last `window` rounds.

    An arm that has left the window is sampled from its prior again, so every arm is tried now and then.

    Parameters
    ----------
    prior : "gaussian", or "beta" for rewards at both ends of the range, where its posterior is exact
    window : rounds kept; default 1,600, or from `switches` and the horizon, `plain_window`
    switches : how often the world changes, for a computed window
    scale : multiplies the deviations of the Gaussian posterior
    noise : R, deviation of the noise, in the user's units; default a tenth of half the reward range
    samples : samples per round, whose votes are the law
    others : see `Policy`

    Cost per round: O(N samples).

    >>> policy = SlidingWindowThompson(ArmSet([[0.0], [1.0]]), window=500, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """


class GPThompson(PosteriorSampling, GPUCB):
    """GP-TS (Chowdhury and Gopalan 2017): Thompson sampling from the Gaussian process of GPUCB. It never forgets.

    A sample is drawn from N(mean, (scale beta)^2 covariance) over all arms together.

    Its defaults are not enough where rewards change: it assumes that nothing does. Take a forgetting form then.

    Parameters
    ----------
    beta : what deviations are multiplied by; default 0.75, as in `GPUCB`, or the theory's "ridge", "igp" or "paper"
    samples : samples per round, whose votes are the law
    others : see `GPUCB`

    Cost per round: O(r^3 + samples N r) with the kernel's rank r, or N^3 / 3 where that is above N / 2.

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> policy = GPThompson(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _adds_only: ClassVar[bool] = False  # the joint covariance is kept, which many arms would do without

    def _sampled(self, rng: np.random.Generator, count: int) -> Floats:
        posterior = self._posterior
        drawn = correlated(rng, count, *posterior.joint)
        return np.asarray((posterior.mean + self._factor(posterior.information_gain) * drawn)[:, : len(self.arms)])


class LinThompson(GPThompson, LinUCB):
    """LinTS (Agrawal and Goyal 2013): Thompson sampling from the linear regression of LinUCB. It never forgets.

    Its defaults are not enough where rewards are not linear in the points, or change: see `LinUCB`.

    Parameters
    ----------
    beta : what deviations are multiplied by; default 0.75, as in `GPUCB`, or the theory's "ridge"
    samples : samples per round, whose votes are the law
    others : see `GPUCB`

    Cost per round: O(d^3 + samples N d).

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> policy = LinThompson(ArmSet([[0.0, 1.0], [1.0, 0.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """


class WeightedGPThompson(PosteriorSampling, WeightedGPUCB):
    """Discounted GP-TS: Thompson sampling from the regression of WGPUCB, on exponentially discounted rewards.

    Parameters
    ----------
    discount : eta in (0, 1]; default 0.9975, or from `variation` and the horizon
    width : "one_matrix" (covariance V^-1) or "two_matrix" (V^-1 V2 V^-1)
    samples : samples per round, whose votes are the law
    others : see `WeightedGPUCB`

    Cost per round: O(r^3 + N r (r + samples)) with the kernel's rank r.

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> policy = WeightedGPThompson(ArmSet([[0.0], [0.5], [1.0]]), discount=0.99, seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    def _sampled(self, rng: np.random.Generator, count: int) -> Floats:
        mean, gain, covariance, features = self._jointly()
        drawn = correlated(rng, count, covariance, features)
        return np.asarray((mean + self._factor(gain) * drawn)[:, : len(self.arms)])


class DiscountedLinThompson(WeightedGPThompson, DiscountedLinUCB):
    """D-LinTS (Kim and Tewari 2020): Thompson sampling from the regression of D-LinUCB, with both its matrices.

    Its defaults are not enough where rewards are not linear in the points: see `LinUCB`.

    Parameters
    ----------
    discount : eta in (0, 1]; default 0.99, or from `variation` and the horizon
    width : "two_matrix" as in its paper, or "one_matrix" (covariance V^-1)
    samples : samples per round, whose votes are the law
    others : see `DiscountedLinUCB`

    Cost per round: O(d^3 + samples N d).

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> policy = DiscountedLinThompson(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """


class TimeVaryingGPThompson(PosteriorSampling, TimeVaryingGPUCB):
    """TV-GP-TS: Thompson sampling from the drifting Gaussian process of TV-GP-UCB.

    Parameters
    ----------
    rate : e in [0, 1); memory is about 2 / e rounds, by default 2,000
    beta : what deviations are multiplied by; default 0.75, as in `GPUCB`
    samples : samples per round, whose votes are the law
    others : see `TimeVaryingGPUCB`

    Cost per round: O(N^3 / 3 + samples N^2), or with the rank r in the place of N where it is below N / 2.

    >>> from driftbandits.arms.arm_set import ArmSet
    >>> policy = TimeVaryingGPThompson(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    def _sampled(self, rng: np.random.Generator, count: int) -> Floats:
        ahead = self.rounds - self._clock
        drawn = correlated(rng, count, *self._posterior.joint(ahead))
        return np.asarray(self._posterior.mean(ahead) + self._factor() * drawn)
