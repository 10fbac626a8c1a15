"""What every policy records of its own life: plays per arm, changes found, and beliefs over time.

What a policy believed over time, thinned: at most 500 moments and 50 arms, whatever its age.

A snapshot is taken just before a reward is learned, every `stride` rewards: nothing else changes the policy then, and
most of what is recorded was computed for the last decision. When there are too many snapshots, every other one is
dropped and the stride doubles, so a policy of any age has taken 250 in the last half of its life.

More arms are followed than are shown, so that those played most at the end were followed for long.

symbol  name     shape             meaning
V       values   (P, rows, A)      estimate and probability of the arms followed, and in policies that have an interval
                                   what it is found from
        since    (A,)              number of the snapshot with which each began to be followed
"""

from __future__ import annotations

import collections
import dataclasses
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.machine import data_frame
from driftbandits.errors import StateError
from driftbandits.state.reader import FARTHEST, check_whole
from driftbandits.text import counted
from driftbandits.types import ARMS_CHANGED, Change, Floats, Ints

NEVER = -1  # as the round in which an arm was last played


class Plays:
    """Rounds in which every arm was drawn, told or not, and the last of them.

    A live request adds one number to each list, so they are arrays of the interpreter, which take a third of the time
    that NumPy needs for a single entry; `counts` and `last` are views of them.

    >>> plays = Plays(3)
    >>> plays.add(2, 0)
    >>> plays.add_many(np.array([2, 1]), np.array([1, 2]))
    >>> plays.counts.tolist(), plays.last.tolist()
    ([0, 1, 2], [-1, 2, 1])
    """

    __slots__ = ("_counts", "_last")

    def __init__(self, arms: int) -> None:
        self._counts = array("q", bytes(8 * arms))
        self._last = array("q", [NEVER]) * arms

    @property
    def counts(self) -> Ints:
        """Rounds in which each arm was drawn, shape (N,); a view."""
        return np.frombuffer(self._counts, dtype=np.int64)

    @property
    def last(self) -> Ints:
        """The last of them, -1 for an arm never drawn, shape (N,); a view."""
        return np.frombuffer(self._last, dtype=np.int64)

    def add(self, arm: int, round_: int) -> None:
        """`arm` was drawn in `round_`: 0.1 us, against 4 by `add_many`."""
        self._counts[arm] += 1
        self._last[arm] = round_

    def add_many(self, arms: Ints, rounds: Ints) -> None:
        """These arms were drawn in these rounds, which grow."""
        np.add.at(self.counts, arms, 1)
        np.maximum.at(self.last, arms, rounds)

    def rearranged(self, origins: Ints) -> Plays:
        """The same for other arms: the k-th is what arm `origins[k]` is here, or new where that is -1."""
        fresh, kept = Plays(len(origins)), origins >= 0
        fresh.counts[kept], fresh.last[kept] = self.counts[origins[kept]], self.last[origins[kept]]
        return fresh

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        return {"counts": self.counts.copy(), "last": self.last.copy()}

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`, after `rounds` rounds."""
        shape = (len(self._counts),)
        counts, last = (state.array(name, np.int64, shape) for name in ("counts", "last"))
        check_whole(counts, rounds, "plays of the arms")
        # an arm drawn k times was last drawn in round k - 1 at the earliest, and no two arms in the same round
        seen = last[counts > 0]
        fine = bool(((last >= counts - 1) & (last < rounds) & ((counts > 0) == (last >= 0))).all())
        states.check(fine and len(np.unique(seen)) == len(seen), "rounds in which arms were last played")
        self.counts[:], self.last[:] = counts, last


CHANGES_KEPT = 10_000  # a policy that finds one in every sixty rounds would fill the memory


class ChangeLog:
    """The latest records, oldest first, and the number of all changes found; new arms are none that was found."""

    def __init__(self) -> None:
        self.found = 0
        self._latest: collections.deque[Change] = collections.deque(maxlen=CHANGES_KEPT)

    def latest(self) -> tuple[Change, ...]:
        """The records kept."""
        return tuple(self._latest)

    def add(self, change: Change) -> None:
        """Keep a record, in the place of the oldest if there are too many."""
        self._latest.append(change)
        self.found += change.stream != ARMS_CHANGED

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values."""
        return {"changes": [dataclasses.asdict(change) for change in self._latest], "changes_found": self.found}

    def load(self, state: states.Reader) -> None:
        """Inverse of `export`."""
        self._latest.extend(_read_change(item) for item in state.readers("changes"))
        found = sum(change.stream != ARMS_CHANGED for change in self._latest)
        self.found = state.integer("changes_found", low=found, high=FARTHEST)


def _read_change(reader: states.Reader) -> Change:
    """A change record from a saved state."""
    for name in ("round", "epoch", "block", "compared_with"):
        reader.integer(name)
    for name in ("statistic", "threshold", "odds"):
        reader.number(name)
    reader.text("forgot")
    reader.text("stream")
    known = [field.name for field in dataclasses.fields(Change)]
    if reader.has("part"):
        reader.text("part")
    else:  # states of 0.3.0 have none
        known.remove("part")
    change = Change.from_dict({name: reader.raw(name) for name in known})
    numbers = {"interval": int, "arms": int, "before": float, "after": float, "names": str}
    for name, kind in numbers.items():
        values = getattr(change, name)
        if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
            raise StateError(f"the {name} of a change in the state are not a list of {kind.__name__} values")
    if len(change.interval) != 2 or not len(change.arms) == len(change.before) == len(change.after):
        raise StateError("a change in the state has an interval or lists of arms of the wrong length")
    return change


MOST_POINTS = 500
MOST_ARMS = 50  # shown
FOLLOWED = 80
FIRST_STRIDE = 32  # rewards: a snapshot may cost as much as many rounds
REPLACED_BEYOND = 1.5  # times as often played, an arm takes the place of one that is followed
_LARGEST = float(np.finfo(np.float32).max)
_WITHOUT = 2  # rows: estimate and probability


@dataclass(frozen=True, slots=True)
class Followed:
    """The arms followed from the next snapshot on, and the number of the snapshot with which each began to be, (A,)."""

    arms: Ints
    since: Ints


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a policy believes at `round` of the arms followed, on the internal scale: rows as in the table above."""

    round: int
    followed: Followed
    values: Floats

    @classmethod
    def of(cls, round_: int, followed: Followed, rows: Sequence[Any]) -> Snapshot | None:
        """A snapshot; None where what was found are not numbers, one per arm, which `ask` will say."""
        try:
            values = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            return None
        shaped = values.ndim == 2 and values.shape[1] == len(followed.arms)
        return cls(round_, followed, values) if shaped and np.abs(values).max() < _LARGEST else None  # not of NaN


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """What a policy believed: one row per moment, one column per arm, in the user's units.

    Parameters
    ----------
    rounds : (P,) rounds asked at each moment, the last is now
    arms : (A,) numbers of the arms, by how often they were played
    names : theirs, or None
    estimate, law : (P, A) estimated rewards and probabilities, NaN before an arm was followed
    low, high : (P, A) ends of the 95 % intervals; None in policies that have none

    >>> from driftbandits import ArmSet, Uniform
    >>> policy = Uniform(ArmSet([[0.0], [1.0]]), seed=0)
    >>> for _ in range(100):
    ...     policy.tell(policy.ask(), 0.5)
    >>> policy.history
    History(5 moments, rounds 1 to 100, 2 arms)
    """

    rounds: Ints
    arms: Ints
    names: tuple[str, ...] | None
    estimate: Floats
    law: Floats
    low: Floats | None
    high: Floats | None

    def __len__(self) -> int:
        return len(self.rounds)

    def __repr__(self) -> str:
        span = f"rounds {self.rounds[0]:,} to {self.rounds[-1]:,}"
        return f"History({counted(len(self), 'moment')}, {span}, {counted(len(self.arms), 'arm')})"

    def to_pandas(self) -> Any:
        """All of it as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per moment and arm: round, arm, name, estimate, low, high, probability.

        Raises
        ------
        MissingExtraError
            Without pandas.
        """
        known = ~np.isnan(self.estimate)
        moments, places = np.nonzero(known)
        columns: dict[str, Any] = {"round": self.rounds[moments], "arm": self.arms[places]}
        if self.names is not None:
            columns["name"] = [self.names[place] for place in places]
        columns["estimate"] = self.estimate[known]
        if self.low is not None and self.high is not None:
            columns["low"], columns["high"] = self.low[known], self.high[known]
        return data_frame({**columns, "probability": self.law[known]}, purpose="a history as a table")


class HistoryLog:
    """The snapshots kept, and after how many more rewards the next is due: `left`, not above 0 when it is.

    >>> log = HistoryLog(2)
    >>> for told in range(10_000):
    ...     if log.left <= 0:
    ...         log.add(Snapshot(told, log.follow(np.array([told, 0])), np.zeros((2, 2))))
    ...     log.left -= 1
    >>> len(log), log.stride, log.rounds[-1].item()
    (313, 32, 9984)
    """

    def __init__(self, arms: int, *, kept: int = 2) -> None:
        self.left = 0
        self.stride = FIRST_STRIDE
        self._size = 0
        self._total = arms
        self._rows = _WITHOUT + kept  # where there are intervals
        self.arms: Ints = np.zeros(0, dtype=np.int64)
        self._since: Ints = np.zeros(0, dtype=np.int64)
        self._rounds: Ints = np.zeros(0, dtype=np.int64)
        self._values: npt.NDArray[np.float32] = np.zeros((0, self._rows, 0), dtype=np.float32)

    def __len__(self) -> int:
        return self._size

    @property
    def rounds(self) -> Ints:
        """Rounds of the snapshots, shape (P,); a view."""
        return self._rounds[: self._size]

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        new = len(snapshot.followed.arms) - len(self.arms)
        if new:
            self._values = np.pad(self._values, ((0, 0), (0, 0), (0, new)))
        self.arms, self._since = snapshot.followed.arms, snapshot.followed.since
        self._make_room(min(len(snapshot.values), self._values.shape[1]))
        self._rounds[self._size] = snapshot.round
        self._values[self._size] = snapshot.values[: self._values.shape[1]]
        self._size += 1
        if self._size == MOST_POINTS:
            self._thin()
        self.left = self.stride

    def follow(self, plays: Ints) -> Followed:
        """The arms to follow: all of few, those played most of many; one far behind gives up its place."""
        missing = min(self._total, FOLLOWED) - len(self.arms)
        if not missing and self._total <= FOLLOWED:
            return Followed(self.arms, self._since)
        arms, since, others = self.arms.copy(), self._since.copy(), plays.copy()
        others[arms] = -1
        if missing:
            new = np.sort(np.argsort(-others, kind="stable")[:missing])
            arms, since = np.append(arms, new), np.append(since, np.full(missing, self._size))
            others[arms] = -1
        for _ in range(len(arms) if self._total > FOLLOWED else 0):
            best, place = int(others.argmax()), int(plays[arms].argmin())
            if others[best] <= REPLACED_BEYOND * plays[arms[place]]:
                break
            arms[place], since[place], others[best] = best, self._size, -1
        return Followed(arms, since)

    def _make_room(self, rows: int) -> None:
        self._values = self._values[:, :rows]
        if self._size == len(self._rounds):
            more = min(max(16, self._size), MOST_POINTS - self._size)
            self._rounds = np.pad(self._rounds, (0, more))
            self._values = np.pad(self._values, ((0, more), (0, 0), (0, 0)))

    def _thin(self) -> None:
        self._size = MOST_POINTS // 2
        self._rounds[: self._size] = self._rounds[1::2].copy()
        self._values[: self._size] = self._values[1::2].copy()
        self._since = self._since // 2  # of snapshots 1, 3, 5, ... the first that is not before
        self.stride *= 2

    def shown(self, plays: Ints) -> Ints:
        """The arms to be shown, (A,): of those followed, the most played."""
        followed = self.arms if self._size else np.arange(self._total)  # nothing was told yet
        return followed[np.argsort(-plays[followed], kind="stable")[:MOST_ARMS]]

    def snapshots(self, arms: Ints, now: int, values: Floats) -> tuple[Ints, Floats]:
        """Rounds (P,) and values (rows, P, A) of arms that are `shown`, NaN where unknown.

        The last is what is believed in round `now`, `values`, shape (rows, A).
        """
        if not self._size:
            return np.array([now]), values[:, None]
        number = np.zeros(self._total, dtype=np.int64)
        number[self.arms] = np.arange(len(self.arms))
        places = number[arms]
        kept = self._size - int(now == self._rounds[self._size - 1])  # a later snapshot of the same round counts
        rows = min(len(values), self._values.shape[1])
        past = self._values[:kept, :rows][:, :, places].astype(np.float64)
        past[np.broadcast_to(np.arange(kept)[:, None, None] < self._since[places], past.shape)] = np.nan
        return np.append(self._rounds[:kept], now), np.concatenate([past, values[None, :rows]]).transpose(1, 0, 2)

    def rearranged(self, origins: Ints) -> HistoryLog:
        """The same for other arms: the k-th is what arm `origins[k]` is here, or new where that is -1."""
        fresh = HistoryLog(len(origins), kept=self._rows - _WITHOUT)
        number = np.full(self._total, -1)
        number[origins[origins >= 0]] = np.flatnonzero(origins >= 0)
        kept = np.flatnonzero(number[self.arms] >= 0) if len(self.arms) else np.zeros(0, dtype=np.int64)
        fresh.left, fresh.stride, fresh._size = self.left, self.stride, self._size
        fresh.arms, fresh._since = number[self.arms[kept]], self._since[kept]
        fresh._rounds, fresh._values = self._rounds.copy(), self._values[:, :, kept].copy()
        return fresh

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """What `load` needs."""
        return {
            "left": self.left,
            "stride": self.stride,
            "rounds": self.rounds.copy(),
            "arms": self.arms.copy(),
            "since": self._since.copy(),
            "values": self._values[: self._size].copy(),
        }

    def load(self, state: states.Reader, *, rounds: int) -> None:
        """Inverse of `export`, after `rounds` rounds."""
        self.stride = state.integer("stride", low=FIRST_STRIDE, high=FARTHEST)
        self.left = state.integer("left", low=-FARTHEST, high=self.stride)
        self._rounds = state.array("rounds", np.int64, (None,))
        self._size = size = len(self._rounds)
        self.arms = state.array("arms", np.int64, (None,))
        self._since = state.array("since", np.int64, self.arms.shape)
        self._values = state.array("values", np.float32, (size, None, len(self.arms)))
        laws, rows = self._values[:, 1:2], self._values.shape[1]
        checks = {
            "stride": (self.stride // FIRST_STRIDE).bit_count() == 1 and self.stride % FIRST_STRIDE == 0,
            "moments": size < MOST_POINTS and (np.diff(self._rounds) >= 0).all(),
            "rounds": size == 0 or 0 <= self._rounds[0] <= self._rounds[-1] <= rounds,
            "arms": ((self.arms >= 0) & (self.arms < self._total)).all()
            and len(np.unique(self.arms)) == len(self.arms),
            "number of arms": len(self.arms) <= FOLLOWED,
            "since": ((self._since >= 0) & (self._since <= size)).all(),
            "rows": rows in (self._rows, _WITHOUT),
            "probabilities": ((laws >= 0.0) & (laws <= 1.0 + 1e-6)).all(),
        }
        for name, fine in checks.items():
            states.check(bool(fine), f"{name} of the history")
