"""A log as it is kept: layouts of others, columns of other names, a query, rewards in a table of their own.

What is done to it is only what was asked for, and counted: rows left out and names made one are said in `Log.notes`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from driftbandits.errors import InputError, MissingExtraError, did_you_mean
from driftbandits.logs import tables
from driftbandits.logs.log import plain_name
from driftbandits.logs.tables import Texts
from driftbandits.policies.log_columns import COLUMNS, CONTEXT, Problems
from driftbandits.text import counted, first_line, shown
from driftbandits.types import Bools

Layout = Literal["open-bandit", "vw"]
LAYOUTS = ("open-bandit", "vw")
_OPEN_BANDIT = {
    "time": "timestamp",
    "arm": "item_id",
    "reward": "click",
    "probability": "propensity_score",
    "segment": "position",
}
_COLUMNS = (*COLUMNS, "id")
_MOST_NAMED = 5
_NEEDED = ("round", "time", "arm", "probability", "segment", "allowed")  # without which a row is left out, where asked


@dataclass(frozen=True)
class Preparation:
    """What is to be done before a log is checked; see `Log.read`."""

    columns: Mapping[str, str] | None = None
    layout: Layout | None = None
    sort: bool = False
    drop_missing: bool = False
    merge_names: bool = False
    rewards: Any = None
    zone: str | None = None
    database: Any = None

    def table(self, source: Any) -> tuple[Any, tuple[str, ...]]:
        """The log's columns by their names, and what was done that must be known."""
        table = self._renamed(self._table(source))
        notes: list[str] = []
        if self.rewards is not None:
            table, said = _joined(table, self._renamed(tables.arrow_table(self.rewards), optional=True))
            notes += said
        if self.zone is not None:
            table = _in_zone(table, self.zone)
            notes.append(f"dates without a zone are those of {self.zone}; all times are shown in UTC")
        if self.drop_missing:
            table, said = _without_missing(table)
            notes += said
        return (_sorted(table) if self.sort else table), tuple(notes)

    def _table(self, source: Any) -> Any:
        if self.layout is not None and self.layout not in LAYOUTS:
            raise InputError(f"layout must be one of {', '.join(LAYOUTS)}, got {shown(self.layout)}")
        if self.database is not None:
            return tables.arrow_table(_queried(source, self.database))
        if self.layout == "vw":
            return tables.arrow_table(_from_vw(source))
        return tables.arrow_table(source)

    def _renamed(self, table: Any, *, optional: bool = False) -> Any:
        """Columns called what they are in a log; with `optional` those that are not there are left alone."""
        names = dict(_OPEN_BANDIT) if self.layout == "open-bandit" else {}
        names |= dict(self.columns or {})
        if not names:
            return table
        there = list(table.column_names)
        problems = Problems()
        for name, own in names.items():
            if name not in _COLUMNS and not name.startswith(CONTEXT):
                near = did_you_mean(name, _COLUMNS).strip() or f"it has {', '.join(_COLUMNS)}"
                problems.found.append(f"a log has no column {shown(name)} that {shown(own)} could be; {near}")
            elif own not in there and not optional:
                near = did_you_mean(own, there).strip() or f"it has {', '.join(there)}"
                problems.found.append(f"the log has no column {shown(own)}; {near}")
        problems.refuse()
        meant = {own: name for name, own in names.items() if own in there}
        hidden = [name for name in there if name in names and name not in meant]  # another column has its name now
        table = table.drop_columns(hidden) if hidden else table
        return table.rename_columns([meant.get(name, name) for name in table.column_names])


def _queried(query: Any, database: Any) -> dict[str, Any]:
    """The columns of a query's answer."""
    try:
        import sqlalchemy as sa
    except ImportError:
        raise MissingExtraError("sqlalchemy", extra="live", purpose="a log from a database") from None
    text = sa.text(os.fspath(query)) if isinstance(query, (str, os.PathLike)) else query
    try:
        engine = sa.create_engine(database) if isinstance(database, str) else database
        with engine.connect() as connection:
            answer = connection.execute(text)
            names, rows = list(answer.keys()), answer.fetchall()
    except (sa.exc.SQLAlchemyError, ModuleNotFoundError) as error:
        raise InputError(f"the query gave no log: {first_line(error)}") from None
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _from_vw(source: Any) -> dict[str, list[Any]]:
    """Decisions of Vowpal Wabbit: lines `arm:cost:probability | ...`, events of several lines, or dsjson.

    Rewards are costs turned around, arms are called by their numbers. In events of several lines, with an empty one
    after each, the arm that was played has a label.
    """
    if not isinstance(source, (str, os.PathLike)) or not Path(source).is_file():
        raise InputError(f"layout='vw' wants the path of a file, got {shown(source)}")
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    several = any(not line.strip() for line in lines[:-1])
    rows: list[tuple[str, float | None, float, Any]] = []
    wrong: list[int] = []
    arm = 0  # in an event
    for number, line in enumerate(lines):
        if not line.strip() or line.startswith("shared"):
            arm = 0
            continue
        arm += 1
        try:
            if line.startswith("{"):
                rows.append(_vw_event(json.loads(line)))
            elif (label := line.split("|")[0].split()) or not several:
                name, cost, share = label[0].split(":")
                rows.append((str(arm) if several else name, -float(cost), float(share), None))
        except (ValueError, KeyError, IndexError, TypeError):
            wrong.append(number)
    if wrong or not rows:
        raise InputError(f"{source} {_no_decisions(lines, wrong)}")
    columns = dict(zip(("arm", "reward", "probability", "time"), map(list, zip(*rows, strict=True)), strict=True))
    if not all(columns["time"]):
        del columns["time"]
        columns["round"] = list(range(len(rows)))
    return columns


def _vw_event(event: Any) -> tuple[str, float | None, float, Any]:
    action = event["_label_Action"] if "_label_Action" in event else event["a"][0]
    cost, share = event["_label_cost"], float(event["_label_probability"])
    return str(action), None if cost is None else -float(cost), share, event.get("Timestamp")


def _no_decisions(lines: list[str], wrong: list[int]) -> str:
    cure = "write arm:cost:probability | features, or dsjson with _label_cost and _label_probability"
    if not wrong:
        return f"has no decision of Vowpal Wabbit; {cure}"
    others = ", ".join(str(number + 1) for number in wrong[1:_MOST_NAMED])
    more = f" and {len(wrong) - _MOST_NAMED:,} more" if len(wrong) > _MOST_NAMED else ""
    rest = f" (nor are lines {others}{more})" if others else ""
    return f"line {wrong[0] + 1} is no decision of Vowpal Wabbit, got {shown(lines[wrong[0]][:60])}{rest}; {cure}"


def _joined(table: Any, rewards: Any) -> tuple[Any, list[str]]:
    """The log with the rewards, and when they came, of another table with the same ids."""
    for what, one in (("log", table), ("table of rewards", rewards)):
        if "id" not in one.column_names:
            raise InputError(f"the {what} has no column 'id', by which rewards are joined; name it with columns=")
    if "reward" not in rewards.column_names:
        raise tables.missing_column(rewards, "reward")
    own, others = (one.column("id").to_pylist() for one in (table, rewards))
    _refuse_twice(own, "the log")
    _refuse_twice(others, "the table of rewards")
    place = {name: row for row, name in enumerate(others)}
    rows = [place.get(name) for name in own]
    import pyarrow as pa

    chosen = pa.array(rows, type=pa.int64())
    for name in ("reward", "told"):
        if name in rewards.column_names:
            if name in table.column_names:
                table = table.drop_columns([name])
            table = table.append_column(name, rewards.column(name).take(chosen))
    known = set(own)
    strange = sum(name not in known for name in others)
    late = sum(row is None for row in rows)
    notes = [f"{counted(late, 'decision')} without a reward in the other table"] if late else []
    return table, notes + ([f"{counted(strange, 'reward')} of no decision in the log, left out"] if strange else [])


def _refuse_twice(ids: list[Any], where: str) -> None:
    rows: dict[Any, list[int]] = {}
    for row, name in enumerate(ids):
        rows.setdefault(name, []).append(row)
    twice = {name: places for name, places in rows.items() if len(places) > 1}
    if twice:
        name, places = next(iter(twice.items()))
        more = f" (and {counted(len(twice) - 1, 'more id')})" if len(twice) > 1 else ""
        raise InputError(
            f"id {shown(name)} stands in rows {', '.join(map(str, places[:5]))} of {where}{more}; once is meant"
        )


def _in_zone(table: Any, zone: str) -> Any:
    """Dates without a zone are of this one; of two hours with the same name the first is taken."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        known = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise InputError(f"there is no time zone {shown(zone)}; names are such as Europe/Berlin") from None
    for name in ("time", "told"):
        if name not in table.column_names:
            continue
        column, place = table.column(name), table.column_names.index(name)
        if pa.types.is_timestamp(column.type) and column.type.tz is None:
            column = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest")
        else:
            read = tables.column(table, name)
            if not isinstance(read, Texts):
                continue
            dates = tables.iso_dates(read, known)
            if np.isnan(dates[read.codes >= 0]).any():
                continue  # named where columns are checked
            dates = pa.array(dates * 1e6, from_pandas=True)
            column = pc.cast(dates, pa.int64(), safe=False).cast(pa.timestamp("us", tz="UTC"))
        table = table.set_column(place, name, column)
    return table


def _without_missing(table: Any) -> tuple[Any, list[str]]:
    """Rows that have all they need; how many lack what."""
    kept = np.ones(table.num_rows, dtype=bool)
    lacking = {}
    for name in _NEEDED:
        if name not in table.column_names:
            continue
        missing = _missing(tables.column(table, name))
        if missing.any():
            lacking[name] = int(np.count_nonzero(missing))
            kept &= ~missing
    if not lacking:
        return table, []
    import pyarrow as pa

    what = ", ".join(f"{name} in {number:,}" for name, number in lacking.items())
    return table.filter(pa.array(kept)), [f"{counted(int((~kept).sum()), 'row')} dropped: {what} missing"]


def _missing(column: tables.Column) -> Bools:
    """Which rows have nothing in a column."""
    if isinstance(column, Texts):
        return column.codes < 0
    return column.missing if isinstance(column, tables.Lists) else np.isnan(column.values)


def _sorted(table: Any) -> Any:
    """Rows in the order of rounds, or of times; equal ones stay as they stand."""
    names = [name for name in ("round", "time") if name in table.column_names]
    read = tables.column(table, names[0]) if names else None
    if isinstance(read, Texts):
        return table.take(np.argsort(tables.iso_dates(read), kind="stable"))
    return table.take(np.argsort(read.values, kind="stable")) if isinstance(read, tables.Numbers) else table


def spellings(texts: Texts) -> dict[str, str]:
    """Of every name that is another spelling of a more frequent one, that one."""
    rows = np.bincount(texts.codes[texts.codes >= 0], minlength=len(texts.distinct)).tolist()
    often = dict(zip(texts.distinct, rows, strict=True))
    groups: dict[str, list[str]] = {}
    for name, _ in sorted(often.items(), key=lambda pair: (-pair[1], pair[0])):
        groups.setdefault(plain_name(name), []).append(name)
    return {name: group[0] for group in groups.values() for name in group[1:]}


def renamed(texts: Texts, meant: Mapping[str, str]) -> Texts:
    """Texts with some names replaced by others."""
    names = tuple(dict.fromkeys(meant.get(name, name) for name in texts.distinct))
    place = {name: k for k, name in enumerate(names)}
    codes = np.array([*(place[meant.get(name, name)] for name in texts.distinct), -1], dtype=np.int64)
    return Texts(codes[texts.codes], names)
