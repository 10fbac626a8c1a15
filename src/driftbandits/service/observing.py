"""What the journal of an experiment says: counted by the database, again when that is worth its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from driftbandits.live import View
from driftbandits.live.replica import Counts
from driftbandits.service import health, series
from driftbandits.service.curve import CurvePoint, curve

SHARE = 0.05  # of the time may go into counting: a long journal is counted less often
GROWTH = 2  # times as much as was counted is counted at once: that costs no more than counting it all a second time


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment has come: decisions, those of them by a policy, and those that are closed."""

    decisions: int
    own: int
    closed: int

    @classmethod
    def of(cls, counts: Counts) -> Progress:
        """By what a replica has counted."""
        closed = counts.rewards + counts.expired + counts.forgotten
        return cls(counts.decisions, counts.decisions - counts.fallbacks, closed)

    def outgrows(self, earlier: Progress) -> bool:
        """Whether `earlier` shows too little of it; so a first reward always counts.

        >>> Progress(100, 100, 1).outgrows(Progress(100, 100, 0)), Progress(100, 100, 60).outgrows(Progress(90, 90, 50))
        (True, False)
        """
        return self.decisions > GROWTH * earlier.decisions or self.closed > GROWTH * earlier.closed


@dataclass(frozen=True, slots=True)
class Observed:
    """Ranges of the journal, reward over time, the newest rewards; how far the experiment was, and when that was.

    `at` is of `time.monotonic`.
    """

    series: series.Series
    curve: tuple[CurvePoint, ...]
    recent: health.Recent
    progress: Progress
    at: float

    @property
    def age(self) -> float:
        """Seconds since it was counted."""
        return time.monotonic() - self.at


class Observer:
    """Counts the journal of one experiment; from any thread."""

    def __init__(self, view: View, clock: Callable[[], int], progress: Callable[[], Progress]) -> None:
        self.view = view
        self._clock, self._progress = clock, progress
        self._lock = threading.Lock()
        self._found: Observed | None = None
        self._again_at = 0.0

    def get(self) -> Observed:
        """What was counted, as new as `SHARE` allows and never outgrown.

        While somebody counts, others take what is known, if that will do.
        """
        known, too_little = self._found, self._shows_too_little()
        if known is not None and not too_little and time.monotonic() < self._again_at:
            return known
        if not self._lock.acquire(blocking=known is None or too_little):
            return known  # type: ignore[return-value]  # it is known: otherwise one waits
        try:
            if self._shows_too_little() or time.monotonic() >= self._again_at:
                self._count()
            return self._found  # type: ignore[return-value]  # counted just now
        finally:
            self._lock.release()

    def _shows_too_little(self) -> bool:
        return self._found is None or self._progress().outgrows(self._found.progress)

    def _count(self) -> None:
        begun, progress = time.monotonic(), self._progress()
        with self.view.journal() as journal:
            newest = health.recent(self.view, journal, self._clock())
            counted = series.count(self.view, journal)
        rewards = curve(counted, self.view.definition.reward_range)
        self._found = Observed(counted, rewards, newest, progress, begun)
        self._again_at = begun + (time.monotonic() - begun) / SHARE
