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


class Pace:
    """What a unit of cost takes, by all that was done so far; several bars may share one.

    >>> pace = Pace()
    >>> pace.add(seconds=10.0, cost=4.0)
    >>> pace.seconds_for(2.0)
    5.0
    """

    def __init__(self) -> None:
        self._seconds = self._cost = 0.0

    def add(self, seconds: float, cost: float) -> None:
        """So much was done in this time."""
        self._seconds += seconds
        self._cost += cost

    def seconds_for(self, cost: float) -> float | None:
        """What so much will take; None while nothing is known."""
        return self._seconds / self._cost * cost if self._cost > 0.0 else None


class _Course:
    """How far a bar is, and the time left."""

    def __init__(self, total: int, cost: float | None, pace: Pace | None, after: float) -> None:
        self.total = total
        self.done = 0
        self.begun = time.monotonic()
        self.now = self.begun
        self.cost = float(total if cost is None else cost)
        self.finished = 0.0
        self._pace = Pace() if pace is None else pace
        self._counts = pace is not None  # else not the first report: what was finished before the run took no time
        self._after = after

    def add(self, n: int, cost: float | None) -> None:
        before, self.now = self.now, time.monotonic()
        own = float(n if cost is None else cost)
        if self._counts:
            self._pace.add(self.now - before, own)
        self._counts = True
        self.done += n
        self.finished += own

    @property
    def share(self) -> float:
        if self.done >= self.total:
            return 1.0
        return min(self.finished / self.cost if self.cost > 0.0 else self.done / self.total, 1.0)

    @property
    def left(self) -> str:
        """Words for the time left, empty while nothing is known."""
        rest = max(self.cost - self.finished, 0.0)
        here, everything = (self._pace.seconds_for(cost) for cost in (rest, rest + self._after))
        if here is None or everything is None:
            return ""
        return f"about {_clock(here)} left" + (f", {_clock(everything)} with what follows" if self._after else "")


@contextmanager
def progress_bar(
    total: int,
    label: str,
    *,
    cost: float | None = None,
    show: bool = True,
    pace: Pace | None = None,
    after: float = 0.0,
) -> Iterator[Advance]:
    """Shows how many of `total` are done; what it gives is called with how many more are, by default 1.

    Where things take different times, `cost` is the sum of what `advance` will be given for each. What the first call
    tells of counts as done before, in no time; not so with a `pace` of former bars: then what was done before is told
    with a cost of 0. `after` is the cost of what follows this bar. `show=False` shows nothing.

    >>> with progress_bar(3, "cells") as advance:
    ...     advance(2)
    ...     advance()
    """
    course = _Course(total, cost, pace, after)
    shape = _nothing if not show else _bar if sys.stderr.isatty() else _lines
    with shape(course, label) as draw:

        def advance(n: int = 1, cost: float | None = None) -> None:
            course.add(n, cost)
            draw()

        yield advance


@contextmanager
def _nothing(_course: _Course, _label: str) -> Iterator[Callable[[], None]]:
    yield lambda: None


@contextmanager
def _bar(course: _Course, label: str) -> Iterator[Callable[[], None]]:
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
        task = bar.add_task(label, total=1.0, count=f"0/{course.total}", left="")

        def show() -> None:
            bar.update(task, completed=course.share, count=f"{course.done}/{course.total}", left=course.left)

        yield show


@contextmanager
def _lines(course: _Course, label: str) -> Iterator[Callable[[], None]]:
    said, finished = course.begun, 0.0

    def show() -> None:
        nonlocal said, finished
        far = course.finished - finished >= SHARE_PER_LINE * course.cost
        if course.done >= course.total or far or course.now - said >= MOST_SECONDS_PER_LINE:
            said, finished = course.now, course.finished
            parts = (f"{course.done}/{course.total}", f"{_clock(course.now - course.begun)} elapsed", course.left)
            print(f"{label}: {', '.join(part for part in parts if part)}", file=sys.stderr, flush=True)

    yield show


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
