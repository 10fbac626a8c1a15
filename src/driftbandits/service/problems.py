"""Errors as RFC 9457 problem JSON: the library's own message and cure, and a type by which a client knows the error."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from driftbandits import errors
from driftbandits.live.requests import TooManyOpenError
from driftbandits.text import first_line

MEDIA_TYPE = "application/problem+json"
URN = "urn:driftbandits:"
RETRY_SECONDS = 1

# The first class that fits decides: subclasses before their bases.
STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.UnknownExperimentError, 404, "unknown-experiment"),
    (errors.UnknownDecisionError, 404, "unknown-decision"),
    (errors.ExperimentExistsError, 409, "experiment-exists"),
    (errors.KeyReusedError, 422, "key-reused"),
    (errors.ConflictError, 409, "conflict"),
    (errors.GoneError, 410, "gone"),
    (errors.NotStoredError, 503, "not-stored"),
    (errors.OtherDeciderError, 503, "other-decider"),
    (errors.RewardError, 422, "reward"),
    (errors.InputError, 422, "input"),
    (errors.JournalError, 500, "journal"),
    (errors.SchemaError, 500, "schema"),
    (TooManyOpenError, 429, "too-many-open"),
    (errors.LiveError, 503, "busy"),
    (errors.DriftbanditsError, 422, "input"),
)
TITLES = {
    400: "Bad request",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    415: "Not JSON",
    422: "Not usable",
    429: "Too many",
    431: "Too large",
    500: "Fault of the server",
    503: "Try again",
}


class Problem(Exception):  # noqa: N818  # RFC 9457 calls it so
    """An error with a status of its own."""

    def __init__(self, status: int, kind: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def problem_of(error: Exception) -> Problem:
    """The problem for an error of the library."""
    if isinstance(error, Problem):
        return error
    for kind, status, name in STATUS:
        if isinstance(error, kind):
            headers = {"retry_after": str(RETRY_SECONDS)} if status == 503 else {}
            return Problem(status, name, _detail(error), **headers)
    return Problem(500, "fault", f"a fault of the server: {type(error).__name__}; its log says more")


def _detail(error: Exception) -> str:
    if isinstance(error, errors.NotStoredError):
        cause = error.__cause__
        because = "" if cause is None else f" ({first_line(cause)})"
        return f"not known whether it was stored; send it again with the same Idempotency-Key{because}"
    return str(error)


def response_of(error: Exception) -> Response:
    """The answer to an error."""
    found = problem_of(error)
    return Response(body_of(found), found.status, found.headers, MEDIA_TYPE)


def body_of(problem: Problem) -> bytes:
    """The problem as JSON."""
    content: dict[str, Any] = {
        "type": f"{URN}{problem.kind}",
        "title": TITLES.get(problem.status, "Error"),
        "status": problem.status,
        "detail": problem.detail,
    }
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace")
