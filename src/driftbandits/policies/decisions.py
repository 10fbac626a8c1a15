"""Decisions between ask and tell: the table of open ones, the reorder buffer, and arms that were renumbered.

In the reorder buffer rewards wait until no earlier decision is open, so that they are learned in the order of their
rounds. A reward that comes quickly because it is good would otherwise overtake the bad ones asked before it, and the
learner would see a sample that is too good at first and too bad later.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits.errors import InputError, UnknownDecisionError
from driftbandits.state.reader import FARTHEST, ROUNDING
from driftbandits.text import shown
from driftbandits.types import Bools, Decision, Decisions, Floats, Ints

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


Number = TypeVar("Number", np.int64, np.float64)
_LARGEST = 2**63 - 1
_LATEST = -1  # in the place of a row: the decision outside the table
_PIECE = 64  # rows scanned at a time for one that is open
OTHER_DECISION = (
    "decision {id} was not made with this arm, probability and law: this id now belongs to another decision; was the "
    "policy restored from an older state? drop what was decided after that state was saved"
)
ROW = np.dtype([("id", "<i8"), ("arm", "<i8"), ("law", "<i8"), ("tag", "<i8"), ("probability", "<f8")])


class Row(NamedTuple):
    """One open decision."""

    id: int
    arm: int
    law: int
    tag: int
    probability: float

    def is_of(self, decision: Decision) -> bool:
        """Whether this is that decision, not another of the same id."""
        return (decision.arm, decision.law, decision.probability) == (self.arm, self.law, self.probability)


@dataclass(frozen=True, slots=True)
class Feedback:
    """Rewards told together, in the order of their rounds, as columns of one length: what `_learn` is given.

    Parameters
    ----------
    ids : of the decisions they belong to
    arms : what was played
    laws : numbers of the laws that the arms were drawn from, as `_stamp` gave them
    tags : what the policy stamped on the rounds, by `_stamp`
    probabilities : with which the arms were drawn
    rewards : on the internal scale [-1, 1]

    >>> import numpy as np
    >>> feedback = Feedback(*np.array([[4, 5], [0, 2], [1, 1], [0, 0]]), np.array([0.5, 0.2]), np.array([0.1, -0.3]))
    >>> len(feedback), [(row.arm, reward) for row, reward in feedback.rows()]
    (2, [(0, 0.1), (2, -0.3)])
    """

    ids: Ints
    arms: Ints
    laws: Ints
    tags: Ints
    probabilities: Floats
    rewards: Floats

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self) -> Iterator[tuple[Row, float]]:
        """Every decision with its reward, in order.

        Yields
        ------
        Row and float
            The decision (id, arm, law, tag, probability), and its reward.
        """
        columns = (self.ids, self.arms, self.laws, self.tags, self.probabilities, self.rewards)
        for *row, reward in zip(*(column.tolist() for column in columns), strict=True):
            yield Row(*row), reward

    def chosen(self, mask: Bools) -> Feedback:
        """The rewards that a mask selects.

        Parameters
        ----------
        mask : one flag per reward

        Returns
        -------
        Feedback
        """
        return Feedback(*(getattr(self, column)[mask] for column in self.__slots__))

    @classmethod
    def of(cls, rows: npt.NDArray[np.void], rewards: Floats) -> Feedback:
        """The rewards of these rows of the table of open decisions.

        Parameters
        ----------
        rows : structured array with a field per column
        rewards : one per row, on the internal scale

        Returns
        -------
        Feedback
        """
        return cls(rows["id"], rows["arm"], rows["law"], rows["tag"], rows["probability"], rewards)

    @classmethod
    def single(cls, row: Row, reward: float) -> Feedback:
        """The reward of one decision.

        Parameters
        ----------
        row : the decision
        reward : on the internal scale

        Returns
        -------
        Feedback
        """
        return cls.of(np.array([row], dtype=ROW), np.array([reward]))


def read_decisions(given: Any) -> Decisions | None:
    """Decisions that `ask` gave, one or several, as columns; None for anything else, which may be ids."""
    if isinstance(given, Decisions):
        return _checked(given.ids, given.arms, given.probabilities, given.laws)
    several = [given] if isinstance(given, Decision) else given
    if isinstance(several, np.ndarray) and several.dtype == object:
        several = several.tolist()
    if not isinstance(several, (list, tuple)) or not any(isinstance(item, Decision) for item in several):
        return None
    wrong = [item for item in several if not isinstance(item, Decision)]
    if wrong:
        raise InputError(f"give decisions or ids, not both: {shown(wrong[0])} is not a Decision")
    return _checked(*([getattr(item, name) for item in several] for name in ("id", "arm", "probability", "law")))


def _checked(ids: Any, arms: Any, probabilities: Any, laws: Any) -> Decisions:
    """Columns as `ask` gives them; those that come back from a file or a database may be anything."""
    whole = [_column(name, given, np.int64) for name, given in (("ids", ids), ("arms", arms), ("laws", laws))]
    decisions = Decisions(whole[0], whole[1], _column("probabilities", probabilities, np.float64), whole[2])
    lengths = [len(column) for column in (*whole, decisions.probabilities)]
    if len(set(lengths)) > 1:
        raise InputError(f"the columns of decisions must have one length, got {lengths}")
    return decisions


def _column(name: str, given: Any, kind: type[Number]) -> npt.NDArray[Number]:
    array = np.asarray(given)
    allowed = "iu" if kind is np.int64 else "iuf"
    if array.ndim != 1 or array.dtype.kind not in allowed or (array.dtype.kind == "u" and (array > _LARGEST).any()):
        wanted = "whole numbers of 64 bits" if kind is np.int64 else "numbers"
        raise InputError(f"the {name} of decisions must be {wanted}, one for each, got {shown(given)}")
    return array.astype(kind)


class OpenDecisions:
    """A table of open decisions, sorted by id, that costs memory only for what is open.

    Rows are appended at the end (ids only grow), found by bisection and struck out by marking; the table is packed
    when three quarters of it are struck out. Beyond `limit` open decisions the oldest are dropped, and kept in `fallen`
    until `pick_up` takes them. The latest single decision waits outside the table: in a plain loop of ask and tell,
    the table is never touched. One decision is found, added and struck out in plain numbers, several in arrays.

    >>> pending = OpenDecisions(limit=2)
    >>> for number in range(3):
    ...     pending.push(Row(id=number, arm=7, law=0, tag=0, probability=1.0))
    >>> pending.oldest(), len(pending), pending.dropped
    (1, 2, 1)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.dropped = 0
        self._rows: npt.NDArray[np.void] = np.empty(64, dtype=ROW)
        self._ids: Ints = self._rows["id"]  # a view
        self._open = np.zeros(64, dtype=np.bool_)
        self._size = 0
        self._head = 0  # every row before this one is struck out, so that the oldest is found without a search
        self._count = 0
        self._last: Row | None = None
        self._found = _LATEST  # where `seek` has found something
        self.fallen: list[npt.NDArray[np.void]] = []  # dropped and not yet picked up

    def __len__(self) -> int:
        return self._count + (self._last is not None)

    def oldest(self) -> int | None:
        """Id of the oldest open decision."""
        if self._count:
            self._head += int(self._open[self._head : self._size].argmax())
            return int(self._rows["id"][self._head])
        return None if self._last is None else self._last.id

    def push(self, row: Row) -> None:
        """Append one decision outside the table: with its reward 0.4 us, against 9 by `add` and `take`."""
        if self._last is not None:
            self.gather()
        self._last = row
        if self._count >= self.limit:
            self.gather()

    @property
    def last(self) -> Row | None:
        """The latest decision, if it came by `push` and is open."""
        return self._last

    def gather(self) -> None:
        """Put the latest decision into the table with the others; needed before `find`."""
        if self._last is not None:
            row, self._last = self._last, None
            place, _ = self._room(1)
            self._rows[place] = row
            self._open[place] = True
            self._count += 1
            if self._count > self.limit:
                self._drop(self._count - self.limit)

    def seek(self, ident: int) -> Row | None:
        """One decision, if it is open; `strike_found` may follow."""
        last = self._last
        if last is not None and ident >= last.id:
            self._found = _LATEST
            return last if ident == last.id else None
        head, end, ids = self._head, self._size - 1, self._ids
        if head > end or ident < (first := ids.item(head)):
            return None
        place = min(head + ident - first, end)  # ids grow by at least 1 from row to row
        if ids.item(place) != ident:
            place = head + int(np.searchsorted(ids[head : place + 1], ident))
            if place > end or ids.item(place) != ident:
                return None
        if not self._open.item(place):
            return None
        self._found = place
        return Row._make(self._rows.item(place))

    def strike_found(self) -> None:
        """Strike out the decision that `seek` has just given."""
        if self._found == _LATEST:
            self._last = None
            return
        self._open[self._found] = False
        self._count -= 1
        self._tidy()

    def add(self, ids: Ints, arms: Ints, probabilities: Floats, law: int | Ints, tag: int) -> None:
        """Append decisions drawn in one stretch; `law` is their law's number, or one for each."""
        self.gather()
        start, stop = self._room(len(ids))
        rows = self._rows[start:stop]
        rows["id"], rows["arm"], rows["probability"] = ids, arms, probabilities
        rows["law"], rows["tag"] = law, tag
        self._open[start:stop] = True
        self._count += len(ids)
        if self._count > self.limit:
            self._drop(self._count - self.limit)

    def drop_oldest(self) -> None:
        """Strike out the oldest, whatever the limit."""
        self.gather()
        self._drop(1)

    def _drop(self, count: int) -> None:
        """Strike out the `count` oldest, scanning from the head in pieces, so that the whole table is not read."""
        found: list[Ints] = []
        at, left = self._head, count
        while left:
            piece = np.flatnonzero(self._open[at : at + max(left, _PIECE)])[:left] + at
            found.append(piece)
            at, left = at + max(left, _PIECE), left - len(piece)
        oldest = np.concatenate(found)
        self.dropped += count
        self.fallen.append(self._rows[oldest])
        self._head = int(oldest[-1]) + 1
        self._strike(oldest)

    def pick_up(self) -> npt.NDArray[np.void]:
        """The decisions dropped since the last time, oldest first."""
        fallen, self.fallen = np.concatenate(self.fallen), []
        return fallen

    def before(self, ident: int) -> Ints:
        """Places of all open decisions before this one. `gather` before."""
        head = self._head
        stop = head + int(np.searchsorted(self._rows["id"][head : self._size], ident))
        return np.flatnonzero(self._open[head:stop]) + head

    def is_open(self, ids: Ints) -> tuple[Ints, Bools]:
        """Positions of `ids` in the table, and whether they are open; a position means nothing otherwise."""
        known = self._rows["id"][: self._size]
        inside = np.minimum(np.searchsorted(known, ids), max(self._size - 1, 0))
        good = (known[inside] == ids) & self._open[inside] if self._size else np.zeros(len(ids), dtype=np.bool_)
        return np.asarray(inside, dtype=np.int64), good

    def find(self, ids: Ints, *, asked: int) -> Ints:
        """Positions of `ids` in the table; an error naming the first id that is not open. `gather` before."""
        inside, good = self.is_open(ids)
        if not good.all():
            wrong = int(ids[int(np.argmin(good))])
            raise UnknownDecisionError(self._reason(wrong, asked))
        self.refuse_twice(ids)
        return inside

    def refuse_unasked(self, ids: Ints, *, asked: int) -> None:
        """Refuse ids that were never given out, and one given twice in a call."""
        never = (ids < 0) | (ids >= asked)
        if never.any():
            raise UnknownDecisionError(self._reason(int(ids[int(np.argmax(never))]), asked))
        self.refuse_twice(ids)

    def refuse_twice(self, ids: Ints) -> None:
        """Refuse an id given twice in a call."""
        if len(ids) > 1 and (np.diff(np.sort(ids)) == 0).any():
            ordered = np.sort(ids)
            twice = int(ordered[:-1][np.diff(ordered) == 0][0])
            raise UnknownDecisionError(f"decision {twice} appears twice in one call; tell each reward once")

    def _reason(self, wrong: int, asked: int) -> str:
        if not 0 <= wrong < asked:
            return f"no decision has the id {wrong}; ids given out so far run from 0 to {asked - 1}"
        note = f" (or dropped by pending_limit={self.limit})" if self.dropped else ""
        return f"decision {wrong} is already told or forgotten{note}; each reward can be told once"

    def compare(self, where: Ints, given: Decisions) -> None:
        """Refuse decisions that are not those open under their ids."""
        rows = self._rows[where]
        same = (rows["arm"] == given.arms) & (rows["law"] == given.laws) & (rows["probability"] == given.probabilities)
        if not same.all():
            wrong = int(np.argmin(same))
            raise UnknownDecisionError(OTHER_DECISION.format(id=given.ids[wrong]))

    def take(self, where: Ints) -> npt.NDArray[np.void]:
        """Strike out the rows at `where` and give them."""
        rows = self._rows[where]
        self._strike(where)
        return rows

    def rows(self) -> npt.NDArray[np.void]:
        """Copy of the open rows, oldest first."""
        table = self._rows[: self._size][self._open[: self._size]]
        return table if self._last is None else np.append(table, np.array([self._last], dtype=ROW))

    def load(self, rows: npt.NDArray[np.void], dropped: int) -> None:
        """Replace the table."""
        self.__init__(self.limit)  # type: ignore[misc]
        self.dropped = dropped
        start, stop = self._room(len(rows))
        self._rows[start:stop] = rows
        self._open[start:stop] = True
        self._count = len(rows)

    def _strike(self, where: Ints) -> None:
        self._open[where] = False
        self._count -= len(where)
        self._tidy()

    def _tidy(self) -> None:
        if self._count == 0:
            self._size = self._head = 0
        elif self._count < self._size // 4:
            self._pack()

    def _pack(self) -> None:
        kept = self._rows[: self._size][self._open[: self._size]].copy()
        self._rows[: len(kept)] = kept
        self._open[: len(kept)] = True
        self._size, self._head = len(kept), 0

    def _room(self, count: int) -> tuple[int, int]:
        start, stop = self._size, self._size + count
        if stop > len(self._rows):
            capacity = max(stop, 2 * len(self._rows))
            self._rows = np.concatenate([self._rows[:start], np.empty(capacity - start, dtype=ROW)])
            self._ids = self._rows["id"]
            self._open = np.concatenate([self._open[:start], np.zeros(capacity - start, dtype=np.bool_)])
        self._size = stop
        return start, stop


HELD_BEFORE_WARNING = 1_000  # rewards behind one decision that is open


class ReorderBuffer:
    """Decisions with their rewards, both final, in the order of their ids. Memory: what waits.

    >>> buffer = ReorderBuffer()
    >>> buffer.hold([Row(id=number, arm=0, law=0, tag=0, probability=1.0) for number in (3, 1, 2)], [0.5] * 3)
    >>> [row.id for row, _ in buffer.release(before=3).rows()], len(buffer)
    ([1, 2], 1)
    """

    def __init__(self) -> None:
        self.warned = False  # whether its length was complained of
        self._heap: list[tuple[int, int, int, int, float, float]] = []  # a row and its reward

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def first(self) -> float:
        """Id of the first decision that waits; infinite where none does."""
        return self._heap[0][0] if self._heap else math.inf

    def hold(self, rows: Iterable[Sequence[Any]], rewards: Iterable[float]) -> None:
        """Let rewards wait, one per row."""
        for row, reward in zip(rows, rewards, strict=True):
            heapq.heappush(self._heap, (*row, reward))

    def release(self, before: float) -> Feedback:
        """Take out what waited of rounds before this one, in their order."""
        ready = []
        while self._heap and self._heap[0][0] < before:
            ready.append(heapq.heappop(self._heap))
        return _feedback(ready)

    def is_long(self) -> bool:
        """Whether so much waits that it is to be complained of; once."""
        if len(self._heap) <= HELD_BEFORE_WARNING or self.warned:
            return False
        self.warned = True
        return True

    def rows(self) -> npt.NDArray[np.void]:
        """Copy of the decisions that wait, oldest first."""
        return np.array([item[:5] for item in sorted(self._heap)], dtype=ROW)

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        rewards = np.array([item[5] for item in sorted(self._heap)], dtype=np.float64)
        return {"rows": self.rows(), "rewards": rewards, "warned": self.warned}

    @classmethod
    def load(cls, state: states.Reader, *, rounds: int, arms: int, pending: npt.NDArray[np.void]) -> ReorderBuffer:
        """Inverse of `export`; with these decisions open, every reward that waits has an earlier one to wait for."""
        buffer = cls()
        buffer.warned = state.flag("warned")
        rows = state.array("rows", ROW, (None,))
        rewards = state.array("rewards", np.float64, rows.shape)
        ids, p = rows["id"], rows["probability"]
        if len(ids):
            oldest = int(pending["id"][0]) if len(pending) else math.inf
            apart = not np.isin(ids, pending["id"]).any()
            states.check(bool((np.diff(ids) > 0).all() and oldest < ids[0] and ids[-1] < rounds and apart), "held ids")
            states.check(bool(((rows["arm"] >= GONE) & (rows["arm"] < arms)).all()), "arms of held rewards")
            states.check(bool(((p > 0) & (p <= 1 + 1e-9)).all()), "probabilities of held rewards")
            states.check(bool((np.abs(rewards) <= 1.0 + ROUNDING).all()), "held rewards")
        buffer.hold(rows.tolist(), rewards.tolist())
        return buffer


def _feedback(items: list[tuple[int, int, int, int, float, float]]) -> Feedback:
    rows = np.array([item[:5] for item in items], dtype=ROW)
    return Feedback.of(rows, np.array([item[5] for item in items], dtype=np.float64))
