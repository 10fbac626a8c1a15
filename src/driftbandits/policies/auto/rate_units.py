"""Coordinates in which rewards of two values are chances of success, and the way to rewards and back.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from driftbandits.policies.auto.priors import LEVEL_VARIANCE, SIGNAL_VARIANCES
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
    spread: float = field(init=False)

    def __post_init__(self) -> None:
        rarer = min(self.centre, 1.0 - self.centre)
        object.__setattr__(self, "spread", min(rarer / _WIDEST_DEVIATION, _USUAL_SPREAD))

    def of(self, arms: Ints | slice) -> RateUnits:
        """The same for some of the arms."""
        return RateUnits(self.centre, self.reach[arms])

    @property
    def noise(self) -> float:
        """Variance of the noise."""
        return self.centre * (1.0 - self.centre) / self.spread**2

    @property
    def slowness(self) -> float:
        """How many rewards say as much as one does where both kinds are as frequent."""
        return 0.25 / (self.centre * (1.0 - self.centre))

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
        return float(ignorant - expected)

    # --- rewards ------------------------------------------------------------------------------------------------

    def rewards(self, coordinates: Floats) -> Floats:
        """Expected rewards, inside; arms are the last axis."""
        return LOW + self.reach * self.rates(coordinates)

    def variances(self, coordinates: Floats, variances: Floats) -> Floats:
        """Variances of the expected rewards of all arms where those of the coordinates are `variances`."""
        return np.square(self.sizes) * self._relative_noise(self.rates(coordinates)) * variances

    def noise_of(self, rewards: Floats) -> Floats:
        """Variance of a single reward of every arm where these are expected, shape (N,)."""
        return np.asarray((rewards - LOW) * (LOW + self.reach - rewards))

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
