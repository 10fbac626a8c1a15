"""How long a run must be before a change can be found at all.

A detector that needs more rounds than there will be is no detector: ask before a run, not after.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtr

from driftbandits._util.checks import check_positive
from driftbandits.detection.bets import POWERS
from driftbandits.detection.gaps import Thresholds
from driftbandits.errors import InputError

_LONGEST = 10**15  # what is later than this is never
_NODES = 64  # of the quadrature over the noise


@runtime_checkable
class Watching(Protocol):
    """A policy whose test has a stated level."""

    def rounds_to_find(self, size: float | None = None) -> int:
        """Least rounds in which a change of `size`, in the units of the rewards, can be found."""


def first_detectable_horizon(policy: object, size: float | None = None) -> int:
    """Smallest number of rounds in which `policy` can find a change of `size`.

    For ADA-OPKB and ADA-OPNN: the smallest horizon with a test that an arm can fail whose gap grew from 0 to `size`,
    estimated without any error. For CalibratedOPKB: rounds before the change and after it, at the best time for it,
    until residuals of a law that moved by `size` in every round have gathered the evidence on average, for Gaussian
    noise of the size estimated so far (the rewards of a single arm, or luck, may do it sooner).

    Parameters
    ----------
    policy : an AdaOPKB, AdaOPNN or CalibratedOPKB; it is not changed, and its own horizon does not matter
    size : of the change, in the units of the rewards; by default half of the declared range

    Returns
    -------
    int

    Raises
    ------
    InputError
        For other policies, and for a change too small to be found in 10^15 rounds.

    >>> from driftbandits import AdaOPKB, ArmSet, CalibratedOPKB, Constants
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None])
    >>> theory = AdaOPKB(arms, constants=Constants.theory(bound=1.0, noise=1.0))
    >>> first_detectable_horizon(theory) > 10_000_000
    True
    >>> first_detectable_horizon(CalibratedOPKB(arms)) < 100
    True
    """
    if not isinstance(policy, Watching):
        raise InputError(
            f"first_detectable_horizon knows AdaOPKB, AdaOPNN and CalibratedOPKB, got {type(policy).__name__}, "
            f"which has no test of a stated level"
        )
    needed = policy.rounds_to_find(None if size is None else check_positive("size", size))
    if needed > _LONGEST:
        which = "half the range" if size is None else f"{size:g}"
        raise InputError(f"a change of {which} is too small to be found in 10^15 rounds; ask for a larger one")
    return needed


def rounds_by_gaps(size: float, thresholds_at: Callable[[int], Thresholds]) -> int:
    """The least horizon T that is at least the rounds needed at horizon T, found from below (they grow with T).

    `thresholds_at` gives what the test would take from the constants of a run of so many rounds.
    """
    horizon = 1
    while horizon <= _LONGEST:
        needed = _rounds_to_a_test(size, thresholds_at(horizon))
        if needed <= horizon:
            break
        horizon = needed
    return horizon


def _rounds_to_a_test(size: float, thresholds: Thresholds) -> int:
    """Rounds of an epoch until the first test with a threshold below `size` ends."""
    least = _LONGEST + 1
    for block in range(thresholds.lowest_index + 1, 100):
        before = thresholds.block_size * (2**block - 1)
        if before >= least:
            break
        for index in range(thresholds.lowest_index, block + thresholds.tests_blocks):
            if thresholds.test_threshold(index, block - 1) < size:
                least = min(least, before + thresholds.block_size * 2**index)
    return least


def rounds_by_ranks(size: float, nats_to_fire: Callable[[int], float]) -> int:
    """Least rounds before and after a change of `size` standard deviations of the noise, over its time and the bets.

    `nats_to_fire` gives the evidence that a bet begun after so many rounds needs.
    """
    draws, likely = np.polynomial.hermite_e.hermegauss(_NODES)  # of the noise, and how likely each is
    likely /= likely.sum()
    sides = 2.0 * ndtr(-np.abs(draws + size)), ndtr(-(draws + size))
    needed = _LONGEST + 1
    for before in np.unique(np.geomspace(8, 10**9, 300).astype(np.int64)).tolist():
        if before >= needed:
            break
        nats = nats_to_fire(before)
        for tails, more in zip(sides, (0.0, math.log(2.0)), strict=True):  # of e, large and small ones are bet on
            log_ranks = float(likely @ np.log((before * tails + 0.5) / (before + 1)))
            for power in POWERS:
                gain = math.log(power) + (power - 1.0) * log_ranks
                if gain > 0:
                    needed = min(needed, before + math.ceil((nats + more) / gain))
    return needed
