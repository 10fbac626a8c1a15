"""What each path does: a request is admitted, read within limits, served here or forwarded; errors become problems.

Requests that change an experiment are one call of its writer each. Those that only read are not journaled.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from driftbandits.errors import DriftbanditsError, InputError, JournalError, LiveError, UnknownExperimentError
from driftbandits.live.decision_audit import audit_in_subprocess
from driftbandits.live.definition import MOST_ARMS, define
from driftbandits.live.experiment import plain_contexts
from driftbandits.live.export import Piece, arm_names, parquet_pieces
from driftbandits.service import contexts as by_context
from driftbandits.service import health
from driftbandits.service import requests as bodies
from driftbandits.service import summary as summaries
from driftbandits.service.hosting import Elsewhere, Service
from driftbandits.service.keys import Caller, KeyRow, create_key, list_keys, revoke_key, rotate_key
from driftbandits.service.metrics import Monitor
from driftbandits.service.problems import Problem, problem_of, response_of
from driftbandits.service.requests import check_depth, idempotency_key, parse, read_bytes
from driftbandits.text import first_line, shown

log = logging.getLogger("driftbandits.service")
MOST_EVENTS = 1_000  # per answer
MOST_POINTS = 500
HEALTH_SECONDS = 30.0  # between two checks of all experiments
ENDING_DAYS = 7.0  # before its end, health speaks of a key
SUMMARY_PAUSE = 9.0  # times as long as a summary took, until the next one begins
LONGEST_PAUSE = 2.0  # seconds
PIECE_SECONDS = 60.0  # for a client to take a piece: the journal cannot be tidied while it is read
_SEVERAL = re.compile(rb'\s*\{\s*"rewards"')  # else it is one reward


@dataclass(slots=True)
class Call:
    """A request that was admitted."""

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

    async def ask(self, kind: str, values: dict[str, Any], *, most: int | None = None) -> Any:
        """The writer's answer to this request."""
        key = idempotency_key(self.request)
        if self.caller.scope == "guest":
            values = {**values, "guest": True}
        return await self.service.host.ask(self.name, kind, values, key, most=most, owner=self.caller.key_id)

    def number(self, name: str, *, usual: int, least: int, most: int) -> int:
        """A whole number in the query."""
        text = self.request.query_params.get(name)
        if text is None:
            return usual
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise Problem(422, "input", f"{name} must be a whole number from {least:,} to {most:,}, got {text[:40]!r}")
        return int(text)


Handler = Callable[[Call], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def endpoint(action: str, handler: Handler, *, changes: bool, query: Collection[str] = ()) -> Endpoint:
    """An endpoint that needs a key with the right to `action`.

    `changes`: it takes JSON and changes something; `query`: names of its query parameters.
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
    """Refuse misspelt names: ignoring one would answer another question."""
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
    """The answer to an error; internal errors are logged with their traceback."""
    if isinstance(error, sa.exc.DBAPIError | sa.exc.TimeoutError):
        log.error("the database is away: %s", first_line(error))
        error = LiveError("the database is away; nothing was changed, try again")
    request.app.state.service.refused[problem_of(error).kind] += 1
    if not isinstance(error, DriftbanditsError | Problem):
        log.error("a fault of the server at %s %s", request.method, request.url.path, exc_info=error)
    return response_of(error)


def json_response(content: Any, status: int = 200) -> Response:
    """An answer."""
    return Response(encoded(content), status, media_type="application/json")


def encoded(content: Any) -> bytes:
    """JSON, without spaces."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


# --- requests that change something ---------------------------------------------------------------------------------


async def create(call: Call) -> Response:
    """POST /v1/experiments."""
    service, key = call.service, idempotency_key(call.request)
    wanted = parse(bodies.Creation, call.body)
    limit = service.settings.most_arms
    for what, given in (("arms", wanted.arms), ("segments", wanted.segments or [])):
        if len(given) > limit:
            raise InputError(f"an experiment has at most {limit:,} {what} here, got {len(given):,}")
    if "/" in wanted.name or wanted.name in (".", ".."):
        raise InputError(f"the name of an experiment is part of paths, so it may have no slash, got {wanted.name!r}")
    check_depth([wanted.settings, wanted.kernel, wanted.contexts])
    await service.in_thread(_make, call, wanted, key)
    with contextlib.suppress(Elsewhere):  # another server was quicker to adopt it
        await service.host.open(wanted.name)
    return json_response({"name": wanted.name}, 201)


def _make(call: Call, wanted: bodies.Creation, key: str | None) -> None:
    service = call.service
    if len(service.database.names()) >= service.settings.most_experiments:
        raise Problem(429, "too-many", f"there are {service.settings.most_experiments:,} experiments already")
    fields = wanted.model_dump(exclude={"name"}, exclude_unset=True)
    digest = hashlib.sha256(call.body).hexdigest()
    service.database.make(wanted.name, define(**fields), key=key, owner=call.caller.key_id, digest=digest)


async def keys(call: Call) -> Response:
    """GET /v1/keys: one row per key, oldest first; no secrets."""
    rows = await call.service.in_thread(list_keys, call.service.database)
    return json_response({"keys": [_key_values(row) for row in rows]})


def _key_values(row: KeyRow) -> dict[str, Any]:
    times = {name: getattr(row, name) for name in ("created", "expires", "revoked")}
    values = {name: None if time is None else time / 1e6 for name, time in times.items()}
    return {"id": row.id, "name": row.name, "scope": row.scope, "per_minute": row.per_minute, **values}


async def new_key(call: Call) -> Response:
    """POST /v1/keys."""
    wanted = parse(bodies.KeyCreation, call.body)
    database = call.service.database
    make = partial(create_key, database, wanted.name, wanted.scope, per_minute=wanted.per_minute, days=wanted.days)
    return await _made_key(call, make)


async def rotate(call: Call) -> Response:
    """POST /v1/keys/{id}/rotate."""
    hours = parse(bodies.KeyRotation, call.body).hours
    return await _made_key(
        call, partial(rotate_key, call.service.database, call.request.path_params["id"], hours=hours)
    )


async def _made_key(call: Call, make: Callable[[], str]) -> Response:
    key = await call.service.in_thread(make)
    await call.service.in_thread(call.service.keyring.reread)
    return json_response({"id": key.split("_")[1], "key": key}, 201)


async def revoke(call: Call) -> Response:
    """POST /v1/keys/{id}/revoke."""
    parse(bodies.Nothing, call.body)
    ident = call.request.path_params["id"]
    await call.service.in_thread(revoke_key, call.service.database, ident)
    await call.service.in_thread(call.service.keyring.reread)
    return json_response({"id": ident})


async def decide(call: Call) -> Response:
    """POST .../decisions."""
    begun, service = time.perf_counter(), call.service
    wanted = parse(bodies.Deciding, call.body)
    values: dict[str, Any] = {"allowed": wanted.allowed, "segment": wanted.segment}
    size = wanted.size
    if wanted.context is None and wanted.contexts is None:
        values["size"] = size
    else:
        given = size if "size" in wanted.model_fields_set else None
        values["contexts"] = plain_contexts(given, wanted.context, wanted.contexts)
        size = len(values["contexts"])
    if call.caller.scope == "guest" and wanted.allowed is not None:
        raise Problem(403, "scope", "a key of scope guest decides among all arms; leave out allowed")
    service.gate.count(call.caller, size)
    made = await call.ask("decide", values, most=service.settings.most_open)
    service.metrics.decide.labels(call.name).observe(time.perf_counter() - begun)
    service.monitors[call.name].count_decisions(call.caller.key_id, size)
    return json_response({"decisions": made})


async def reward(call: Call) -> Response:
    """POST .../rewards: one, or several."""
    begun = time.perf_counter()
    if _SEVERAL.match(call.body):
        many = parse(bodies.ManyRewards, call.body)
        answer = await call.ask("rewards", {"rewards": [[one.id, one.reward] for one in many.rewards]})
    else:
        one = parse(bodies.OneReward, call.body)
        answer = await call.ask("reward", {"id": one.id, "reward": one.reward})
    call.service.metrics.reward.labels(call.name).observe(time.perf_counter() - begun)
    return json_response(answer)


async def forget(call: Call) -> Response:
    """POST .../forget."""
    return json_response(await call.ask("forget", {"ids": parse(bodies.Forgetting, call.body).ids}))


async def arms(call: Call) -> Response:
    """POST .../arms."""
    values = parse(bodies.ArmsChange, call.body).model_dump(exclude_none=True)
    return json_response(await call.ask("arms", values, most=min(call.service.settings.most_arms, MOST_ARMS)))


async def pause(call: Call) -> Response:
    """POST .../pause."""
    return await _steer(call, "pause")


async def resume(call: Call) -> Response:
    """POST .../resume."""
    return await _steer(call, "resume")


async def restart(call: Call) -> Response:
    """POST .../restart."""
    return await _steer(call, "restart")


async def _steer(call: Call, kind: str) -> Response:
    parse(bodies.Nothing, call.body)
    return json_response(await call.ask(kind, {}))


# --- requests that only read ----------------------------------------------------------------------------------------


class Shared:
    """One summary for all who wait for it, and a pause after it: readers, however many, leave time for deciding."""

    def __init__(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        self._make = make
        self._waiting: asyncio.Task[tuple[dict[str, Any], bytes]] | None = None  # one that has not begun
        self._newest: asyncio.Task[tuple[dict[str, Any], bytes]] | None = None
        self._free_at = 0.0

    async def get(self) -> tuple[dict[str, Any], bytes]:
        """A summary that was begun after this call, and its JSON."""
        if self._waiting is None:
            self._waiting = asyncio.ensure_future(self._next(self._newest))
            self._waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._waiting)

    async def _next(self, before: asyncio.Task[Any] | None) -> tuple[dict[str, Any], bytes]:
        if before is not None:
            await asyncio.wait({before})
        await asyncio.sleep(max(self._free_at - time.monotonic(), 0.0))
        self._newest, self._waiting = self._waiting, None
        begun = time.monotonic()
        try:
            made = await self._make()
            return made, await asyncio.to_thread(encoded, made)
        finally:
            ended = time.monotonic()
            self._free_at = ended + min(SUMMARY_PAUSE * (ended - begun), LONGEST_PAUSE)


async def summary(call: Call) -> Response:
    """GET .../summary."""
    return Response((await _shared(call.service, call.name))[1], media_type="application/json")


async def _shared(service: Service, name: str) -> tuple[dict[str, Any], bytes]:
    await service.host.find(name)
    monitor = service.monitors[name]
    if monitor.shared is None:
        monitor.shared = Shared(lambda: _summary(service, name))
    shared: Shared = monitor.shared
    return await shared.get()


async def _summary(service: Service, name: str) -> dict[str, Any]:
    """The summary of an experiment that is decided here."""
    found = await service.host.inspect(name, summaries.inspect_summary)
    monitor = service.monitors[name]
    seen = await service.in_thread(monitor.observer.get)
    of_keys = health.of_keys(monitor.decisions_by_key, service.keyring.names())
    of_keys += health.of_ending_keys(service.keyring.ending(ENDING_DAYS))
    experiment = service.host.here.get(name)
    of_storage = health.of_storage(None if experiment is None else experiment.failure)
    definition, more = monitor.observer.view.definition, [*of_storage, *of_keys]
    answer: dict[str, Any] = await service.in_thread(lambda: summaries.summary(definition, found, seen, more=more))
    service.metrics.health.labels(name).set(len(answer["health"]))
    return answer


async def keep_health(service: Service) -> None:
    """Check every experiment now and then: the metric is kept up to date, and a new problem is logged once."""
    known: dict[str, set[str]] = {}
    while True:
        await asyncio.sleep(HEALTH_SECONDS)
        for name in service.host.here:
            begun = time.monotonic()
            try:
                found = (await _shared(service, name))[0]["health"]
            except (DriftbanditsError, Elsewhere, sa.exc.SQLAlchemyError) as error:
                log.warning("the health of %s could not be checked: %s", name, first_line(error))
                continue
            said = {re.sub(r"[\d.,%]+", "", sentence)[:40]: sentence for sentence in found}  # numbers move on
            for kind in said.keys() - known.get(name, set()):
                log.warning("experiment %s: %s", name, said[kind])
            known[name] = set(said)
            await asyncio.sleep(20.0 * (time.monotonic() - begun))  # a twentieth of the time at most


async def changes(call: Call) -> Response:
    """GET .../changes."""
    found, beliefs, progress = await call.service.host.inspect(call.name, summaries.inspect_changes)
    seen = await call.service.in_thread(call.service.monitors[call.name].observer.get)
    return json_response(summaries.changes(found, beliefs, progress, seen))


async def history(call: Call) -> Response:
    """GET .../history?points=N."""
    points = call.number("points", usual=MOST_POINTS, least=2, most=MOST_POINTS)
    found, progress = await call.service.host.inspect(call.name, summaries.inspect_history)
    seen = await call.service.in_thread(call.service.monitors[call.name].observer.get)
    return json_response(summaries.history(found, progress, seen, points=points))


async def contexts(call: Call) -> Response:
    """GET .../contexts."""
    host, service = call.service.host, call.service
    await host.find(call.name)
    view = service.monitors[call.name].observer.view
    if view.definition.contexts is None:
        raise InputError(f"experiment {call.name!r} has no contexts")
    latest = await service.in_thread(by_context.latest_contexts, view)
    weights = await host.inspect(call.name, by_context.inspect_columns)
    parts = by_context.parts_of(view.definition.contexts, latest) if latest and weights is not None else {}
    slices = [
        await host.inspect(call.name, partial(by_context.inspect_slice, part=part, latest=latest))
        for part in by_context.shown(parts, weights or {})
    ]
    return json_response({"columns": weights or {}, "slices": [one for one in slices if one is not None]})


async def events(call: Call) -> Response:
    """GET .../events?after=SEQ&limit=N."""
    after = call.number("after", usual=0, least=0, most=2**62)
    limit = call.number("limit", usual=MOST_EVENTS, least=1, most=MOST_EVENTS)
    return json_response(await call.service.in_thread(_events, call.service, call.name, after, limit))


def _events(service: Service, name: str, after: int, limit: int) -> dict[str, Any]:
    view = service.database.view(name)
    with view.journal() as journal:
        oldest = journal.oldest()
        first = after if oldest is None else max(after, oldest.seq - 1)
        names = arm_names(journal, view)
        rows = [summaries.event_values(event, view.token, names) for event in journal.events(first, first + limit)]
    return {"events": rows, "next": rows[-1]["seq"] if rows else after}


async def decision(call: Call) -> Response:
    """GET .../decisions/{id}: by a replay in a process of its own."""
    view = await call.service.in_thread(call.service.database.view, call.name)
    found = await asyncio.to_thread(audit_in_subprocess, view, call.request.path_params["id"])
    return json_response(asdict(found))


async def export(call: Call) -> Response:
    """GET .../export.parquet, in pieces."""
    view = await call.service.in_thread(call.service.database.view, call.name)
    if call.service.exports.locked():
        raise LiveError("two exports are under way; try again in a while")
    return Pieces(parquet_pieces(view), call.service.exports)


class Pieces(Response):
    """A Parquet file in pieces as they are made; a client that takes none for a minute is disconnected."""

    media_type = "application/vnd.apache.parquet"

    def __init__(self, pieces: Iterator[Piece], turn: asyncio.Semaphore) -> None:
        self._pieces, self._turn = pieces, turn
        super().__init__(headers={"content-disposition": 'attachment; filename="export.parquet"'})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        del scope, receive
        async with self._turn:
            try:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                while (piece := await asyncio.to_thread(next, self._pieces, None)) is not None:
                    async with asyncio.timeout(PIECE_SECONDS):
                        await send({"type": "http.response.body", "body": piece.content, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                await asyncio.to_thread(self._pieces.close)  # type: ignore[attr-defined]


async def experiments(call: Call) -> Response:
    """GET /v1/experiments: one row per experiment, oldest first."""
    return json_response({"experiments": await call.service.in_thread(_rows, call.service)})


def _rows(service: Service) -> list[dict[str, Any]]:
    rows = []
    for name in service.database.names():
        monitor = service.monitors.get(name)
        try:
            view = service.database.view(name) if monitor is None else monitor.observer.view
        except JournalError as error:  # the others can be listed all the same
            rows.append({"name": name, "here": False, "mode": "damaged", "trouble": first_line(error)})
            continue
        with view.journal() as journal:
            newest = journal.newest()
        row: dict[str, Any] = {
            "name": name,
            "policy": view.definition.policy,
            "arms": len(view.definition.arms),
            "events": 0 if newest is None else newest.seq,
            "time": None if newest is None or newest.damage else newest.time / 1e6,
            "here": name in service.host.here,
        }
        if monitor is not None and row["here"]:
            row |= _counted(monitor)
        rows.append(row)
    return rows


def _counted(monitor: Monitor) -> dict[str, Any]:
    replica = monitor.replica
    return {
        "mode": replica.mode,
        "arms": sum(not entry.retired for entry in replica.entries),
        "decisions": replica.counts.decisions,
        "rewards": replica.counts.rewards,
        "open": len(replica.open),
        "changes": monitor.changes_found,
    }


async def metrics(call: Call) -> Response:
    """GET /metrics."""
    text = await call.service.in_thread(call.service.metrics.text)
    return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")
