"""Thompson sampling with a posterior per arm: Gaussian, or Beta for two-valued rewards; with a discount or a window."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from driftbandits._util.checks import check_word
from driftbandits.arms import ArmSet
from driftbandits.policies.sampled import PosteriorSampling
from driftbandits.policies.ucb.ucb import DiscountedUCB, PlainUCB, SlidingWindowUCB
from driftbandits.types import Floats


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

    def _settings(self) -> dict[str, Any]:
        return {**super()._settings(), "prior": self.prior}


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
