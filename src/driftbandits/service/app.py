"""The application: which path does what, who may, and what is described of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match

from driftbandits.service import bodies, deciding, looking, pages
from driftbandits.service.calls import Call, Handler, endpoint
from driftbandits.service.core import Service
from driftbandits.service.description import described, document, parameter
from driftbandits.service.logs import Requests
from driftbandits.service.problems import Problem, response_of

ONE = "/v1/experiments/{name}"


def create_app(service: Service) -> FastAPI:
    """The application over a service; it begins and ends with the server."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.begin()
        health = asyncio.ensure_future(looking.keep_health(service))
        try:
            yield
        finally:
            health.cancel()
            await service.end()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service = service
    app.add_exception_handler(HTTPException, _not_found)
    app.add_middleware(Requests)
    _add_changes(app)
    _add_looks(app)
    _add_plain(app)
    pages.add_pages(app)
    return app


def _add_changes(app: FastAPI) -> None:
    conflict = (409,)

    def post(path: str, action: str, handler: Handler, **text: Any) -> None:
        name = handler.__name__
        app.add_api_route(
            path, endpoint(action, handler, changes=True), methods=["POST"], name=name, **described(**text)
        )

    post(
        f"{ONE}/decisions",
        "decide",
        deciding.decide,
        text="Decide",
        body=bodies.Deciding,
        answer=bodies.Decisions,
        errors=(*conflict, 429),
    )
    post(
        f"{ONE}/rewards",
        "decide",
        deciding.reward,
        text="Tell one reward, or several",
        body=(bodies.OneReward, bodies.ManyRewards),
        answer=bodies.RewardAnswer,
        errors=conflict,
    )
    post(
        f"{ONE}/forget",
        "decide",
        deciding.forget,
        text="Rewards that will never come",
        body=bodies.Forgetting,
        answer=bodies.Forgotten,
        errors=conflict,
    )
    post(
        "/v1/experiments",
        "admin",
        deciding.create,
        text="Make an experiment",
        body=bodies.Creation,
        answer=bodies.Created,
        status=201,
        errors=(*conflict, 429),
        named=False,
    )
    post(
        f"{ONE}/arms",
        "admin",
        deciding.arms,
        text="Arms that come and go",
        body=bodies.ArmsChange,
        answer=bodies.ArmsAnswer,
        errors=conflict,
    )
    for handler, text, answer in (
        (deciding.pause, "Let the fallback answer", bodies.Paused),
        (deciding.resume, "Let the policy answer again", bodies.Paused),
        (deciding.restart, "Begin anew with nothing learned", bodies.Restarted),
    ):
        post(
            f"{ONE}/{handler.__name__}",
            "admin",
            handler,
            text=text,
            body=bodies.Nothing,
            answer=answer,
            errors=conflict,
        )


def _add_looks(app: FastAPI) -> None:
    def get(path: str, action: str, handler: Handler, **text: Any) -> None:
        name = f"get_{handler.__name__}"
        query = [one["name"] for one in text.get("parameters", ()) if one["in"] == "query"]
        served = endpoint(action, handler, changes=False, query=query)
        app.add_api_route(path, served, methods=["GET"], name=name, **described(**text))

    after = parameter("after", least=0, most=2**62)
    limit = parameter("limit", least=1, most=looking.MOST_EVENTS)
    points = parameter("points", least=2, most=looking.MOST_POINTS)
    ident = {
        "name": "id",
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1, "maxLength": 40},
    }
    get("/v1/experiments", "read", looking.experiments, text="All experiments", named=False)
    get(f"{ONE}/summary", "summary", looking.summary, text="The experiment at a glance")
    get(f"{ONE}/changes", "read", looking.changes, text="Changes found")
    get(f"{ONE}/history", "read", looking.history, text="Beliefs over time", parameters=(points,))
    get(
        f"{ONE}/events",
        "read",
        looking.events,
        text="The journal",
        answer=bodies.Events,
        parameters=(after, limit),
    )
    get(
        f"{ONE}/decisions/{{id}}",
        "read",
        looking.decision,
        text="Look back at a decision",
        errors=(410,),
        parameters=(ident,),
    )
    get(
        f"{ONE}/export.parquet",
        "read",
        looking.export,
        text="All decisions as a log",
        media="application/vnd.apache.parquet",
    )
    get("/metrics", "read", _metrics, text="Metrics for Prometheus", media="text/plain", named=False)


async def _metrics(call: Call) -> Response:
    text = await call.service.in_thread(call.service.metrics.text)
    return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")


def _add_plain(app: FastAPI) -> None:
    """What needs no key."""
    quiet: dict[str, Any] = {"methods": ["GET", "HEAD"], "include_in_schema": False}
    app.add_api_route("/healthz", _alive, **quiet)
    app.add_api_route("/readyz", _ready, **quiet)
    app.add_api_route("/openapi.json", _describe, **quiet)


async def _alive() -> PlainTextResponse:
    """The process serves."""
    return PlainTextResponse("alive\n")


async def _ready(request: Request) -> Response:
    """Requests can be served: the database answers."""
    service: Service = request.app.state.service
    try:
        await service.in_thread(_ping, service)
    except sa.exc.SQLAlchemyError:
        return response_of(Problem(503, "database", "the database is away; try again", retry_after="1"))
    if not service.is_ready:
        return response_of(Problem(503, "stopping", "this server is stopping; try another", retry_after="1"))
    return PlainTextResponse("ready\n")


def _ping(service: Service) -> None:
    with service.database.engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))


async def _describe(request: Request) -> Response:
    from driftbandits.service.calls import json_response

    return json_response(document(request.app.openapi()["paths"]))


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    allow = {"allow": ", ".join(_methods(request))} if status == 405 else {}
    words = {404: ("not-found", f"there is nothing at {request.url.path[:200]!r}; /openapi.json lists all paths")}
    kind, detail = words.get(status, ("method", f"{request.method} is not what this path takes"))
    return response_of(Problem(status, kind, detail, **allow))


def _methods(request: Request) -> list[str]:
    """What the routes of this path take, all together."""
    found: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= set(getattr(route, "methods", ()))
    return sorted(found)
