"""How long a run must be before a change can be found at all.

A detector that needs more rounds than there will be is no detector: ask before a run, not after.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.stats

from driftbandits.checks import check_positive
from driftbandits.detection.conformal import POWERS
from driftbandits.errors import InputError
from driftbandits.policies.calibrated.policy import CalibratedOPKB
from driftbandits.policies.core.base import Policy
from driftbandits.policies.paper.base import PaperBlockPolicy

_LONGEST = 10**15  # what is later than this is never
_NODES = 64  # of the quadrature over the noise


def first_detectable_horizon(policy: Policy, size: float | None = None) -> int:
    """Smallest number of rounds in which `policy` can find a change of `size`.

    For ADA-OPKB and ADA-OPNN: the smallest horizon with a test that an arm can fail whose gap grew from 0 to `size`,
    estimated without any error. For CalibratedOPKB: rounds before the change and after it, at the best time for it,
    until residuals of a law that moved by `size` in every round have gathered the evidence on average, for Gaussian
    noise of the size estimated so far (the rewards of a single arm, or luck, may do it sooner).

    Parameters
    ----------
    policy : an AdaOPKB, AdaOPNN or CalibratedOPKB; it is not changed, and its own horizon does not matter
    size : of the change, in the units of the rewards; by default half of the declared range

    Raises InputError for other policies, and for a change too small to be found in 10^15 rounds.

    >>> from driftbandits import AdaOPKB, ArmSet, CalibratedOPKB, Constants
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None])
    >>> theory = AdaOPKB(arms, constants=Constants.theory(bound=1.0, noise=1.0))
    >>> first_detectable_horizon(theory) > 10_000_000
    True
    >>> first_detectable_horizon(CalibratedOPKB(arms)) < 100
    True
    """
    low, high = policy.reward_range
    size = check_positive("size", (high - low) / 2 if size is None else size)
    internal = size / ((high - low) / 2)
    if isinstance(policy, PaperBlockPolicy) and policy.watches:
        needed = _by_gaps(policy, internal)
    elif isinstance(policy, CalibratedOPKB):
        needed = _by_ranks(policy, internal)
    else:
        raise InputError(
            f"first_detectable_horizon knows AdaOPKB, AdaOPNN and CalibratedOPKB, got {type(policy).__name__}, "
            f"which has no test of a stated level"
        )
    if needed > _LONGEST:
        raise InputError(f"a change of {size:g} is too small to be found in 10^15 rounds; ask for a larger one")
    return needed


def _by_gaps(policy: PaperBlockPolicy, size: float) -> int:
    """The least T that is at least the rounds needed at horizon T, found from below (they grow with T)."""
    horizon = 1
    while horizon <= _LONGEST:
        needed = _rounds_to_a_test(policy, size, horizon)
        if needed <= horizon:
            break
        horizon = needed
    return horizon


def _rounds_to_a_test(policy: PaperBlockPolicy, size: float, horizon: int) -> int:
    """Rounds until the first test with a threshold below `size` ends, in an epoch of a run of `horizon` rounds."""
    levels, variant = policy.levels_at(horizon), policy.variant
    least = _LONGEST + 1
    for block in range(variant.lowest_index + 1, 100):
        before = levels.block_size * (2**block - 1)
        if before >= least:
            break
        for index in range(variant.lowest_index, block + variant.test_block):
            if variant.test_threshold(levels, index, block - 1) * policy.internal_scale < size:
                least = min(least, before + levels.block_size * 2**index)
    return least


def _by_ranks(policy: CalibratedOPKB, size: float) -> int:
    """Least rounds before and after, over when the change comes and what is bet."""
    moved = size / math.sqrt(policy.noise_variance)
    draws, likely = np.polynomial.hermite_e.hermegauss(_NODES)  # of the noise, and how likely each is
    likely /= likely.sum()
    sides = 2.0 * scipy.stats.norm.sf(np.abs(draws + moved)), scipy.stats.norm.sf(draws + moved)
    needed = _LONGEST + 1
    for before in np.unique(np.geomspace(8, 10**9, 300).astype(np.int64)).tolist():
        if before >= needed:
            break
        nats = policy.nats_to_fire(before)
        for tails, more in zip(sides, (0.0, math.log(2.0)), strict=True):  # of e, large and small ones are bet on
            log_ranks = float(likely @ np.log((before * tails + 0.5) / (before + 1)))
            for power in POWERS:
                gain = math.log(power) + (power - 1.0) * log_ranks
                if gain > 0:
                    needed = min(needed, before + math.ceil((nats + more) / gain))
    return needed
