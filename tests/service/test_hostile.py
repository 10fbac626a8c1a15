"""Clients that mean harm, or do not know better: every limit is a 4xx, and others are served all the while."""

import json
import socket
from urllib.parse import quote

import pytest

from driftbandits.service import protocol
from driftbandits.service.background import serving
from driftbandits.service.protocol import MOST_HEADERS
from tests.service.conftest import Sender

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}} ${7*7} %s %n",
    "'; DROP TABLE events; --",
    "javascript:alert(1)",
    "x" * 200,
    "😀 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
]


@pytest.fixture(scope="module")
def shop(send):
    return send.make("hostile")


def raw(url, content, wait=10.0):
    """Send bytes as they are; what comes back."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        connection.sendall(content)
        found = b""
        try:
            while part := connection.recv(65536):
                found += part
                if b"\r\n\r\n" in found:
                    break
        except TimeoutError:
            pass
        return found


def test_bodies_that_are_too_long(send, shop):
    assert send.post(f"{shop}/decisions", b" " * 1_000_001)[0] == 413
    lies = b"POST %s/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" % shop.encode()
    assert b" 413 " in raw(send.url, lies + b"content-length: 99999999999\r\n\r\n")
    chunks = b"transfer-encoding: chunked\r\n\r\n" + (b"ffff\r\n" + b" " * 0xFFFF + b"\r\n") * 16
    assert b" 413 " in raw(send.url, lies + chunks)


def test_deep_json(send, shop):
    for depth in (30, 500, 100_000):
        body = b'{"name": "x", "arms": ["a"], "settings": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
        status, answer = send.post("/v1/experiments", body)
        assert (status, answer["type"]) == (422, "urn:driftbandits:too-deep")
        assert send.post(f"{shop}/decisions", b"[" * depth)[0] in (400, 422)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "x", "arms": [f"arm {n}" for n in range(1001)]}, "at most 1,000 arms"),
        ({"name": "x", "arms": ["a"], "segments": [f"s {n}" for n in range(1001)]}, "at most 1,000 segments"),
        ({"name": "x" * 201, "arms": ["a"]}, "name"),
        ({"name": "a/b", "arms": ["a"]}, "no slash"),
        ({"name": "..", "arms": ["a"]}, "no slash"),
        ({"name": "a\nb", "arms": ["a"]}, "control codes"),
        ({"name": "", "arms": ["a"]}, "name"),
        ({"name": "x", "arms": ["a\x00b"]}, "control codes"),
        ({"name": "x", "arms": ["\u202egnp.exe"]}, "control codes"),  # turns the text around it
        ({"name": "x", "arms": ["a", "a\u200b"]}, "invisible"),
        ({"name": "x\u200d", "arms": ["a"]}, "invisible"),
        ({"name": "x", "arms": ["a"], "segments": ["\u3164"]}, "invisible"),
        ({"name": "x", "arms": []}, "arms"),
        ({"name": "x", "arms": ["a", "a"]}, "two arms are called"),
        ({"name": "x", "arms": ["a"], "policy": "os.system"}, "no policy is called"),
        ({"name": "x", "arms": ["a"], "policy": "examples/own_policy.py:MyPolicy"}, "no policy is called"),
        ({"name": "x", "arms": ["a"], "kernel": {"name": "__import__"}}, "kernel"),
        ({"name": "x", "arms": ["a"], "reward_range": [1, 0]}, "reward_range"),
        ({"name": "x", "arms": ["a"], "patience": 1e308}, "patience"),
        ({"name": "x", "arms": ["a"], "seed": 2**200}, "seed"),
    ],
)
def test_experiments_that_are_refused(send, body, words):
    status, answer = send.post("/v1/experiments", body)
    assert status == 422
    assert words in answer["detail"]


def test_limits_of_one_experiment(tmp_path):
    limits = {"most_open": 10, "most_arms": 4, "most_experiments": 1}
    with serving(database=f"sqlite:///{tmp_path}/shop.db", **limits) as url:
        send = Sender(url)
        path = send.make("small")
        made = send.decide(path, 10)
        status, answer = send.post(f"{path}/decisions", {})
        assert (status, answer["type"]) == (429, "urn:driftbandits:too-many-open")
        send.post(f"{path}/rewards", {"id": made[0]["id"], "reward": 1})
        assert len(send.decide(path)) == 1
        assert send.post(f"{path}/arms", {"add": ["4"]})[0] == 200
        assert send.post(f"{path}/arms", {"add": ["5"]})[0] == 422
        assert send.post("/v1/experiments", {"name": "second", "arms": ["a"]})[0] == 429
        send.http.close()


def test_headers_that_do_not_end(send):
    head = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
    assert b" 431 " in raw(send.url, head + b"x: " + b"a" * (MOST_HEADERS + 10_000))
    many = b"".join(b"x-%d: y\r\n" % number for number in range(10_000))
    assert b" 431 " in raw(send.url, head + many)
    ended = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: %s\r\n\r\n"
    assert b" 200 " in raw(send.url, ended % (b"a" * 10_000))
    assert b" 431 " in raw(send.url, ended % (b"a" * 70_000))


def end_of(connection):
    """What comes until the server closes."""
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


def test_headers_and_bodies_have_deadlines(send, shop, monkeypatch):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(protocol, "BODY_SECONDS", -1.7)  # 2 s are added
    host, port = send.url.removeprefix("http://").split(":")

    def connect():
        return socket.create_connection((host, int(port)), timeout=30)

    with connect() as silent, connect() as slow, connect() as again, connect() as unread:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nx: ")
        again.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n\r\nGET /h")  # the next request does not end
        unread.sendall(b"POST /nothing HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
        assert end_of(silent) == b""
        assert b" 408 " in end_of(slow)
        assert b" 408 " in end_of(again)
        assert b" 404 " in end_of(unread)  # answered without reading the body


def test_connections_that_hold_lock_nobody_out(tmp_path):
    with serving(database=f"sqlite:///{tmp_path}/shop.db", most_connections=40, most_per_address=30) as url:
        host, port = url.removeprefix("http://").split(":")
        held = [socket.create_connection((host, int(port)), timeout=30) for _ in range(100)]
        for connection in held[-30:]:
            connection.sendall(b"GET / HTTP/1.1\r\nx: ")
        send = Sender(url)
        path = send.make("beside")
        assert len(send.decide(path)) == 1
        for connection in held[:70]:
            assert connection.recv(1) == b""  # the oldest made room
            connection.close()
        assert send.http.get("/healthz").status_code == 200
        send.http.close()
        busy = [socket.create_connection((host, int(port)), timeout=30) for _ in range(30)]
        head = f"POST {path}/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        for connection in busy:  # requests under way make no room
            connection.sendall(head.encode() + b"content-length: 20\r\n\r\n{")
        ask = b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n"
        while b" 503 " not in raw(url, ask % b"/"):  # until all of them are
            pass
        assert b" 200 " in raw(url, ask % b"/healthz")
        for connection in [*busy, *held[70:]]:
            connection.close()


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"\r\n" * 100])
def test_what_is_no_http(send, content):
    found = raw(send.url, content + b"\r\n\r\n", wait=1.0)
    assert found == b"" or b" 400 " in found or b" 404 " in found


def test_a_thousand_connections(send, shop):
    host, port = send.url.removeprefix("http://").split(":")
    request = f"POST {shop}/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".encode()
    connections = [socket.create_connection((host, int(port)), timeout=30) for _ in range(1000)]
    try:
        assert len(send.decide(shop)) == 1  # those who only hold connections stop nobody
        for connection in connections:
            connection.sendall(request + b"content-length: 2\r\n\r\n{}")
        ids = set()
        for connection in connections:
            found = b""
            while not found.endswith(b"]}"):
                found += connection.recv(65536)
            assert found.startswith(b"HTTP/1.1 200")
            ids.add(json.loads(found.split(b"\r\n\r\n")[1])["decisions"][0]["id"])
        assert len(ids) == 1000
    finally:
        for connection in connections:
            connection.close()


def test_hostile_names_are_data(send):
    for name in HOSTILE:
        status, _ = send.post("/v1/experiments", {"name": name.replace("/", "|"), "arms": [name, "plain"], "seed": 1})
        assert status == 201
    listed = [row["name"] for row in send.get("/v1/experiments")[1]["experiments"]]
    assert {name.replace("/", "|") for name in HOSTILE} <= set(listed)
    for name in HOSTILE:
        path = f"/v1/experiments/{quote(name.replace('/', '|'), safe='')}"
        assert {arm["name"] for arm in send.get(f"{path}/summary")[1]["arms"]} == {name, "plain"}
        page = send.http.get(f"/experiments/{quote(name.replace('/', '|'), safe='')}").text
        assert "<script>alert" not in page
        assert "<img" not in page
    text = send.http.get("/metrics").text
    assert all(line.startswith(("#", "driftbandits_")) for line in text.splitlines())


def test_a_body_that_comes_slowly_stops_nobody(send, shop):
    host, port = send.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = f"POST {shop}/decisions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        slow.sendall(head.encode() + b"content-length: 20\r\n\r\n{")
        assert len(send.decide(shop)) == 1
