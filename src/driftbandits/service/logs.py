"""Log lines: one JSON object each, to standard error; and one per request, at debug alone."""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("driftbandits.service.requests")
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName", "color_message"}
SECURE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers send the login form with Origin: null
    (b"cache-control", b"no-store"),
]


class JsonLines(logging.Formatter):
    """Time, level, message, and whatever was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(level: str) -> None:
    """Log everything of this library and of the server in JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("driftbandits", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "driftbandits" else "WARNING")


class Requests:
    """Adds headers that every answer has, and a log line per request where someone wants it."""

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
