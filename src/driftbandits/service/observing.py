"""What the journal of an experiment says: counted by the database, again when that is worth its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from driftbandits.live import View
from driftbandits.service import health, series

SHARE = 0.05  # of the time may go into counting: a long journal is counted less often


@dataclass(frozen=True, slots=True)
class Observed:
    """Reward over time, and the newest rewards."""

    series: series.Series
    recent: health.Recent


class Observer:
    """Counts the journal of one experiment; from any thread."""

    def __init__(self, view: View, clock: Callable[[], int]) -> None:
        self.view = view
        self._clock = clock
        self._lock = threading.Lock()
        self._found: Observed | None = None
        self._again_at = 0.0

    def get(self) -> Observed:
        """What was counted, as new as `SHARE` allows; while somebody counts, others take what is known."""
        known = self._found
        if known is not None and time.monotonic() < self._again_at:
            return known
        if not self._lock.acquire(blocking=known is None):
            return known  # type: ignore[return-value]  # it is known: otherwise one waits
        try:
            if self._found is None or time.monotonic() >= self._again_at:
                self._count()
            return self._found  # type: ignore[return-value]  # counted just now
        finally:
            self._lock.release()

    def _count(self) -> None:
        begun = time.monotonic()
        with self.view.journal() as journal:
            newest = health.recent(self.view, journal, self._clock())
            self._found = Observed(series.count(self.view, journal), newest)
        self._again_at = begun + (time.monotonic() - begun) / SHARE
