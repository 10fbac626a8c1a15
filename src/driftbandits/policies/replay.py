"""Rounds that were played elsewhere: replaying a journal, and starting from a log.

A journal, or the log of another policy, says which arm was played and with what probability. `Policy.impose` takes that
in: everything happens as in `ask`, the draw is consumed, and then the arm and the probability given take the place of
those drawn. So a policy that replays its own journal ends where the writer of it was, bit for bit on the same kind of
machine; on another kind, whose last digits differ, the decisions stay those that were really made.

`Policy.learn` imposes every row of a log and tells its reward where the log says that it came; a reward that is not
known is forgotten. What a policy believes follows from arms, rewards and their order alone, so the beliefs are exactly
those of a policy that played these rounds. Policies that weigh rewards by the law that drew them (`_needs_own_law`)
would be biased by probabilities that are not theirs: from another's log the OPKB family takes a first evaluation
(`_evaluate`), and the Exp3 family refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftbandits._util.checks import as_floats
from driftbandits.errors import InputError
from driftbandits.policies.log_columns import LogColumns
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Decisions, Floats, Ints

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

    def __len__(self) -> int:
        return len(self._arms)

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
        """`take` for a single round, in plain numbers: journals have them by the thousand."""
        arm, share = int(self._arms[self._given]), float(self._probabilities[self._given])
        self._given += 1
        apart = abs(share - probability) if arm == drawn else 0.0
        self.differing += arm != drawn or apart > _MACHINES
        self.largest = max(self.largest, apart)
        return arm, share


def read_imposition(arms: Any, probabilities: Any, *, size: int, mask: Bools | None) -> Imposition:
    """Arms played, of `size` there are, and their probabilities, checked; InputError says what is wrong."""
    plain = type(arms) is int and type(probabilities) is float and mask is None
    if plain and 0 <= arms < size and 0.0 < probabilities <= 1.0 + _ROUNDING:
        return Imposition([arms], [probabilities])
    numbers = _read_arms(arms, size, mask)
    return Imposition(numbers, _read_probabilities(probabilities, len(numbers)))


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


class Replayer(Protocol):
    """What `play_log` needs of a policy."""

    def impose(self, arms: Any, probabilities: Any, allowed: Any = None, *, contexts: Any = None) -> Imposed:
        """Take over rounds."""

    def tell(self, ids: Any, rewards: Any) -> None:
        """Tell rewards."""

    def forget(self, ids: Any) -> None:
        """Say that rewards will not come."""


def play_log(policy: Replayer, log: LogColumns, *, only_own: bool) -> int | None:
    """Play a log; if it is to be the policy's own, the row at which this would have drawn otherwise, where it stops."""
    order = np.argsort(log.told_before, kind="stable")
    due, rewards = log.told_before[order].tolist(), log.rewards.tolist()
    place = 0
    for row in range(len(log) + 1):
        while place < len(order) and due[place] <= row:
            number = int(order[place])
            if np.isnan(rewards[number]):
                policy.forget(number)
            else:
                policy.tell(number, rewards[number])
            place += 1
        if row < len(log):
            allowed = None if log.allowed is None else log.allowed[row]
            here = slice(row, row + 1)
            contexts = None if log.requests is None else log.requests[here]
            imposed = policy.impose(log.arms[here], log.probabilities[here], allowed, contexts=contexts)
            if imposed.differing and only_own:
                return row
    return None
