"""The records that the chapters of a page are made of."""

from __future__ import annotations

from dataclasses import dataclass

from driftbandits.report.pictures import Picture
from driftbandits.report.tables import ReportTable


@dataclass(frozen=True)
class Block:
    """A part of a section with a heading of its own: notes, a figure, tables; in that order, each if there is one.

    Tables are folded, for a reader looks at figures first; not if they are `unfolded`, because they are the figure.
    """

    id: str
    title: str
    notes: tuple[str, ...] = ()
    picture: Picture | None = None
    tables: tuple[ReportTable, ...] = ()
    unfolded: bool = False


@dataclass(frozen=True)
class Section:
    """A chapter of the page."""

    id: str
    title: str
    lead: str
    blocks: tuple[Block, ...]
