"""A server that only commits a row per request, for comparison: `python -m benchmarks.service_row FILE`.

The same FastAPI, parser and group commit as the service (one thread takes what waits, at most 256, in one transaction
with synchronous FULL), and nothing else: no policy, no checks, no keys.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import threading
from collections import deque
from concurrent.futures import Future

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from driftbandits.service.hosting import Waiting

TOGETHER = 256
_ANSWER = {"id": "1-00000000", "arm": "arm 1", "probability": 0.05, "fallback": False}


class Rows:
    """One thread that writes what waits."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._waiting: deque[tuple[bytes, Future[None]]] = deque()
        self._wake = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, body: bytes) -> Future[None]:
        future: Future[None] = Future()
        with self._wake:
            self._waiting.append((body, future))
            self._wake.notify()
        return future

    def _run(self) -> None:
        connection = sqlite3.connect(self._file, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body BLOB)")
        while True:
            with self._wake:
                while not self._waiting:
                    self._wake.wait()
                taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), TOGETHER))]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO rows (body) VALUES (?)", [(body,) for body, _ in taken])
            connection.execute("COMMIT")
            for _, future in taken:
                future.set_result(None)


def create(file: str) -> FastAPI:
    app, rows = FastAPI(docs_url=None, redoc_url=None, openapi_url=None), Rows(file)
    waiting: list[Waiting] = []

    async def commit(request: Request) -> bytes:
        if not waiting:
            waiting.append(Waiting(asyncio.get_running_loop()))
        body = await request.body()
        await waiting[0].wait(rows.add(body))
        return body

    @app.post("/v1/experiments/{name}/decisions")
    async def decide(request: Request) -> Response:
        size = json.loads(await commit(request)).get("size", 1)
        return Response(json.dumps({"decisions": [_ANSWER] * size}), media_type="application/json")

    @app.post("/v1/experiments/{name}/rewards")
    async def reward(request: Request) -> Response:
        await commit(request)
        return Response(b'{"accepted":1,"repeated":0,"late":0,"rejected":[]}', media_type="application/json")

    return app


class _Server(uvicorn.Server):
    async def startup(self, sockets: object = None) -> None:
        await super().startup(sockets)  # type: ignore[arg-type]
        port = self.servers[0].sockets[0].getsockname()[1]
        print(json.dumps({"message": "listening", "url": f"http://127.0.0.1:{port}"}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    _Server(uvicorn.Config(create(sys.argv[1]), port=0, http="httptools", access_log=False, log_config=None)).run()
