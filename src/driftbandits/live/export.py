"""The journal of an experiment as a log, for `logs.Log.read` and `Policy.learn`: one row per decision, in Parquet.

column         meaning
round          number of the decision, from 0
time           when it was made, seconds since 1970
arm            its name
probability    with which it was drawn
reward         the observed one, or `missing` once patience has run out; NaN where there is neither
told           how many decisions had been made when the reward came; NaN if none has
segment        of the request; only where the experiment has segments
context.NAME   a column of its context; only where the experiment has contexts. A vector has context.NAME.0 and so on,
               and contexts that are vectors have context.0 and so on
allowed        names of the arms that could be drawn; only where not always all could
fallback       whether the fallback decided
id             the public id
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from driftbandits.errors import InputError, LiveError, MissingExtraError
from driftbandits.live.journal import Event, Journal, decision_id, undamaged
from driftbandits.live.recovery import replica_before
from driftbandits.live.views import View
from driftbandits.text import shown

log = logging.getLogger("driftbandits.live")
CELLS = 500_000  # at a time
Columns = dict[str, list[Any]]


def export_log(view: View, path: str | Path) -> int:
    """Write the log of an experiment to a Parquet file, whole or not at all; how many rows."""
    target = Path(path)
    if target.suffix not in (".parquet", ".pq"):
        raise InputError(f"a log is written as Parquet; give it a name that ends in .parquet, got {shown(str(path))}")
    with whole_file(target) as file:
        count = 0
        for piece in parquet_pieces(view):
            file.write(piece.content)
            count += piece.rows
    return count


@contextlib.contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """A file beside `target` that takes its name once everything is written, and is deleted after an error."""
    try:
        descriptor, side = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise LiveError(f"{target} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        Path(side).replace(target)
    except BaseException:
        Path(side).unlink(missing_ok=True)
        raise


class Piece(NamedTuple):
    """Bytes of a Parquet file, and how many rows they hold."""

    content: bytes
    rows: int


def parquet_pieces(view: View) -> Iterator[Piece]:
    """The Parquet file of a log, piece by piece: memory does not grow with the length of the journal."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", extra="live", purpose="exporting a log") from None
    sink = _Sink()
    with view.journal() as journal:
        rows = JournalLog(journal, view)
        schema = _schema(pa, rows.names, rows.context_columns)
        writer = pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema)
        for columns in rows.chunks():
            writer.write_table(pa.table(columns, schema=schema))
            yield Piece(sink.take(), len(columns["round"]))
    writer.close()
    yield Piece(sink.take(), 0)


def _schema(pa: Any, names: tuple[str, ...], contexts: dict[str, ContextColumn]) -> Any:
    """Parquet types of the columns."""
    kinds = {
        **{name: getattr(pa, column.kind)() for name, column in contexts.items()},
        "round": pa.int64(),
        "time": pa.float64(),
        "arm": pa.string(),
        "probability": pa.float64(),
        "reward": pa.float64(),
        "told": pa.float64(),
        "segment": pa.string(),
        "allowed": pa.list_(pa.string()),
        "fallback": pa.bool_(),
        "id": pa.string(),
    }
    return pa.schema([(name, kinds[name]) for name in names])


class ContextColumn(NamedTuple):
    """A column of the log for a column of the contexts, or for one number of a vector."""

    kind: str  # as pyarrow calls it
    column: str | None  # None where contexts are vectors
    place: int | None = None

    def value(self, context: Any) -> Any:
        """That of a decision with this context; None where it is missing."""
        found = context if self.column is None else context.get(self.column)
        if found is None:
            return None
        value = found if self.place is None else found[self.place]
        return float(value) if self.kind == "float64" else value


def context_columns(contexts: Any) -> dict[str, ContextColumn]:
    """The columns of a log for these contexts, given as `Contexts.to_dict` does.

    >>> list(context_columns({"device": ["mobile", "desktop"], "text": {"vector": 2}}))
    ['context.device', 'context.text.0', 'context.text.1']
    """
    if contexts is None:
        return {}
    if isinstance(contexts, int):
        return {f"context.{k}": ContextColumn("float64", None, k) for k in range(contexts)}
    found = {}
    for name, given in contexts.items():
        spec = given["optional"] if isinstance(given, dict) and "optional" in given else given
        if isinstance(spec, dict) and "vector" in spec:
            found.update({f"context.{name}.{k}": ContextColumn("float64", name, k) for k in range(spec["vector"])})
            continue
        is_text = isinstance(spec, list) and isinstance(spec[0], str)
        found[f"context.{name}"] = ContextColumn(
            "string" if is_text else "bool_" if spec == "boolean" else "float64", name
        )
    return found


class _Sink(io.RawIOBase):
    """A file object that is written to and emptied in turns."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        self._size += len(self._written[-1])
        return len(self._written[-1])

    def tell(self) -> int:
        return self._size

    def writable(self) -> bool:
        return True

    def take(self) -> bytes:
        taken, self._written = b"".join(self._written), []
        return taken


class JournalLog:
    """A journal read as a log, some rows at a time, in columns called `names`."""

    def __init__(self, journal: Journal, view: View) -> None:
        self._journal, self._missing = journal, view.definition.missing
        replica = replica_before(journal, view.definition)
        self._start = replica.counts.decisions
        changes = list(undamaged(journal.events(kinds=("arms",))))
        self._arms_since = [0, *(event.seq for event in changes)]
        self._masks = [replica.active()]
        for event in changes:
            replica.apply(event)
            self._masks.append(replica.active())
        self._arms = [entry.option.name for entry in replica.entries]
        self._decided = np.array(journal.decided(), dtype=np.int64)
        self._marks = list(undamaged(journal.events(kinds=("expired",))))
        masked = len(changes) > 0 or not self._masks[0].all() or journal.has_masks()
        left_out = {"segment": view.definition.segments is None, "allowed": not masked}
        every = ("round", "time", "arm", "probability", "reward", "told", "segment", "allowed", "fallback", "id")
        self.context_columns = context_columns(view.definition.contexts)
        self.names = (*(name for name in every if not left_out.get(name, False)), *self.context_columns)
        self._offered = lru_cache(1000)(self._find_offered)

    def chunks(self) -> Iterator[Columns]:
        """Columns, at most about `CELLS` values at a time."""
        rows = max(CELLS // len(self.names), 1)
        for place in range(0, max(len(self._decided), 1), rows):
            yield self._chunk(place, self._decided[place : place + rows])

    def _chunk(self, place: int, decided: Any) -> Columns:
        columns: Columns = {name: [] for name in self.names}
        if not len(decided):
            return columns
        first, last = int(decided[0]), int(decided[-1])
        closed: dict[int, Event] = {}  # the first reward of a decision, or else its being forgotten
        for event in undamaged(self._journal.closings(first, last)):
            closed.setdefault(event.decision or 0, event)
        upto = np.array([mark.decision for mark in self._marks], dtype=np.int64)
        for number, event in enumerate(self._journal.events(first - 1, last, kinds=("decided",)), start=place):
            if event.damage:
                log.error("decision %s is not in the log: %s", event.seq, event.damage)
                continue
            if event.details.get("guest"):  # whose rewards teach nothing, here neither
                continue
            mark = int(np.searchsorted(upto, event.seq))  # the first sweep that reached it; marks grow
            reward, told = self._reward(closed.get(event.seq), mark)
            row = self._row(event, self._start + number, reward, told)
            for name in self.names:
                columns[name].append(row[name])
        return columns

    def _row(self, event: Event, number: int, reward: float, told: float) -> dict[str, Any]:
        details = event.details
        allowed = details.get("allowed")
        return {
            "round": number,
            "time": event.time / 1e6,
            "arm": self._arms[int(event.arm or 0)],
            "probability": event.probability,
            "reward": reward,
            "told": told,
            "segment": details.get("segment"),
            "allowed": self._offered(
                bisect_right(self._arms_since, event.seq) - 1, None if allowed is None else tuple(allowed)
            ),
            "fallback": bool(details.get("fallback", False)),
            "id": decision_id(self._journal.token, event.seq, event.time),
            **{name: column.value(details["context"]) for name, column in self.context_columns.items()},
        }

    def _reward(self, closing: Event | None, mark: int) -> tuple[float, float]:
        """The reward of a decision, and how many decisions had been made when it was known."""
        if closing is not None and closing.kind == "rewarded" and not closing.details.get("late"):
            return float(closing.reward or 0.0), self._made_before(closing.seq)
        forgotten = closing is not None and closing.kind == "forgotten"
        if not forgotten and mark < len(self._marks) and isinstance(self._missing, (int, float)):
            return float(self._missing), self._made_before(self._marks[mark].seq)
        return math.nan, math.nan

    def _made_before(self, seq: int) -> float:
        return float(self._start + np.searchsorted(self._decided, seq))

    def _find_offered(self, place: int, allowed: tuple[int, ...] | None) -> list[str]:
        mask = self._masks[place]
        numbers = range(len(mask)) if allowed is None else allowed
        return [self._arms[number] for number in numbers if mask[number]]


def arm_names(journal: Journal, view: View) -> list[str]:
    """Names of all arms, retired ones included, by number."""
    replica = replica_before(journal, view.definition)
    for event in undamaged(journal.events(kinds=("arms",))):
        replica.apply(event)
    return [entry.option.name for entry in replica.entries]
