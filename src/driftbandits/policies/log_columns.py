"""The columns of a log: what was played, with what probability, and the observed reward.

column        meaning
round, time   number or time of the decision, growing; one of the two, or neither for 0, 1, 2, ...
arm           index of the arm, or its name
probability   of that arm under the policy that logged, in (0, 1]
reward        in the user's units; NaN where it is not known
told          when the reward came, in the unit of round or time: before the first row that is not earlier than that;
              NaN, or no such column: before the next row
allowed       a mask per row, shape (rows, arms), of the arms that could be played; without it all
segment       of the request, by name, where arms are options in segments: `arm` and `allowed` are of the options then
context.hour  of the request, where the policy has contexts with a column `hour`; a vector is a list per row, in a text
              file as JSON, or columns `context.text.0`, `context.text.1`, ...; contexts that are vectors themselves are
              `context.0`, `context.1`, ...

Policies learn from these (`Policy.learn`), logs are read into them, and experiments export them. Other columns (the
law, ...) may be there and are not read.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from driftbandits._util.checks import as_floats, check_memory
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.errors import InputError
from driftbandits.text import counted, shown
from driftbandits.types import Bools, Floats, Ints

COLUMNS = ("round", "time", "arm", "reward", "probability", "told", "allowed", "law", "segment")
REQUIRED = ("arm", "reward", "probability")
CONTEXT = "context."  # and the name of a column of contexts
_ROUNDING = 1e-9


class LogLike(Protocol):
    """What can be learned from but a mapping: `logs.Log`, which policies do not know."""

    def columns(self, arms: ArmSet) -> Mapping[str, Any]:
        """Columns for a policy with these arms."""


@dataclass(frozen=True, slots=True)
class LogColumns:
    """A valid log: columns of one length, in the order of the rounds."""

    arms: Ints
    rewards: Floats  # NaN: not known
    probabilities: Floats
    told_before: Ints  # the row before which each reward was told; the number of rows for those told after the last
    allowed: Bools | None
    requests: Sequence[Any] | None = None  # the context of each row

    def __len__(self) -> int:
        return len(self.arms)


def read_columns(arms: ArmSet, given: Mapping[str, Any] | LogLike, contexts: Contexts | None = None) -> LogColumns:
    """Check a log, or a mapping of names to columns; an InputError names column and row of what is wrong.

    With `contexts`, those of a policy, the log must have their columns.

    >>> arms = ArmSet([[0.0], [1.0]], names=["low", "high"])
    >>> log = read_columns(arms, {"arm": ["low", "high"], "reward": [0.5, None], "probability": [0.5, 0.5]})
    >>> log.arms.tolist(), log.rewards.tolist(), log.told_before.tolist()
    ([0, 1], [0.5, nan], [1, 2])
    """
    columns: Any = given.columns(arms) if callable(getattr(given, "columns", None)) else given  # type: ignore[union-attr]
    if not hasattr(columns, "__getitem__") or isinstance(columns, (str, bytes, list, tuple)):
        raise InputError(f"a log is a logs.Log, or a mapping of names to columns, got {shown(columns)}")
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise InputError(f"a log needs the columns {', '.join(REQUIRED)}; {missing[0]!r} is missing")
    lengths = {name: _length(name, columns[name]) for name in COLUMNS if name in columns}
    size = lengths["arm"]
    for name, length in lengths.items():
        if length != size:
            raise InputError(f"the columns of a log must have one length: arm has {size}, {name} has {length}")
    segments = _read_segments(arms, columns)
    options = arms if segments is None or arms.crossing is None else arms.crossing.options
    played = _read_arms(options, columns["arm"])
    shares = _numbers("probability", columns["probability"])
    check_probabilities(shares)
    rewards = _numbers("reward", columns["reward"])
    check_rewards(rewards)
    allowed = _read_allowed(options, columns.get("allowed"), played)
    if segments is not None:
        played, allowed = played + segments * len(options), _in_segments(arms, segments, allowed)
    requests = None if contexts is None else requests_of(contexts, columns)
    if requests is not None and contexts is not None:
        if len(requests) != size:
            raise InputError(f"the columns of a log must have one length: arm has {size}, contexts {len(requests)}")
        contexts.read_many(requests)  # refused before anything is learned
    return LogColumns(
        arms=played,
        rewards=rewards,
        probabilities=shares,
        told_before=_told_before(columns, size),
        allowed=allowed,
        requests=requests,
    )


def requests_of(contexts: Contexts, columns: Mapping[str, Any]) -> Sequence[Any]:
    """The context of every row, from the columns `context.*`; an InputError names a column that is not there.

    >>> requests_of(Contexts(hour=(0, 24), text=2), {"context.hour": [3, 4], "context.text": [[0, 1], "[2, 3]"]})
    [{'hour': 3, 'text': [0, 1]}, {'hour': 4, 'text': [2, 3]}]
    >>> requests_of(Contexts(2), {"context.0": [3, 4], "context.1": [5, 6]}).tolist()
    [[3.0, 5.0], [4.0, 6.0]]
    """
    spec = contexts.to_dict()
    if isinstance(spec, int):
        return cast(Sequence[Any], _vectors(CONTEXT, spec, columns))
    found: dict[str, Any] = {}
    for name, own in spec.items():
        size = _size_of(own)
        if size is not None and f"{CONTEXT}{name}" not in columns:
            found[name] = _vectors(f"{CONTEXT}{name}.", size, columns, gaps="optional" in own)
        else:
            found[name] = _there(f"{CONTEXT}{name}", columns)
        if size is not None:
            found[name] = [_listed(value) for value in found[name]]
    if len({len(column) for column in found.values()}) > 1:
        raise InputError(f"the columns of contexts must have one length, got {shown(list(map(len, found.values())))}")
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


def _size_of(spec: Any) -> int | None:
    """How many numbers a column has, where it is of vectors."""
    spec = spec["optional"] if isinstance(spec, dict) and "optional" in spec else spec
    return spec.get("vector") if isinstance(spec, dict) else None


def _there(name: str, columns: Mapping[str, Any]) -> Any:
    if name not in columns:
        own = [column for column in columns if isinstance(column, str) and column.startswith(CONTEXT)]
        has = f"it has {', '.join(map(repr, own))}" if own else "it has no contexts"
        raise InputError(f"the log has no column {name!r}, which the contexts need; {has}")
    column = columns[name]
    _length(name, column)
    return column.tolist() if isinstance(column, np.ndarray) and column.ndim == 1 else column


def _vectors(prefix: str, size: int, columns: Mapping[str, Any], *, gaps: bool = False) -> Any:
    """Columns that end in the numbers from 0, as vectors (n, size); with `gaps`, None where all are missing."""
    parts = {name: _numbers(name, _there(name, columns)) for name in (f"{prefix}{k}" for k in range(size))}
    if f"{prefix}{size}" in columns:
        raise InputError(f"the log has a column '{prefix}{size}', and vectors of the contexts have {size} numbers")
    vectors = np.column_stack(list(parts.values()))
    missing = np.asarray(np.isnan(vectors).all(axis=1) & gaps)
    for name, values in parts.items():
        odd = ~(np.isfinite(values) | missing)
        refuse_rows(odd, name, "must be a finite number", values, "write one in every row")
    return [None if gone else row for gone, row in zip(missing, vectors, strict=True)] if gaps else vectors


def _listed(value: Any) -> Any:
    """A vector, where a text file has it as JSON; what is none is refused with the context."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(value) if isinstance(value, str) else value
    return value


def _length(name: str, column: Any) -> int:
    try:
        return len(column)
    except TypeError:
        raise InputError(f"column {name!r} must be a sequence with one entry per row, got {shown(column)}") from None


def _numbers(name: str, column: Any) -> Floats:
    try:
        plain = isinstance(column, np.ndarray) and column.dtype.kind in "fiu"
        values = as_floats(column if plain else [np.nan if value is None else value for value in column])
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"column {name!r} must hold numbers, got {shown(column)}") from None
    if values.ndim != 1:
        raise InputError(f"column {name!r} must hold one number per row, got the shape {values.shape}")
    return values


class Problems:
    """What is wrong with a log, all of it: `noted` keeps an InputError, `refuse` raises what was kept as one.

    >>> problems = Problems()
    >>> for row in (3, 5):
    ...     with problems.noted():
    ...         raise InputError(f"row {row} is wrong")
    >>> problems.refuse()
    Traceback (most recent call last):
    ...
    driftbandits.errors.InputError: 2 problems:
    - row 3 is wrong
    - row 5 is wrong
    """

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Keep the InputError of what is done inside."""
        try:
            yield
        except InputError as error:
            kept = str(error).removeprefix(f"{len(str(error).splitlines()) - 1} problems:\n- ")
            self.found += kept.split("\n- ") if kept != str(error) else [kept]

    def refuse(self) -> None:
        """Raise an InputError where anything was noted."""
        if len(self.found) > 1:
            raise InputError("\n- ".join([f"{len(self.found)} problems:", *self.found]))
        if self.found:
            raise InputError(self.found[0])


_MOST_ROWS_NAMED = 4


def refuse_rows(rows: Bools, name: str, what: str, value: Any, cure: str) -> None:
    """Refuse a column some of whose values are wrong, by the first of them; `value`: the values, or a function."""
    if not rows.any():
        return
    first, *others = np.flatnonzero(rows).tolist()
    named = ", ".join(map(str, others[:_MOST_ROWS_NAMED]))
    more = f" and {len(others) - _MOST_ROWS_NAMED:,} more" if len(others) > _MOST_ROWS_NAMED else ""
    rest = f" (and in {'row' if len(others) == 1 else 'rows'} {named}{more})" if others else ""
    given = value(first) if callable(value) else value[first]
    raise InputError(f"row {first}, column {name!r}: {what}, got {given}{rest}; {cure}")


def check_rewards(values: Floats) -> None:
    """Rewards are finite, or NaN where they are not known."""
    refuse_rows(np.isinf(values), "reward", "must be finite", values, "leave it empty where it is not known")


def check_probabilities(values: Floats) -> None:
    """Probabilities lie in (0, 1], up to rounding."""
    cure = "a log is evidence only with the probability of every decision"
    problems = Problems()
    with problems.noted():
        refuse_rows(np.isnan(values), "probability", "must be there", lambda _: "nothing", cure)
    with problems.noted():
        refuse_rows(
            values <= 0, "probability", "must be above 0", values, "what was played had a chance; log it exactly"
        )
    with problems.noted():
        refuse_rows(values > 1 + _ROUNDING, "probability", "must be at most 1", values, "log shares, not percentages")
    problems.refuse()


def check_told(told: Floats, clock: Ints | Floats, known: Bools | bool = True) -> None:
    """No reward comes before its decision."""
    cure = "it is when the reward came, in the unit of 'round' or 'time'"
    refuse_rows(known & (told < clock), "told", "is before the decision", told, cure)


def _read_arms(arms: ArmSet, column: Any) -> Ints:
    given = np.asarray(column)
    if given.dtype.kind in "iu" and given.ndim == 1:
        outside = (given < 0) | (given >= len(arms))
        refuse_rows(outside, "arm", f"must be a position below {len(arms)}", given, "positions count from 0")
        return given.astype(np.int64)
    listed = list(column)
    if arms.names is None or not all(isinstance(value, str) for value in listed):
        kinds = "indices" if arms.names is None else "indices or names"
        raise InputError(f"column 'arm' must hold {kinds} of {counted(len(arms), 'arm')}, got {shown(column)}")
    known = {name: number for number, name in enumerate(arms.names)}
    numbers = np.array([known.get(name, -1) for name in listed], dtype=np.int64)
    cure = "is this the log of another experiment?"
    refuse_rows(numbers < 0, "arm", "is none of the arms", lambda row: shown(listed[row]), cure)
    return numbers


def _read_segments(arms: ArmSet, columns: Mapping[str, Any]) -> Ints | None:
    """Numbers of the segments, where the arms are options in segments and the log has them."""
    if arms.crossing is None or "segment" not in columns:
        return None
    known = {name: number for number, name in enumerate(arms.crossing.names)}
    listed = [known.get(name, -1) for name in columns["segment"]]
    numbers = np.array(listed, dtype=np.int64)
    names, cure = list(columns["segment"]), f"it is one of {', '.join(map(shown, list(known)[:20]))}"
    refuse_rows(numbers < 0, "segment", "is none of the segments", lambda row: shown(names[row]), cure)
    return numbers


def _in_segments(arms: ArmSet, segments: Ints, allowed: Bools | None) -> Bools:
    """Masks of options as masks of the options in each row's segment."""
    count = 0 if arms.crossing is None else len(arms.crossing.names)
    check_memory(len(segments) * len(arms), f"{len(segments):,} masks of {len(arms):,} arms", cure="learn fewer rows")
    size = len(arms) // count
    masks = np.zeros((len(segments), count, size), dtype=np.bool_)
    masks[np.arange(len(segments)), segments] = True if allowed is None else allowed
    return masks.reshape(len(segments), len(arms))


def _told_before(columns: Mapping[str, Any], size: int) -> Ints:
    """Before which row every reward was told."""
    after = np.arange(1, size + 1)
    at = next((_numbers(name, columns[name]) for name in ("round", "time") if name in columns), None)
    if at is None:
        at = np.arange(size, dtype=np.float64)
    if not np.isfinite(at).all() or (np.diff(at) < 0).any():
        row = int((~np.isfinite(at)).argmax()) if not np.isfinite(at).all() else int((np.diff(at) < 0).argmax()) + 1
        raise InputError(f"round or time must grow from row to row, and does not at row {row}; sort the log by it")
    if "told" not in columns:
        return after
    told = _numbers("told", columns["told"])
    check_told(told, at)
    known = np.isfinite(told)
    found = np.searchsorted(at, np.where(known, told, 0.0), side="left")
    return np.maximum(np.where(known, found, after), after)


def _read_allowed(arms: ArmSet, column: Any, played: Ints) -> Bools | None:
    if column is None:
        return None
    try:
        masks = np.asarray(column)
    except ValueError:  # rows of unequal length
        masks = np.zeros(0)
    if masks.dtype != np.bool_ or masks.shape != (len(played), len(arms)):
        raise InputError(
            f"column 'allowed' must be a boolean array of shape ({len(played)}, {len(arms)}), a mask of the arms per "
            f"row, got {shown(column)}"
        )
    lacking, cure = ~masks[np.arange(len(played)), played], "what was played must be allowed in its row"
    refuse_rows(lacking, "allowed", "lacks the arm that was played", played, cure)
    return masks
