"""New arms are tried: a share of the rounds goes to them until their own rewards say twice as much as the prior does.

What was learned of the old arms says how good a new one may be, and if they are much alike it is a great deal: an arm
twice as good as the best of twenty is next to impossible then, and would be played a few times in a thousand rounds.
But a new option is not one more draw from the old ones; it was added because somebody expects much of it. A trial costs
little: its plays are counted once per arm, not per round.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.policies.auto.priors import LEVEL_VARIANCE, SIGNAL_VARIANCES
from driftbandits.state.plausible import check_whole
from driftbandits.types import Bools, Floats, Ints

TRIAL_SHARE = 0.1  # of the rounds, for all arms on trial together
LEAST_PLAYS, MOST_PLAYS = 4, 1_000  # of a trial
PRIORS_WORTH = 2.0  # plays that say so many times what the prior says; after half, one good arm in nine seems bad
_WIDEST_VARIANCE = max(SIGNAL_VARIANCES) + LEVEL_VARIANCE


def plays_of_a_trial(noise: float) -> int:
    """Rewards with this variance of the noise that say twice as much of an arm as the widest prior.

    >>> plays_of_a_trial(0.01), plays_of_a_trial(12.0)
    (4, 80)
    """
    return min(max(math.ceil(PRIORS_WORTH * noise / _WIDEST_VARIANCE - 1e-9), LEAST_PLAYS), MOST_PLAYS)


class Trial:
    """How many plays every arm is still to have.

    >>> trial = Trial(4)
    >>> trial.begin(np.array([2, 3]), plays=1)
    >>> trial.law().tolist()
    [0.0, 0.0, 0.05, 0.05]
    >>> trial.count(3)
    >>> trial.law().tolist()
    [0.0, 0.0, 0.1, 0.0]
    """

    def __init__(self, arms: int) -> None:
        self.left: Ints = np.zeros(arms, dtype=np.int64)
        self.over = True

    def begin(self, arms: Ints, plays: int) -> None:
        """Let these arms be tried."""
        self.left[arms] = plays
        self.over = not self.left.any()

    def count(self, arm: int) -> None:
        """A reward of `arm` was told."""
        if not self.over and self.left[arm]:
            self.left[arm] -= 1
            self.over = not self.left.any()

    def law(self, mask: Bools | None = None) -> Floats | None:
        """Probability of a play for its trial, of every arm, or None if there is none to try."""
        if self.over:
            return None
        tried: Bools = self.left > 0
        if mask is not None:
            tried &= mask
        return np.asarray(tried * (TRIAL_SHARE / max(int(np.count_nonzero(tried)), 1)), dtype=np.float64)

    def export(self) -> dict[str, Any]:
        """What is left."""
        return {"left": self.left.copy()}

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self.left = state.array("left", np.int64, self.left.shape)
        check_whole(self.left, MOST_PLAYS, "left")
        self.over = not self.left.any()
