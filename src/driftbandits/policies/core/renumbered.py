"""Numbers that arms had when a decision was made, where arms have come and gone since."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.state.plausible import FARTHEST
from driftbandits.types import Decisions, Ints

GONE = -1  # in the place of an arm's number: it is no longer offered
_NEVER = -2  # nor ever was: no open decision has it


class Renumbered:
    """How arms were renumbered, as far back as there are open decisions, and how often in all.

    >>> book = Renumbered()
    >>> book.add(5, np.array([1, GONE]))
    >>> book.now(np.array([4, 4, 5]), np.array([0, 1, 0])).tolist(), book.since
    ([1, -1, 0], 5)
    """

    def __init__(self) -> None:
        self.count = 0
        self._changes: list[tuple[int, Ints]] = []  # first round with the new numbers, and the new number of each arm

    @property
    def since(self) -> int:
        """The round from which on all arms have had their present numbers, as far as open decisions go back."""
        return self._changes[-1][0] if self._changes else 0

    def add(self, first_round: int, target: Ints) -> None:
        """From `first_round` on, arm a is called target[a]."""
        self.count += 1
        self._changes.append((first_round, target))

    def forget(self, oldest: int | None) -> None:
        """No decision before round `oldest` is open (None: none at all)."""
        self._changes = [] if oldest is None else [change for change in self._changes if change[0] > oldest]

    def now(self, ids: Ints, arms: Ints) -> Ints:
        """Present numbers of these arms of these decisions; of one that no arm had then, a number that none has."""
        numbers = np.where(arms < 0, _NEVER, arms)
        for first_round, target in self._changes:
            before = (ids < first_round) & (numbers >= 0)
            numbers[before & (numbers >= len(target))] = _NEVER
            known = before & (numbers >= 0)
            numbers[known] = target[numbers[known]]
        return numbers

    def translate(self, decisions: Decisions) -> Decisions:
        """Decisions as they were given out, with the present numbers of their arms."""
        if not self._changes:
            return decisions
        return dataclasses.replace(decisions, arms=self.now(decisions.ids, decisions.arms))

    def copy(self) -> Renumbered:
        """A book of its own."""
        other = Renumbered()
        other.count, other._changes = self.count, list(self._changes)
        return other

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        changes = [{"round": first_round, "target": target.copy()} for first_round, target in self._changes]
        return {"count": self.count, "changes": changes}

    @classmethod
    def load(cls, state: states.Reader, *, rounds: int) -> Renumbered:
        """Inverse of `export`."""
        book = cls()
        for item in state.readers("changes"):
            target = item.array("target", np.int64, (None,))
            named = target[target >= 0]
            states.check(bool((target >= GONE).all()) and len(np.unique(named)) == len(named), "numbers of arms")
            book._changes.append((item.integer("round", high=rounds), target))
        firsts = [first_round for first_round, _ in book._changes]
        states.check(firsts == sorted(firsts), "order of the changes of arms")
        book.count = state.integer("count", low=len(firsts), high=FARTHEST)
        return book
