"""A new policy takes in a log, its own or another's, as if it had played it: the body of `Policy.learn`.

Every row is imposed (`imposing`) and its reward told where the log says that it came; a reward that is not known is
forgotten. What a policy believes follows from arms, rewards and their order alone, so the beliefs are exactly those of
a policy that played these rounds. Policies that weigh rewards by the law that drew them (`_needs_own_law`) would be
biased by probabilities that are not theirs: from another's log the OPKB family takes a first evaluation (`_evaluate`),
and the Exp3 family refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandits.errors import InputError
from driftbandits.log_columns import LogColumns, read_columns
from driftbandits.showing import counted
from driftbandits.types import Floats

if TYPE_CHECKING:
    from driftbandits.policies.core.base import Policy


def learn(policy: Policy, given: Any) -> None:
    """Bring `policy` to where a player of this log stands; whatever is wrong, it stays as it was."""
    if policy.rounds:
        raise InputError(
            f"a new policy learns from a log; this one has played {counted(policy.rounds, 'round')}: build one anew"
        )
    log = read_columns(policy.arms, given)
    policy._check_left(len(log))
    rewards = _inward(policy, log.rewards)
    pupil = _new(policy)
    foreign = _play(pupil, log)
    if foreign is not None:
        pupil = _new(policy)
        known = np.flatnonzero(~np.isnan(rewards))
        if not pupil._evaluate(len(log), log.arms[known], rewards[known], known):
            raise InputError(
                f"{type(policy).__name__} weighs rewards by the law that drew them, and row {foreign} of the log was "
                f"not drawn from its law: it can learn from its own log only; AutoBandit takes any"
            )
    policy._guard.changing = True
    vars(policy).update({name: value for name, value in vars(pupil).items() if name not in ("_guard", "_listener")})
    policy._guard.changing = False


def _new(policy: Policy) -> Policy:
    pupil = type(policy).restore(policy.arms, policy._state())
    pupil._listener = policy._listener
    return pupil


def _inward(policy: Policy, rewards: Floats) -> Floats:
    """Rewards on the internal scale; those outside the range are refused, or moved to its end."""
    known = rewards[~np.isnan(rewards)]
    if policy.out_of_range == "error":
        policy._scale.require_inside(known, policy._scale.clip(known))
    return policy._scale.inward(policy._scale.clip(rewards))


def _play(pupil: Policy, log: LogColumns) -> int | None:
    """Play the log; the row at which a policy that needs its own law would have drawn otherwise, where it stops."""
    order = np.argsort(log.told_before, kind="stable")
    due, rewards = log.told_before[order].tolist(), log.rewards.tolist()
    place = 0
    for row in range(len(log) + 1):
        while place < len(order) and due[place] <= row:
            number = int(order[place])
            if np.isnan(rewards[number]):
                pupil.forget(number)
            else:
                pupil.tell(number, rewards[number])
            place += 1
        if row < len(log):
            allowed = None if log.allowed is None else log.allowed[row]
            imposed = pupil.impose(log.arms[row : row + 1], log.probabilities[row : row + 1], allowed)
            if imposed.differing and pupil._needs_own_law:
                return row
    return None
