"""What the journal says of an experiment: counts and rewards over time, in a few hundred points whatever its length.

Points are ranges of the journal: all decisions whose number lies in one, with how they were closed. So no row need be
joined with another: a reward's row names its decision, and a decision that has neither a reward nor was forgotten and
lies before the last watermark has expired. The database counts; no row comes here.

The curve joins neighbouring points until each rests on enough rewards, with a 95 % band: Clopper and Pearson's for
rewards of two values, Student's for others. If all rewards of a point are equal, Student's would have no width: so many
equal rewards only say that others are rare.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import sqlalchemy as sa

from driftbandits._util.intervals import CONFIDENCE_LEVEL
from driftbandits.live import View, tables
from driftbandits.live.journal import Journal
from driftbandits.live.replica import Counts
from driftbandits.types import Floats

POINTS = 200
RECENT = 2_000  # rewards whose delays are checked
LEAST = 20  # decisions per point of the curve
MOST_POINTS = 50  # of the curve
SHARE = 0.05  # of the time may go into counting: a long journal is counted less often
GROWTH = 2  # times as much as was counted is counted at once: that costs no more than counting it all a second time
_TAIL = (1.0 - CONFIDENCE_LEVEL) / 2.0
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
    """Sums of rewards: count, total, squares, least and most."""

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
    """Count the journal in at most `points` ranges."""
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
        there = closed.get(place, (0, 0.0, 0.0, 0.0, 0.0, 0))  # from rewards to forgotten, as a point has them
        left, last = decisions - there[0] - there[-1], (place + 1) * width - 1
        expired = left if last <= expired_to else run.expired_within(place, expired_to)
        found.append(Point(place * width, begin, end, decisions, fallbacks, *there, expired))
    return Series(tuple(found), worth, newest.seq)


def _in_time(events: sa.Table) -> sa.ColumnElement[bool]:
    """Rewards that came before their decision was closed."""
    return sa.and_(events.c.kind == "rewarded", sa.or_(events.c.payload.is_(None), events.c.payload != LATE))


class _Run:
    """The queries of one count."""

    def __init__(self, journal: Journal, width: int) -> None:
        self._journal, self._width = journal, width
        self._events = tables.events
        self._mine = tables.events.c.experiment == journal.experiment

    def decided(self) -> dict[int, tuple[int, int, int, int]]:
        """Decisions, first and last time, and those not of the policy (of the fallback, for guests), by range."""
        events = self._events
        place = sa.cast(events.c.seq, sa.BigInteger) // self._width
        aside = sa.or_(*(events.c.payload.contains(f'"{name}":true') for name in ("fallback", "guest")))
        fallback = sa.func.sum(sa.case((aside, 1), else_=0))
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
        reward = sa.case((_in_time(events), events.c.reward))
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
        """The decision up to which all open ones have expired."""
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
        gone = sa.select(sa.func.count(sa.distinct(events.c.decision))).where(
            self._mine, sa.or_(_in_time(events), events.c.kind == "forgotten"), events.c.decision.between(first, last)
        )
        connection = self._journal.connection
        return int(connection.execute(made).scalar() or 0) - int(connection.execute(gone).scalar() or 0)


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest rewards and how long each took (seconds); when the last came; decisions made since."""

    rewards: Floats
    delays: Floats
    last: int | None
    decisions_since: int
    seconds_since: float


def recent(view: View, journal: Journal, now: int) -> Recent:
    """The newest rewards and their decisions."""
    events, made = tables.events, tables.events.alias()
    mine = events.c.experiment == view.experiment
    wanted = (
        sa.select(events.c.seq, events.c.time, events.c.reward, made.c.time)
        .join(made, sa.and_(made.c.experiment == events.c.experiment, made.c.seq == events.c.decision))
        .where(mine, _in_time(events), tables.has_time(events), tables.has_time(made))
        .order_by(events.c.seq.desc())
        .limit(RECENT)
    )
    rows = journal.connection.execute(wanted).all()
    if not rows:
        return Recent(np.zeros(0), np.zeros(0), None, 0, 0.0)
    since = sa.select(sa.func.count()).where(mine, events.c.kind == "decided", events.c.seq > rows[0][0])
    return Recent(
        np.array([row[2] for row in rows], dtype=np.float64),
        np.array([(row[1] - row[3]) / 1e6 for row in rows]),
        int(rows[0][1]),
        int(journal.connection.execute(since).scalar() or 0),
        max(now - int(rows[0][1]), 0) / 1e6,
    )


# --- the curve ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Mean reward of decisions made from `begin` to `end` (seconds since 1970), its band, and what that rests on."""

    begin: float
    end: float
    mean: float
    low: float
    high: float
    count: int
    decisions: int
    fallbacks: int


def curve(series: Series, reward_range: tuple[float, float]) -> tuple[CurvePoint, ...]:
    """The curve; without points whose rewards are not known yet."""
    known = [(point, sums) for point in series.points if (sums := series.sums(point)) is not None]
    if not known:
        return ()
    everything = _added(sums for _, sums in known)
    parts = _joined(known, max(everything.count / MOST_POINTS, LEAST))
    return tuple(_curve_point(part, everything, reward_range) for part in parts)


def _joined(known: list[tuple[Point, Sums]], wanted: float) -> list[list[tuple[Point, Sums]]]:
    """Join neighbours until each part has enough rewards; a rest that is too small joins the last part."""
    parts: list[list[tuple[Point, Sums]]] = [[]]
    for one in known:
        if _count(parts[-1]) >= wanted:
            parts.append([])
        parts[-1].append(one)
    if len(parts) > 1 and _count(parts[-1]) < wanted / 2:
        rest = parts.pop()
        parts[-1] += rest
    return parts


def _count(part: list[tuple[Point, Sums]]) -> int:
    return sum(sums.count for _, sums in part)


def _added(given: Iterable[Sums]) -> Sums:
    return reduce(Sums.__add__, given)


def _curve_point(part: list[tuple[Point, Sums]], everything: Sums, reward_range: tuple[float, float]) -> CurvePoint:
    sums = _added(sums for _, sums in part)
    low, high = band(sums, everything, reward_range)
    return CurvePoint(
        begin=part[0][0].begin / 1e6,
        end=part[-1][0].end / 1e6,
        mean=sums.mean,
        low=low,
        high=high,
        count=sums.count,
        decisions=sum(point.decisions for point, _ in part),
        fallbacks=sum(point.fallbacks for point, _ in part),
    )


def band(sums: Sums, everything: Sums, reward_range: tuple[float, float]) -> tuple[float, float]:
    """Ends of the 95 % interval of a mean; `everything` shows which rewards there are.

    >>> one, zeros = Sums.of([1.0]), Sums.of([0.0] * 33)
    >>> low, high = band(zeros, zeros + one, (0.0, 1.0))
    >>> low, round(high, 3)
    (0.0, 0.106)
    """
    least, most = everything.least, everything.most
    if least == most:
        least, most = reward_range
    if sums.least == sums.most:
        others = 1.0 - _TAIL ** (1.0 / sums.count)  # a larger share of other rewards would have shown itself
        return sums.mean - others * (sums.mean - least), sums.mean + others * (most - sums.mean)
    if everything.is_two_valued:
        low, high = _share_ends(round((sums.total - sums.count * least) / (most - least)), sums.count)
        return least + low * (most - least), least + high * (most - least)
    half = _student(sums.count - 1) * sums.error
    return max(sums.mean - half, reward_range[0]), min(sums.mean + half, reward_range[1])


def _share_ends(hits: int, runs: int) -> tuple[float, float]:
    """As `intervals.share_interval`, without half a second of imports; both values were seen."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, runs - hits + 1, _TAIL)), float(betaincinv(hits + 1, runs - hits, 1.0 - _TAIL))


def _student(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1.0 - _TAIL))


# --- counted when that is worth its time ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment has come: decisions, those of them by a policy, and those that are closed.

    With them rounds of the policy since its last restart, and the time of the last event (microseconds since 1970).
    """

    decisions: int
    own: int
    closed: int
    rounds: int = 0
    time: int = 0

    @classmethod
    def of(cls, counts: Counts, *, rounds: int = 0, time: int = 0) -> Progress:
        """By the counts of a replica."""
        closed = counts.rewards + counts.expired + counts.forgotten
        own = counts.decisions - counts.fallbacks - counts.guests
        return cls(counts.decisions, own, closed, rounds, time)

    def outgrows(self, earlier: Progress) -> bool:
        """Whether `earlier` shows too little of it; so a first reward always counts.

        >>> Progress(100, 100, 1).outgrows(Progress(100, 100, 0)), Progress(100, 100, 60).outgrows(Progress(90, 90, 50))
        (True, False)
        """
        return self.decisions > GROWTH * earlier.decisions or self.closed > GROWTH * earlier.closed


@dataclass(frozen=True, slots=True)
class Observed:
    """Ranges of the journal, reward over time, the newest rewards; how far the experiment was, and when that was.

    `at` is of `time.monotonic`.
    """

    series: Series
    curve: tuple[CurvePoint, ...]
    recent: Recent
    progress: Progress
    at: float

    @property
    def age(self) -> float:
        """Seconds since it was counted."""
        return time.monotonic() - self.at


class Observer:
    """Counts the journal of one experiment; from any thread."""

    def __init__(self, view: View, clock: Callable[[], int], progress: Callable[[], Progress]) -> None:
        self.view = view
        self._clock, self._progress = clock, progress
        self._lock = threading.Lock()
        self._found: Observed | None = None
        self._again_at = 0.0

    def get(self) -> Observed:
        """The latest count, as fresh as `SHARE` allows and never outgrown.

        While one thread counts, others use the last count if it is recent enough.
        """
        known, too_little = self._found, self._shows_too_little()
        if known is not None and not too_little and time.monotonic() < self._again_at:
            return known
        if not self._lock.acquire(blocking=known is None or too_little):
            return known  # type: ignore[return-value]  # it is known: otherwise one waits
        try:
            if self._shows_too_little() or time.monotonic() >= self._again_at:
                self._count()
            return self._found  # type: ignore[return-value]  # counted just now
        finally:
            self._lock.release()

    def _shows_too_little(self) -> bool:
        return self._found is None or self._progress().outgrows(self._found.progress)

    def _count(self) -> None:
        begun, progress = time.monotonic(), self._progress()
        with self.view.journal() as journal:
            newest = recent(self.view, journal, self._clock())
            counted = count(self.view, journal)
        rewards = curve(counted, self.view.definition.reward_range)
        self._found = Observed(counted, rewards, newest, progress, begun)
        self._again_at = begun + (time.monotonic() - begun) / SHARE
