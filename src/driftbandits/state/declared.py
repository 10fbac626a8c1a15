"""State declared once: a class lists what it saves, and `export`, `load` and the checks of kind and range follow.

A declaration names a value in the state, the attribute that holds it, and what it must be when it is read: a count, a
number, a flag, an array, a list of numbers, a generator. The attribute has the same name, or the same with an
underscore before it. Limits and lengths are numbers, or names: of something that the caller of `load` knows, or of an
attribute. Conditions between values are written once, in `_check_state`.

>>> class Mean(Declared):
...     saved = (count("plays", high="rounds"), number("total", within=(0, "plays")), array("last"))
...
...     def __init__(self):
...         self.plays, self.total, self._last = 2, 0.7, np.array([0.3, 0.4])
>>> again = Mean()
>>> again.load(Reader(Mean().export()), rounds=5)
>>> again.export()["last"].tolist()
[0.3, 0.4]
>>> again.load(Reader({"plays": 9, "total": 0.7, "last": np.zeros(2)}), rounds=5)
Traceback (most recent call last):
...
driftbandits.errors.StateError: state.plays must be at least 0 and at most 5, got 9
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftbandits._util.seeding import generator_from_state, generator_state
from driftbandits.state.reader import FARTHEST, Reader, check

Limit = float | str | None  # a number, the name of one, or none
Limits = tuple[Limit, Limit]
_NONE: Limits = (None, None)


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a state: its name, how it is written, and how it is read.

    `read` gets the reader, the name, the value that the attribute has now, and a function that finds limits by name.
    """

    name: str
    write: Callable[[Any], Any]
    read: Callable[[Reader, str, Any, Callable[[Any], Any]], Any]
    attribute: str = ""  # where there is something else of that name


def write(values: tuple[Value, ...], owner: Any) -> dict[str, Any]:
    """The attributes of `owner` that are declared, as JSON values and arrays."""
    return {value.name: value.write(getattr(owner, _attribute(owner, value))) for value in values}


def read(values: tuple[Value, ...], owner: Any, state: Reader, known: Mapping[str, Any]) -> None:
    """Inverse of `write`: set the attributes, in the order of their declaration."""

    def found(limit: Any) -> Any:
        if not isinstance(limit, str):
            return limit
        value = known[limit] if limit in known else getattr(owner, _named(owner, limit))
        return len(value) if hasattr(value, "__len__") else value

    for value in values:
        attribute = _attribute(owner, value)
        setattr(owner, attribute, value.read(state, value.name, getattr(owner, attribute, None), found))


def _attribute(owner: Any, value: Value) -> str:
    return value.attribute or _named(owner, value.name)


def _named(owner: Any, name: str) -> str:
    return name if hasattr(owner, name) else f"_{name}"


@functools.cache
def declared(kind: type) -> tuple[Value, ...]:
    """What a class and its bases declare in `_saved`, the bases' first."""
    return tuple(value for base in reversed(kind.__mro__) for value in vars(base).get("_saved", ()))


class Declared:
    """An object whose state is declared in `saved`."""

    saved: ClassVar[tuple[Value, ...]]

    def export(self) -> dict[str, Any]:
        """What `load` needs: JSON values and arrays."""
        return write(self.saved, self)

    def load(self, state: Reader, **known: Any) -> None:
        """Inverse of `export`; `known` is what the values are checked against."""
        read(self.saved, self, state, known)
        self._check_state(**known)

    def _check_state(self, **known: Any) -> None:
        """Refuse values that cannot belong together, or with what is `known`; derive what is not saved."""


def added(value: Value) -> Value:
    """A value that states of earlier versions do not have: it is then as it is at the beginning."""

    def read(state: Reader, key: str, now: Any, found: Callable[[Any], Any]) -> Any:
        return value.read(state, key, now, found) if state.has(key) else now

    return Value(value.name, value.write, read)


def count(name: str, *, low: int | str = 0, high: int | str | None = FARTHEST) -> Value:
    """A whole number from `low` to `high`."""
    return Value(name, int, lambda state, key, _, found: state.integer(key, low=found(low), high=found(high)))


def number(name: str, *, within: Limits = _NONE) -> Value:
    """A finite number."""

    def read(state: Reader, key: str, _: Any, found: Callable[[Any], Any]) -> float:
        value = state.number(key)
        _check_within(value, key, within, found)
        return value

    return Value(name, float, read)


def flag(name: str) -> Value:
    """True or False."""
    return Value(name, bool, lambda state, key, *_: state.flag(key))


def part(name: str, **known: str) -> Value:
    """An object that exports and loads itself, there before the state is read; `known`: what its `load` is told."""

    def read(state: Reader, key: str, now: Any, found: Callable[[Any], Any]) -> Any:
        now.load(state.reader(key), **{each: found(limit) for each, limit in known.items()})
        return now

    return Value(name, lambda value: value.export(), read)


def generator(name: str) -> Value:
    """A generator of random numbers."""
    return Value(name, generator_state, lambda state, key, *_: generator_from_state(state.raw(key)))


def array(
    name: str, dtype: Any = None, shape: tuple[int | str | None, ...] | None = None, *, within: Limits = _NONE
) -> Value:
    """An array, by default of the type and shape that the attribute has; `within`: of all entries."""

    def read(state: Reader, key: str, now: Any, found: Callable[[Any], Any]) -> Any:
        lengths = now.shape if shape is None else tuple(found(length) for length in shape)
        value = state.array(key, now.dtype if dtype is None else dtype, lengths)
        _check_within(value, key, within, found)
        return value

    return Value(name, lambda value: np.array(value, order="C"), read)


def listed(name: str, dtype: Any, length: int | str | None, *, within: Limits = _NONE) -> Value:
    """A list of numbers, kept as an array."""

    def read(state: Reader, key: str, _: Any, found: Callable[[Any], Any]) -> list[Any]:
        value = state.array(key, dtype, (found(length),))
        _check_within(value, key, within, found)
        return value.tolist()  # type: ignore[no-any-return]

    return Value(name, lambda value: np.array(value, dtype=dtype), read)


def _check_within(value: Any, name: str, within: Limits, found: Callable[[Any], Any]) -> None:
    low, high = (found(limit) for limit in within)
    fine = (low is None or np.all(value >= low)) and (high is None or np.all(value <= high))
    check(bool(fine), name)
