"""Thompson sampling on the kernel and on the points: GP-TS and LinTS, and their discounted and drifting forms."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from driftbandits.policies.gp.gpucb import GPUCB, LinUCB
from driftbandits.policies.gp.timevarying import TimeVaryingGPUCB
from driftbandits.policies.gp.weighted import DiscountedLinUCB, WeightedGPUCB
from driftbandits.policies.sampled import PosteriorSampling, correlated
from driftbandits.types import Floats


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
