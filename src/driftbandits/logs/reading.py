"""From a table to a `Log`: every column is checked whole, and what is wrong is named by row and column."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import FLOAT_BYTES, check_memory
from driftbandits.arms.arm_set import ArmSet
from driftbandits.errors import InputError
from driftbandits.logs import tables
from driftbandits.logs.log import Log
from driftbandits.logs.requests import check_contexts, infer_contexts
from driftbandits.logs.sources import Preparation, renamed, spellings
from driftbandits.logs.tables import Column, Lists, Numbers, Texts
from driftbandits.policies.log_columns import (
    CONTEXT,
    Problems,
    check_probabilities,
    check_rewards,
    check_told,
    refuse_rows,
)
from driftbandits.simulation import Trace
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Floats, Ints

_ROUNDING = 1e-6  # by which a law may miss its sum, or a probability its law: sums and single precision
_MOST_EXACT = 2.0**53
_MOST_MERGED_NAMED = 5


def read_log(
    source: Any,
    arms: ArmSet | Sequence[str] | None,
    reward_range: tuple[float, float] | None,
    preparation: Preparation,
    contexts: Any = None,
) -> Log:
    """See `Log.read`."""
    limits, declared = _check_range(reward_range), check_contexts(contexts)
    given = _given_names(arms)
    if isinstance(source, Trace):
        return _from_trace(source, arms, given, limits)
    path = isinstance(source, (str, os.PathLike)) and preparation.database is None
    where = f"{os.fspath(source)}: " if path else ""
    table, notes = preparation.table(source)
    if where and b"driftbandits.seal" in (table.schema.metadata or {}):  # a trace that was written to a file
        return _from_trace(Trace.from_parquet(source), arms, given, limits)
    try:
        log = _from_table(table, arms, given, limits, merge_names=preparation.merge_names)
        log = dataclasses.replace(log, notes=(*notes, *log.notes), contexts=declared or infer_contexts(log.context))
        _ = log.codes  # refused here if anything is none of its column
        return log
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    except MemoryError:
        raise InputError(f"{where}a log of {table.num_rows:,} rows does not fit into memory; read fewer rows") from None


def _from_table(
    table: Any,
    arms: ArmSet | Sequence[str] | None,
    given: tuple[str, ...] | None,
    limits: tuple[float, float] | None,
    *,
    merge_names: bool,
) -> Log:
    """The log of a table; everything that is wrong is said at once, but what follows from something wrong."""
    problems = Problems()
    for wanted in ("arm", "reward", "probability"):
        if wanted not in table.column_names:
            problems.found.append(str(tables.missing_column(table, wanted)))
    if not _present(table, ("round", "time")):
        problems.found.append(str(tables.missing_column(table, "round")))
    problems.refuse()
    if not table.num_rows:
        raise InputError("the log has no rows")
    read: dict[str, Column] = {}
    for name in _present(table, ("arm", "reward", "probability", "allowed", "law", "segment", "told")):
        with problems.noted():
            read[name] = tables.column(table, name)
    read, notes = _one_spelling(read) if merge_names else (read, ())
    found: dict[str, Any] = {}
    with problems.noted():
        found["round"], found["time"], found["seconds"] = _rounds(table)
    if "arm" in read:
        with problems.noted():
            found["arm"], found["names"] = _arms(_by_name(read["arm"], given), given, _lists(read.get("allowed")))
    if "reward" in read:
        with problems.noted():
            found["reward"] = _rewards(_numbers(read["reward"], "reward"), limits)
    if "probability" in read:
        with problems.noted():
            found["probability"] = _probabilities(_numbers(read["probability"], "probability"))
    with problems.noted():
        found["segment"], found["segment_names"] = _segments(read.get("segment"))
    if "arm" in found:
        with problems.noted():
            found["allowed"] = _allowed(read.get("allowed"), found["arm"], found["names"])
        if "probability" in found:
            with problems.noted():
                found["law"] = _laws(read.get("law"), found["arm"], found["probability"], len(found["names"]))
    if "round" in found and "reward" in found:
        clock = found["round"] if found["time"] is None else found["time"]
        with problems.noted():
            found["told"] = _told(read.get("told"), clock, found["reward"], dates=found["time"] is not None)
    with problems.noted():
        found["context"] = _contexts(table)
    problems.refuse()
    return Log(**found, reward_range=limits, arms=arms if isinstance(arms, ArmSet) else None, notes=notes)


def _probabilities(values: Floats) -> Floats:
    check_probabilities(values)
    return np.minimum(values, 1.0)  # what is above is rounding


def _one_spelling(read: Mapping[str, Column]) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Names of arms and segments that differ by case, blanks or accents, as the most frequent of them."""
    found, notes = dict(read), []
    for name in ("arm", "segment"):
        column = read.get(name)
        if not isinstance(column, Texts) or not (meant := spellings(column)):
            continue
        found[name] = renamed(column, meant)
        pairs = ", ".join(f"{shown(odd)} into {shown(own)}" for odd, own in list(meant.items())[:_MOST_MERGED_NAMED])
        more = f", and {len(meant) - _MOST_MERGED_NAMED} more" if len(meant) > _MOST_MERGED_NAMED else ""
        notes.append(f"{counted(len(meant), 'spelling')} of {name}s merged: {pairs}{more}")
        lists = _lists(read.get("allowed"))
        if name == "arm" and isinstance(lists, Lists) and isinstance(lists.entries, Texts):
            found["allowed"] = dataclasses.replace(lists, entries=renamed(lists.entries, meant))
    return found, tuple(notes)


def _from_trace(
    trace: Trace, arms: ArmSet | Sequence[str] | None, given: tuple[str, ...] | None, limits: tuple[float, float] | None
) -> Log:
    """A trace knows neither names nor how many arms there were: without `arms` those up to the last played."""
    if not len(trace):
        raise InputError("the log has no rows")
    arm, names = _arms(Numbers(trace.arm.astype(np.float64)), given, None)
    return Log(
        round=np.arange(trace.start, trace.start + len(trace)),
        arm=arm,
        reward=_rewards(trace.reward.copy(), limits),
        probability=_probabilities(trace.probability),
        names=names,
        reward_range=limits,
        arms=arms if isinstance(arms, ArmSet) else None,
    )


def _nothing(_: int) -> str:
    return "nothing"


def _present(table: Any, names: Sequence[str]) -> list[str]:
    return [name for name in names if name in table.column_names]


def _given_names(arms: ArmSet | Sequence[str] | None) -> tuple[str, ...] | None:
    if arms is None:
        return None
    if isinstance(arms, ArmSet):
        return arms.names or tuple(str(k) for k in range(len(arms)))
    if isinstance(arms, str) or not all(isinstance(name, str) for name in arms):
        raise InputError(f"arms must be an ArmSet or names, got {shown(arms)}")
    names = tuple(arms)
    if len(set(names)) != len(names) or not names:
        raise InputError(f"arms must be distinct names, at least one, got {shown(names)}")
    return names


def _check_range(limits: Any) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = (float(end) for end in limits if not isinstance(end, str))
    except (TypeError, ValueError):
        raise InputError(f"reward_range must be two numbers, got {shown(limits)}") from None
    if not -np.inf < low < high < np.inf:
        raise InputError(f"reward_range must be two finite numbers that rise, got {shown(limits)}")
    return low, high


def _numbers(column: Column, name: str) -> Floats:
    if isinstance(column, Numbers) and not column.dates:
        return column.values
    if isinstance(column, Texts):
        _name_text(column, name)
    raise InputError(f"column {name!r} must have one number per row")


def _name_text(column: Texts, name: str) -> None:
    """Name the first text in a column of numbers: a file with one word in it is read as texts."""

    def is_text(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return True
        return False

    odd = np.array([is_text(text) for text in column.distinct], dtype=bool)
    rows = (column.codes >= 0) & odd[column.codes] if odd.any() else column.codes >= 0
    refuse_rows(
        rows, name, "must be a number", lambda k: shown(column.distinct[column.codes[k]]), "write it as a plain number"
    )


def _rounds(table: Any) -> tuple[Ints, Floats | None, Floats | None]:
    """Rounds, times that stand in their place, and times beside them."""
    names = _present(table, ("round", "time"))
    if not names:
        raise tables.missing_column(table, "round")
    times = _times(tables.column(table, "time")) if "time" in names else None
    if times is not None and names[0] == "time":
        return np.arange(len(times)), times, None
    return _whole_rounds(tables.column(table, "round")), None, times


def _in_place(column: Column, name: str, what: str) -> Floats:
    if not isinstance(column, Numbers):
        raise InputError(f"column {name!r} must be {what}")
    values = column.values
    refuse_rows(~np.isfinite(values), name, "must be there", values, "every row needs its place in time")
    return values


def _dated(column: Column, name: str) -> Column:
    """Texts as dates, where they are in ISO 8601."""
    if not isinstance(column, Texts):
        return column
    dates = tables.iso_dates(column)
    odd = np.isnan(dates) & (column.codes >= 0)
    cure = "write seconds, or dates such as 2026-01-31 18:30:00"
    refuse_rows(odd, name, "must be a date", lambda k: shown(column.distinct[column.codes[k]]), cure)
    return Numbers(dates, dates=True)


def _times(column: Column) -> Floats:
    values = _in_place(_dated(column, "time"), "time", "seconds or dates")
    falls = np.concatenate([[False], values[1:] < values[:-1]])
    refuse_rows(falls, "time", "is before the row above it", values, "sort the rows by time")
    return values


def _whole_rounds(column: Column) -> Ints:
    name = "round"
    if isinstance(column, Texts):
        _name_text(column, name)
    if isinstance(column, Numbers) and column.dates:
        raise InputError("column 'round' has dates; call it 'time'")
    values = _in_place(column, name, "whole numbers")
    whole = (values == np.floor(values)) & (np.abs(values) < _MOST_EXACT)
    refuse_rows(~whole, name, "must be a whole number", values, "put times into a column 'time'")
    rounds = values.astype(np.int64)
    same = np.concatenate([[False], rounds[1:] == rounds[:-1]])
    refuse_rows(same, name, "is the round of the row above it", rounds, "one row per decision; take duplicates out")
    falls = np.concatenate([[False], rounds[1:] < rounds[:-1]])
    ordered = np.sort(rounds)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    twice = f"; round {again[0]} stands twice in the log" if len(again) else ""
    refuse_rows(falls, name, "is before the row above it", rounds, f"sort the rows by round{twice}")
    return rounds


def _arms(column: Column, given: tuple[str, ...] | None, offered: Column | None) -> tuple[Ints, tuple[str, ...]]:
    if isinstance(column, Lists) or (isinstance(column, Numbers) and (column.dates or column.flags)):
        raise InputError("column 'arm' must have one name or position per row; dates, True and False are neither")
    if isinstance(column, Texts):  # some may be offered, and never played
        texts = isinstance(offered, Lists) and isinstance(offered.entries, Texts)
        return _named_arms(column, given, offered.entries.distinct if texts else ())  # type: ignore[union-attr]
    values = column.values
    refuse_rows(np.isnan(values), "arm", "must be there", values, "every row needs its arm")
    whole = (values == np.floor(values)) & (values >= 0) & (values < _MOST_EXACT)
    refuse_rows(~whole, "arm", "must be a name or a position from 0", values, "positions count from 0")
    arm = values.astype(np.int64)
    size = int(arm.max()) + 1 if given is None else len(given)
    refuse_rows(arm >= size, "arm", f"must be a position below {size}", arm, "is this the log of another experiment?")
    if given is None:
        check_memory(FLOAT_BYTES * size, f"{size:,} arms", cure="arms are positions from 0 on; use names instead")
        return arm, tuple(str(k) for k in range(size))
    return arm, given


def _by_name(column: Column, given: tuple[str, ...] | None) -> Column:
    """Numbers that cannot be positions but are all names, such as prices in a CSV, as these names."""
    if given is None or not isinstance(column, Numbers) or column.dates or column.flags:
        return column
    values, codes = np.unique(column.values, return_inverse=True)
    names = tuple(f"{value:.15g}" for value in values)
    fits = bool((np.isin(values, np.arange(len(given)))).all())
    return column if fits or not set(names) <= set(given) else Texts(codes.astype(np.int64), names)


def _named_arms(column: Texts, given: tuple[str, ...] | None, offered: tuple[str, ...]) -> tuple[Ints, tuple[str, ...]]:
    missing = column.codes < 0
    refuse_rows(missing, "arm", "must be there", _nothing, "every row needs its arm")
    names = tuple(sorted({*column.distinct, *offered})) if given is None else given
    place = {name: k for k, name in enumerate(names)}
    unknown = [name for name in column.distinct if name not in place]
    codes = np.array([place.get(name, -1) for name in column.distinct], dtype=np.int64)
    arm = codes[column.codes]
    if unknown:
        share = f"{len(unknown)} of {counted(len(column.distinct), 'name')} in the log are unknown"
        cure = f"{share}: is this the log of another experiment?"
        refuse_rows(arm < 0, "arm", "is none of the arms", lambda k: shown(column.distinct[column.codes[k]]), cure)
    return arm, names


def _rewards(values: Floats, limits: tuple[float, float] | None) -> Floats:
    check_rewards(values)
    if limits is not None:
        low, high = limits
        outside = (values < low) | (values > high)
        refuse_rows(
            outside, "reward", f"lies outside ({low:g}, {high:g})", values, "declare the range that rewards have"
        )
    return values


def _lists(column: Column | None) -> Column | None:
    """Texts such as "a|b|c" as lists."""
    return tables.split(column) if isinstance(column, Texts) else column


def _allowed(column: Column | None, arm: Ints, names: tuple[str, ...]) -> Bools | None:
    lists = _lists(column)
    if lists is None:
        return None
    if not isinstance(lists, Lists):
        raise InputError("column 'allowed' must be lists of arms, or texts such as 'a|b|c'")
    size = len(names)
    check_memory(len(arm) * size, f"{len(arm):,} masks of {size:,} arms", cure="leave the column out")
    cure = "list the arms that could be chosen; leave the column out where all could"
    refuse_rows(lists.missing, "allowed", "must be there", _nothing, cure)
    entries = lists.entries
    flags = entries.values if isinstance(entries, Numbers) and entries.flags else None
    mask = _members(lists, names) if flags is None else _flags(lists, flags, size)
    here = np.arange(len(arm))
    refuse_rows(np.asarray(~mask.any(axis=1)), "allowed", "offers no arm", lambda _: "an empty list", cure)
    refuse_rows(~mask[here, arm], "allowed", "lacks the arm that was played", lambda k: shown(names[arm[k]]), cure)
    return mask


def _flags(lists: Lists, values: Floats, size: int) -> Bools:
    lengths = np.bincount(lists.rows, minlength=lists.size)
    cure = "one True or False per arm, in the order of the arms; or list the arms' names"
    refuse_rows(lengths != size, "allowed", f"must have {size} flags", lengths, cure)
    flags: Bools = values.reshape(-1, size) == 1.0
    return flags


def _members(lists: Lists, names: tuple[str, ...]) -> Bools:
    entries = lists.entries
    if isinstance(entries, Texts):
        place = {name: k for k, name in enumerate(names)}
        codes = np.array([place.get(name, -1) for name in entries.distinct], dtype=np.int64)
        members = codes[entries.codes]
        named = [shown(name) for name in entries.distinct]
        odd = [named[code] for code in entries.codes[members < 0][:1]]
    else:
        values = entries.values
        fine = (values == np.floor(values)) & (values >= 0) & (values < len(names))
        members = np.where(fine, values, -1).astype(np.int64)
        odd = [str(value) for value in values[~fine][:1]]
    if odd:
        first = int(lists.rows[(members < 0).argmax()])
        raise InputError(f"row {first}, column 'allowed': {odd[0]} is none of the arms; use the names of column 'arm'")
    mask = np.zeros((lists.size, len(names)), dtype=bool)
    mask[lists.rows, members] = True
    return mask


def _laws(column: Column | None, arm: Ints, probability: Floats, size: int) -> Floats | None:
    if column is None or (isinstance(column, Numbers) and not column.dates):
        return None  # numbers of laws, as a trace has them
    if not isinstance(column, Lists) or not isinstance(column.entries, Numbers):
        raise InputError("column 'law' must be lists of probabilities, one per arm")
    lengths = np.bincount(column.rows, minlength=column.size)
    refuse_rows(
        lengths != size, "law", f"must have {size} probabilities", lengths, "one per arm, in the order of the arms"
    )
    law = column.entries.values.reshape(-1, size)
    here = np.arange(len(arm))
    odd = ~((law >= 0).all(axis=1) & (np.abs(law.sum(axis=1) - 1.0) <= _ROUNDING))
    refuse_rows(
        odd, "law", "must be probabilities that add up to 1", lambda k: shown(law[k].tolist()), "log the whole law"
    )
    differs = np.abs(law[here, arm] - probability) > _ROUNDING
    cure = "the probability of the arm played must be the law's"
    refuse_rows(differs, "law", "disagrees with the probability logged", law[here, arm], cure)
    return law


def _segments(column: Column | None) -> tuple[Ints | None, tuple[str, ...]]:
    if column is None:
        return None, ()
    values = np.empty(0) if isinstance(column, Texts) else _numbers(column, "segment")
    missing = column.codes < 0 if isinstance(column, Texts) else np.isnan(values)
    refuse_rows(missing, "segment", "must be there", _nothing, "name one for every row")
    if isinstance(column, Texts):
        return column.codes, column.distinct
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64), tuple(f"{value:g}" for value in distinct)


def _contexts(table: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns `context.*`: numbers, with NaN where one is missing; else objects, with None; vectors (n, size)."""
    found: dict[str, npt.NDArray[Any]] = {}
    problems = Problems()
    for name in table.column_names:
        if name.startswith(CONTEXT):
            with problems.noted():
                found[name.removeprefix(CONTEXT)] = _context(tables.column(table, name), name)
    problems.refuse()
    return found


def _context(column: Column, name: str) -> npt.NDArray[Any]:
    if isinstance(column, Texts):
        return np.array([*column.distinct, None], dtype=object)[column.codes]  # -1 is the last
    if isinstance(column, Lists):
        sizes = np.bincount(column.rows, minlength=column.size)
        refuse_rows(sizes != sizes[0], name, f"must have {sizes[0]} numbers", sizes, "as many in every row")
        return _numbers(column.entries, name).reshape(column.size, -1)
    values = _numbers(Numbers(column.values), name)
    refuse_rows(np.isinf(values), name, "must be finite", values, "leave it empty where it is not known")
    return (
        np.array([None, False, True], dtype=object)[np.nan_to_num(values + 1).astype(int)] if column.flags else values
    )


def _told(column: Column | None, clock: Ints | Floats, reward: Floats, *, dates: bool) -> Floats | None:
    if column is None:
        return None
    column = _dated(column, "told") if dates else column
    if not isinstance(column, Numbers) or (column.dates and not dates):
        raise InputError("column 'told' must be in the unit of 'round' or 'time'")
    told = column.values
    known = ~np.isnan(reward)
    check_told(told, clock, known)
    refuse_rows(known & np.isnan(told), "told", "must be there where a reward is", _nothing, "say when it came")
    return told
