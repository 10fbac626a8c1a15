"""One request on its way: admitted, its body read within the limits, served here or forwarded, errors as problems."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import Response

from driftbandits.errors import DriftbanditsError, LiveError, UnknownExperimentError
from driftbandits.service.core import Service
from driftbandits.service.gate import Caller
from driftbandits.service.hosting import Elsewhere
from driftbandits.service.problems import Problem, response_of
from driftbandits.service.reading import read_bytes
from driftbandits.showing import first_line, shown

log = logging.getLogger("driftbandits.service")


@dataclass(slots=True)
class Call:
    """A request that was let in."""

    service: Service
    request: Request
    caller: Caller
    body: bytes = b""

    @property
    def name(self) -> str:
        """Name of the experiment, from the path."""
        name = str(self.request.path_params["name"])
        if "\x00" in name:  # no name has it, and Postgres takes it for an error of its own
            raise UnknownExperimentError(f"no experiment is called {shown(name)}")
        return name


Handler = Callable[[Call], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def endpoint(action: str, handler: Handler, *, changes: bool, query: Collection[str] = ()) -> Endpoint:
    """An endpoint that needs a key with the right to `action`.

    `changes`: it takes JSON and changes something; `query`: names that may stand after the question mark.
    """

    async def serve(request: Request) -> Response:
        service: Service = request.app.state.service
        try:
            headers = dict(request.headers)
            caller = service.gate.admit(headers, request.client.host if request.client else None)
            if not caller.may(action):
                raise Problem(403, "scope", f"a key of scope {caller.scope} may not do this; it takes another key")
            _check_query(request, query)
            if not changes:
                return await _handle(handler, Call(service, request, caller))
            service.gate.check_change(headers, caller)
            body = await read_bytes(request, service.settings.most_body)
            return await _handle(handler, Call(service, request, caller, body))
        except Exception as error:  # noqa: BLE001  # everything ends in an answer
            return answer_error(error, request)
        except asyncio.CancelledError:  # the server stops, and has waited for this request
            return response_of(Problem(503, "stopping", "this server stops; send it again", retry_after="1"))

    return serve


def _check_query(request: Request, known: Collection[str]) -> None:
    """A misspelt name is refused: ignored, it would answer another question than was asked."""
    for name in request.query_params:
        if name not in known:
            takes = f"it takes {' and '.join(sorted(known))}" if known else "it takes none"
            raise Problem(422, "input", f"this path has no query parameter {shown(name)}; {takes}")


async def _handle(handler: Handler, call: Call) -> Response:
    try:
        return await handler(call)
    except Elsewhere:
        return await call.service.forwarding.serve(call.request, call.caller, call.body, lambda: handler(call))


def answer_error(error: Exception, request: Request) -> Response:
    """The answer to an error; faults of ours are logged whole."""
    if isinstance(error, sa.exc.DBAPIError | sa.exc.TimeoutError):
        log.error("the database is away: %s", first_line(error))
        return response_of(LiveError("the database is away; nothing was changed, try again"))
    if not isinstance(error, DriftbanditsError | Problem):
        log.error("a fault of the server at %s %s", request.method, request.url.path, exc_info=error)
    return response_of(error)


def json_response(content: Any, status: int = 200) -> Response:
    """An answer."""
    return Response(
        json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(),
        status,
        media_type="application/json",
    )
