"""uvicorn's fast HTTP parser with the limits that it lacks: deadlines, the size of headers, connections per address.

Whoever opens connections and sends nothing, or a byte now and then, must lock nobody out. Headers have ten seconds from
their first byte, or from the connection's beginning; a body has a deadline too, whether or not its request reads it.
Where an address has its share of connections, or all are taken, the connection that has been idle longest makes room.
If none is idle the newcomer is told to try again, but for `/healthz`, which is always answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftbandits.service.problems import MEDIA_TYPE, Problem, body_of
from driftbandits.service.requests import BODY_SECONDS

HEADER_SECONDS = 10.0  # for headers to arrive
LATE_SECONDS = 2.0  # after which a body that was too slow ends its connection, if no answer has
MOST_HEADERS = 65_536  # bytes
HEALTH = b"/healthz"


class Connections:
    """The connections of one server, and how many there may be."""

    def __init__(self, most: int, most_per_address: int, refused: Counter[str]) -> None:
        self._most, self._most_per_address = most, most_per_address
        self.refused = refused  # by reason
        self._of: dict[str, dict[LimitedProtocol, None]] = {}  # by address; a mapping keeps the order of arrival
        self._count = 0

    def add(self, one: LimitedProtocol) -> bool:
        """Note a new connection; whether there is room for it."""
        theirs = self._of.setdefault(one.address, {})
        theirs[one] = None
        self._count += 1
        if len(theirs) > self._most_per_address:
            return self._make_room(one, theirs)
        if self._count > self._most:
            return self._make_room(one, max(self._of.values(), key=len))
        return True

    def _make_room(self, newcomer: LimitedProtocol, group: dict[LimitedProtocol, None]) -> bool:
        idle = next((one for one in group if one is not newcomer and one.is_idle), None)
        if idle is not None:
            self.refused["connections"] += 1
            self.remove(idle)
            idle.transport.abort()
        return idle is not None

    def remove(self, one: LimitedProtocol) -> None:
        """Forget a connection that ended."""
        theirs = self._of.get(one.address, {})
        if one in theirs:
            del theirs[one]
            self._count -= 1
            if not theirs:
                del self._of[one.address]

    def note_use(self, one: LimitedProtocol) -> None:
        """A request came on it: others have been idle for longer."""
        theirs = self._of.get(one.address, {})
        if one in theirs:
            del theirs[one]
            theirs[one] = None


class LimitedProtocol(HttpToolsProtocol):
    """One connection. `protocol_of` makes the class for a server."""

    all: Connections

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        self.address = ""
        self.is_idle = True  # between requests, or within headers
        self._has_room = True
        self._has_begun = False  # headers that did not end yet
        self._is_arriving = False  # a body that did not end yet
        self._unfinished = self._size = 0  # bytes since the last end of headers; bytes of these headers
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._has_room = self.all.add(self)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """It ended."""
        self.all.remove(self)
        self._cancel_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        seconds = BODY_SECONDS + LATE_SECONDS if self._is_arriving else HEADER_SECONDS
        self._deadline = self.loop.call_later(seconds, self._end_late)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_late(self) -> None:
        self._deadline = None
        if self._has_begun:
            self.refuse(Problem(408, "slow", f"headers must arrive within {HEADER_SECONDS:g} s"), "slow")
        else:  # nothing was asked, or it was answered already
            self.all.refused["slow"] += 1
            self.transport.close()

    def refuse(self, problem: Problem, reason: str) -> None:
        """Answer a request that is not served, and end the connection."""
        self.all.refused[reason] += 1
        if self.cycle is None or self.cycle.response_complete:  # else an answer is on its way
            body = body_of(problem)
            lines = [
                f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}",
                f"content-type: {MEDIA_TYPE}",
                f"content-length: {len(body)}",
                "connection: close",
                "retry-after: 1",
            ]
            head = "\r\n".join([*lines, "", ""])
            self.transport.write(head.encode() + body)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Bytes of a client."""
        self._unfinished += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unfinished > MOST_HEADERS:
            self._refuse_headers()
        elif (
            self.is_idle or self._is_arriving
        ) and self._deadline is None:  # uvicorn's own time-out ended with the first byte
            self._set_deadline()

    def _refuse_headers(self) -> None:
        self.refuse(Problem(431, "headers", f"headers have at most {MOST_HEADERS:,} bytes"), "headers")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._size, self._has_begun = 0, True

    def on_url(self, url: bytes) -> None:
        """A part of the first line."""
        super().on_url(url)
        self._size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; also one after a body in parts."""
        super().on_header(name, value)
        self._size += len(name) + len(value) + 4  # with colon, blank and the end of the line

    def on_headers_complete(self) -> None:
        """The headers ended: the request is served, unless they are too long or there are too many connections."""
        self._unfinished, self._has_begun = 0, False
        if self.transport.is_closing():
            return
        if self._size > MOST_HEADERS:
            self._refuse_headers()
        elif not self._has_room and self.url.partition(b"?")[0] != HEALTH:
            detail = "there are too many connections, of this address or in all; close some, or try again"
            self.refuse(Problem(503, "connections", detail), "connections")
        else:
            self._cancel_deadline()
            self.is_idle, self._is_arriving = False, True
            self.all.note_use(self)
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body, which has limits of its own."""
        self._unfinished = 0
        if self.cycle is not None and not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request has arrived."""
        self._unfinished, self._is_arriving = 0, False
        self._cancel_deadline()
        if self.cycle is not None and not self.transport.is_closing():
            super().on_message_complete()
            self.is_idle = self.cycle.response_complete

    def on_response_complete(self) -> None:
        """The answer was sent; the next request may be on its way already."""
        super().on_response_complete()
        self.is_idle = self.cycle.response_complete and not self._is_arriving
        if self.is_idle and self._has_begun and self._deadline is None:
            self._set_deadline()


def protocol_of(connections: Connections) -> type[LimitedProtocol]:
    """The class of one server's connections."""
    return type("Protocol", (LimitedProtocol,), {"all": connections})
