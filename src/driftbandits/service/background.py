"""A server in a thread of this process, for examples, notebooks and tests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from driftbandits.live.requests import clock as usual_clock
from driftbandits.service.hosting import Service
from driftbandits.service.server import END_SECONDS, SWITCH_SECONDS, Server, configure
from driftbandits.service.settings import read_settings


@contextmanager
def serving(*, clock: Callable[[], int] = usual_clock, port: int = 0, **settings: Any) -> Iterator[str]:
    """Serve while the block runs, at a free port unless one is given; the URL.

    `clock` gives microseconds since 1970, for those who play a day in a minute.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    service = Service(read_settings({"port": port, **settings}), clock=clock)
    found: list[str] = []
    started = threading.Event()

    def say(where: str) -> None:
        found.append(where)
        started.set()

    server = Server(configure(service), say)

    def run() -> None:
        try:
            server.run()
        finally:
            started.set()  # also where it never started

    thread = threading.Thread(target=run, name="server", daemon=True)
    thread.start()
    started.wait()
    try:
        if not found:
            raise RuntimeError("the server did not start; its log says why")
        yield found[0].rstrip("/")
    finally:
        server.should_exit = True
        thread.join(END_SECONDS)  # bounded: at interpreter exit, threads are no longer served
        service.database.close()
        sys.setswitchinterval(before)
