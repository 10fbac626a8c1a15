"""The journal of an experiment as a log: one row per decision, in the columns of `log_columns`, as a Parquet file.

column         meaning
round          number of the decision, from 0
time           when it was made, seconds since 1970
arm            its name
probability    with which it was drawn
reward         told, or that of a missing one where the experiment says what that is worth; else NaN
told           how many decisions had been made when the reward came; NaN if none has
segment        of the request; null where there are none
fallback       whether the fallback decided
id             the public id
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits.errors import MissingExtraError
from driftbandits.live.events import Event, decision_id
from driftbandits.live.journal import Journal
from driftbandits.live.player import Player
from driftbandits.live.views import View

ROWS = 50_000  # at a time


def export_log(view: View, path: str | Path) -> int:
    """Write the log of an experiment to a Parquet file, whole or not at all; how many rows."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise MissingExtraError("pyarrow", extra="live", purpose="exporting a log") from None
    target = Path(path)
    descriptor, side = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(descriptor)
    count = 0
    try:
        with view.journal() as journal, pq.ParquetWriter(side, log_schema(pa)) as writer:
            for columns in log_chunks(journal, view):
                writer.write_table(pa.table(columns, schema=log_schema(pa)))
                count += len(columns["round"])
        Path(side).replace(target)
    except BaseException:
        Path(side).unlink(missing_ok=True)
        raise
    return count


def log_schema(pa: Any) -> Any:
    """The columns, as Parquet has them."""
    return pa.schema(
        [
            ("round", pa.int64()),
            ("time", pa.float64()),
            ("arm", pa.string()),
            ("probability", pa.float64()),
            ("reward", pa.float64()),
            ("told", pa.float64()),
            ("segment", pa.string()),
            ("fallback", pa.bool_()),
            ("id", pa.string()),
        ]
    )


def log_chunks(journal: Journal, view: View) -> Iterator[dict[str, list[Any]]]:
    """Columns of the log, some rows at a time."""
    names = arm_names(journal, view)
    decided = np.array([event.seq for event in journal.events(kinds=("decided",))], dtype=np.int64)
    marks = list(journal.events(kinds=("expired",)))
    for start in range(0, max(len(decided), 1), ROWS):
        part = decided[start : start + ROWS]
        if len(part):
            yield _chunk(journal, view, names, decided, marks, start, (int(part[0]), int(part[-1])))
        else:
            yield {name: [] for name in _COLUMNS}


_COLUMNS = ("round", "time", "arm", "probability", "reward", "told", "segment", "fallback", "id")


def arm_names(journal: Journal, view: View) -> list[str]:
    """Names of all arms there ever were, by number."""
    player = Player(view.definition)
    player.policy = None
    for event in journal.events(kinds=("arms",)):
        player._arms(event)
    return [entry.option.name for entry in player.entries]


def _chunk(
    journal: Journal,
    view: View,
    names: list[str],
    decided: Any,
    marks: list[Event],
    start: int,
    ends: tuple[int, int],
) -> dict[str, list[Any]]:
    rows = list(journal.events(ends[0] - 1, ends[1], kinds=("decided",)))
    closed = _closings(journal, ends)
    missing = view.definition.missing
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    upto = np.array([mark.decision for mark in marks], dtype=np.int64)
    for place, event in enumerate(rows):
        closing = closed.get(event.seq)
        reward, told = math.nan, math.nan
        if closing is not None and closing.kind == "rewarded" and not closing.details.get("late"):
            reward, told = float(closing.reward or 0.0), float(np.searchsorted(decided, closing.seq))
        elif closing is None or closing.kind == "rewarded":
            found = np.flatnonzero(upto >= event.seq)
            if len(found) and isinstance(missing, (int, float)):
                reward, told = float(missing), float(np.searchsorted(decided, marks[int(found[0])].seq))
        details = event.details
        values = (
            start + place,
            event.time / 1e6,
            names[int(event.arm or 0)],
            event.probability,
            reward,
            told,
            details.get("segment"),
            bool(details.get("fallback", False)),
            decision_id(journal.token, event.seq, event.time),
        )
        for name, value in zip(_COLUMNS, values, strict=True):
            columns[name].append(value)
    return columns


def _closings(journal: Journal, ends: tuple[int, int]) -> dict[int, Event]:
    """How the decisions between two events were closed, by decision: the first reward, or else being forgotten."""
    found: dict[int, Event] = {}
    for event in journal.closings(*ends):
        known = found.get(event.decision or 0)
        if known is None or (known.kind == "forgotten" and event.kind == "rewarded" and not event.details.get("late")):
            found[event.decision or 0] = event
    return found
