"""Rounds that were played elsewhere: replaying a journal, and starting from a log.

Rounds whose arms were drawn elsewhere: the policy goes on as if it had drawn them itself.

A journal, or the log of another policy, says which arm was played and with what probability. `Policy.impose` takes
that in: everything happens as in `ask`, the draw is consumed, and then the arm and the probability given take the
place of those drawn. So a policy that replays its own journal stands where the writer of it stood, bit for bit on the
same kind of machine; on another kind, whose last digits differ, the decisions stay those that were really made.

A new policy takes in a log, its own or another's, as if it had played it: the body of `Policy.learn`.

Every row is imposed (`imposing`) and its reward told where the log says that it came; a reward that is not known is
forgotten. What a policy believes follows from arms, rewards and their order alone, so the beliefs are exactly those of
a policy that played these rounds. Policies that weigh rewards by the law that drew them (`_needs_own_law`) would be
biased by probabilities that are not theirs: from another's log the OPKB family takes a first evaluation (`_evaluate`),
and the Exp3 family refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandits.errors import InputError
from driftbandits.log_columns import LogColumns, read_columns
from driftbandits.numeric import as_floats
from driftbandits.policies.inputs import read_allowed
from driftbandits.showing import counted, shown
from driftbandits.types import Bools, Decisions, Floats, Ints

if TYPE_CHECKING:
    from driftbandits.policies.base import Policy


_ROUNDING = 1e-9  # by which a probability of one may be above it
_MACHINES = 1e-6  # by which a probability may differ where another kind of machine computed it; see docs/machines.md


@dataclass(frozen=True, slots=True)
class Imposed:
    """Decisions taken over by a policy.

    In `differing` of these rounds it would have drawn another arm, or with a probability that differs by more than
    machines do. `largest` is the largest difference of a probability.
    """

    decisions: Decisions
    differing: int
    largest: float = 0.0


class Imposition:
    """Arms and probabilities to be handed out in the place of those drawn, one after the other."""

    def __init__(self, arms: Any, probabilities: Any) -> None:
        self._arms = arms
        self._probabilities = probabilities
        self._given = 0
        self.differing = 0
        self.largest = 0.0

    def take(self, drawn: Ints, law: Floats) -> tuple[Ints, Floats]:
        """The next arms and probabilities, as many as were drawn from `law`."""
        here = slice(self._given, self._given + len(drawn))
        arms, probabilities = self._arms[here], self._probabilities[here]
        self._given += len(drawn)
        apart = np.where(arms == drawn, np.abs(probabilities - law[drawn]), 0.0)
        self.differing += int(np.count_nonzero((arms != drawn) | (apart > _MACHINES)))
        self.largest = max(self.largest, float(apart.max()))
        return arms, probabilities

    def take_one(self, drawn: int, probability: float) -> tuple[int, float]:
        """`take` for a single round."""
        arm, share = int(self._arms[self._given]), float(self._probabilities[self._given])
        self._given += 1
        apart = abs(share - probability) if arm == drawn else 0.0
        self.differing += arm != drawn or apart > _MACHINES
        self.largest = max(self.largest, apart)
        return arm, share


def impose(policy: Policy, arms: Any, probabilities: Any, allowed: Any) -> Imposed:
    """The body of `Policy.impose`."""
    if allowed is None and _is_one(policy, arms, probabilities):
        return _impose_one(policy, arms, probabilities)
    mask = None if allowed is None else read_allowed(policy.arms, allowed)
    numbers = _read_arms(arms, len(policy.arms), mask)
    shares = _read_probabilities(probabilities, len(numbers))
    policy._check_left(len(numbers))
    parts: list[Decisions] = []
    imposition = Imposition(numbers, shares)
    policy._imposition = imposition
    try:
        left = len(numbers)
        while left:
            parts.append(policy._draw(left, mask))
            left -= len(parts[-1])
    finally:
        policy._imposition = None
    return Imposed(Decisions.joined(parts), imposition.differing, imposition.largest)


def _is_one(policy: Policy, arm: Any, probability: Any) -> bool:
    """Whether this is one round in plain numbers that are in order, as journals have them by the thousand."""
    if type(arm) is not int or type(probability) is not float:
        return False
    return 0 <= arm < len(policy.arms) and 0.0 < probability <= 1.0 + _ROUNDING


def _impose_one(policy: Policy, arm: int, probability: float) -> Imposed:
    """`impose` by the path of a live request."""
    imposition = Imposition([arm], [probability])
    policy._imposition = imposition
    try:
        decision = policy._ask_one()
    finally:
        policy._imposition = None
    ids, laws = np.array([decision.id]), np.array([decision.law])
    decisions = Decisions(ids, np.array([arm]), np.array([probability]), laws, policy.arms.names)
    return Imposed(decisions, imposition.differing, imposition.largest)


def _read_arms(arms: Any, size: int, mask: Bools | None) -> Ints:
    numbers = np.atleast_1d(np.asarray(arms))
    if numbers.ndim != 1 or not numbers.size or numbers.dtype.kind not in "iu":
        raise InputError(f"arms must be the indices of the arms played, one per round, got {shown(arms)}")
    wrong = numbers[(numbers < 0) | (numbers >= size)]
    if len(wrong):
        raise InputError(f"no arm has the index {wrong[0]}; indices run from 0 to {size - 1}")
    forbidden = numbers[:0] if mask is None else numbers[~mask[numbers]]
    if len(forbidden):
        raise InputError(f"arm {forbidden[0]} was played but is not among those allowed; impose what was allowed then")
    return numbers.astype(np.int64)


def _read_probabilities(probabilities: Any, count: int) -> Floats:
    try:
        shares = np.atleast_1d(as_floats(probabilities))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"probabilities must be numbers, one per round, got {shown(probabilities)}") from None
    if shares.shape != (count,):
        raise InputError(f"got probabilities of shape {shares.shape} for {counted(count, 'arm')}; give one each")
    unfit = shares[~((shares > 0.0) & (shares <= 1.0 + _ROUNDING))]
    if len(unfit):
        raise InputError(f"a probability is {unfit[0]:.6g}; that of an arm that was played lies in (0, 1]")
    return shares


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
