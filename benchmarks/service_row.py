"""Servers that only commit a row per request, for comparison: `python -m benchmarks.service_row KIND FILE`.

`bare` is FastAPI and SQLite as one writes it: models for bodies and answers, and a commit per request with synchronous
FULL. `together` has the service's parser and group commit (one thread takes what waits, at most 256, in one
transaction), and reads no bodies. Neither has a policy, checks or keys.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
import threading
from collections import deque
from concurrent.futures import Future

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from driftbandits.service.hosting import Waiting

TOGETHER = 256
_ANSWER = {"id": "1-00000000", "arm": "arm 1", "probability": 0.05, "fallback": False}


def _connect(file: str) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body BLOB)")
    return connection


class Deciding(BaseModel):
    """How often."""

    size: int = 1


class Decision(BaseModel):
    """One."""

    id: str
    arm: str
    probability: float
    fallback: bool = False


class Decisions(BaseModel):
    """Several."""

    decisions: list[Decision]


class Reward(BaseModel):
    """Of a decision."""

    id: str
    reward: float


class Accepted(BaseModel):
    """How many."""

    accepted: int


def create_bare(file: str) -> FastAPI:
    """As one writes it."""
    app, connection, lock = FastAPI(), _connect(file), threading.Lock()

    def commit(*rows: str) -> int:
        with lock:
            connection.execute("BEGIN IMMEDIATE")
            for row in rows:
                number = connection.execute("INSERT INTO rows (body) VALUES (?)", (row,)).lastrowid
            connection.execute("COMMIT")
        return number or 0

    @app.post("/v1/experiments/{name}/decisions")
    def decide(name: str, body: Deciding) -> Decisions:
        del name
        arms = [f"arm {random.randrange(20)}" for _ in range(body.size)]
        last = commit(*arms)
        made = [Decision(id=f"{last - k}", arm=arm, probability=0.05) for k, arm in enumerate(arms)]
        return Decisions(decisions=made)

    @app.post("/v1/experiments/{name}/rewards")
    def reward(name: str, body: Reward) -> Accepted:
        del name
        commit(body.model_dump_json())
        return Accepted(accepted=1)

    return app


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
        connection = _connect(self._file)
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


def create_together(file: str) -> FastAPI:
    """With group commit."""
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
    made = {"bare": create_bare, "together": create_together}[sys.argv[1]](sys.argv[2])
    _Server(uvicorn.Config(made, port=0, http="httptools", access_log=False, log_config=None)).run()
