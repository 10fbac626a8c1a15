"""Bodies of requests and answers: read within limits and checked by the classes that describe them in /openapi.json."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect, Request

from driftbandits.errors import near_and_valid
from driftbandits.live.definition import LONGEST_NAME
from driftbandits.live.requests import LONGEST_KEY, MOST_PER_CALL
from driftbandits.service.problems import Problem
from driftbandits.text import shown

MOST_DEPTH = 20  # of brackets within brackets
BODY_SECONDS = 30.0  # for a whole body to arrive
B = TypeVar("B", bound=BaseModel)
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Id = Annotated[str, Field(max_length=40)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Context = dict[str, Any] | list[Any] | None
COLUMNS = (
    'columns of each request by name: [low, high], "number", "boolean", a list of names, {"cyclic": 24}, '
    '{"vector": 64} or {"optional": one of these}; or the size of a vector'
)


class Body(BaseModel):
    """A body with exactly these fields, without conversion between numbers and texts."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Option(Body):
    """An arm, or a segment: a name, and numbers that describe it."""

    name: Name
    features: list[Finite] | None = None


class Creation(Body):
    """What an experiment is made with."""

    name: Name
    arms: Annotated[list[Option | Name], Field(min_length=1)]
    policy: str = "AutoBandit"
    settings: dict[str, Any] | None = None
    segments: list[Option | Name] | None = None
    contexts: Annotated[dict[str, Any] | int | None, Field(description=COLUMNS)] = None
    kernel: dict[str, Any] | None = None
    reward_range: Annotated[list[Finite], Field(min_length=2, max_length=2)] = [0.0, 1.0]
    patience: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    missing: Finite | Literal["forget"] | None = None
    fallback: str | None = None
    seed: int | None = None


class Deciding(Body):
    """How often to decide, among which arms, for which request; `contexts` decides once for each of them."""

    size: Annotated[int, Field(ge=1, le=MOST_PER_CALL)] = 1
    allowed: list[str] | None = None
    segment: str | None = None
    context: Annotated[Context, Field(description="columns by name, or numbers, as the experiment declares")] = None
    contexts: Annotated[list[Context], Field(min_length=1, max_length=MOST_PER_CALL)] | None = None


class OneReward(Body):
    """The reward of a decision."""

    id: Id
    reward: Finite


class ManyRewards(Body):
    """Rewards of several decisions.

    Each is judged for itself: one out of range, or of a decision that is not there, does not stop the others. A body
    that has another form is refused whole.
    """

    rewards: Annotated[list[OneReward], Field(max_length=MOST_PER_CALL)]


class Forgetting(Body):
    """Decisions whose rewards will never come."""

    ids: Annotated[list[Id], Field(max_length=MOST_PER_CALL)]


class ArmsChange(Body):
    """Arms that come and go."""

    add: list[Option | Name] = []
    retire: list[str] = []
    bring_back: list[str] = []


class KeyCreation(Body):
    """A new key: for whom, what it may do, how often, and for how long."""

    scope: Literal["guest", "decide", "read", "admin"]
    name: Name = "unnamed"
    per_minute: Annotated[int, Field(ge=1, le=10**9)] | None = None
    days: Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)] | None = None


class KeyRotation(Body):
    """For how long the old key works beside the new one."""

    hours: Annotated[float, Field(gt=0, le=876_000, allow_inf_nan=False)] = 24.0


class Nothing(Body):
    """An empty body, or {}."""


# --- answers ----------------------------------------------------------------------------------------------------------


class Created(BaseModel):
    """The experiment that was made."""

    name: str


class KeyMade(BaseModel):
    """A key, shown this once, and its id."""

    id: str
    key: str


class KeyIdentity(BaseModel):
    """Which key it was."""

    id: str


class KeyFacts(BaseModel):
    """A key without its secret; times in seconds since 1970."""

    id: str
    name: str
    scope: str
    per_minute: int | None
    created: float
    expires: float | None
    revoked: float | None


class Keys(BaseModel):
    """All keys, oldest first."""

    keys: list[KeyFacts]


class DecisionAnswer(BaseModel):
    """Play `arm`; it was drawn with `probability`. `fallback`: the fallback decided instead of the policy."""

    id: str
    arm: str
    probability: float
    fallback: bool


class Decisions(BaseModel):
    """What was decided."""

    decisions: list[DecisionAnswer]


class RejectedReward(BaseModel):
    """A reward that was not taken, and why."""

    id: str
    reason: str


class RewardAnswer(BaseModel):
    """The result of sending rewards."""

    accepted: int
    repeated: int
    late: int
    rejected: list[RejectedReward]


class Forgotten(BaseModel):
    """How many decisions were forgotten."""

    forgotten: int


class ArmsAnswer(BaseModel):
    """The present arms."""

    active: list[str]
    retired: list[str]


class Paused(BaseModel):
    """Whether the fallback answers."""

    paused: bool


class Restarted(BaseModel):
    """How often it was restarted."""

    restarts: int


class Slice(BaseModel):
    """Expected rewards over a column, "number" or "category": by value, of the best arm and of the leading ones."""

    column: str
    kind: str
    values: list[Any]
    best: list[str]
    highest: list[float]
    arms: list[str]
    estimate: list[list[float]]


class ByContext(BaseModel):
    """How likely each column of the contexts matters, and the slices of those that do."""

    columns: dict[str, float]
    slices: list[Slice]


class Events(BaseModel):
    """Rows of the journal, and what to ask for next."""

    events: list[dict[str, Any]]
    next: int


class ProblemBody(BaseModel):
    """An error: RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


# --- reading them ----------------------------------------------------------------------------------------------------


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
    """A body as one of the classes above; an empty one is {}.

    >>> from driftbandits.service.requests import Deciding
    >>> parse(Deciding, b'{"size": 3}').size
    3
    """
    try:
        return kind.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise _explained(kind, error) from None


def check_depth(value: Any, left: int = MOST_DEPTH) -> None:
    """Refuse deeply nested brackets, where a body may hold anything."""
    if isinstance(value, dict | list):
        if left == 0:
            raise _too_deep()
        for inner in value.values() if isinstance(value, dict) else value:
            check_depth(inner, left - 1)


def _too_deep() -> Problem:
    return Problem(422, "too-deep", f"JSON may have at most {MOST_DEPTH} brackets within brackets")


def _explained(kind: type[BaseModel], error: ValidationError) -> Problem:
    """The first error; for an unknown field with the nearest valid one."""
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
    return isinstance(part, str) and (
        part in ("Option", "float", "int") or part.startswith(("constrained", "literal", "dict[", "list["))
    )


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
