"""The log of an experiment as Parquet, in pieces as they are made: nothing is kept, whatever its length."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from driftbandits.live.export import Piece

PIECE_SECONDS = 60.0  # for a client to take a piece: the journal cannot be tidied while it is read


class Pieces(Response):
    """An answer in pieces as they are made; whoever takes none for a minute is left."""

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
