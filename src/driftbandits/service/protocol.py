"""uvicorn's fast HTTP parser, with a limit that it lacks: how long the headers of a request may be."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADERS = 65_536  # bytes


class LimitedProtocol(HttpToolsProtocol):
    """Ends a connection whose headers do not end."""

    _unfinished = 0

    def data_received(self, data: bytes) -> None:
        """Bytes of a client."""
        self._unfinished += len(data)
        super().data_received(data)
        if self._unfinished > MOST_HEADERS and not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            )
            self.transport.close()

    def on_headers_complete(self) -> None:
        """The headers ended within the limit."""
        super().on_headers_complete()
        self._unfinished = 0

    def on_body(self, body: bytes) -> None:
        """A body has limits of its own."""
        self._unfinished = 0
        super().on_body(body)
