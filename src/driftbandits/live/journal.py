"""The journal of an experiment: its events with their seals, decision ids, and the rows on one connection.

The seal of an event is the CRC-32 of its values and of the previous seal: a value that was changed, or a row that is
missing, shows. It is no signature: it shows damage, not who caused it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from driftbandits.errors import JournalError, UnknownDecisionError
from driftbandits.live import tables
from driftbandits.text import shown
from driftbandits.version import __version__

KINDS = (
    "created",
    "decided",
    "rewarded",
    "expired",
    "forgotten",
    "arms",
    "paused",
    "resumed",
    "restarted",
    "settings",
)
log = logging.getLogger("driftbandits.live")
CHUNK = 5000  # events read at a time
SNAPSHOTS_KEPT = 3  # the newest
SNAPSHOT_KEPT_EVERY = 100_000  # events, for audits of old decisions
ANSWERS_KEPT = 7 * 24 * 3600 * 1_000_000  # microseconds
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID = re.compile(r"([0-9a-z]{1,13})-([0-9a-f]{8})")


class Event(NamedTuple):
    """One row of the journal, without the experiment's number."""

    seq: int
    time: int
    kind: str
    decision: int | None = None
    arm: int | None = None
    probability: float | None = None
    reward: float | None = None
    key: str | None = None
    payload: str | None = None
    seal: int = 0

    @property
    def details(self) -> dict[str, Any]:
        """The payload, read."""
        return json.loads(self.payload) if self.payload else {}

    @property
    def damage(self) -> str:
        """Why its values cannot be used; empty if they can. The seal says whether they were altered."""
        if not isinstance(self.time, int):
            return f"its time is {shown(self.time)}"
        try:
            readable = isinstance(self.details, dict)
        except ValueError:
            readable = False
        return "" if readable else "its payload is not JSON"

    def sealed(self, before: int) -> Event:
        """This event, sealed after an event with the seal `before`."""
        return self._replace(seal=seal_of(self, before))


def seal_of(event: Event, before: int) -> int:
    """CRC-32 of all values of an event but its seal, begun with the seal before it.

    >>> first = Event(1, 1000, "paused").sealed(0)
    >>> first.seal == seal_of(first, 0), first.seal == seal_of(first._replace(time=1001), 0)
    (True, False)
    """
    return zlib.crc32(repr(event[:-1]).encode(), before)


def check_event(event: Event, after: Event | None, seal: int) -> None:
    """Refuse an event that does not follow the one before: other values than were written, or a gap."""
    if after is not None and event.seq != after.seq + 1:
        raise JournalError(f"events {after.seq + 1} to {event.seq - 1} are missing from the journal")
    if event.seal != seal_of(event, seal):
        raise JournalError(f"event {event.seq} ({shown(event.kind)}) is not what was written: its seal does not hold")
    if event.kind not in KINDS:
        raise JournalError(f"event {event.seq} is of kind {shown(event.kind)}, which this version does not know")


def undamaged(events: Iterable[Event]) -> Iterator[Event]:
    """Events whose values can be used; of the others a line is logged."""
    for event in events:
        if event.damage:
            log.error("event %s is left out: %s", event.seq, event.damage)
        else:
            yield event


def dump(details: dict[str, Any]) -> str | None:
    """A payload; none for nothing."""
    return json.dumps(details, separators=(",", ":"), allow_nan=False) if details else None


# --- ids ------------------------------------------------------------------------------------------------------------


def decision_id(token: str, seq: int, time: int) -> str:
    """The public id of a decision: its place in the journal, and a check.

    The check depends on the experiment and on the time: an id of another experiment, or of a decision that was lost
    with an older copy of the database, fits nothing.

    >>> decision_id("shop", 1296, 10)
    '100-e208df0b'
    """
    check = hashlib.sha256(f"{token}/{seq}/{time}".encode()).hexdigest()[:8]
    text, left = "", seq
    while left or not text:
        left, digit = divmod(left, 36)
        text = _DIGITS[digit] + text
    return f"{text}-{check}"


def place_of(given: Any) -> int:
    """The place in the journal that an id names; whether it is that id is to be checked there."""
    found = _ID.fullmatch(given) if isinstance(given, str) else None
    if found is None or int(found[1], 36) >= 2**63:
        raise UnknownDecisionError(f"no decision has the id {shown(given)}; pass an id as decide gave it")
    return int(found[1], 36)


def check_reward(reward: Any) -> float | None:
    """A reward as a finite float, or None if it is not one."""
    if isinstance(reward, (bool, int, float)) or hasattr(reward, "__float__"):
        try:
            value = float(reward)
        except (TypeError, ValueError, OverflowError):
            return None
        return value if math.isfinite(value) else None
    return None


_COLUMNS = [tables.events.c[name] for name in Event._fields]


class Answer(NamedTuple):
    """The answer to a request with a key, and the digest of that request."""

    digest: str
    content: Any


class Journal:
    """Rows of experiment number `experiment`. What is added is written by `flush`, in the current transaction."""

    def __init__(self, connection: sa.Connection, experiment: int, token: str) -> None:
        self.connection = connection
        self.experiment = experiment
        self.token = token
        self._added: list[Event] = []
        self._insert = sa.insert(tables.events)
        self._mine = tables.events.c.experiment == experiment

    # --- writing ------------------------------------------------------------------------------------------------

    def add(self, *events: Event) -> None:
        """Append events."""
        self._added.extend(events)

    def flush(self) -> None:
        """Write what was added."""
        if self._added:
            rows = [{"experiment": self.experiment, **event._asdict()} for event in self._added]
            self._added = []
            self.connection.execute(self._insert, rows)

    def keep_answer(self, key: str, time: int, digest: str, content: Any) -> None:
        """Store the answer to a request."""
        text = json.dumps(content, allow_nan=False)
        self.connection.execute(
            sa.insert(tables.answers).values(experiment=self.experiment, key=key, time=time, digest=digest, answer=text)
        )

    def keep_snapshot(self, seq: int, time: int, content: bytes) -> None:
        """Store a snapshot, and delete superfluous snapshots and old answers."""
        table, old = tables.snapshots, tables.answers
        mine = table.c.experiment == self.experiment
        row = {"experiment": self.experiment, "seq": seq, "time": time, "library": __version__, "content": content}
        self.connection.execute(sa.delete(table).where(mine, table.c.seq == seq))
        self.connection.execute(sa.insert(table).values(row))
        gone = superfluous(self.snapshot_places())
        if gone:
            self.connection.execute(sa.delete(table).where(mine, table.c.seq.in_(gone)))
        self.connection.execute(
            sa.delete(old).where(old.c.experiment == self.experiment, old.c.time < time - ANSWERS_KEPT)
        )

    def trim(self, before: int) -> int:
        """Delete events older than a time that no kept snapshot needs; how many. The newest snapshots stay usable."""
        old = [seq for seq in self.snapshot_places()[:-SNAPSHOTS_KEPT] if self._is_before(seq, before)]
        if not old:
            return 0
        cut, kept = max(old), tables.snapshots
        self.connection.execute(sa.delete(kept).where(kept.c.experiment == self.experiment, kept.c.seq < cut))
        gone = self.connection.execute(sa.delete(tables.events).where(self._mine, tables.events.c.seq <= cut))
        return int(gone.rowcount)

    def _is_before(self, seq: int, time: int) -> bool:
        event = self.event(seq)
        return event is not None and event.time < time

    # --- events -------------------------------------------------------------------------------------------------

    def _events(self, *conditions: sa.ColumnElement[bool], newest_first: bool = False, limit: int = -1) -> list[Event]:
        """Events that meet all conditions, in order."""
        seq = tables.events.c.seq
        wanted = sa.select(*_COLUMNS).where(self._mine, *conditions).order_by(seq.desc() if newest_first else seq)
        rows = self.connection.execute(wanted if limit < 0 else wanted.limit(limit)).all()
        return [Event._make(row) for row in rows]

    def events(self, after: int = 0, upto: int | None = None, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        """Events later than number `after`, up to number `upto`, in order."""
        table, last = tables.events, after
        conditions = [] if upto is None else [table.c.seq <= upto]
        if kinds is not None:
            conditions.append(table.c.kind.in_(kinds))
        while True:
            found = self._events(table.c.seq > last, *conditions, limit=CHUNK)
            yield from found
            if len(found) < CHUNK:
                return
            last = found[-1].seq

    def decided(self) -> list[int]:
        """Numbers of all decisions, in order."""
        table = tables.events
        wanted = sa.select(table.c.seq).where(self._mine, table.c.kind == "decided").order_by(table.c.seq)
        return list(self.connection.execute(wanted).scalars())

    def latest_decisions(self, count: int) -> list[Event]:
        """The last decisions, the newest first."""
        return self._events(tables.events.c.kind == "decided", newest_first=True, limit=count)

    def has_masks(self) -> bool:
        """Whether a request has said which arms are allowed."""
        table = tables.events
        return bool(self._events(table.c.kind == "decided", table.c.payload.like('{"allowed":%'), limit=1))

    def event(self, seq: int) -> Event | None:
        """One event."""
        return next(iter(self._events(tables.events.c.seq == seq)), None)

    def newest(self) -> Event | None:
        """The last event."""
        return next(iter(self._events(newest_first=True, limit=1)), None)

    def oldest(self) -> Event | None:
        """The first event that retention has left."""
        return next(iter(self._events(limit=1)), None)

    def decision(self, given: Any) -> Event | None:
        """The decision with this public id, if there is one."""
        found = self.event(place_of(given))
        if found is None or found.kind != "decided":
            return None
        return found if decision_id(self.token, found.seq, found.time) == given else None

    def closing(self, decision: int) -> Event | None:
        """How a decision was closed: its first reward, or else being forgotten."""
        rows = self.closings(decision, decision)
        return next((event for event in rows if event.kind == "rewarded"), next(iter(rows), None))

    def closings(self, first: int, last: int) -> list[Event]:
        """Rewards and forgotten rewards of the decisions between two events, in order."""
        return self._events(tables.events.c.decision.between(first, last), tables.closes)

    # --- answers and snapshots ----------------------------------------------------------------------------------

    def answer(self, key: str) -> Answer | None:
        """The answer to the request with this key."""
        table = tables.answers
        wanted = sa.select(table.c.digest, table.c.answer)
        row = self.connection.execute(
            wanted.where(table.c.experiment == self.experiment, table.c.key == key)
        ).one_or_none()
        return None if row is None else Answer(row.digest, json.loads(row.answer))

    def snapshot_places(self) -> list[int]:
        """After which events there are snapshots, oldest first."""
        table = tables.snapshots
        wanted = sa.select(table.c.seq).where(table.c.experiment == self.experiment).order_by(table.c.seq)
        return list(self.connection.execute(wanted).scalars())

    def snapshot(self, seq: int) -> bytes:
        """A snapshot as it was stored."""
        table = tables.snapshots
        wanted = sa.select(table.c.content).where(table.c.experiment == self.experiment, table.c.seq == seq)
        return bytes(self.connection.execute(wanted).scalar_one())


def superfluous(seqs: Sequence[int]) -> list[int]:
    """Of snapshots after these events, those that need not be kept: not the newest three, nor the first per 100,000.

    >>> superfluous([10, 60_000, 99_000, 120_000, 180_000, 190_000, 195_000])
    [60000, 99000]
    """
    kept = set(sorted(seqs)[-SNAPSHOTS_KEPT:])
    first: dict[int, int] = {}
    for seq in sorted(seqs):
        first.setdefault(seq // SNAPSHOT_KEPT_EVERY, seq)
    return [seq for seq in sorted(seqs) if seq not in kept and seq not in first.values()]
