"""Requests that only look: nothing of them is journaled."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from starlette.responses import Response

from driftbandits.errors import DriftbanditsError, JournalError, LiveError
from driftbandits.live.decision_audit import audit_in_subprocess
from driftbandits.live.export import arm_names, parquet_pieces
from driftbandits.service import gathering, health, telling
from driftbandits.service.calls import Call, json_response
from driftbandits.service.core import Service
from driftbandits.service.export import Pieces
from driftbandits.service.hosting import Elsewhere
from driftbandits.service.problems import Problem
from driftbandits.showing import first_line

MOST_EVENTS = 1_000  # per answer
MOST_POINTS = 500
HEALTH_SECONDS = 30.0  # between two looks
log = logging.getLogger("driftbandits.service")


async def summary(call: Call) -> Response:
    """GET .../summary."""
    return json_response(await summary_values(call.service, call.name))


async def summary_values(service: Service, name: str) -> dict[str, Any]:
    """The summary of an experiment that is decided here."""
    found = await service.host.inspect(name, gathering.gather)
    watch = service.watches[name]
    seen = await service.in_thread(watch.observer.get)
    of_keys = health.of_keys(watch.decisions_by_key, service.keyring.names())
    answer = telling.summary(watch.observer.view, found, seen, of_keys=of_keys)
    service.metrics.health.labels(name).set(len(answer["health"]))
    return answer


async def keep_health(service: Service) -> None:
    """Look at every experiment now and then: the metric is kept, and a new trouble is logged once."""
    known: dict[str, set[str]] = {}
    while True:
        await asyncio.sleep(HEALTH_SECONDS)
        for name in service.host.here:
            begun = time.monotonic()
            try:
                found = (await summary_values(service, name))["health"]
            except (DriftbanditsError, Elsewhere, sa.exc.SQLAlchemyError) as error:
                log.warning("the health of %s could not be looked at: %s", name, first_line(error))
                continue
            said = {re.sub(r"[\d.,%]+", "", sentence)[:40]: sentence for sentence in found}  # numbers move on
            for kind in said.keys() - known.get(name, set()):
                log.warning("experiment %s: %s", name, said[kind])
            known[name] = set(said)
            await asyncio.sleep(20.0 * (time.monotonic() - begun))  # a twentieth of the time at most


async def changes(call: Call) -> Response:
    """GET .../changes."""
    found, beliefs, reached = await call.service.host.inspect(call.name, gathering.gather_changes)
    seen = await call.service.in_thread(call.service.watches[call.name].observer.get)
    return json_response(telling.changes(found, beliefs, reached, seen))


async def history(call: Call) -> Response:
    """GET .../history?points=N."""
    points = _number(call, "points", usual=MOST_POINTS, least=2, most=MOST_POINTS)
    found, reached = await call.service.host.inspect(call.name, gathering.gather_history)
    seen = await call.service.in_thread(call.service.watches[call.name].observer.get)
    return json_response(telling.history(found, reached, seen, points=points))


async def events(call: Call) -> Response:
    """GET .../events?after=SEQ&limit=N."""
    after = _number(call, "after", usual=0, least=0, most=2**62)
    limit = _number(call, "limit", usual=MOST_EVENTS, least=1, most=MOST_EVENTS)
    return json_response(await call.service.in_thread(_events, call.service, call.name, after, limit))


def _events(service: Service, name: str, after: int, limit: int) -> dict[str, Any]:
    view = service.database.view(name)
    with view.journal() as journal:
        oldest = journal.oldest()
        first = after if oldest is None else max(after, oldest.seq - 1)
        names = arm_names(journal, view)
        rows = [telling.event_values(event, view.token, names) for event in journal.events(first, first + limit)]
    return {"events": rows, "next": rows[-1]["seq"] if rows else after}


def _number(call: Call, name: str, *, usual: int, least: int, most: int) -> int:
    text = call.request.query_params.get(name)
    if text is None:
        return usual
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise Problem(422, "input", f"{name} must be a whole number from {least:,} to {most:,}, got {text[:40]!r}")
    return int(text)


async def decision(call: Call) -> Response:
    """GET .../decisions/{id}: by a replay in a process aside."""
    view = await call.service.in_thread(call.service.database.view, call.name)
    found = await asyncio.to_thread(audit_in_subprocess, view, call.request.path_params["id"])
    return json_response(asdict(found))


async def export(call: Call) -> Response:
    """GET .../export.parquet, in pieces."""
    view = await call.service.in_thread(call.service.database.view, call.name)
    if call.service.exports.locked():
        raise LiveError("two exports are under way; try again in a while")
    return Pieces(parquet_pieces(view), call.service.exports)


async def experiments(call: Call) -> Response:
    """GET /v1/experiments: what there is."""
    return json_response({"experiments": await listed(call.service)})


async def listed(service: Service) -> list[dict[str, Any]]:
    """One row per experiment, oldest first."""
    rows: list[dict[str, Any]] = await service.in_thread(_listed, service)
    return rows


def _listed(service: Service) -> list[dict[str, Any]]:
    rows = []
    for name in service.database.names():
        watch = service.watches.get(name)
        try:
            view = service.database.view(name) if watch is None else watch.observer.view
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
        if watch is not None and row["here"]:
            row |= _counted(watch)
        rows.append(row)
    return rows


def _counted(watch: Any) -> dict[str, Any]:
    replica = watch.replica
    mode = "fallback" if replica.policy is None else "paused" if replica.paused else "running"
    return {
        "mode": mode,
        "arms": sum(not entry.retired for entry in replica.entries),
        "decisions": replica.counts.decisions,
        "rewards": replica.counts.rewards,
        "open": len(replica.open),
        "changes": watch.changes_found,
    }
