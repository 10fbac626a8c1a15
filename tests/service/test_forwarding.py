"""A server that holds a lease is frozen with a request in its hands: whoever forwarded that learns who took over."""

import asyncio

import pytest
from starlette.requests import Request

from driftbandits.errors import NotStoredError
from driftbandits.service.hosting import Elsewhere, Forwarding
from driftbandits.service.keys import Caller


class Moved:
    """A host that knows, after a while, that another server decides."""

    def __init__(self):
        self.asked = 0

    def has_moved(self, name, address):
        assert (name, address.partition(":")[0]) == ("prices", "http")
        self.asked += 1
        return self.asked > 2


async def forwarded(method, *headers):
    """What becomes of a request to a server that accepts it and says nothing."""
    hanging = asyncio.Event()

    async def say_nothing(reader, writer):
        await reader.read(1)
        await hanging.wait()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        host, port = Moved(), server.sockets[0].getsockname()[1]
        sending = Forwarding(host, plain=False)
        scope = {"type": "http", "method": method, "headers": headers, "query_string": b"", "raw_path": b"/"}
        there = Elsewhere("prices", f"http://127.0.0.1:{port}")
        try:
            return await sending._send(Request(scope), Caller("a", "admin", ""), b"{}", there), host.asked
        finally:
            hanging.set()
            await sending.close()


@pytest.mark.parametrize(("method", "headers"), [("GET", ()), ("POST", ((b"idempotency-key", b"one"),))])
def test_what_can_be_repeated_is_sent_to_the_new_holder(method, headers):
    assert asyncio.run(forwarded(method, *headers)) == (None, 3)


def test_of_anything_else_nobody_knows_whether_it_was_done():
    with pytest.raises(NotStoredError, match="broke off"):
        asyncio.run(forwarded("POST"))
