"""A table as the page shows it: plain records, which the template writes as HTML."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One place of a table: its text, the smaller text below it, and the marks (CSS classes) it has."""

    text: str
    small: str = ""
    marks: str = ""


@dataclass(frozen=True)
class Column:
    """A column: its head, and whether it holds numbers, which stand to the right."""

    head: str
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """Columns, rows whose first entry names them, and a last row apart from the others if there is one."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Entry, ...], ...]
    foot: tuple[tuple[Entry, ...], ...] = ()


def columns(*heads: str) -> tuple[Column, ...]:
    """The first column in words, all others in numbers."""
    return tuple(Column(head, numeric=number > 0) for number, head in enumerate(heads))
