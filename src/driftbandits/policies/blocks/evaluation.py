"""The log of another policy as a first evaluation: what a block policy takes from it, and what not.

The estimators of the family weigh rewards by the law that drew them, and those of a log were drawn by another, which
may have changed from row to row. With the share that each arm has in the rows in the place of a law, the
inverse-propensity estimate is the ridge regression on the log, whoever chose the arms. So the log takes the place of
block 0, which would have played the optimal design, and block 1 begins with the gaps estimated from it. Nothing is
tested on it: a detector sees what the policy plays itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftbandits.policies.core.laws import freeze
from driftbandits.types import Floats, Ints

if TYPE_CHECKING:
    from driftbandits.policies.blocks.engine import BlockPolicy


def evaluate(policy: BlockPolicy, rounds: int, arms: Ints, rewards: Floats, ids: Ints) -> None:
    """Begin behind a log of so many rounds; these arms and internal rewards are known, of the rounds `ids`.

    Where the horizon is unknown and needed, the policy starts anew at doubling horizons: what came before the last of
    these starts is left out, as it would be forgotten.
    """
    policy._begin_once()
    while policy.horizon is None and policy.needs_horizon and policy._phase_start + policy._phase_length <= rounds:
        policy.rounds = policy._phase_start + policy._phase_length
        policy._begin(2 * policy._phase_length)
    policy._guard.changing = True
    policy.rounds = rounds
    known = ids >= policy._phase_start
    if known.any():
        _fill(policy, arms[known], rewards[known] / policy._divisor, ids[known])
        policy._new_block()
    policy._guard.changing = False


def _fill(policy: BlockPolicy, arms: Ints, rewards: Floats, ids: Ints) -> None:
    """Let block 0 have played the log."""
    epoch, size = policy._epoch, len(policy.arms)
    policy._features.observe(arms, rewards, ids)
    baseline = epoch.baselines[0]
    values = rewards if baseline is None else rewards - baseline[arms]
    epoch.laws[0] = freeze(np.bincount(arms, minlength=size) / len(arms))
    block = epoch.blocks[0]
    block.sums[0] = np.bincount(arms, weights=values, minlength=size)
    block.counts[0] = len(arms)
    epoch.view(policy._features.present, policy._levels.regulariser)  # what followed from the design no longer holds
