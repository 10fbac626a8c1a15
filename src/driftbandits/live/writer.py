"""The single writer of an experiment: one thread that serves all waiting requests in one transaction.

It takes what waits (at most 256 requests), lets the policy decide and learn in order, writes the events, commits, and
only then answers. While a commit lasts others queue up, so that the disk's time is shared by all of them. If a commit
fails nobody knows whether it was stored: the policy is rebuilt from the journal, and the callers are told to send the
request again with the same key, which settles it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from driftbandits.errors import ConflictError, DriftbanditsError, LiveError, NotStoredError
from driftbandits.live.definition import Definition
from driftbandits.live.journal import Journal
from driftbandits.live.leases import Link
from driftbandits.live.recovery import SECONDS, Recovery, load_snapshot, recover, snapshot_of
from driftbandits.live.replica import Replica
from driftbandits.live.requests import GuardedClock, Handlers, Request, clock
from driftbandits.state import archive
from driftbandits.state.room import NoRoom, Room
from driftbandits.text import first_line, shown

log = logging.getLogger("driftbandits.live")
MOST_TOGETHER = 256  # requests in one transaction
MOST_WAITING = 10_000  # requests; beyond, callers are refused rather than kept waiting
LONGEST_WAIT = 60.0  # seconds without reading the clock
REST = 1.0  # seconds after a transaction that failed, for what nobody waits for: a full disk stays full for a while
EXPIRY_SECONDS = 0.03  # of closing what ran out of patience in one transaction, where a backlog is long
EXPIRY_BESIDE_SECONDS = 0.02  # the same in a transaction that serves requests
EXPIRY_REST = 0.03  # seconds between two such transactions, for the other experiments of the database
SNAPSHOT_SHARE = 0.2  # of the processor's time, at most, where a snapshot is large
MOST_RECOVERIES = 3  # of a policy that stops, before the fallback is left to decide
UNKNOWN = "not known whether it was stored; send it again with the same key"
_BEHIND = 1_000_000  # microseconds by which the clock may be behind the journal without a word


@dataclass(frozen=True, slots=True)
class Batch:
    """A transaction that is on disk: its requests, seconds of policy and commit, and the replica after it."""

    requests: int
    step_seconds: float
    commit_seconds: float
    replica: Replica


class Writer:
    """Serves requests to one experiment until it is closed."""

    def __init__(
        self,
        link: Link,
        token: str,
        definition: Definition,
        *,
        now: Callable[[], int] = clock,
    ) -> None:
        self._link = link
        self._token, self._definition = token, definition
        self._now = now
        self.name = name = link.name
        self._waiting: deque[Request] = deque()
        self._keys: set[str] = set()  # of requests that wait or are being served
        self._wake = threading.Condition()
        self.closing = False
        self._process = os.getpid()
        self._holds = False  # the lease
        self._handlers: Handlers | None = None
        self.recovery: Recovery | None = None
        self.clock_behind = 0.0  # seconds, the most seen
        self.largest_batch = self.commits = 0
        self.commit_seconds = 0.0
        self.failure: tuple[float, str] | None = None  # of the last transaction: when by the monotonic clock, and why
        self.on_batch: Callable[[Batch], None] | None = None
        self._recoveries = 0
        self._rested_at = 0.0  # until then nothing is closed for its age unless somebody writes anyway
        self._snapshooter = ThreadPoolExecutor(1, thread_name_prefix=f"snapshots of {name}")
        self._snapshot: Future[None] | None = None
        self._snapshot_seconds = 0.0  # of processor for the last one
        self._room = Room()  # for the next one, where it is large
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=f"writer of {name}", daemon=True)

    @property
    def clock_ahead(self) -> int:
        """Microseconds by which the clock has jumped ahead."""
        return self._now.ahead if isinstance(self._now, GuardedClock) else 0

    # --- for callers --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start serving, once the experiment is recovered; what prevents that is raised here."""
        self._thread.start()
        self._ready.result()

    def submit(self, request: Request) -> Future[Any]:
        """Queue a request; its answer comes when it is on disk."""
        if os.getpid() != self._process:
            raise LiveError("this experiment was opened in another process, before a fork; open it in this one")
        with self._wake:
            if self.closing:
                raise LiveError(f"experiment {self.name!r} was closed; open it again")
            if len(self._waiting) >= MOST_WAITING:
                raise LiveError(f"{MOST_WAITING:,} requests wait already; try again in a while")
            key = request.stored_key
            if key is not None:
                if key in self._keys:
                    raise ConflictError(f"a request with the key {shown(request.key)} is being served; wait for it")
                self._keys.add(key)
            self._waiting.append(request)
            self._wake.notify()
        return request.future

    def close(self) -> None:
        """Serve waiting requests, write a snapshot and stop."""
        with self._wake:
            self.closing = True
            self._wake.notify()
        if self._process == os.getpid():
            self._thread.join()
            self._snapshooter.shutdown()

    # --- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._recover()
        except BaseException as error:  # noqa: BLE001  # whoever called start is told
            self._release()
            self._ready.set_exception(error)
            return
        self._ready.set_result(None)
        closing = False
        while not closing:
            requests, closing = self._collect()
            try:
                if requests or self._is_due():
                    self._serve(requests)
            except Exception as error:  # a fault of ours; nobody is left waiting
                log.exception("serving experiment %s failed", self.name)
                self._start_over([request for request in requests if not request.future.done()], error)
        self._finish()

    def _collect(self) -> tuple[list[Request], bool]:
        """Requests to be served together; none if time runs out for an open decision, or at the end."""
        with self._wake:
            if not self._waiting and not self.closing:
                self._wake.wait(self._seconds_left())
            requests = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_TOGETHER))]
            return requests, self.closing and not requests

    def _seconds_left(self) -> float:
        due = None if self._handlers is None else self._handlers.replica.first_due()
        if due is None:
            return LONGEST_WAIT
        left = max((due - self._now()) / 1e6, self._rested_at - time.monotonic(), 0.0)
        return min(left + 0.001, LONGEST_WAIT)

    def _is_due(self) -> bool:
        due = None if self._handlers is None else self._handlers.replica.first_due()
        return due is not None and due <= self._now() and time.monotonic() >= self._rested_at

    def _serve(self, requests: list[Request]) -> None:
        inspections = [request for request in requests if request.kind == "inspect"]
        writes = [request for request in requests if request.kind != "inspect"]
        try:
            if self._handlers is None:
                self._recover()
        except Exception as error:  # noqa: BLE001  # the database is away: said to all that wait
            self._note_failure(error)
            self._refuse(requests, error)
            return
        wrong = self._write(writes) if writes or self._is_due() or not self._link.is_sure else None
        if wrong is not None and self._handlers is None:
            self._refuse(inspections, wrong)
            return
        if not inspections or self._catches_up():
            for request in inspections:
                self._inspect(request)
        else:
            with self._wake:
                self._waiting.extendleft(reversed(inspections))
        self._after()

    def _write(self, requests: list[Request]) -> Exception | None:
        """Serve requests in one transaction; if it fails, why. Without requests it says whether another one decides."""
        handlers = self._handlers
        if handlers is None:
            missing = LiveError("the experiment is not there")
            self._refuse(requests, missing)
            return missing
        try:
            self._link.check()
        except LiveError as error:
            self._note_failure(error)
            self._rested_at = time.monotonic() + REST
            self._refuse(requests, error)
            return error
        self._note_clock(handlers.replica)
        outcomes: list[tuple[Request, Any, Exception | None]] = []
        try:
            with self._link.transaction() as connection:
                handlers.journal.connection = connection
                asked = time.perf_counter()
                handlers.expire(EXPIRY_BESIDE_SECONDS if requests else EXPIRY_SECONDS)
                for request in requests:
                    outcomes.append(_outcome(handlers, request))
                handlers.journal.flush()
                begun = time.perf_counter()
            ended = time.perf_counter()
            self.commit_seconds += ended - begun
            self.commits += 1
            self.failure = None
        except Exception as error:  # noqa: BLE001  # of the database, or a fault of ours: nothing is known
            self._start_over(requests, error)
            return error
        self._rested_at = time.monotonic() + EXPIRY_REST
        self.largest_batch = max(self.largest_batch, len(requests))
        for request, answer, wrong in outcomes:
            self._answer(request, answer, wrong)
        if self.on_batch is not None:
            self.on_batch(Batch(len(requests), begun - asked, ended - begun, handlers.replica))
        return None

    def _note_failure(self, error: Exception) -> None:
        self.failure = time.monotonic(), first_line(error)
        log.error("a transaction of experiment %s failed: %s", self.name, first_line(error))

    def _start_over(self, requests: list[Request], error: Exception) -> None:
        """The policy may have learned what is not in the journal: recover it from there."""
        self._note_failure(error)
        self._handlers = None
        self._rested_at = time.monotonic() + REST
        self._holds = False  # what this server may still be writing has ended once the lease is taken again
        try:
            self._recover()
        except Exception as again:  # noqa: BLE001  # tried again with the next request
            log.error("experiment %s could not be brought back: %s", self.name, first_line(again))
        self._refuse(requests, error)

    def _refuse(self, requests: list[Request], error: Exception) -> None:
        for request in requests:
            known = "try again in a while" if request.kind == "inspect" else UNKNOWN
            refusal = NotStoredError(f"{known}. The database says: {first_line(error)}")
            refusal.__cause__ = error
            self._answer(request, None, refusal)

    def _answer(self, request: Request, answer: Any, wrong: Exception | None) -> None:
        key = request.stored_key
        if key is not None:
            with self._wake:
                self._keys.discard(key)
        if not request.future.set_running_or_notify_cancel():
            return
        if wrong is None:
            request.future.set_result(answer)
        else:
            request.future.set_exception(wrong)

    def _catches_up(self) -> bool:
        """Let the policy do what it has put off, before its state is read; False once a request for more waits."""
        catch_up = None if self._handlers is None else getattr(self._handlers.replica.policy, "catch_up", None)
        while catch_up is not None and catch_up():
            with self._wake:
                if any(request.kind != "inspect" for request in self._waiting):
                    return False
        return True

    def _inspect(self, request: Request) -> None:
        """Run a read-only function on a state that is on disk."""
        try:
            if self._handlers is None:
                raise NotStoredError("the database is away; try again in a while")
            self._answer(request, request.values["inspect"](self, self._handlers.replica), None)
        except Exception as error:  # noqa: BLE001  # said to whoever asked
            self._answer(request, None, error)

    # --- beside serving -----------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Recover the experiment; the previous holder of the lease has ended, and so have its writes."""
        if not self._holds:
            self._link.take()
            self._holds = True
        with self._link.reading() as journal:
            self.recovery = recover(journal, self._definition)
            written = Journal(journal.connection, self._link.experiment, self._token)
        self._handlers = Handlers(self.recovery.replica, written, self._now)

    def _release(self) -> None:
        if self._holds:
            self._link.release()
            self._holds = False

    def _note_clock(self, replica: Replica) -> None:
        behind = replica.time - self._now()
        if behind > _BEHIND and self.clock_behind == 0.0:
            log.warning(
                "the clock is %.0f s behind the newest event of %s: was it set back? Events keep the newest time, and "
                "patience does not advance, until it has caught up",
                behind / 1e6,
                self.name,
            )
        self.clock_behind = max(self.clock_behind, behind / 1e6) if behind > _BEHIND else self.clock_behind

    def _after(self) -> None:
        """Recover a stopped policy, if that helps; write a snapshot, if one is due."""
        handlers = self._handlers
        if handlers is None:
            return
        replica = handlers.replica
        if replica.trouble and replica.policy is None and self._recoveries < MOST_RECOVERIES:
            self._recoveries += 1
            self._recover()
            return
        due = max(SECONDS, self._snapshot_seconds * (1.0 / SNAPSHOT_SHARE - 1.0))
        if replica.cost > due and (self._snapshot is None or self._snapshot.done()) and self._catches_up():
            try:
                with self._room.lent():
                    self.snapshot(replica)
            except NoRoom as missing:  # once there is, after another request
                self._snapshot = self._snapshooter.submit(self._make_room, missing.size)

    def snapshot(self, replica: Replica) -> Future[None]:
        """Write a snapshot in a thread of its own; only its content is collected here."""
        begun = time.thread_time()
        state = snapshot_of(replica)
        replica.cost = 0.0
        self._snapshot = self._snapshooter.submit(self._store, state, time.thread_time() - begun)
        return self._snapshot

    def _make_room(self, size: int) -> None:
        try:
            self._room.make(size)
        except MemoryError as error:
            log.error("no snapshot of %s: %s", self.name, first_line(error))

    def _store(self, state: dict[str, Any], seconds: float) -> None:
        begun = time.thread_time()
        try:
            content = archive.pack(state)
            load_snapshot(content, self._definition)  # one that does not load is not kept
            with self._link.transaction() as connection:
                journal = Journal(connection, self._link.experiment, self._token)
                journal.keep_snapshot(state["seq"], state["time"], content)
        except Exception as error:  # noqa: BLE001  # the journal is whole without it
            log.error("no snapshot of %s after event %d: %s", self.name, state["seq"], first_line(error))
        self._snapshot_seconds = seconds + time.thread_time() - begun

    def _finish(self) -> None:
        handlers = self._handlers
        if handlers is not None:
            last = self._snapshot
            if last is not None:
                last.result()
            if handlers.replica.cost > 0.01 * SECONDS:
                self.snapshot(handlers.replica)
                self._snapshooter.shutdown()
        self._release()


def _outcome(handlers: Handlers, request: Request) -> tuple[Request, Any, Exception | None]:
    """An answer or an error by the caller; database errors and internal faults end the transaction."""
    try:
        return request, handlers.serve(request), None
    except DriftbanditsError as error:
        return request, None, error
