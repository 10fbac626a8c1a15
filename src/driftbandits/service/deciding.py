"""Requests that change an experiment: decisions, rewards, and steering. One request is one call of its writer."""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from typing import Any

from starlette.responses import Response

from driftbandits.errors import InputError
from driftbandits.live.definition import MOST_ARMS, define
from driftbandits.service import bodies
from driftbandits.service.calls import Call, json_response
from driftbandits.service.hosting import Elsewhere
from driftbandits.service.problems import Problem
from driftbandits.service.reading import check_depth, idempotency_key, parse

_SEVERAL = re.compile(rb'\s*\{\s*"rewards"')  # else it is one reward


async def create(call: Call) -> Response:
    """POST /v1/experiments."""
    service, key = call.service, idempotency_key(call.request)
    wanted = parse(bodies.Creation, call.body)
    limit = service.settings.most_arms
    for what, given in (("arms", wanted.arms), ("segments", wanted.segments or [])):
        if len(given) > limit:
            raise InputError(f"an experiment has at most {limit:,} {what} here, got {len(given):,}")
    if "/" in wanted.name or wanted.name in (".", ".."):
        raise InputError(f"the name of an experiment stands in paths, so it may have no slash, got {wanted.name!r}")
    check_depth([wanted.settings, wanted.kernel])
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
    service.database.make(wanted.name, define(**fields), key=key, digest=digest)


async def decide(call: Call) -> Response:
    """POST .../decisions."""
    begun, service, name = time.perf_counter(), call.service, call.name
    wanted = parse(bodies.Deciding, call.body)
    watch = service.watches.get(name)
    if watch is not None and len(watch.replica.open) + wanted.size > service.settings.most_open:
        raise Problem(
            429,
            "too-many-open",
            f"{len(watch.replica.open):,} decisions wait for a reward, and {service.settings.most_open:,} may: send "
            f"rewards, forget decisions, or set patience",
        )
    values = {"size": wanted.size, "allowed": wanted.allowed, "segment": wanted.segment}
    made = await service.host.ask(name, "decide", values, idempotency_key(call.request))
    service.metrics.decide.labels(name).observe(time.perf_counter() - begun)
    service.watches[name].count_decisions(call.caller.key_id, wanted.size)
    return json_response({"decisions": made})


async def reward(call: Call) -> Response:
    """POST .../rewards: one, or several."""
    begun, service, name = time.perf_counter(), call.service, call.name
    kind, values = _rewards(call.body)
    answer = await service.host.ask(name, kind, values, idempotency_key(call.request))
    service.metrics.reward.labels(name).observe(time.perf_counter() - begun)
    return json_response(answer)


def _rewards(body: bytes) -> tuple[str, dict[str, Any]]:
    if _SEVERAL.match(body):
        many = parse(bodies.ManyRewards, body)
        return "rewards", {"rewards": [[one.id, one.reward] for one in many.rewards]}
    one = parse(bodies.OneReward, body)
    return "reward", {"id": one.id, "reward": one.reward}


async def forget(call: Call) -> Response:
    """POST .../forget."""
    wanted = parse(bodies.Forgetting, call.body)
    answer = await call.service.host.ask(call.name, "forget", {"ids": wanted.ids}, idempotency_key(call.request))
    return json_response(answer)


async def arms(call: Call) -> Response:
    """POST .../arms."""
    wanted = parse(bodies.ArmsChange, call.body)
    limit = min(call.service.settings.most_arms, MOST_ARMS)
    await call.service.host.find(call.name)
    there = len(call.service.watches[call.name].replica.entries)
    if there + len(wanted.add) > limit:
        raise InputError(f"an experiment has at most {limit:,} arms here, those that were retired included")
    values = wanted.model_dump(exclude_none=True)
    return json_response(await call.service.host.ask(call.name, "arms", values, idempotency_key(call.request)))


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
    return json_response(await call.service.host.ask(call.name, kind, {}, idempotency_key(call.request)))
