"""Parts of a log that are valued one by one: windows, stretches between changes found, segments of requests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits.checks import check_count
from driftbandits.errors import InputError
from driftbandits.logs.log import Log
from driftbandits.logs.movement import episodes, find_changes
from driftbandits.numeric import as_floats
from driftbandits.showing import counted, shown
from driftbandits.types import Bools


@dataclass(frozen=True)
class Piece:
    """Rows that belong together: which (n,), and what texts call them."""

    label: str
    rows: Bools


@dataclass(frozen=True)
class Pieces:
    """All of them, and what must be known to read their intervals."""

    pieces: tuple[Piece, ...]
    note: str = ""


def pieces_of(log: Log, by: Any) -> Pieces:
    """The parts that `by` names: a number of windows, ends of windows, "changes" or "segment"."""
    if by is None:
        return Pieces(())
    if isinstance(by, str):
        if by == "segment":
            return _segments(log)
        if by == "changes":
            return _stretches(log)
        raise InputError(f"by must be a number of windows, their ends, 'changes' or 'segment', got {shown(by)}")
    if np.ndim(by) == 0:
        number = check_count("by", by, cure="it is the number of windows")
        if number > len(log):
            raise InputError(f"by={number} windows are more than {counted(len(log), 'row')}; take fewer")
        ends = np.arange(1, number) * len(log) // number
        return Pieces(_between(log, ends.tolist()))
    return Pieces(_between(log, _places(log, by)))


def _places(log: Log, ends: Any) -> list[int]:
    """Rows at which windows end, from ends in rounds or times."""
    try:
        given = as_floats(ends)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"by must be a number of windows, their ends, 'changes' or 'segment', got {shown(ends)}"
        ) from None
    if given.ndim != 1 or not (np.diff(given) > 0).all():
        raise InputError(f"the ends of windows must rise, got {shown(ends)}")
    return [int(place) for place in np.unique(np.searchsorted(log.clock, given)) if 0 < place < len(log)]


def _between(log: Log, ends: Sequence[int]) -> tuple[Piece, ...]:
    bounds = [0, *ends, len(log)]
    rows = np.arange(len(log))
    return tuple(
        Piece(_span(log, first, last), (rows >= first) & (rows < last)) for first, last in itertools.pairwise(bounds)
    )


def _span(log: Log, first: int, last: int) -> str:
    if log.time is None:
        return f"rounds {log.round[first]} to {log.round[last - 1]}"
    return f"times {log.time[first]:.10g} to {log.time[last - 1]:.10g}"


def _segments(log: Log) -> Pieces:
    if log.segment is None:
        raise InputError("by='segment' needs a column 'segment' in the log")
    return Pieces(tuple(Piece(name, log.segment == k) for k, name in enumerate(log.segment_names)))


def _stretches(log: Log) -> Pieces:
    """Changes are looked for in every other row and valued on the rest: rows that chose the ends would flatter them."""
    searched = np.zeros(len(log), dtype=bool)
    searched[::2] = True
    half = log.take(searched)
    places = sorted({2 * episode.row for episode in episodes(find_changes(half), len(half))})
    pieces = tuple(
        Piece(piece.label, piece.rows & ~searched)
        for piece in _between(log, [place for place in places if 0 < place < len(log)])
        if (piece.rows & ~searched).any()
    )
    return Pieces(pieces, "changes were searched for in every other row; intervals use the rest")
