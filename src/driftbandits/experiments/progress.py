"""How far a run is, on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_SHARE = 0.1  # a line each tenth of the way,
LINE_SECONDS = 30.0  # and no longer apart than this while cells finish


@contextmanager
def progress_bar(total: int, label: str) -> Iterator[Callable[..., None]]:
    """Shows how much of `total` is done; what it gives is called with how much more is, by default 1.

    >>> with progress_bar(3, "cells") as advance:
    ...     advance(2)
    ...     advance()
    """
    show = _bar if sys.stderr.isatty() else _lines
    with show(total, label) as advance:
        yield advance


@contextmanager
def _bar(total: int, label: str) -> Iterator[Callable[..., None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda n=1: bar.advance(task, n)


@contextmanager
def _lines(total: int, label: str) -> Iterator[Callable[..., None]]:
    begun = said = time.monotonic()
    done = done_then = 0
    first: tuple[float, int] | None = None  # the pace counts from here: what was finished before the run took no time

    def advance(n: int = 1) -> None:
        nonlocal done, done_then, said, first
        done += n
        now = time.monotonic()
        first = first or (now, done)
        if done >= total or done - done_then >= LINE_SHARE * total or now - said >= LINE_SECONDS:
            done_then, said = done, now
            pace = (now - first[0]) / (done - first[1]) if done > first[1] else None
            left = "" if pace is None else f", about {_clock(pace * (total - done))} left"
            print(f"{label}: {done}/{total}, {_clock(now - begun)} elapsed{left}", file=sys.stderr, flush=True)

    yield advance


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
