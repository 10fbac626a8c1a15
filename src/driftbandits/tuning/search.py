"""Plays searches, together with any other processes that share their storage; the answer is the same as alone.

How many processes and machines share a search:

 * The regret of a cell is a function of the cell. Which points continue is a function of all regrets of a rung
   (`study`). So nothing but time depends on who plays what, and a cell that is played twice does no harm.
 * To play little twice, a process claims points before it plays them: their trials go from WAITING to RUNNING, which
   the storage lets one process do.
 * While it plays, it marks its claims every few seconds. A claim whose mark has not changed for GRACE_SECONDS, by the
   clock of the process that checks, belongs to one that died, and is released. No clocks are compared.
 * Regrets are recorded after every few cells, so a worker that takes over a point plays only what is missing.
 * A process with nothing to claim in a search, because others hold the rest of its rung, moves to the next search.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from driftbandits._util.progress import progress_bar
from driftbandits.errors import InputError
from driftbandits.experiments.engines import Engine
from driftbandits.experiments.runner import RunError, run_cells
from driftbandits.tuning.study import (
    BestSettings,
    Ledger,
    Search,
    Slot,
    Standing,
    StudyEntry,
    Tuned,
    opened,
    without_password,
)

MARK_SECONDS = 3.0
GRACE_SECONDS = 20.0
POLL_SECONDS = 0.5  # between polls of what other workers do
# Claimed and recorded at once: few, so that little is lost, and enough to keep all jobs busy.
CELLS_PER_JOB = 4
CELLS_ON_CLUSTER = 64  # whose size is not known here
Claimed = list[tuple[StudyEntry, tuple[Slot, ...]]]  # points, and what each has yet to play in this rung


@dataclass(frozen=True)
class SearchOutcome:
    """What the searches found, in their order, and how many cells this process played."""

    best: tuple[BestSettings, ...]
    played: int


def run_searches(
    searches: Sequence[Search],
    *,
    storage: str,
    engine: Engine,
    progress: Callable[[int], None] | None = None,
    keep: Callable[[BestSettings], None] | None = None,
) -> SearchOutcome:
    """Search all, going on from what the storage at this URL holds.

    `progress` is called with the number of cells newly known to be played, by anybody; `keep` with every result as soon
    as it is there. Raises StorageError if the storage cannot be reached, and RunError if a cell fails.
    """
    found: dict[str, BestSettings] = {}
    with opened(storage) as opened_storage, engine.started():
        worker = _Worker(engine, progress)
        ledgers: dict[str, Ledger] = {}
        while waiting := [search for search in searches if search.name not in found]:
            before = len(found), worker.played
            for search in waiting:
                if search.name not in ledgers:
                    ledgers[search.name] = Ledger(search, opened_storage)
                result = worker.advance(ledgers[search.name])
                if result is not None:
                    found[search.name] = result
                    if keep is not None:
                        keep(result)
            if before == (len(found), worker.played):
                time.sleep(POLL_SECONDS)
    return SearchOutcome(tuple(found[search.name] for search in searches), worker.played)


class _Worker:
    """One process of a search: plays what it can claim."""

    def __init__(self, engine: Engine, progress: Callable[[int], None] | None) -> None:
        self.played = 0
        self._engine = engine
        self._progress = progress
        self._known: dict[str, int] = {}  # cells recorded in a study when last seen
        name = f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"
        self._marks = (f"{name} {count}" for count in itertools.count())  # never the same twice
        self._seen: dict[tuple[str, int], tuple[str, float]] = {}  # marks of others, and since when

    def advance(self, ledger: Ledger) -> BestSettings | None:
        """Play until the search is finished, or until others hold all that is left of a rung (then None)."""
        while True:
            entries = ledger.read()
            now = ledger.search.standing([entry.regrets for entry in entries])
            ledger.settle(entries, now)
            self._report(ledger, entries)
            if now.finished:
                return ledger.best_settings(entries, now)
            claimed = self._claim(ledger, entries, now)
            if not claimed:
                return None
            mine = [entry for entry, _ in claimed]
            try:
                with self._marking(ledger, mine):
                    self._play(ledger, claimed)
            finally:
                ledger.release(mine)

    def _claim(self, ledger: Ledger, entries: Sequence[StudyEntry], now: Standing) -> Claimed:
        """Claim points of this rung, as many as keep the engine busy for a while."""
        from optuna.trial import TrialState

        claimed: Claimed = []
        for point, left in now.missing.items():
            if sum(len(slots) for _, slots in claimed) >= self._width:
                break
            entry = entries[point]
            if entry.state == TrialState.RUNNING:
                if not self._is_dead(ledger, entry):
                    continue
                ledger.release([entry])
            if ledger.claim(entry, next(self._marks)):
                claimed.append((entry, left))
        return claimed

    def _is_dead(self, ledger: Ledger, entry: StudyEntry) -> bool:
        """Whether a claim's mark has not changed for so long that its holder must be dead."""
        key = (ledger.search.study_name, entry.point)
        mark, since = self._seen.get(key, (None, 0.0))
        if mark != entry.claim:
            self._seen[key] = (entry.claim, time.monotonic())
            return False
        return time.monotonic() - since > GRACE_SECONDS

    def _play(self, ledger: Ledger, claimed: Claimed) -> None:
        held = ledger.read()  # others may have played a point between our first look and our claim
        cells = [(entry, slot) for entry, left in claimed for slot in left if slot not in held[entry.point].regrets]
        for start in range(0, len(cells), self._width):
            part = cells[start : start + self._width]
            with _saying_what_is_kept():
                results = run_cells([ledger.search.cell(e.point, slot) for e, slot in part], engine=self._engine)
            for (entry, slot), result in zip(part, results, strict=True):
                ledger.record(entry, slot, float(result.regret[-1]))
            self.played += len(part)

    @contextlib.contextmanager
    def _marking(self, ledger: Ledger, entries: Sequence[StudyEntry]) -> Iterator[None]:
        """Mark the claims now and then, in a thread beside the play."""
        from optuna.exceptions import StorageInternalError

        done = threading.Event()

        def mark() -> None:
            while not done.wait(MARK_SECONDS):
                with contextlib.suppress(StorageInternalError):  # a lost storage shows when a regret is recorded
                    for entry in entries:
                        ledger.mark(entry, next(self._marks))

        thread = threading.Thread(target=mark, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _report(self, ledger: Ledger, entries: Sequence[StudyEntry]) -> None:
        recorded = sum(len(entry.regrets) for entry in entries)
        new = recorded - self._known.get(ledger.search.name, 0)
        self._known[ledger.search.name] = recorded
        if self._progress is not None and new:
            self._progress(new)

    @property
    def _width(self) -> int:
        return CELLS_ON_CLUSTER if self._engine.address is not None else CELLS_PER_JOB * self._engine.local_jobs


@contextlib.contextmanager
def _saying_what_is_kept() -> Iterator[None]:
    """The runner ends its errors with what is safe in its store; here another one keeps it."""
    try:
        yield
    except RunError as error:
        error.args = (f"{error.reason}; what was recorded before is kept, and the same command goes on",)
        raise


def launch(
    searches: Sequence[Search],
    *,
    path: Path,
    storage: str | None,
    engine: Engine,
    show: bool,
    keep: Callable[[BestSettings], None] | None = None,
) -> Tuned:
    """Run searches whose results go to `path`, with studies beside it unless `storage` says where."""
    begun = time.monotonic()
    make_folder(path.parent)
    url = storage or f"sqlite:///{path.parent / 'tuning.db'}"
    cells = sum(search.cells for search in searches)
    with progress_bar(cells, "cells", show=show) as advance:
        outcome = run_searches(searches, storage=url, engine=engine, progress=advance, keep=keep)
    return Tuned(outcome.best, path, without_password(url), cells, outcome.played, time.monotonic() - begun)


def make_folder(folder: Path) -> None:
    """Make the folder of the results, if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from error
