"""How far the mean reward of an arm may be off, arms learned each by itself."""

from __future__ import annotations

import math

import numpy as np

from driftbandits.detection.glr import BERNOULLI_MARGIN
from driftbandits.policies.core.looking import around
from driftbandits.types import Floats

_NEWTON_STEPS = 50  # of the Bernoulli index; about 5 are needed, 15 near the upper end
_NATS_OF_EITHER_END = math.log(2.0 / 0.05)


def noisy_interval(mean: Floats, weights: Floats, noise: float) -> tuple[Floats, Floats]:
    """95 % interval of means of `weights` rewards with normal noise of this deviation; all of [-1, 1] without rewards.

    >>> low, high = noisy_interval(np.zeros(2), np.array([100.0, 0.0]), 0.5)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.098, -1.0], [0.098, 1.0])
    """
    seen = weights > 0.0
    low, high = around(mean, noise / np.sqrt(np.where(seen, weights, 1.0)))
    return np.where(seen, low, -1.0), np.where(seen, high, 1.0)


def bounded_interval(mean: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Interval that holds the mean with 95 % at least, by Chernoff's bound, whatever the rewards in [-1, 1] are.

    >>> low, high = bounded_interval(np.array([0.0, -1.0]), np.array([100.0, 100.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([-0.27, -1.0], [0.27, -0.93])
    """
    seen = weights > 0.0
    level = _NATS_OF_EITHER_END / np.where(seen, weights, 1.0)
    low, high = -bernoulli_upper(-mean, level), bernoulli_upper(mean, level)
    return np.where(seen, low, -1.0), np.where(seen, high, 1.0)


def bernoulli_upper(mean: Floats, level: Floats) -> Floats:
    """Largest q in [mean, 1] with kl(mean, q) <= level, on the scale [-1, 1].

    Newton's method from Pinsker's bound above: kl is convex in q, so it comes down to the root and stays above it.
    """
    p = np.clip(0.5 * (mean + 1.0), BERNOULLI_MARGIN, 1.0 - BERNOULLI_MARGIN)
    entropy = p * np.log(p) + (1.0 - p) * np.log1p(-p) - level
    q = np.minimum(p + np.sqrt(0.5 * level), 1.0 - BERNOULLI_MARGIN)
    for _ in range(_NEWTON_STEPS):
        value = entropy - p * np.log(q) - (1.0 - p) * np.log1p(-q)
        slope = np.maximum((q - p) / (q * (1.0 - q)), BERNOULLI_MARGIN)
        step = np.maximum(value / slope, 0.0)
        q = np.maximum(q - step, p)
        if step.max() < 1e-13:
            break
    return np.asarray(2.0 * q - 1.0)
