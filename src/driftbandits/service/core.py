"""One server: its database, experiments, keys, metrics; begun and ended with its event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from driftbandits.errors import InputError
from driftbandits.live import Database, Experiment
from driftbandits.live import open as open_database
from driftbandits.live.requests import clock
from driftbandits.service.forwarding import Forwarding
from driftbandits.service.gate import Gate
from driftbandits.service.hosting import Host
from driftbandits.service.keys import FRESH_SECONDS, Keyring
from driftbandits.service.metrics import Metrics
from driftbandits.service.settings import Settings
from driftbandits.service.watching import Watch
from driftbandits.showing import first_line

log = logging.getLogger("driftbandits.service")


class Service:
    """What all requests share."""

    def __init__(self, settings: Settings, *, clock: Callable[[], int] = clock) -> None:
        self.settings, self.clock = settings, clock
        self.database = self._open()
        self.keyring = Keyring(self.database)
        self.keyring.refresh()
        if not settings.is_local and not self.keyring.exists:
            self.database.close()
            raise InputError(
                f"bound to {settings.host} others can reach this server, and there is no key yet; make one with: "
                f"driftbandits keys create --scope admin --database URL"
            )
        self.gate = Gate(self.keyring, local=settings.is_local, public_url=settings.public_url)
        self.watches: dict[str, Watch] = {}
        self.metrics = Metrics(self.database, lambda: list(self.watches.values()), clock)
        self.exports = asyncio.Semaphore(2)
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

    async def begin(self) -> None:
        """Open the experiments, beside serving."""
        self.host = Host(self.database, opened=self._opened, lost=self._lost)
        self.forwarding = Forwarding(self.host)
        self._tasks = [asyncio.ensure_future(self.host.adopt()), asyncio.ensure_future(self._keep_keys())]
        self.is_ready = True

    def _opened(self, experiment: Experiment) -> None:
        self.watches[experiment.name] = Watch(experiment, self.metrics.note, self.clock)

    def _lost(self, name: str) -> None:
        self.watches.pop(name, None)  # the server that decides now counts it

    async def _keep_keys(self) -> None:
        """Read the keys again and again; while the database is away, those that are known count on."""
        while True:
            await asyncio.sleep(FRESH_SECONDS / 2)
            try:
                await self.host.in_thread(self.keyring.refresh)
            except sa.exc.SQLAlchemyError as error:
                log.warning("keys could not be read: %s", first_line(error))

    async def end(self) -> None:
        """Serve what waits, snapshot, free leases."""
        self.is_ready = False
        for task in self._tasks:
            task.cancel()
        await self.host.close()
        await self.forwarding.close()
        log.info("stopped; everything that was answered is on disk")

    def watch(self, name: str) -> Watch:
        """The watch of an experiment that is open here."""
        return self.watches[name]

    async def in_thread(self, call: Callable[..., Any], *values: Any) -> Any:
        """Something that waits for the database."""
        return await self.host.in_thread(call, *values)
