"""The journal of one experiment on one connection: appended to, read in order, looked up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from driftbandits.live import tables
from driftbandits.live.events import Event, decision_id, place_of
from driftbandits.live.snapshots import KEPT, superfluous
from driftbandits.version import __version__

CHUNK = 5000  # events read at a time
ANSWERS_KEPT = 7 * 24 * 3600 * 1_000_000  # microseconds
_COLUMNS = [tables.events.c[name] for name in Event._fields]


class Answer(NamedTuple):
    """What was answered to a request with a key: the request's digest, and the answer."""

    digest: str
    content: Any


class Journal:
    """Rows of experiment number `experiment`. What is added is written by `flush`, in the transaction under way."""

    def __init__(self, connection: sa.Connection, experiment: int, token: str) -> None:
        self.connection = connection
        self.experiment = experiment
        self.token = token
        self._added: list[Event] = []
        self._insert = sa.insert(tables.events)

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

    def drop_added(self) -> None:
        """Forget what was added and not written."""
        self._added = []

    def keep_answer(self, key: str, time: int, digest: str, content: Any) -> None:
        """Keep the answer to a request."""
        text = json.dumps(content, allow_nan=False)
        self.connection.execute(
            sa.insert(tables.answers).values(experiment=self.experiment, key=key, time=time, digest=digest, answer=text)
        )

    def keep_snapshot(self, seq: int, time: int, content: bytes) -> None:
        """Keep a snapshot, and drop those that need not be kept."""
        table = tables.snapshots
        mine = table.c.experiment == self.experiment
        self.connection.execute(sa.delete(table).where(mine, table.c.seq == seq))
        self.connection.execute(
            sa.insert(table).values(
                experiment=self.experiment, seq=seq, time=time, library=__version__, content=content
            )
        )
        gone = superfluous(self.snapshot_places())
        if gone:
            self.connection.execute(sa.delete(table).where(mine, table.c.seq.in_(gone)))
        old = tables.answers
        self.connection.execute(
            sa.delete(old).where(old.c.experiment == self.experiment, old.c.time < time - ANSWERS_KEPT)
        )

    def trim(self, before: int) -> int:
        """Delete events older than a time that no kept snapshot needs; how many. The newest snapshots stay usable."""
        old = [seq for seq in self.snapshot_places()[:-KEPT] if self._is_before(seq, before)]
        if not old:
            return 0
        cut = max(old)
        events, kept = tables.events, tables.snapshots
        self.connection.execute(sa.delete(kept).where(kept.c.experiment == self.experiment, kept.c.seq < cut))
        gone = self.connection.execute(
            sa.delete(events).where(events.c.experiment == self.experiment, events.c.seq <= cut)
        )
        return int(gone.rowcount)

    def _is_before(self, seq: int, time: int) -> bool:
        event = self.event(seq)
        return event is not None and event.time < time

    # --- reading ------------------------------------------------------------------------------------------------

    def events(self, after: int = 0, upto: int | None = None, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        """Events behind `after`, up to `upto`, in order."""
        table, last = tables.events, after
        while True:
            wanted = sa.select(*_COLUMNS).where(table.c.experiment == self.experiment, table.c.seq > last)
            if upto is not None:
                wanted = wanted.where(table.c.seq <= upto)
            if kinds is not None:
                wanted = wanted.where(table.c.kind.in_(kinds))
            rows = self.connection.execute(wanted.order_by(table.c.seq).limit(CHUNK)).all()
            yield from (Event._make(row) for row in rows)
            if len(rows) < CHUNK:
                return
            last = rows[-1].seq

    def decided(self) -> list[int]:
        """Places of all decisions, in order."""
        table = tables.events
        wanted = sa.select(table.c.seq).where(table.c.experiment == self.experiment, table.c.kind == "decided")
        return list(self.connection.execute(wanted.order_by(table.c.seq)).scalars())

    def has_masks(self) -> bool:
        """Whether a request has said which arms are allowed."""
        table = tables.events
        wanted = sa.select(table.c.seq).where(table.c.experiment == self.experiment, table.c.kind == "decided")
        found = self.connection.execute(wanted.where(table.c.payload.like('{"allowed":%')).limit(1))
        return found.one_or_none() is not None

    def event(self, seq: int) -> Event | None:
        """One event."""
        return next(self.events(seq - 1, seq), None)

    def newest(self) -> Event | None:
        """The last event."""
        table = tables.events
        wanted = sa.select(*_COLUMNS).where(table.c.experiment == self.experiment)
        row = self.connection.execute(wanted.order_by(table.c.seq.desc()).limit(1)).one_or_none()
        return None if row is None else Event._make(row)

    def oldest(self) -> Event | None:
        """The first event that retention has left."""
        return next(self.events(), None)

    def decision(self, given: Any) -> Event | None:
        """The decision with this public id, if there is one."""
        found = self.event(place_of(given))
        if found is None or found.kind != "decided":
            return None
        return found if decision_id(self.token, found.seq, found.time) == given else None

    def closing(self, decision: int) -> Event | None:
        """The reward that was journaled for a decision, or else its being forgotten."""
        table = tables.events
        wanted = sa.select(*_COLUMNS).where(
            table.c.experiment == self.experiment, table.c.decision == decision, tables.closes
        )
        rows = [Event._make(row) for row in self.connection.execute(wanted.order_by(table.c.seq)).all()]
        rewarded = [event for event in rows if event.kind == "rewarded"]
        return next(iter(rewarded or rows), None)

    def closings(self, first: int, last: int) -> list[Event]:
        """Rewards and forgotten rewards of the decisions between two events, in order."""
        table = tables.events
        wanted = sa.select(*_COLUMNS).where(
            table.c.experiment == self.experiment, table.c.decision.between(first, last), tables.closes
        )
        return [Event._make(row) for row in self.connection.execute(wanted.order_by(table.c.seq)).all()]

    def answer(self, key: str) -> Answer | None:
        """What was answered to the request with this key."""
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
