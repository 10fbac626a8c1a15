"""The log of an experiment as Parquet, in pieces as they are made: nothing is kept, whatever its length."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from driftbandits.live import View
from driftbandits.live.exporting import JournalLog, log_schema

PIECE_SECONDS = 60.0  # for a client to take a piece: the journal cannot be tidied while it is read


class _Sink:
    """A file that is written to and emptied in turns."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        self._size += len(self._written[-1])
        return len(self._written[-1])

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def take(self) -> bytes:
        taken, self._written = b"".join(self._written), []
        return taken


def parquet_pieces(view: View) -> Iterator[bytes]:
    """The file, piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = _Sink()
    with view.journal() as journal:
        log = JournalLog(journal, view)
        schema = log_schema(pa, log)
        writer = pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema)
        for columns in log.chunks():
            writer.write_table(pa.table(columns, schema=schema))
            yield sink.take()
    writer.close()
    yield sink.take()


class Pieces(Response):
    """An answer in pieces as they are made; whoever takes none for a minute is left."""

    media_type = "application/vnd.apache.parquet"

    def __init__(self, pieces: Iterator[bytes], turn: asyncio.Semaphore) -> None:
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
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                await asyncio.to_thread(self._pieces.close)  # type: ignore[attr-defined]
