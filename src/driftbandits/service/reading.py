"""Bodies of requests: read within limits, checked, and what is wrong said with the cure."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from driftbandits.errors import near_and_valid
from driftbandits.live.requests import LONGEST_KEY
from driftbandits.service.problems import Problem
from driftbandits.showing import shown

MOST_DEPTH = 20  # of brackets within brackets
BODY_SECONDS = 30.0  # for a whole body to arrive
B = TypeVar("B", bound=BaseModel)


async def read_bytes(request: Request, most: int) -> bytes:
    """The body; 413 where it is too long, whatever its headers say of its length."""
    declared = request.headers.get("content-length")
    if declared is not None and int(declared) > most:
        raise _too_long(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_long(most)
                parts.append(part)
    except TimeoutError:
        raise Problem(408, "slow", f"the body did not arrive within {BODY_SECONDS:g} s") from None
    except ClientDisconnect:
        raise Problem(400, "cut", "the connection ended before the body did") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_long(most: int) -> Problem:
    return Problem(413, "too-long", f"a body has at most {most:,} bytes; send it in parts", connection="close")


def parse(kind: type[B], body: bytes) -> B:
    """A body as one of `bodies`; an empty one is {}.

    >>> from driftbandits.service.bodies import Deciding
    >>> parse(Deciding, b'{"size": 3}').size
    3
    """
    try:
        return kind.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise _explained(kind, error) from None


def check_depth(value: Any, left: int = MOST_DEPTH) -> None:
    """Refuse brackets within brackets within brackets, where a body may hold anything."""
    if isinstance(value, dict | list):
        if left == 0:
            raise _too_deep()
        for inner in value.values() if isinstance(value, dict) else value:
            check_depth(inner, left - 1)


def _too_deep() -> Problem:
    return Problem(422, "too-deep", f"JSON may have at most {MOST_DEPTH} brackets within brackets")


def _explained(kind: type[BaseModel], error: ValidationError) -> Problem:
    """What is wrong first; an unknown field with the nearest that there is."""
    found = error.errors(include_url=False, include_context=False)
    first = min(found, key=lambda one: one["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in first["loc"] if not _is_branch(part))
    if first["type"] == "json_invalid" and "recursion limit" in first["msg"]:
        return _too_deep()
    if first["type"] == "json_invalid":
        return Problem(400, "not-json", f"the body is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}")
    if first["type"] == "extra_forbidden":
        name = first["loc"][-1]
        fields = list(kind.model_fields) if len(first["loc"]) == 1 else ["name", "features"]
        fields = ["id", "reward"] if first["loc"][0] == "rewards" else fields
        if not fields:
            return Problem(422, "input", f"this path takes an empty body, or {{}}, got the field {place!r}")
        return Problem(422, "input", f"there is no field {place!r}; {near_and_valid(name, fields)}")
    given = "" if first["type"] == "missing" else f", got {shown(first['input'])}"
    return Problem(422, "input", f"{place or 'the body'}: {first['msg']}{given}")


def _is_branch(part: Any) -> bool:
    """Whether a part of a place names a branch of a union rather than a field."""
    return isinstance(part, str) and (part in ("Option", "float") or part.startswith(("constrained", "literal")))


def idempotency_key(request: Request) -> str | None:
    """The header of that name."""
    key = request.headers.get("idempotency-key")
    if key is not None and (
        not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable() or " " in key
    ):
        raise Problem(
            422, "input", f"Idempotency-Key must have 1 to {LONGEST_KEY} printable characters, without spaces"
        )
    return key
