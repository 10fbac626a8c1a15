"""The experiments that this server decides in, opened when first asked for; and those that another one holds.

On one Postgres every experiment is leased by one server. Here a request for an experiment that another holds ends in
`Elsewhere`, with the address to forward it to; `forwarding` does that, and comes back when nobody answers there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from driftbandits.errors import DriftbanditsError, NotStoredError, OtherDeciderError
from driftbandits.live import Database, Experiment
from driftbandits.service.waiting import Waiting
from driftbandits.showing import first_line

log = logging.getLogger("driftbandits.service")
ADOPT_SECONDS = 3.0  # between two looks for experiments that nobody decides in


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

    @property
    def here(self) -> dict[str, Experiment]:
        """The experiments that are open here, by name."""
        return dict(self._here)

    async def find(self, name: str) -> Experiment:
        """The experiment, open for deciding; Elsewhere if another server holds it."""
        found = self._here.get(name)
        if found is not None:
            return found
        if name in self._there:
            raise Elsewhere(name, self._there[name])
        return await self.open(name)

    async def open(self, name: str) -> Experiment:
        """Open an experiment, whatever was known of it; those who ask at the same time wait for the same opening."""
        task = self._opening.get(name)
        if task is None:
            task = asyncio.ensure_future(self._open(name))
            self._opening[name] = task
            task.add_done_callback(lambda done: self._note_opening(name, done))
        return await asyncio.shield(task)

    def _note_opening(self, name: str, done: asyncio.Task[Experiment]) -> None:
        self._opening.pop(name, None)
        if not done.cancelled():
            done.exception()  # seen, also where whoever waited for it is gone

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

    async def ask(self, name: str, kind: str, values: dict[str, Any], key: str | None = None) -> Any:
        """The answer to a request, once it is on disk."""
        experiment = self._here.get(name) or await self.find(name)
        try:
            return await self._waiting.wait(experiment.submit(kind, values, key))
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
                names = await self.in_thread(self.database.names)
                free = [name for name in names if name not in self._here]
                await asyncio.gather(*map(self._adopt_one, free))  # a long replay of one holds up no other
            except Exception as error:  # noqa: BLE001  # the database is away: tried again
                log.warning("experiments could not be listed: %s", first_line(error))
            await asyncio.sleep(ADOPT_SECONDS)

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
        """Serve what waits, write snapshots, free leases; at the same time for all experiments."""
        self._closing = True
        names, self._here = list(self._here), {}
        with ThreadPoolExecutor(16, thread_name_prefix="closing") as threads:
            ends: list[Future[None]] = [threads.submit(self.database.let_go, name) for name in names]
            await asyncio.gather(*map(asyncio.wrap_future, ends), return_exceptions=True)
            await asyncio.get_running_loop().run_in_executor(threads, self.database.close)
        self._openers.shutdown(wait=False)
        self._readers.shutdown(wait=False)
