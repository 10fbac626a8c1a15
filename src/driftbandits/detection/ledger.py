"""The rewards of an epoch, by arm and by time, in memory that does not grow with its rounds.

What is believed needs totals per arm; where a change cuts the epoch in two, those before it and those after it. The
latest rounds are kept one by one, so that a cut among them is exact. Older ones are kept as totals of buckets of
consecutive rounds, which double with age: a bucket has at most about a quarter as many as came after it. A cut inside a
bucket leaves that one out on both sides, so what belongs to one side is never counted on the other.

Where rounds are told late, they join the bucket of their time.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.errors import StateError
from driftbandits.state.reader import FARTHEST, ROUNDING
from driftbandits.types import Floats, Ints

RECENT = 1024  # rounds kept one by one at least, once there were so many; twice as many at most
SMALLEST = 256  # rounds of the youngest bucket
MOST_ALIKE = 6  # buckets of one size: one more, and the two oldest become one


@dataclass(frozen=True)
class Totals:
    """Rewards of every arm: how many, their sum and the sum of their squares, each (N,)."""

    counts: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, arms: Ints, rewards: Floats, size: int) -> Totals:
        """Totals of single rewards."""
        return cls(
            counts=np.bincount(arms, minlength=size).astype(np.float64),
            sums=np.asarray(np.bincount(arms, weights=rewards, minlength=size), dtype=np.float64),
            squares=np.asarray(np.bincount(arms, weights=np.square(rewards), minlength=size), dtype=np.float64),
        )

    def squared_error(self, means: Floats) -> float:
        """Sum of the squares of what the rewards differ by from these means of their arms.

        >>> Totals.of(np.array([0, 0, 1]), np.array([1.0, 0.0, 0.5]), 2).squared_error(np.array([0.5, 0.25]))
        0.5625
        """
        return max(float((self.squares - 2.0 * means * self.sums + np.square(means) * self.counts).sum()), 0.0)


@dataclass
class Bucket:
    """Rewards of the rounds from `first_round` to the next bucket, which is `level` times doubled."""

    first_round: int
    level: int
    arms: Ints  # those played, ascending
    totals: Floats  # (3, arms played): how many rewards, their sum, the sum of their squares

    @classmethod
    def of(cls, first_round: int, level: int, arms: Ints, totals: Floats) -> Bucket:
        """Arms that occur more than once are added up."""
        played, place = np.unique(arms, return_inverse=True)
        summed = [np.bincount(place, weights=row) for row in totals]
        return cls(first_round, level, played, np.array(summed, dtype=np.float64))  # of nothing they are whole numbers

    def merge(self, other: Bucket) -> Bucket:
        """With the next one, both in one."""
        arms, totals = np.append(self.arms, other.arms), np.append(self.totals, other.totals, axis=1)
        return Bucket.of(self.first_round, self.level + 1, arms, totals)

    def join(self, arm: int, reward: float, round_: int) -> Bucket:
        """With one reward more."""
        arms, totals = np.append(self.arms, arm), np.column_stack([self.totals, _of_each(np.array([reward]))])
        return Bucket.of(min(self.first_round, round_), self.level, arms, totals)

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {
            "first_round": self.first_round,
            "level": self.level,
            "arms": self.arms.copy(),
            "totals": self.totals.copy(),
        }

    @classmethod
    def load(cls, state: states.Reader, *, size: int, largest: float) -> Bucket:
        """Inverse of `export`, of so many arms and of rewards of at most `largest` in size."""
        arms: Ints = state.array("arms", np.int64, (None,))
        totals: Floats = state.array("totals", np.float64, (3, len(arms)))
        first, level = state.integer("first_round", high=FARTHEST), state.integer("level", high=64)
        fine = (np.diff(arms) > 0).all() and (arms >= 0).all() and (arms < size).all()
        states.check(bool(fine), "arms of totals of rewards")
        counts, sums, squares = totals
        most = (1.0 + ROUNDING) * largest
        fine = (counts >= 1).all() and (counts == np.floor(counts)).all() and (counts <= FARTHEST).all()
        fine = fine and (np.abs(sums) <= most * counts).all() and (squares <= most**2 * counts).all()
        states.check(bool(fine), "totals of rewards")
        fine = (np.square(sums) <= (1.0 + ROUNDING) * counts * np.maximum(squares, 0.0) + ROUNDING).all()
        states.check(bool(fine), "squares of totals of rewards")
        return cls(first, level, arms, totals)


class Ledger:
    """Rewards of `size` arms.

    >>> ledger = Ledger(3)
    >>> ledger.observe(np.array([0, 2, 2]), np.array([0.5, 0.25, 1.0]), np.array([7, 8, 9]))
    >>> before, after = ledger.cut(9)
    >>> before.sums.tolist(), after.sums.tolist()
    ([0.5, 0.0, 0.25], [0.0, 0.0, 1.0])
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.clear()

    def clear(self) -> None:
        """No rewards."""
        self.told = 0
        self._set_recent(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64))
        self._buckets: list[Bucket] = []
        self._border = 0  # rounds before it are in buckets

    def observe(self, arms: Ints, rewards: Floats, rounds: Ints) -> None:
        """Take in rewards, in any order of their rounds."""
        for arm, reward, round_ in zip(arms.tolist(), rewards.tolist(), rounds.tolist(), strict=True):
            self.observe_one(arm, reward, round_)

    def observe_one(self, arm: int, reward: float, round_: int) -> None:
        """Take in one reward."""
        self.told += 1
        if round_ < self._border:
            self._join(arm, reward, round_)
            return
        self._arms.append(arm)
        self._rewards.append(reward)
        self._rounds.append(round_)
        if len(self._rounds) == 2 * RECENT:
            self._pack()

    def _join(self, arm: int, reward: float, round_: int) -> None:
        """A late reward of a round that is in a bucket."""
        place = max(bisect_right([bucket.first_round for bucket in self._buckets], round_) - 1, 0)
        self._buckets[place] = self._buckets[place].join(arm, reward, round_)

    def _pack(self) -> None:
        """Put the older half of the rounds kept one by one into buckets."""
        arms, rewards, rounds = self._recent()
        order = np.argsort(rounds)
        for start in range(0, RECENT, SMALLEST):
            rows = order[start : start + SMALLEST]
            self._buckets.append(Bucket.of(int(rounds[rows[0]]), 0, arms[rows], _of_each(rewards[rows])))
        self._border = int(rounds[order[RECENT - 1]]) + 1
        self._keep(np.sort(order[RECENT:]))
        self._merge()

    def _keep(self, rows: Ints) -> None:
        arms, rewards, rounds = self._recent()
        self._set_recent(arms[rows], rewards[rows], rounds[rows])

    def _merge(self) -> None:
        buckets, level = self._buckets, 0
        while True:
            alike = [place for place, bucket in enumerate(buckets) if bucket.level == level]
            if len(alike) > MOST_ALIKE:
                first = alike[0]  # they are neighbours: levels fall with time
                buckets[first : first + 2] = [buckets[first].merge(buckets[first + 1])]
            elif level >= buckets[0].level:
                return
            else:
                level += 1

    # --- totals -------------------------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """Of all rewards."""
        return self._add(self._buckets, Totals.of(*self._recent()[:2], self._size))

    def cut(self, since: int) -> tuple[Totals, Totals]:
        """Of the rounds before `since`, and from it on; a bucket that has rounds of both counts on neither side."""
        arms, rewards, rounds = self._recent()
        new = rounds >= since
        before, after = self._cut_buckets(since)
        return (
            self._add(before, Totals.of(arms[~new], rewards[~new], self._size)),
            self._add(after, Totals.of(arms[new], rewards[new], self._size)),
        )

    def _cut_buckets(self, since: int) -> tuple[list[Bucket], list[Bucket]]:
        ends = [*(bucket.first_round for bucket in self._buckets), self._border][1:]
        before = [bucket for bucket, end in zip(self._buckets, ends, strict=True) if end <= since]
        return before, [bucket for bucket in self._buckets if bucket.first_round >= since]

    def _add(self, buckets: list[Bucket], recent: Totals) -> Totals:
        columns = np.array([recent.counts, recent.sums, recent.squares])
        for bucket in buckets:
            columns[:, bucket.arms] += bucket.totals
        return Totals(*columns)

    def played_since(self, since: int, before: int = FARTHEST) -> Bucket:
        """The later side of `cut`, of the arms played only; rounds that are not before `before` are left out."""
        arms, rewards, rounds = self._recent()
        new, (_, later) = (rounds >= since) & (rounds < before), self._cut_buckets(since)
        later = [bucket for bucket in later if bucket.first_round < before]
        every = np.concatenate([arms[new], *(bucket.arms for bucket in later)])
        totals = np.concatenate([_of_each(rewards[new]), *(bucket.totals for bucket in later)], axis=1)
        return Bucket.of(since, 0, every, totals)

    def forget(self, since: int) -> None:
        """Keep the rounds that `cut` has on its later side."""
        _, self._buckets = self._cut_buckets(since)
        if not self._buckets:
            self._border = 0
        self._keep(np.flatnonzero(self._recent()[2] >= since))
        self.told = len(self._rounds) + round(sum(float(bucket.totals[0].sum()) for bucket in self._buckets))

    def _set_recent(self, arms: Ints, rewards: Floats, rounds: Ints) -> None:
        """Arrays of the standard library: cheap to append to, and read by NumPy without a copy."""
        self._arms, self._rewards, self._rounds = array("q"), array("d"), array("q")
        for kept, column in ((self._arms, arms), (self._rewards, rewards), (self._rounds, rounds)):
            kept.frombytes(column.tobytes())

    def _recent(self) -> tuple[Ints, Floats, Ints]:
        return (
            np.array(self._arms, dtype=np.int64),
            np.array(self._rewards, dtype=np.float64),
            np.array(self._rounds, dtype=np.int64),
        )

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        arms, rewards, rounds = self._recent()
        buckets = [bucket.export() for bucket in self._buckets]
        return {"arms": arms, "rewards": rewards, "rounds": rounds, "border": self._border, "buckets": buckets}

    def load(self, state: states.Reader, *, rounds: int, largest: float = 1.0) -> None:
        """Inverse of `export`, after so many rounds, of rewards of at most `largest` in size."""
        self.clear()
        arms = state.array("arms", np.int64, (None,))
        rewards = state.array("rewards", np.float64, (len(arms),))
        played = state.array("rounds", np.int64, (len(arms),))
        self._border = state.integer("border", high=rounds)
        if ((arms < 0) | (arms >= self._size)).any() or ((played < self._border) | (played >= rounds)).any():
            raise StateError("the state has rounds of unknown arms, or rounds that were not played")
        inside = (np.abs(rewards) <= (1.0 + ROUNDING) * largest).all()
        states.check(bool(inside and len(arms) < 2 * RECENT), "rewards")
        self._set_recent(arms, rewards, played)
        items = state.readers("buckets")
        self._buckets = [Bucket.load(item, size=self._size, largest=largest) for item in items]
        firsts = [bucket.first_round for bucket in self._buckets]
        levels = [bucket.level for bucket in self._buckets]
        ordered = all(a < b for a, b in zip(firsts, [*firsts, self._border][1:], strict=True))
        ordered = ordered and all(len(bucket.arms) for bucket in self._buckets)
        states.check(ordered and levels == sorted(levels, reverse=True), "order of totals of rewards")
        states.check(bool(self._buckets) == (self._border > 0), "border of totals of rewards")
        self.told = len(arms) + round(sum(float(bucket.totals[0].sum()) for bucket in self._buckets))
        states.check(self.told <= rounds, "number of rewards")


def _of_each(rewards: Floats) -> Floats:
    """Totals of single rewards, (3, rewards)."""
    return np.array([np.ones(len(rewards)), rewards, np.square(rewards)])
