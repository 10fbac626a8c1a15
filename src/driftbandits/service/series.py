"""Reward over time, and how many decisions ever got one: from the journal, a few hundred points whatever its length.

Points are ranges of the journal: all decisions whose number lies in one, with what became of them. So no row need be
matched with another: a reward's row names its decision, and what has neither a reward nor was forgotten and lies before
the last watermark has expired. The database counts; no row comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from driftbandits.live import View, tables
from driftbandits.live.journal import Journal
from driftbandits.types import Floats

POINTS = 200
LATE = '{"late":true}'  # payload of a reward that came after its time


@dataclass(frozen=True, slots=True)
class Point:
    """Decisions of a range of the journal: when, how many, how they were closed, and what those with rewards got.

    `begin` and `end` are microseconds since 1970; `total` and `squares` add up rewards and their squares.
    """

    first: int
    begin: int
    end: int
    decisions: int
    fallbacks: int
    rewards: int
    total: float
    squares: float
    least: float
    most: float
    forgotten: int
    expired: int


@dataclass(frozen=True, slots=True)
class Sums:
    """Rewards added up: how many, they, their squares, the least and the most of them."""

    count: int
    total: float
    squares: float
    least: float
    most: float

    @classmethod
    def of(cls, rewards: Sequence[float]) -> Sums:
        """Of rewards, at least one."""
        return cls(len(rewards), sum(rewards), sum(one * one for one in rewards), min(rewards), max(rewards))

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.count + other.count,
            self.total + other.total,
            self.squares + other.squares,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    @property
    def mean(self) -> float:
        """Of the rewards."""
        return self.total / self.count

    @property
    def error(self) -> float:
        """Standard error of the mean; 0 of one reward."""
        variance = max(self.squares / self.count - self.mean * self.mean, 0.0)
        return float((variance / max(self.count - 1, 1)) ** 0.5)

    @property
    def is_two_valued(self) -> bool:
        """Whether every reward is the least or the most: `(reward - least) (most - reward)`, added up, is 0 then.

        >>> Sums.of([0.0, 1.0, 1.0]).is_two_valued, Sums.of([0.0, 0.5, 1.0]).is_two_valued
        (True, False)
        """
        between = (self.least + self.most) * self.total - self.squares - self.count * self.least * self.most
        return between <= 1e-9 * self.count * max(self.least * self.least, self.most * self.most)


@dataclass(frozen=True, slots=True)
class Series:
    """Points in order, what counts for a missing reward (None: nothing), and the last event that was counted."""

    points: tuple[Point, ...]
    missing: float | None
    newest: int

    def sums(self, point: Point) -> Sums | None:
        """Rewards of a point, missing ones with what they count; None where that is not known yet.

        Where silence counts, rewards come before it does: a point with open decisions would show too much.
        """
        closed = point.rewards + point.forgotten + point.expired
        if self.missing is not None and closed < point.decisions:
            return None
        told = Sums(point.rewards, point.total, point.squares, point.least, point.most) if point.rewards else None
        if self.missing is None or not point.expired:
            return told
        worth, expired = self.missing, point.expired
        silent = Sums(expired, expired * worth, expired * worth * worth, worth, worth)
        return silent if told is None else told + silent

    def times_of(self, numbers: Floats, *, made: int, now: int) -> Floats:
        """When the policy's decisions of these numbers were made, about; seconds since 1970, shape as given.

        `made` decisions there are by now (`now`: microseconds since 1970), perhaps more than were counted.
        """
        own = np.array([point.decisions - point.fallbacks for point in self.points], dtype=np.float64)
        ends = np.cumsum(own)
        places = np.stack([ends - own, ends], axis=1).ravel()
        times = np.array([(point.begin, point.end) for point in self.points], dtype=np.float64).ravel()
        if not len(ends) or made > ends[-1]:
            places, times = np.append(places, made), np.append(times, now)
        return np.interp(numbers, places, times) / 1e6

    @property
    def own_decisions(self) -> int:
        """Decisions of the policy, without those of the fallback."""
        return sum(point.decisions - point.fallbacks for point in self.points)


def count(view: View, journal: Journal, points: int = POINTS) -> Series:
    """Count the journal in so many ranges at most."""
    oldest, newest = journal.oldest(), journal.newest()
    missing = view.definition.missing
    worth = float(missing) if isinstance(missing, int | float) and view.definition.patience is not None else None
    if oldest is None or newest is None:
        return Series((), worth, 0)
    width = max((newest.seq - oldest.seq) // points + 1, 1)
    run = _Run(journal, width)
    decided, closed = run.decided(), run.closed()
    expired_to = run.watermark()
    found = []
    for place, (decisions, begin, end, fallbacks) in sorted(decided.items()):
        rewards, total, squares, least, most, forgotten = closed.get(place, (0, 0.0, 0.0, 0.0, 0.0, 0))
        left = decisions - rewards - forgotten
        last = (place + 1) * width - 1
        expired = left if last <= expired_to else run.expired_within(place, expired_to)
        found.append(
            Point(
                place * width,
                begin,
                end,
                decisions,
                fallbacks,
                rewards,
                total,
                squares,
                least,
                most,
                forgotten,
                expired,
            )
        )
    return Series(tuple(found), worth, newest.seq)


class _Run:
    """The queries of one count."""

    def __init__(self, journal: Journal, width: int) -> None:
        self._journal, self._width = journal, width
        self._events = tables.events
        self._mine = tables.events.c.experiment == journal.experiment

    def decided(self) -> dict[int, tuple[int, int, int, int]]:
        """Decisions, first and last time, and fallbacks, by range."""
        events = self._events
        place = sa.cast(events.c.seq, sa.BigInteger) // self._width
        fallback = sa.func.sum(sa.case((events.c.payload.contains('"fallback":true'), 1), else_=0))
        wanted = (
            sa.select(place, sa.func.count(), sa.func.min(events.c.time), sa.func.max(events.c.time), fallback)
            .where(self._mine, events.c.kind == "decided", tables.has_time(events))
            .group_by(place)
        )
        rows = self._journal.connection.execute(wanted).all()
        return {int(row[0]): (int(row[1]), int(row[2]), int(row[3]), int(row[4])) for row in rows}

    def closed(self) -> dict[int, tuple[int, float, float, float, float, int]]:
        """Rewards that came in time (count, sum, squares, least, most), and forgotten ones, by range."""
        events = self._events
        place = sa.cast(events.c.decision, sa.BigInteger) // self._width
        told = sa.and_(events.c.kind == "rewarded", sa.or_(events.c.payload.is_(None), events.c.payload != LATE))
        reward = sa.case((told, events.c.reward))
        wanted = (
            sa.select(
                place,
                sa.func.count(reward),
                sa.func.coalesce(sa.func.sum(reward), 0.0),
                sa.func.coalesce(sa.func.sum(reward * reward), 0.0),
                sa.func.coalesce(sa.func.min(reward), 0.0),
                sa.func.coalesce(sa.func.max(reward), 0.0),
                sa.func.sum(sa.case((events.c.kind == "forgotten", 1), else_=0)),
            )
            .where(self._mine, tables.closes)
            .group_by(place)
        )
        rows = self._journal.connection.execute(wanted).all()
        return {
            int(row[0]): (int(row[1]), float(row[2]), float(row[3]), float(row[4]), float(row[5]), int(row[6]))
            for row in rows
        }

    def watermark(self) -> int:
        """Up to which decision all have expired that were not closed."""
        wanted = sa.select(sa.func.max(self._events.c.decision)).where(self._mine, self._events.c.kind == "expired")
        return int(self._journal.connection.execute(wanted).scalar() or 0)

    def expired_within(self, place: int, upto: int) -> int:
        """Expired decisions of the one range that the watermark lies in."""
        first, last = place * self._width, min((place + 1) * self._width - 1, upto)
        if last < first:
            return 0
        events = self._events
        made = sa.select(sa.func.count()).where(
            self._mine, events.c.kind == "decided", events.c.seq.between(first, last)
        )
        told = sa.and_(events.c.kind == "rewarded", sa.or_(events.c.payload.is_(None), events.c.payload != LATE))
        gone = sa.select(sa.func.count(sa.distinct(events.c.decision))).where(
            self._mine, sa.or_(told, events.c.kind == "forgotten"), events.c.decision.between(first, last)
        )
        connection = self._journal.connection
        return int(connection.execute(made).scalar() or 0) - int(connection.execute(gone).scalar() or 0)
