"""One server: the experiments that it decides in, those that another one holds, and what all requests share.

On one Postgres every experiment is leased by one server. A request for an experiment that another server holds ends in
`Elsewhere`; `Forwarding` sends it on, one hop, and its answer back. If nobody listens there any more, the request was
certainly not served: the experiment is taken over and the request served here. If the connection broke later, or
another server took over while the answer was awaited, nobody knows: a request that reads, or has an idempotency key, is
sent again, and the caller of any other is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import Response

from driftbandits.arms.kernels import kernel_from_config
from driftbandits.errors import DriftbanditsError, InputError, JournalError, NotStoredError, OtherDeciderError
from driftbandits.live import Database, Experiment
from driftbandits.live import open as open_database
from driftbandits.live.requests import clock
from driftbandits.service.keys import FRESH_SECONDS, Caller, Gate, Keyring
from driftbandits.service.metrics import Metrics, Monitor
from driftbandits.service.problems import URN
from driftbandits.service.settings import Settings, is_loopback
from driftbandits.text import first_line, shown

log = logging.getLogger("driftbandits.service")
ADOPT_SECONDS = 1.0  # between two searches for experiments that nobody decides in
HOP = "driftbandits-hop"  # a request that has it was forwarded once, and is not forwarded again
TAKE_OVER_SECONDS = 10.0  # for which a free lease is waited for: that of a dead server is free within 3
_WATCH = 0.25  # seconds between two looks whether another server has taken over while an answer is awaited
_BETWEEN = 0.2  # seconds
FAILING_SECONDS = 30.0  # for which a failed transaction makes a server unready; then it is tried again
_SENT = ("content-type", "idempotency-key", "accept")
_RETURNED = ("content-type", "retry-after", "content-disposition")
Serve = Callable[[], Awaitable[Response]]


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
            if waiter.done():  # the caller has gone
                continue
            error = done.exception()
            if error is None:
                waiter.set_result(done.result())
            else:
                waiter.set_exception(error)


class Elsewhere(Exception):  # noqa: N818  # no error: the way to go
    """Another server decides in this experiment."""

    def __init__(self, name: str, address: str | None) -> None:
        super().__init__(name)
        self.name, self.address = name, address


class Host:
    """Experiments of one database, for one event loop."""

    def __init__(
        self, database: Database, *, opened: Callable[[Experiment], None], lost: Callable[[str], None]
    ) -> None:
        self.database = database
        self._opened = opened  # called in a thread, once per experiment that was opened
        self._lost = lost  # called with the name of one that another server decides in now
        self._here: dict[str, Experiment] = {}
        self._there: dict[str, str | None] = {}  # addresses of those who hold the others
        self._opening: dict[str, asyncio.Task[Experiment]] = {}
        self._failed: dict[str, str] = {}  # why those that cannot be opened cannot
        self._openers = ThreadPoolExecutor(4, thread_name_prefix="opening")  # a replay may last: readers do not wait
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="reading")
        self._waiting = Waiting(asyncio.get_running_loop())
        self._closing = False
        self.has_opened = False  # every experiment once, as far as it is not another server's or damaged

    @property
    def here(self) -> dict[str, Experiment]:
        """The experiments that are open here, by name."""
        return dict(self._here)

    def failing(self) -> str:
        """Why transactions fail here, if one did within the last half minute and none was committed since."""
        for name, experiment in self.here.items():
            failed = experiment.failure
            if failed is not None and failed[0] < FAILING_SECONDS:
                return f"a transaction of experiment {shown(name)} failed {failed[0]:.0f} s ago: {failed[1]}"
        return ""

    async def find(self, name: str) -> Experiment:
        """The experiment, open for deciding; Elsewhere if another server holds it."""
        found = self._here.get(name)
        if found is not None:
            return found
        if name in self._there:
            raise Elsewhere(name, self._there[name])
        return await self.open(name)

    def has_moved(self, name: str, address: str | None) -> bool:
        """Whether another server than the one at this address decides in an experiment now, as far as is known."""
        return name in self._here or self._there.get(name) != address

    async def open(self, name: str) -> Experiment:
        """Open an experiment, whatever its known state; concurrent callers wait for the same opening."""
        task = self._opening.get(name)
        if task is None:
            task = asyncio.ensure_future(self._open(name))
            self._opening[name] = task
            task.add_done_callback(lambda done: self._note_opening(name, done))
        return await asyncio.shield(task)

    def _note_opening(self, name: str, done: asyncio.Task[Experiment]) -> None:
        self._opening.pop(name, None)
        if not done.cancelled():
            done.exception()  # retrieved, even if the caller has gone

    async def _open(self, name: str) -> Experiment:
        if self._closing:
            raise OtherDeciderError("this server is stopping; try again")
        try:
            loop = asyncio.get_running_loop()
            experiment = await loop.run_in_executor(self._openers, self._open_now, name)
        except OtherDeciderError as error:
            if self._there.get(name, "") != error.address:
                log.info("experiment %s is decided by another server", name, extra={"address": error.address})
            self._there[name] = error.address
            raise Elsewhere(name, error.address) from error
        self._there.pop(name, None)
        self._here[name] = experiment
        return experiment

    def _open_now(self, name: str) -> Experiment:
        experiment = self.database.experiment(name)
        self._opened(experiment)
        return experiment

    async def ask(
        self,
        name: str,
        kind: str,
        values: dict[str, Any],
        key: str | None = None,
        *,
        most: int | None = None,
        owner: str = "",
    ) -> Any:
        """The answer to a request, once it is on disk."""
        experiment = self._here.get(name) or await self.find(name)
        try:
            return await self._waiting.wait(experiment.submit(kind, values, key, most=most, owner=owner))
        except NotStoredError as error:
            if isinstance(error.__cause__, OtherDeciderError):  # the lease was lost, and is another's now
                await self._lose(name, error.__cause__)
            raise

    async def inspect(self, name: str, inspect: Callable[[Any, Any], Any]) -> Any:
        """Read something of an experiment between two transactions, by `inspect(writer, replica)`."""
        return await self.ask(name, "inspect", {"inspect": inspect})

    async def _lose(self, name: str, error: OtherDeciderError) -> None:
        log.warning("experiment %s was taken over by another server", name, extra={"address": error.address})
        self._here.pop(name, None)
        self._there[name] = error.address
        self._lost(name)
        await self.in_thread(self.database.let_go, name)
        raise Elsewhere(name, error.address) from error

    async def in_thread(self, call: Callable[..., Any], *values: Any) -> Any:
        """Something that waits for the database, not in the loop's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, call, *values)

    async def adopt(self) -> None:
        """Open every experiment that nobody decides in, now and whenever one is free: open decisions must expire."""
        while not self._closing:
            try:
                names, there = await self.in_thread(self._look_round)
                self._there = {name: address for name, address in there.items() if name not in self._here}
                free = [name for name in names if name not in self._here and name not in there]
                await asyncio.gather(*map(self._adopt_one, free))  # a long replay of one holds up no other
                self.has_opened = True
            except Exception as error:  # noqa: BLE001  # the database is away: tried again
                log.warning("experiments could not be listed: %s", first_line(error))
            await asyncio.sleep(ADOPT_SECONDS)

    def _look_round(self) -> tuple[list[str], dict[str, str | None]]:
        return self.database.names(), self.database.elsewhere()

    async def _adopt_one(self, name: str) -> None:
        try:
            await self.open(name)
        except Elsewhere:
            pass
        except DriftbanditsError as error:
            if self._failed.get(name) != str(error) and not self._closing:  # said once, not every three seconds
                log.error("experiment %s could not be opened: %s", name, first_line(error))
            self._failed[name] = str(error)

    async def close(self) -> None:
        """Serve waiting requests, write snapshots and free leases, for all experiments at once."""
        self._closing = True
        names, self._here = list(self._here), {}
        with ThreadPoolExecutor(16, thread_name_prefix="closing") as threads:
            ends: list[Future[None]] = [threads.submit(self.database.let_go, name) for name in names]
            await asyncio.gather(*map(asyncio.wrap_future, ends), return_exceptions=True)
            await asyncio.get_running_loop().run_in_executor(threads, self.database.close)
        self._openers.shutdown(wait=False)
        self._readers.shutdown(wait=False)


class Forwarding:
    """Sends requests on to the servers that hold their experiments."""

    def __init__(self, host: Host, *, plain: bool) -> None:
        self._host, self._plain = host, plain
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=50)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(30.0, connect=3.0), limits=limits, trust_env=False)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def serve(self, request: Request, caller: Caller, body: bytes, here: Serve) -> Response:
        """Serve a request here, or where its experiment is."""
        until = time.monotonic() + TAKE_OVER_SECONDS
        while True:
            try:
                return await here()
            except Elsewhere as found:
                there = found
            answer = await self._send(request, caller, body, there)
            if answer is not None:
                return answer
            if time.monotonic() > until:
                raise OtherDeciderError(
                    f"the server that decides in {there.name!r} does not answer, and holds its lease still; try again"
                )
            await self._take_over(there.name)

    async def _take_over(self, name: str) -> None:
        try:
            await self._host.open(name)
        except Elsewhere:
            await asyncio.sleep(_BETWEEN)

    async def _send(self, request: Request, caller: Caller, body: bytes, there: Elsewhere) -> Response | None:
        """The other server's answer; None if it certainly did not serve the request."""
        if there.address is None or HOP in request.headers:
            raise OtherDeciderError(
                f"another server decides in experiment {there.name!r}"
                + ("" if there.address else "; start it with --advertise URL so that others can forward to it")
            )
        target = urlsplit(there.address)
        if caller.key and target.scheme != "https" and not (self._plain or is_loopback(target.hostname or "")):
            raise OtherDeciderError(
                f"the server at {there.address} decides in experiment {there.name!r}, and keys are not sent over plain "
                f"HTTP to other machines: advertise an https:// URL, or start with --forward-plain where nobody listens"
            )
        headers = {name: request.headers[name] for name in _SENT if name in request.headers}
        headers[HOP] = "1"
        if caller.key:
            headers["authorization"] = f"Bearer {caller.key}"
        where = there.address + request.scope["raw_path"].decode("ascii")
        query = request.scope["query_string"].decode("ascii")
        repeatable = request.method == "GET" or "idempotency-key" in headers
        sending = self._client.request(
            request.method, f"{where}?{query}" if query else where, content=body, headers=headers
        )
        try:
            got = await self._answer(asyncio.ensure_future(sending), there)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except (httpx.HTTPError, TimeoutError) as error:
            if repeatable:
                return None
            raise NotStoredError("the server that decides broke off") from error
        if got.status_code == 503 and f'"{URN}other-decider"' in got.text:
            return None
        kept = {name: got.headers[name] for name in _RETURNED if name in got.headers}
        return Response(got.content, got.status_code, kept)

    async def _answer(self, sent: asyncio.Task[httpx.Response], there: Elsewhere) -> httpx.Response:
        """What the other server answers; TimeoutError once it no longer decides, for it may be frozen."""
        try:
            while not sent.done():
                await asyncio.wait({sent}, timeout=_WATCH)
                if not sent.done() and self._host.has_moved(there.name, there.address):
                    raise TimeoutError("another server has taken over")
            return sent.result()
        finally:
            sent.cancel()


class Service:
    """What all requests share: the database, experiments, keys, metrics; begun and ended with the event loop."""

    def __init__(self, settings: Settings, *, clock: Callable[[], int] = clock) -> None:
        self.settings, self.clock = settings, clock
        self.database = self._open()
        self._import_kernels()
        self.keyring = Keyring(self.database)
        self.keyring.refresh()
        if not settings.is_local and not self.keyring.exists:
            self.database.close()
            raise InputError(
                f"bound to {settings.host} others can reach this server, and there is no key yet; make one with: "
                f"driftbandits keys create --scope admin --database URL"
            )
        self.gate = Gate(self.keyring, local=settings.is_local, public_url=settings.public_url)
        self.monitors: dict[str, Monitor] = {}
        self.refused: Counter[str] = Counter()  # requests and connections, by reason
        self.metrics = Metrics(self.database, lambda: list(self.monitors.values()), clock, self.refused)
        self.exports = asyncio.Semaphore(2)
        self._key_reader = ThreadPoolExecutor(1, thread_name_prefix="keys")
        self.is_ready = False
        self._tasks: list[asyncio.Task[None]] = []

    def _open(self) -> Database:
        database = open_database(self.settings.database, address=self.settings.advertise, clock=self.clock)
        try:
            database.hold()
        except BaseException:
            database.close()
            raise
        return database

    def _import_kernels(self) -> None:
        """Import what experiments with kernels need before serving: it takes seconds where the machine is busy."""
        for name in self.database.names():
            with contextlib.suppress(JournalError):  # said when it is opened
                kernel = self.database.view(name).definition.kernel
                if kernel is not None:
                    kernel_from_config(kernel)
                    return

    async def begin(self) -> None:
        """Open the experiments, beside serving."""
        self.host = Host(self.database, opened=self._opened, lost=self._lost)
        self.forwarding = Forwarding(self.host, plain=self.settings.forward_plain)
        self._tasks = [asyncio.ensure_future(self.host.adopt()), asyncio.ensure_future(self._keep_keys())]
        self.is_ready = True

    def _opened(self, experiment: Experiment) -> None:
        self.monitors[experiment.name] = Monitor(experiment, self.metrics.note, self.clock)

    def _lost(self, name: str) -> None:
        self.monitors.pop(name, None)  # the server that decides now counts it

    async def _keep_keys(self) -> None:
        """Refresh the keys periodically, in a thread of their own: slow readers do not hold that up."""
        while True:
            await asyncio.sleep(FRESH_SECONDS / 2)
            try:
                await asyncio.get_running_loop().run_in_executor(self._key_reader, self.keyring.refresh)
            except sa.exc.SQLAlchemyError as error:
                log.warning("keys could not be read: %s", first_line(error))

    async def end(self) -> None:
        """Serve waiting requests, write snapshots, free leases."""
        self.is_ready = False
        for task in self._tasks:
            task.cancel()
        await self.host.close()
        await self.forwarding.close()
        self._key_reader.shutdown(wait=False)
        log.info("stopped; everything that was answered is on disk")

    async def in_thread(self, call: Callable[..., Any], *values: Any) -> Any:
        """Something that waits for the database."""
        return await self.host.in_thread(call, *values)
