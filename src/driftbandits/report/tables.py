"""A table as the page shows it: plain records, which the template writes as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driftbandits.report.formats import NOTHING, with_error

LETTERS_ON_A_PHONE, LETTERS_BETWEEN_COLUMNS = 48, 3


@dataclass(frozen=True)
class TableEntry:
    """One place of a table: its text, the smaller text below it, and the marks (CSS classes) it has."""

    text: str
    small: str = ""
    marks: str = ""


@dataclass(frozen=True)
class TableColumn:
    """A column: its head, and whether it holds numbers, which stand to the right."""

    head: str
    numeric: bool = True


@dataclass(frozen=True)
class ReportTable:
    """Columns, rows whose first entry names them, and a last row apart from the others if there is one."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableEntry, ...], ...]
    foot: tuple[tuple[TableEntry, ...], ...] = ()

    @property
    def wide(self) -> bool:
        """Whether it is wider than a phone, so that a reader has to be told that it scrolls."""
        across = zip(*self.rows, *self.foot, strict=True)
        letters = [max(len(entry.text) for entry in entries) + LETTERS_BETWEEN_COLUMNS for entries in across]
        return sum(letters) > LETTERS_ON_A_PHONE


def columns(*heads: str) -> tuple[TableColumn, ...]:
    """The first column in words, all others in numbers."""
    return tuple(TableColumn(head, numeric=number > 0) for number, head in enumerate(heads))


def regret_entry(row: Mapping[Any, Any] | None) -> TableEntry:
    """Mean regret with its standard error; a dash where nothing was played.

    >>> regret_entry({"regret": 3721.4, "standard_error": 155.6}).text, regret_entry(None).text
    ('3,721 ± 156', '–')
    """
    return TableEntry(NOTHING if row is None else with_error(row["regret"], row["standard_error"]))
