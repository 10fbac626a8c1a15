"""`serve`: a server that says where it is, logs JSON lines, and ends within ten seconds of SIGTERM."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import uvicorn

from driftbandits.errors import LiveError
from driftbandits.service.app import create_app
from driftbandits.service.hosting import Service
from driftbandits.service.protocol import Connections, protocol_of
from driftbandits.service.settings import Settings

log = logging.getLogger("driftbandits.service")
FINISH_SECONDS = 4  # for requests under way
END_SECONDS = 9.5  # for everything; what is not done then need not be: the journal is the truth
SWITCH_SECONDS = 0.001  # after which a policy that computes lets the event loop have its turn
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "taskName", "color_message"}


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


def set_up_logs(level: str) -> None:
    """Log everything of this library and of the server in JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("driftbandits", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "driftbandits" else "WARNING")


class Server(uvicorn.Server):
    """Says where it listens, and makes sure that it ends."""

    def __init__(self, config: uvicorn.Config, say: Callable[[str], None]) -> None:
        super().__init__(config)
        self._say = say
        self._ending = False

    async def startup(self, sockets: object = None) -> None:
        """Listen."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            where = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
            log.info("listening", extra={"url": where, "pid": os.getpid()})
            self._say(where)

    def handle_exit(self, sig: int, frame: object) -> None:
        """SIGTERM or SIGINT: stop accepting, finish, end; at the latest after ten seconds."""
        if not self._ending:
            self._ending = True
            timer = threading.Timer(END_SECONDS, _end)
            timer.daemon = True
            timer.start()
        del sig, frame
        self.should_exit = True  # uvicorn's own would end by the signal again, after everything was closed


def _end() -> None:
    log.error("not everything was closed in time; nothing is lost, the next start replays more")
    sys.stderr.flush()
    os._exit(1)


def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Serve until a signal comes; `say` is told the address of the page."""
    set_up_logs(settings.log_level)
    _raise_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    service = Service(settings)
    server = Server(configure(service), say)
    with contextlib.suppress(KeyboardInterrupt, SystemExit):  # uvicorn exits where it cannot listen
        server.run()
    if not server.started:
        service.database.close()
        raise LiveError(f"could not listen at {settings.host}:{settings.port}; is another server there? Take --port")


def configure(service: Service) -> uvicorn.Config:
    """How uvicorn serves it."""
    settings = service.settings
    return uvicorn.Config(
        create_app(service),
        host=settings.host,
        port=settings.port,
        http=protocol_of(Connections(settings.most_connections, settings.most_per_address, service.refused)),
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=FINISH_SECONDS,
        backlog=1024,
    )


def _raise_limit() -> None:
    """Raise the limit on open files: every connection needs one, and the default is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
