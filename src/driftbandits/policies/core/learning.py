"""A new policy takes in a log, its own or another's, as if it had played it: the body of `Policy.learn`.

Every row is imposed (`imposing`) and its reward told where the log says that it came; a reward that is not known is
forgotten. What a policy believes follows from arms, rewards and their order alone, so the beliefs are exactly those of
a policy that played these rounds. Policies that weigh rewards by the law that drew them (`_needs_own_law`) would be
biased by probabilities that are not theirs: they take their own log, and refuse another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandits.errors import InputError
from driftbandits.log_columns import LogColumns, read_columns
from driftbandits.showing import counted

if TYPE_CHECKING:
    from driftbandits.policies.core.base import Policy


def learn(policy: Policy, columns: Mapping[str, Any]) -> None:
    """Bring `policy` to where a player of this log stands; whatever is wrong, it stays as it was."""
    if policy.rounds:
        raise InputError(
            f"a new policy learns from a log; this one has played {counted(policy.rounds, 'round')}: build one anew"
        )
    log = read_columns(policy.arms, columns)
    policy._check_left(len(log))
    policy._scale.require_inside(*_inside(policy, log))
    pupil = type(policy).restore(policy.arms, policy._state())
    _play(pupil, log)
    policy._guard.changing = True
    vars(policy).update({name: value for name, value in vars(pupil).items() if name != "_guard"})
    policy._guard.changing = False


def _inside(policy: Policy, log: LogColumns) -> tuple[Any, Any]:
    """Rewards that are known, and what clipping would make of them."""
    known = log.rewards[~np.isnan(log.rewards)]
    return known, (policy._scale.clip(known) if policy.out_of_range == "error" else known)


def _play(pupil: Policy, log: LogColumns) -> None:
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
                raise InputError(
                    f"{type(pupil).__name__} weighs rewards by the law that drew them, and row {row} of the log was "
                    f"not drawn from its law: it can learn from its own log only; AutoBandit takes any"
                )
