"""Requests for experiments that another server holds: sent on to it, one hop, and its answer sent back.

Where nobody listens there any more, the request was certainly not served: the experiment is taken over and the request
served here. Where the connection broke later nobody knows, and the caller is told to send it again with the same key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx
from starlette.requests import Request
from starlette.responses import Response

from driftbandits.errors import NotStoredError, OtherDeciderError
from driftbandits.service.gate import Caller
from driftbandits.service.hosting import Elsewhere, Host
from driftbandits.service.problems import URN

HOP = "driftbandits-hop"  # a request that has it was forwarded once, and is not forwarded again
TAKE_OVER_SECONDS = 20.0  # for which a free lease is waited for: Postgres notices a dead server in 15 at most
_BETWEEN = 0.2  # seconds
_SENT = ("content-type", "idempotency-key", "accept")
_RETURNED = ("content-type", "retry-after", "content-disposition")
Serve = Callable[[], Awaitable[Response]]


class Forwarding:
    """Sends requests on to the servers that hold their experiments."""

    def __init__(self, host: Host) -> None:
        self._host = host
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
        headers = {name: request.headers[name] for name in _SENT if name in request.headers}
        headers[HOP] = "1"
        if caller.key:
            headers["authorization"] = f"Bearer {caller.key}"
        target = there.address + request.scope["raw_path"].decode("ascii")
        query = request.scope["query_string"].decode("ascii")
        try:
            got = await self._client.request(
                request.method, f"{target}?{query}" if query else target, content=body, headers=headers
            )
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except httpx.HTTPError as error:
            raise NotStoredError("the server that decides broke off") from error
        if got.status_code == 503 and f'"{URN}other-decider"' in got.text:
            return None
        kept = {name: got.headers[name] for name in _RETURNED if name in got.headers}
        return Response(got.content, got.status_code, kept)
