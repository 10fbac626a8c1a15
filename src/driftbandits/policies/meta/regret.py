"""What a base loses while nothing changes: the theory's measure of what MASTER may expect of it."""

from __future__ import annotations

import math

import numpy as np

from driftbandits.policies.core.optimistic import OptimisticPolicy
from driftbandits.policies.gp.gpucb import GPUCB


def regret_rate(
    base: OptimisticPolicy, *, horizon: int, noise: float, failure_probability: float, scale: float = 1.0
) -> float:
    """g1 of rho(t) = g1 / sqrt(t): `scale` times the base's regret bound per round on the scale [0, 1], at least 1.

    `noise` is on the internal scale. Of bases outside the GPUCB and LinUCB family no bound is known here: 1.

    >>> from driftbandits.arms import ArmSet
    >>> base = GPUCB(ArmSet([[0.0], [1.0]]), beta="ridge")
    >>> round(regret_rate(base, horizon=1000, noise=0.1, failure_probability=0.01), 2)
    7.22
    """
    if not isinstance(base, GPUCB):
        return 1.0
    reach = 1.0
    if base._linear:
        d = base.arms.dimension
        reach = float(np.square(base.arms.points).sum(axis=1).max())
        gain = 0.5 * d * math.log1p(horizon * reach / (base.ridge * d))
    else:
        gain = base._gain_at(horizon)
    # sum of sigma^2 <= 2 gain k / log(1 + k / lambda) for k(x, x) <= k; on [0, 1] the widths halve: w for 2 w
    widths = base._factor(gain) * math.sqrt(2.0 * gain * reach / math.log1p(reach / base.ridge)) if reach > 0 else 0.0
    return max(1.0, scale * (widths + noise * math.sqrt(0.5 * math.log(horizon / failure_probability))))
