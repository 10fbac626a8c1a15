"""The columns of a log: what was played, with what probability, and what it brought.

column        meaning
round, time   number or time of the decision, growing; one of the two, or neither for 0, 1, 2, ...
arm           index of the arm, or its name
probability   of that arm under the policy that logged, in (0, 1]
reward        in the user's units; NaN where it is not known
told          when the reward came, in the unit of round or time: before the first row that is not earlier than that;
              NaN, or no such column: before the next row
allowed       a mask per row, shape (rows, arms), of the arms that could be played; without it all

Policies learn from these (`Policy.learn`), logs are read into them, and experiments export them. Other columns (the
law, the segment, ...) may be there and are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftbandits.arms import ArmSet
from driftbandits.errors import InputError
from driftbandits.numeric import as_floats
from driftbandits.showing import counted, shown
from driftbandits.types import Bools, Floats, Ints

COLUMNS = ("round", "time", "arm", "reward", "probability", "told", "allowed", "law", "segment")
REQUIRED = ("arm", "reward", "probability")
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class LogColumns:
    """A log that was found to be one: columns of one length, in the order of the rounds."""

    arms: Ints
    rewards: Floats  # NaN: not known
    probabilities: Floats
    told_before: Ints  # the row before which each reward was told; the number of rows for those told after the last
    allowed: Bools | None

    def __len__(self) -> int:
        return len(self.arms)


def read_columns(arms: ArmSet, columns: Mapping[str, Any]) -> LogColumns:
    """Check a mapping of names to columns; an InputError names column and row of what is wrong.

    >>> arms = ArmSet([[0.0], [1.0]], names=["low", "high"])
    >>> log = read_columns(arms, {"arm": ["low", "high"], "reward": [0.5, None], "probability": [0.5, 0.5]})
    >>> log.arms.tolist(), log.rewards.tolist(), log.told_before.tolist()
    ([0, 1], [0.5, nan], [1, 2])
    """
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise InputError(f"a log needs the columns {', '.join(REQUIRED)}; {missing[0]!r} is missing")
    lengths = {name: _length(name, columns[name]) for name in COLUMNS if name in columns}
    size = lengths["arm"]
    for name, length in lengths.items():
        if length != size:
            raise InputError(f"the columns of a log must have one length: arm has {size}, {name} has {length}")
    played = _read_arms(arms, columns["arm"])
    shares = _numbers("probability", columns["probability"])
    _refuse("probability", shares, ~((shares > 0.0) & (shares <= 1.0 + _ROUNDING)), "lies in (0, 1]")
    rewards = _numbers("reward", columns["reward"])
    _refuse("reward", rewards, np.isinf(rewards), "is finite, or NaN where it is not known")
    return LogColumns(
        arms=played,
        rewards=rewards,
        probabilities=shares,
        told_before=_told_before(columns, size),
        allowed=_read_allowed(arms, columns.get("allowed"), played),
    )


def _length(name: str, column: Any) -> int:
    try:
        return len(column)
    except TypeError:
        raise InputError(f"column {name!r} must be a sequence with one entry per row, got {shown(column)}") from None


def _numbers(name: str, column: Any) -> Floats:
    try:
        values = as_floats([np.nan if value is None else value for value in column])
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"column {name!r} must hold numbers, got {shown(column)}") from None
    if values.ndim != 1:
        raise InputError(f"column {name!r} must hold one number per row, got the shape {values.shape}")
    return values


def _refuse(name: str, values: npt.NDArray[Any], wrong: Bools, rule: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"column {name!r} has {values[row]} in row {row}; a {name} {rule}")


def _read_arms(arms: ArmSet, column: Any) -> Ints:
    given = np.asarray(column)
    if given.dtype.kind in "iu" and given.ndim == 1:
        _refuse("arm", given, (given < 0) | (given >= len(arms)), f"is an index below {len(arms)}, or a name")
        return given.astype(np.int64)
    listed = list(column)
    if arms.names is None or not all(isinstance(value, str) for value in listed):
        kinds = "indices" if arms.names is None else "indices or names"
        raise InputError(f"column 'arm' must hold {kinds} of {counted(len(arms), 'arm')}, got {shown(column)}")
    known = {name: number for number, name in enumerate(arms.names)}
    for row, name in enumerate(listed):
        if name not in known:
            raise InputError(f"column 'arm' has {shown(name)} in row {row}, which no arm is called")
    return np.array([known[name] for name in listed], dtype=np.int64)


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
    _refuse("told", told, told < at, "is not before its round")
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
    _refuse("allowed", played, ~masks[np.arange(len(played)), played], "that was played must be allowed in its row")
    return masks
