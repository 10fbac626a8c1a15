"""Room for the copy of a large state, made ready by another thread.

Memory that nobody has used is handed over by the system page by page, at the first touch: for 265 MB that takes up to a
second, and copying into it afterwards a thirtieth of that. Whoever exports a state while others wait has the room made
beforehand; without `lent` arrays are as NumPy makes them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from driftbandits.types import Floats

LARGE = 2**24  # bytes; smaller arrays are made at once
_BYTES = 8  # of a number
_borrowed = threading.local()


class NoRoom(Exception):  # noqa: N818  # no fault: it says what is to be made ready
    """The copy needs so many numbers, at least, to be made ready."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size:,} numbers")
        self.size = size


class Room:
    """Memory for large arrays, lent one after the other."""

    def __init__(self) -> None:
        self._block: npt.NDArray[np.float64] = np.empty(0)
        self._used = 0

    def make(self, size: int) -> None:
        """Make room for so many numbers, and touch all of it."""
        block = np.empty(size)
        block.fill(0.0)
        self._block = block

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let this thread's large copies be made here; NoRoom if there is too little. What was lent is given away."""
        self._used, _borrowed.room = 0, self
        try:
            yield
            self._block = np.empty(0)
        finally:
            _borrowed.room = None

    def take(self, shape: tuple[int, ...]) -> Floats:
        """The next so many numbers, all zero."""
        start, self._used = self._used, self._used + math.prod(shape)
        if self._used > len(self._block):
            raise NoRoom(self._used)
        return self._block[start : self._used].reshape(shape)


def zeros(shape: tuple[int, ...]) -> Floats:
    """An array for a copy, all zero."""
    room: Room | None = getattr(_borrowed, "room", None)
    return np.zeros(shape) if room is None or _BYTES * math.prod(shape) < LARGE else room.take(shape)
