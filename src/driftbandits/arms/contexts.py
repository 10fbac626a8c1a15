"""What is known of a request when an arm is chosen for it: columns, and the numbers that policies learn from.

A column is a number (with a range, or without one), a cyclic number, a category, a boolean or a vector. It becomes one
number or several, its *codes*:

column       codes
number       the number; with a range, between -sqrt(3) and sqrt(3), whose variance is 1 if all numbers are as likely
cyclic       sqrt(2) times cosine and sine of its angle
category     one per category: 1 for the present one, else 0
boolean      1 or -1
vector       its numbers; one with more than 64 is projected to 16 by a fixed random matrix
optional     those of the column, all 0 where the value is missing, and one more that says so

Codes of numbers without a range are the numbers themselves: policies scale them by those that they have seen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from driftbandits._util.checks import as_float, as_floats, check_count, check_positive
from driftbandits.errors import InputError, did_you_mean
from driftbandits.text import counted, label, shown
from driftbandits.types import Floats, Ints

MOST_COLUMNS = 256
MOST_CATEGORIES = 256
MOST_IN_A_VECTOR = 100_000
LONGEST_VECTOR_KEPT = 64
PROJECTED_TO = 16
OTHER = "other"
_HALF_WIDTH = math.sqrt(3.0)
_ROOT_2 = math.sqrt(2.0)


class Column(ABC):
    """One column; the classes below say what its values are. `width` is the number of its codes."""

    width: int = 1
    has_scale: bool = True  # whether the codes have a scale by themselves
    expected: str  # what a value must be, for messages

    @abstractmethod
    def codes(self, value: Any) -> Sequence[float]:
        """Codes of a value; ValueError or TypeError if it is no value of the column."""

    @abstractmethod
    def spec(self) -> Any:
        """What it is made from, as JSON values."""

    def parts(self) -> list[tuple[str, slice]]:
        """Codes that matter together, with what follows the name of the column."""
        return [("", slice(0, self.width))]

    @abstractmethod
    def tell(self, low: Floats, high: Floats) -> str:
        """The values between two vectors of codes, in words; see `Contexts.tell`."""


def _as_number(value: Any) -> float:
    if isinstance(value, (bool, str, bytes)) or value is None:
        raise TypeError
    number = as_float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


@dataclass(frozen=True, slots=True)
class Number(Column):
    """A number; beyond `low` and `high`, if these are given, it counts as the nearest of them."""

    low: float = -math.inf
    high: float = math.inf

    @property
    def has_scale(self) -> bool:  # type: ignore[override]
        """Whether there is a range."""
        return math.isfinite(self.low)

    @property
    def expected(self) -> str:  # type: ignore[override]
        """What a value must be."""
        return "a finite number"

    def codes(self, value: Any) -> Sequence[float]:
        """The number, on the scale of the range."""
        number = _as_number(value)
        if not self.has_scale:
            return (number,)
        inside = min(max(number, self.low), self.high)
        return (_HALF_WIDTH * (2.0 * (inside - self.low) / (self.high - self.low) - 1.0),)

    def spec(self) -> Any:
        """The range, or "number"."""
        return [self.low, self.high] if self.has_scale else "number"

    def tell(self, low: Floats, high: Floats) -> str:
        """From one number to another."""
        ends = [self._number(low[0]), self._number(high[0])]
        return f"{ends[0]:.3g} to {ends[1]:.3g}"

    def _number(self, code: float) -> float:
        return code if not self.has_scale else self.low + (code / _HALF_WIDTH + 1.0) * 0.5 * (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Cyclic(Column):
    """A number of which `period` more is the same, such as the hour of the day."""

    period: float
    width = 2
    expected = "a finite number"

    def codes(self, value: Any) -> Sequence[float]:
        """A point of a circle."""
        angle = math.tau * math.fmod(_as_number(value) / self.period, 1.0)
        return (_ROOT_2 * math.cos(angle), _ROOT_2 * math.sin(angle))

    def spec(self) -> Any:
        """The period."""
        return {"cyclic": self.period}

    def tell(self, low: Floats, high: Floats) -> str:
        """The middle of the codes, as a value."""
        angle = math.atan2(low[1] + high[1], low[0] + high[0]) % math.tau
        return f"around {angle / math.tau * self.period:.3g}"


@dataclass(frozen=True, slots=True)
class Category(Column):
    """One of some names; where "other" is among them, an unknown one counts as that."""

    names: tuple[str, ...]

    @property
    def width(self) -> int:  # type: ignore[override]
        """One code per name."""
        return len(self.names)

    @property
    def expected(self) -> str:  # type: ignore[override]
        """What a value must be."""
        return "any text" if OTHER in self.names else f"one of {', '.join(map(repr, self.names))}"

    def codes(self, value: Any) -> Sequence[float]:
        """1 for the category."""
        if not isinstance(value, str):
            raise TypeError
        name = value if value in self.names or OTHER not in self.names else OTHER
        place = self.names.index(name)  # ValueError where there is none
        return [float(k == place) for k in range(len(self.names))]

    def spec(self) -> Any:
        """The names."""
        return list(self.names)

    def tell(self, low: Floats, high: Floats) -> str:
        """The categories."""
        del low
        return " or ".join(label(self.names[k]) for k in np.flatnonzero(high > 0.5))


@dataclass(frozen=True, slots=True)
class Boolean(Column):
    """True or False."""

    expected = "true or false"

    def codes(self, value: Any) -> Sequence[float]:
        """1 or -1."""
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError
        return (1.0 if value else -1.0,)

    def spec(self) -> Any:
        """The word."""
        return "boolean"

    def tell(self, low: Floats, high: Floats) -> str:
        """Yes or no."""
        return "true" if low[0] > 0.0 else "false" if high[0] < 0.0 else "true or false"


@dataclass(frozen=True, slots=True)
class Vector(Column):
    """So many numbers, such as an embedding."""

    size: int
    has_scale = False

    @property
    def width(self) -> int:  # type: ignore[override]
        """As many codes as numbers, or fewer where these are many."""
        return self.size if self.size <= LONGEST_VECTOR_KEPT else PROJECTED_TO

    @property
    def expected(self) -> str:  # type: ignore[override]
        """What a value must be."""
        return f"{counted(self.size, 'finite number')}"

    def codes(self, value: Any) -> Sequence[float]:
        """The numbers, or their projection."""
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__") or len(value) != self.size:
            raise ValueError
        numbers = as_floats(value)
        if numbers.shape != (self.size,) or not np.isfinite(numbers).all():
            raise ValueError
        if self.size > LONGEST_VECTOR_KEPT:
            numbers = _projection(self.size) @ numbers
        return cast(Sequence[float], numbers.tolist())

    def spec(self) -> Any:
        """The size."""
        return {"vector": self.size}

    def parts(self) -> list[tuple[str, slice]]:
        """Every number matters by itself."""
        return [(f"[{k}]", slice(k, k + 1)) for k in range(self.width)]

    def tell(self, low: Floats, high: Floats) -> str:
        """From one number to another; of one part."""
        return f"{low[0]:.3g} to {high[0]:.3g}"


def _projection(size: int) -> Floats:
    """The same for all vectors of a size."""
    return np.random.default_rng(size).standard_normal((PROJECTED_TO, size)) / math.sqrt(size)


@dataclass(frozen=True, slots=True)
class Optional(Column):
    """A column whose value may be missing: None, or NaN."""

    column: Column

    @property
    def width(self) -> int:  # type: ignore[override]
        """One code more."""
        return self.column.width + 1

    @property
    def has_scale(self) -> bool:  # type: ignore[override]
        """As the column."""
        return self.column.has_scale

    @property
    def expected(self) -> str:  # type: ignore[override]
        """What a value must be."""
        return f"{self.column.expected}, or None"

    def codes(self, value: Any) -> Sequence[float]:
        """0 and 1 where the value is missing."""
        if is_missing(value):
            return [*([0.0] * self.column.width), 1.0]
        return [*self.column.codes(value), 0.0]

    def spec(self) -> Any:
        """That of the column, marked."""
        return {"optional": self.column.spec()}

    def parts(self) -> list[tuple[str, slice]]:
        """As those of the column; that it is missing belongs to the first."""
        (name, first), *others = self.column.parts()
        whole = slice(0, self.width) if not others else first
        missing = [] if not others else [("[missing]", slice(self.column.width, self.width))]
        return [(name, whole), *others, *missing]

    def tell(self, low: Floats, high: Floats) -> str:
        """Those of the column."""
        return "missing" if len(low) == self.width and low[-1] > 0.5 else self.column.tell(low, high)


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has in their place."""
    return (
        value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)) or bool(value is _pandas_na())
    )


def _pandas_na() -> Any:
    import sys

    return getattr(sys.modules.get("pandas"), "NA", math)  # the module stands for "no such thing"


def cyclic(period: float) -> Column:
    """A column of `Contexts` whose values go round: the hour of the day, the day of the week.

    Parameters
    ----------
    period : after which it begins again: 24 for hours, 7 for days of the week

    Returns
    -------
    Column

    Raises
    ------
    InputError
        For a period that is not positive.

    >>> Contexts(hour=cyclic(24)).read({"hour": 6}).round(3).tolist()
    [0.0, 1.414]
    """
    return Cyclic(check_positive("period", period))


def optional(column: Any) -> Column:
    """A column of `Contexts` whose value may be missing.

    Parameters
    ----------
    column : what it is otherwise, as `Contexts` takes it

    Returns
    -------
    Column

    >>> Contexts(age=optional((0, 100))).read({"age": None}).tolist()
    [0.0, 1.0]
    """
    return Optional(_column("optional", column))


class Contexts:
    """What is known of each request: the columns of its context.

    Parameters
    ----------
    size : for contexts that are vectors of so many numbers; then there are no columns
    columns : by name: `(low, high)` for a number with a range, beyond which it counts as the nearest end; `float` for
        a number without one, scaled by those seen; `cyclic(24)` for hours; a list of names for a category, among them
        "other" if unknown ones shall count as that; `bool`; a whole number k for a vector of k numbers;
        `optional(column)` where the value may be missing

    Raises
    ------
    InputError
        For what is no column.

    Attributes
    ----------
    names : of the columns; none where contexts are vectors
    width : number of the codes, see `read`
    parts : for every part of the codes that matters by itself, its name and where it stands

    >>> contexts = Contexts(hour=cyclic(24), device=["mobile", "desktop"], basket=(0, 500))
    >>> contexts.read({"hour": 0, "device": "mobile", "basket": 250}).round(3).tolist()
    [1.414, 0.0, 1.0, 0.0, 0.0]
    >>> Contexts(2).read([0.5, 2]).tolist()
    [0.5, 2.0]
    """

    def __init__(self, size: int | None = None, /, **columns: Any) -> None:
        if (size is None) == (not columns):
            raise InputError(
                "Contexts takes either the size of a vector, as in Contexts(8), or columns by name, as in "
                "Contexts(hour=db.cyclic(24), device=['mobile', 'desktop'])"
            )
        if len(columns) > MOST_COLUMNS:
            raise InputError(f"contexts may have {MOST_COLUMNS} columns, got {len(columns):,}; leave some out")
        self._whole = size is not None
        if size is not None:
            cure = "columns are given by name, as in Contexts(device=['mobile', 'desktop'])"
            self._columns: dict[str, Column] = {"": _vector("the size of a context", size, cure=cure)}
        else:
            self._columns = {name: _column(name, column) for name, column in columns.items()}
        self.names = tuple(columns)
        self.width = sum(column.width for column in self._columns.values())
        self.parts: tuple[tuple[str, slice], ...] = tuple(self._all_parts())

    def _all_parts(self) -> Iterator[tuple[str, slice]]:
        start = 0
        for name, column in self._columns.items():
            for suffix, part in column.parts():
                yield (
                    f"{name}{suffix}" if name else f"column {suffix[1:-1]}",
                    slice(start + part.start, start + part.stop),
                )
            start += column.width

    @property
    def scaled(self) -> npt.NDArray[np.bool_]:
        """Which codes have a scale by themselves, shape (width,); the others are scaled by those seen."""
        return np.concatenate([np.full(column.width, column.has_scale) for column in self._columns.values()])

    def read(self, context: Any) -> Floats:
        """The codes of one context.

        Parameters
        ----------
        context : a mapping of column names to values, or a sequence of numbers where contexts are vectors

        Returns
        -------
        array, shape (width,)

        Raises
        ------
        InputError
            Naming the column, what was expected, and what was given.

        >>> Contexts(basket=(0, 500)).read({"basket": "80"})
        Traceback (most recent call last):
        ...
        driftbandits.errors.InputError: context column 'basket' must be a finite number, got '80'
        """
        if self._whole:
            return np.array(self._codes("", context), dtype=np.float64)
        if not isinstance(context, Mapping):
            raise InputError(f"a context must be a mapping of {self._listed()} to values, got {shown(context)}")
        for name in context:
            if name not in self._columns:
                hint = did_you_mean(name, self._columns) if isinstance(name, str) else ""
                raise InputError(f"contexts have no column {shown(name)}; {hint}they have {self._listed()}")
        found: list[float] = []
        for name in self._columns:
            if name not in context and not isinstance(self._columns[name], Optional):
                raise InputError(
                    f"the context has no {name!r}, which must be {self._columns[name].expected}; where it may be "
                    f"missing, declare it as db.optional(...)"
                )
            found.extend(self._codes(name, context.get(name)))
        return np.array(found)

    def _codes(self, name: str, value: Any) -> Sequence[float]:
        column = self._columns[name]
        try:
            return column.codes(value)
        except (TypeError, ValueError, OverflowError):
            what = f"context column {name!r}" if name else "a context"
            size = f" of length {len(value)}" if isinstance(column, Vector) and hasattr(value, "__len__") else ""
            raise InputError(f"{what} must be {column.expected}, got {shown(value)}{size}") from None

    def read_many(self, contexts: Any) -> Floats:
        """The codes of several contexts.

        Parameters
        ----------
        contexts : a list of contexts, a DataFrame or a mapping of names to columns, or an array of vectors, (n, size)

        Returns
        -------
        array, shape (n, width)

        Raises
        ------
        InputError
            As `read`, naming the row too.

        >>> Contexts(basket=(0, 500)).read_many({"basket": [0, 250]}).round(3).tolist()
        [[-1.732], [0.0]]
        """
        rows = rows_of(contexts)
        found = np.empty((len(rows), self.width))
        for place, row in enumerate(rows):
            try:
                found[place] = self.read(row)
            except InputError as error:
                raise InputError(f"row {place}: {error}") from None
        return found

    def _listed(self) -> str:
        return ", ".join(repr(name) for name in self.names) if self.names else self._columns[""].expected

    def tell(self, part: int, low: Floats, high: Floats) -> str:
        """What it means that the codes of one of the `parts` lie between two vectors, in words.

        Parameters
        ----------
        part : its number
        low, high : the least and largest of its codes

        Returns
        -------
        str

        >>> Contexts(basket=(0, 500)).tell(0, np.array([0.0]), np.array([1.7320508]))
        'basket = 250 to 500'
        """
        columns = [column for column in self._columns.values() for _ in column.parts()]
        return f"{self.parts[part][0]} = {columns[part].tell(low, high)}"

    def to_dict(self) -> dict[str, Any] | int:
        """The columns as JSON values, from which `from_dict` makes them.

        Returns
        -------
        dict or int
        """
        if self._whole:
            return cast(Vector, self._columns[""]).size
        return {name: column.spec() for name, column in self._columns.items()}

    @classmethod
    def from_dict(cls, spec: Any) -> Contexts:
        """Inverse of `to_dict`.

        Parameters
        ----------
        spec : a size, or columns by name: [low, high], "number", "boolean", a list of names, {"cyclic": 24},
            {"vector": 64}, {"optional": a column}

        Returns
        -------
        Contexts

        Raises
        ------
        InputError
            For what is no column.

        >>> Contexts.from_dict({"device": ["mobile", "desktop"], "hour": {"cyclic": 24}})
        Contexts(device=['mobile', 'desktop'], hour=cyclic(24))
        """
        if isinstance(spec, int):
            return cls(spec)
        if not isinstance(spec, Mapping) or not all(isinstance(name, str) for name in spec):
            raise InputError(f"contexts must be a size, or columns by name, got {shown(spec)}")
        return cls(**{name: _from_spec(name, part) for name, part in spec.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contexts) and self._columns == other._columns

    def __hash__(self) -> int:
        return hash(tuple(self._columns.items()))

    def __repr__(self) -> str:
        spec = self.to_dict()
        if isinstance(spec, int):
            return f"Contexts({spec})"
        return f"Contexts({', '.join(f'{name}={_shown_spec(part)}' for name, part in spec.items())})"


def _shown_spec(spec: Any) -> str:
    if isinstance(spec, dict):
        (word, value), *_ = spec.items()
        return str(value) if word == "vector" else f"{word}({_shown_spec(value)})"
    if isinstance(spec, list) and not isinstance(spec[0], str):
        return f"({spec[0]:g}, {spec[1]:g})"
    words = {"number": "float", "boolean": "bool"}
    return words[spec] if isinstance(spec, str) else f"{spec:g}" if isinstance(spec, float) else repr(spec)


def _column(name: str, given: Any) -> Column:
    """A column from what users write for it."""
    if isinstance(given, Column):
        return given
    if given is float:
        return Number()
    if given is bool:
        return Boolean()
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return _vector(f"context column {name!r}", given, cure="a number is float, or (low, high)")
    if isinstance(given, (list, tuple)) and given:
        if all(isinstance(item, str) for item in given):
            return _category(name, given)
        if len(given) == 2:
            return _range(name, given)
    raise InputError(
        f"context column {name!r} must be (low, high), float, db.cyclic(period), a list of names, bool, the size of a "
        f"vector, or db.optional of one of these, got {shown(given)}"
    )


def _vector(name: str, size: Any, *, cure: str) -> Vector:
    count = check_count(name, size, cure=cure)
    if count > MOST_IN_A_VECTOR:
        raise InputError(f"{name} must be at most {MOST_IN_A_VECTOR:,}, got {count:,}; embed it in fewer numbers")
    return Vector(count)


def _category(name: str, names: Sequence[str]) -> Category:
    if len(set(names)) < len(names) or not all(names):
        raise InputError(
            f"context column {name!r} must have different categories that are not empty, got {shown(names)}"
        )
    if not 2 <= len(names) <= MOST_CATEGORIES:
        raise InputError(
            f"context column {name!r} must have 2 to {MOST_CATEGORIES} categories, got {len(names):,}; put rare ones "
            f"together as {OTHER!r}"
        )
    return Category(tuple(names))


def _range(name: str, ends: Sequence[Any]) -> Number:
    try:
        low, high = (_as_number(end) for end in ends)
        fine = low < high and math.isfinite(high - low)
    except (TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise InputError(f"context column {name!r} must have a range (low, high) with low < high, got {shown(ends)}")
    return Number(low, high)


_WORDS = {"number": float, "boolean": bool}


def _from_spec(name: str, spec: Any) -> Any:
    if isinstance(spec, str) and spec in _WORDS:
        return _WORDS[spec]
    if isinstance(spec, Mapping) and len(spec) == 1:
        ((word, value),) = spec.items()
        if word == "cyclic":
            return cyclic(value)
        if word == "vector":
            return value
        if word == "optional":
            return optional(_from_spec(name, value))
    if isinstance(spec, list):
        return spec
    raise InputError(
        f'context column {name!r} must be [low, high], "number", "boolean", a list of names, {{"cyclic": period}}, '
        f'{{"vector": size}} or {{"optional": ...}}, got {shown(spec)}'
    )


def rows_of(contexts: Any) -> Sequence[Any]:
    """One context per row, from whatever table."""
    if hasattr(contexts, "to_dicts"):  # polars
        return cast(Sequence[Any], contexts.to_dicts())
    if hasattr(contexts, "to_dict") and hasattr(contexts, "columns"):  # pandas
        return cast(Sequence[Any], contexts.to_dict("records"))
    if isinstance(contexts, Mapping):
        columns = {name: list(column) for name, column in contexts.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"the columns of contexts must have one length, got {lengths}")
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if isinstance(contexts, (str, bytes)) or not hasattr(contexts, "__len__"):
        raise InputError(f"contexts must be a list of contexts, or a table with a column each, got {shown(contexts)}")
    return cast(Sequence[Any], contexts)


def standardised(codes: Floats, centre: Floats, scale: Floats) -> Floats:
    """Codes with the centre at 0 and deviations of about 1; beyond four deviations they count as four."""
    return np.asarray(np.clip((codes - centre) / scale, -4.0, 4.0))


def scale_of(codes: Floats, scaled: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Centre and scale of codes by those seen, (n, width): medians and quartiles; 0 and 1 for those that have one."""
    low, middle, high = np.quantile(codes, (0.25, 0.5, 0.75), axis=0)
    deviation = (high - low) / 1.349
    flat = deviation <= 1e-12 * np.maximum(np.abs(middle), 1.0)
    deviation = np.where(flat, codes.std(axis=0), deviation)
    deviation = np.where(deviation <= 1e-12 * np.maximum(np.abs(middle), 1.0), 1.0, deviation)
    return np.where(scaled, 0.0, middle), np.where(scaled, 1.0, deviation)


def places_of(parts: Sequence[tuple[str, slice]], width: int) -> Ints:
    """For every code the part it belongs to."""
    found = np.zeros(width, dtype=np.int64)
    for number, (_, place) in enumerate(parts):
        found[place] = number
    return found
