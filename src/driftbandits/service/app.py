"""The application: which path does what, who may, and its OpenAPI document, made from the classes in `requests`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from driftbandits.errors import LiveError
from driftbandits.service import handlers, pages
from driftbandits.service import requests as bodies
from driftbandits.service.handlers import Endpoint, Handler, endpoint, json_response
from driftbandits.service.hosting import Service
from driftbandits.service.problems import Problem, response_of
from driftbandits.version import __version__

log = logging.getLogger("driftbandits.service.requests")
ALL = "/v1/experiments"
ONE = f"{ALL}/{{name}}"
KEYS = "/v1/keys"
SECURE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers send the login form with Origin: null
    (b"cache-control", b"no-store"),
]


def create_app(service: Service) -> FastAPI:
    """The ASGI application of a service; it starts and stops with the server."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.begin()
        health = asyncio.ensure_future(handlers.keep_health(service))
        try:
            yield
        finally:
            health.cancel()
            await service.end()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service = service
    described = FastAPI()  # served is what is below, and this says what it is: FastAPI's own way to a handler is long
    app.state.describe = lambda: _document(described.openapi()["paths"])
    app.add_exception_handler(HTTPException, _not_found)
    app.add_middleware(Middleware)
    _add_changes(app, described)
    _add_reads(app, described)
    for path, handler in (("/healthz", _alive), ("/readyz", _ready), ("/openapi.json", _describe)):
        app.add_route(path, handler, methods=["GET", "HEAD"])  # these need no key
    pages.add_pages(app)
    return app


class Middleware:
    """Adds the headers common to all answers, and a log line per request at level debug."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in SECURE if pair[0] not in there)]
            await send(message)

        await self._app(scope, receive, answer)
        if log.isEnabledFor(logging.DEBUG):
            took = round(1e3 * (time.perf_counter() - begun), 2)
            values = {"method": scope["method"], "path": scope["path"], "status": status, "milliseconds": took}
            log.debug("request", extra=values)


# --- paths ----------------------------------------------------------------------------------------------------------


def _add_changes(app: FastAPI, described: FastAPI) -> None:
    def post(path: str, action: str, handler: Handler, text: str, body: Any, answer: Any, **more: Any) -> None:
        served = endpoint(action, handler, changes=True)
        _serve(app, path, served, "POST")
        facts = _described(text, body=body, answer=answer, **{"errors": (409,), **more})
        described.add_api_route(path, served, methods=["POST"], name=handler.__name__, **facts)

    many = {"errors": (409, 429)}
    one_or_many = (bodies.OneReward, bodies.ManyRewards)
    post(f"{ONE}/decisions", "decide", handlers.decide, "Decide", bodies.Deciding, bodies.Decisions, **many)
    post(f"{ONE}/rewards", "decide", handlers.reward, "Tell one reward, or several", one_or_many, bodies.RewardAnswer)
    forgotten = (bodies.Forgetting, bodies.Forgotten)
    post(f"{ONE}/forget", "decide", handlers.forget, "Rewards that will never come", *forgotten)
    created = (bodies.Creation, bodies.Created)
    post(ALL, "admin", handlers.create, "Make an experiment", *created, status=201, named=False, **many)
    post(f"{ONE}/arms", "admin", handlers.arms, "Arms that come and go", bodies.ArmsChange, bodies.ArmsAnswer)
    post(f"{ONE}/pause", "admin", handlers.pause, "Let the fallback answer", bodies.Nothing, bodies.Paused)
    post(f"{ONE}/resume", "admin", handlers.resume, "Let the policy answer again", bodies.Nothing, bodies.Paused)
    restarted = (bodies.Nothing, bodies.Restarted)
    post(f"{ONE}/restart", "admin", handlers.restart, "Begin anew with nothing learned", *restarted)
    plain: dict[str, Any] = {"named": False, "keyed": False}  # a secret is not stored, so it cannot be answered again
    post(KEYS, "admin", handlers.new_key, "Make a key", bodies.KeyCreation, bodies.KeyMade, status=201, **plain)
    plain["parameters"] = (_IDENT,)
    path = f"{KEYS}/{{id}}"
    rotated = (bodies.KeyRotation, bodies.KeyMade)
    post(f"{path}/rotate", "admin", handlers.rotate, "A new key for an old one", *rotated, status=201, **plain)
    post(f"{path}/revoke", "admin", handlers.revoke, "End a key", bodies.Nothing, bodies.KeyIdentity, **plain)


def _add_reads(app: FastAPI, described: FastAPI) -> None:
    def get(path: str, handler: Handler, text: str, *, action: str = "read", name: str = "", **more: Any) -> None:
        query = [one["name"] for one in more.get("parameters", ()) if one["in"] == "query"]
        served = endpoint(action, handler, changes=False, query=query)
        _serve(app, path, served, "GET")
        facts = _described(text, **more)
        described.add_api_route(path, served, methods=["GET"], name=f"get_{name or handler.__name__}", **facts)

    after = _parameter("after", least=0, most=2**62)
    limit = _parameter("limit", least=1, most=handlers.MOST_EVENTS)
    points = _parameter("points", least=2, most=handlers.MOST_POINTS)
    parquet = "application/vnd.apache.parquet"
    get(ALL, handlers.experiments, "All experiments", named=False)
    get(KEYS, handlers.keys, "All keys, without their secrets", action="admin", answer=bodies.Keys, named=False)
    get(f"{ONE}/summary", handlers.summary, "The experiment at a glance", action="summary")
    get(f"{ONE}/changes", handlers.changes, "Changes found")
    get(f"{ONE}/history", handlers.history, "Beliefs over time", parameters=(points,))
    get(f"{ONE}/contexts", handlers.contexts, "Expected rewards by columns of the contexts", answer=bodies.ByContext)
    get(f"{ONE}/events", handlers.events, "The journal", answer=bodies.Events, parameters=(after, limit))
    get(f"{ONE}/decisions/{{id}}", handlers.decision, "Audit a decision", errors=(410,), parameters=(_IDENT,))
    get(f"{ONE}/export.parquet", handlers.export, "All decisions as a log", media=parquet)
    # The name is part of the operation id, which generated clients may use.
    prometheus: dict[str, Any] = {
        "media": "text/plain",
        "named": False,
        "name": "_metrics",
    }
    get("/metrics", handlers.metrics, "Metrics for Prometheus", **prometheus)


def _serve(app: FastAPI, path: str, served: Endpoint, method: str) -> None:
    route = Route(path, served, methods=[method])
    route.methods = {method}  # without HEAD
    app.router.routes.append(route)


async def _alive(request: Request) -> PlainTextResponse:
    """The process serves."""
    del request
    return PlainTextResponse("alive\n")


async def _ready(request: Request) -> Response:
    """Requests can be served: the database answers, its file is the one that was opened, and transactions end well."""
    service: Service = request.app.state.service
    try:
        await service.in_thread(_ping, service)
    except sa.exc.SQLAlchemyError:
        return response_of(Problem(503, "database", "the database is away; try again", retry_after="1"))
    except LiveError as error:
        return response_of(error)
    if not service.host.has_opened:
        return response_of(Problem(503, "opening", "experiments are being opened; try again", retry_after="1"))
    failing = service.host.failing()
    if failing:
        return response_of(Problem(503, "failing", failing, retry_after="1"))
    if not service.is_ready:
        return response_of(Problem(503, "stopping", "this server is stopping; try another", retry_after="1"))
    return PlainTextResponse("ready\n")


def _ping(service: Service) -> None:
    service.database.check_file()
    with service.database.engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))


async def _describe(request: Request) -> Response:
    return json_response(request.app.state.describe())


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    allow = {"allow": ", ".join(_methods(request))} if status == 405 else {}
    words = {404: ("not-found", f"there is nothing at {request.url.path[:200]!r}; /openapi.json lists all paths")}
    kind, detail = words.get(status, ("method", f"{request.method} is not what this path takes"))
    return response_of(Problem(status, kind, detail, **allow))


def _methods(request: Request) -> list[str]:
    """The methods that the routes of this path accept."""
    found: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= set(getattr(route, "methods", ()))
    return sorted(found)


# --- the OpenAPI document -------------------------------------------------------------------------------------------

_REF = "#/components/schemas/{model}"
_ALWAYS = (401, 403, 422)
_CHANGES = (400, 408, 413, 415)
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 200}}
_IDENT: dict[str, Any] = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "maxLength": 40},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key and body get the stored answer; another body 422; in flight 409.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}


def _parameter(name: str, *, least: int, most: int) -> dict[str, Any]:
    """A whole number in the query."""
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _described(
    text: str,
    *,
    body: type[BaseModel] | tuple[type[BaseModel], ...] | None = None,
    answer: type[BaseModel] | None = None,
    status: int = 200,
    media: str = "application/json",
    errors: tuple[int, ...] = (),
    named: bool = True,
    keyed: bool = True,
    parameters: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:
    """The OpenAPI description of a path."""
    changes = body is not None
    known = sorted({*_ALWAYS, *errors, *(_CHANGES if changes else ()), *((404, 503) if named else (503,))})
    extra: dict[str, Any] = {
        "parameters": [*([_NAME] if named else []), *([_KEY] if changes and keyed else []), *parameters]
    }
    if body is not None:
        kinds = body if isinstance(body, tuple) else (body,)
        schemas = [{"$ref": _REF.format(model=kind.__name__)} for kind in kinds]
        schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    shown = {"$ref": _REF.format(model=answer.__name__)} if answer else {}
    responses: dict[int | str, Any] = {status: {"description": "Done", "content": {media: {"schema": shown}}}}
    problem = {"schema": {"$ref": _REF.format(model="ProblemBody")}}
    for code in known:
        responses[code] = {"description": "A problem", "content": {"application/problem+json": problem}}
    return {"summary": text, "status_code": status, "responses": responses, "openapi_extra": extra}


def _document(paths: dict[str, Any]) -> dict[str, Any]:
    """The whole document."""
    models = [kind for kind in vars(bodies).values() if isinstance(kind, type) and issubclass(kind, BaseModel)]
    kinds = [(kind, "validation") for kind in models if kind not in (BaseModel, bodies.Body)]
    _, schemas = models_json_schema(kinds, ref_template=_REF)  # type: ignore[arg-type]
    return {
        "openapi": "3.1.0",
        "info": {"title": "driftbandits", "version": __version__, "summary": "Bandit experiments over HTTP"},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }
