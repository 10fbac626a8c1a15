"""From the writers' threads back to the event loop: answers of a whole transaction in one wake-up."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from typing import Any


class Waiting:
    """Futures of other threads, to be awaited in one event loop.

    `asyncio.wrap_future` wakes the loop once per answer, and a transaction has up to 256; and it hands cancellation on
    to the writer, which must not hear of it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._lock = threading.Lock()
        self._woken = False

    def wait(self, future: Future[Any]) -> asyncio.Future[Any]:
        """The same answer, for this loop."""
        waiter: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(lambda done: self._add(waiter, done))
        return waiter

    def _add(self, waiter: asyncio.Future[Any], done: Future[Any]) -> None:
        with self._lock:
            self._done.append((waiter, done))
            wake, self._woken = not self._woken, True
        if wake:
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        with self._lock:
            ready, self._done, self._woken = self._done, deque(), False
        for waiter, done in ready:
            if waiter.done():  # whoever asked has gone
                continue
            error = done.exception()
            if error is None:
                waiter.set_result(done.result())
            else:
                waiter.set_exception(error)
