"""How far a run is, on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

SHARE_PER_LINE = 0.1
MOST_SECONDS_PER_LINE = 30.0  # while cells finish


class Advance(Protocol):
    """What moves the bar."""

    def __call__(self, n: int = 1, cost: float | None = None) -> None:
        """`n` more are done, which were `cost` of its cost."""


class _Pace:
    """Time left, by the cost of what was done since the first report: what was finished before the run took no time."""

    def __init__(self, total: int, cost: float | None) -> None:
        self.total = total
        self.done = 0
        self.begun = time.monotonic()
        self.now = self.begun
        self.cost = float(total if cost is None else cost)
        self.finished = 0.0
        self._first: tuple[float, float] | None = None

    def add(self, n: int, cost: float | None) -> None:
        self.done += n
        self.finished += n if cost is None else cost
        self.now = time.monotonic()
        self._first = self._first or (self.now, self.finished)

    @property
    def share(self) -> float:
        return 1.0 if self.done >= self.total else min(self.finished / self.cost, 1.0)

    @property
    def left(self) -> str:
        """Words for the time left, empty while nothing is known."""
        if self._first is None or self.finished <= self._first[1]:
            return ""
        pace = (self.now - self._first[0]) / (self.finished - self._first[1])
        return f"about {_clock(pace * max(self.cost - self.finished, 0.0))} left"


@contextmanager
def progress_bar(total: int, label: str, *, cost: float | None = None, show: bool = True) -> Iterator[Advance]:
    """Shows how many of `total` are done; what it gives is called with how many more are, by default 1.

    Where things take different times, `cost` is the sum of what `advance` will be given for each. `show=False` shows
    nothing.

    >>> with progress_bar(3, "cells") as advance:
    ...     advance(2)
    ...     advance()
    """
    pace = _Pace(total, cost)
    shape = _nothing if not show else _bar if sys.stderr.isatty() else _lines
    with shape(pace, label) as draw:

        def advance(n: int = 1, cost: float | None = None) -> None:
            pace.add(n, cost)
            draw()

        yield advance


@contextmanager
def _nothing(_pace: _Pace, _label: str) -> Iterator[Callable[[], None]]:
    yield lambda: None


@contextmanager
def _bar(pace: _Pace, label: str) -> Iterator[Callable[[], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(label, total=1.0, count=f"0/{pace.total}", left="")

        def show() -> None:
            bar.update(task, completed=pace.share, count=f"{pace.done}/{pace.total}", left=pace.left)

        yield show


@contextmanager
def _lines(pace: _Pace, label: str) -> Iterator[Callable[[], None]]:
    said, finished = pace.begun, 0.0

    def show() -> None:
        nonlocal said, finished
        far = pace.finished - finished >= SHARE_PER_LINE * pace.cost
        if pace.done >= pace.total or far or pace.now - said >= MOST_SECONDS_PER_LINE:
            said, finished = pace.now, pace.finished
            parts = (f"{pace.done}/{pace.total}", f"{_clock(pace.now - pace.begun)} elapsed", pace.left)
            print(f"{label}: {', '.join(part for part in parts if part)}", file=sys.stderr, flush=True)

    yield show


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
