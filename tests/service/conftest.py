"""A real server per module, at a free port, on a SQLite file of its own; and how to send it requests."""

import time

import httpx
import pytest

from driftbandits.service.background import serving


class Sender:
    """Requests as curl would send them; answers as (status, body)."""

    def __init__(self, url, key=None):
        self.url = url
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def post(self, path, body=None, **headers):
        sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        content = None if isinstance(body, bytes) else body if body is not None else {}
        if isinstance(body, bytes):
            answer = self.http.post(path, content=body, headers=sent)
        else:
            answer = self.http.post(path, json=content, headers=sent)
        return answer.status_code, answer.json()

    def get(self, path, **headers):
        answer = self.http.get(path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        return answer.status_code, answer.json()

    def wait_until_ready(self):
        end = time.monotonic() + 60
        while self.http.get("/readyz").status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.01)

    def make(self, name, arms=("low", "mid", "high"), **fields):
        fields = {"policy": "DiscountedUCB", "seed": 1, **fields}
        status, _ = self.post("/v1/experiments", {"name": name, "arms": list(arms), **fields})
        assert status == 201
        return f"/v1/experiments/{name}"

    def decide(self, path, size=1, **body):
        status, answer = self.post(f"{path}/decisions", {"size": size, **body})
        assert status == 200, answer
        return answer["decisions"]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('service')}/shop.db"


@pytest.fixture(scope="module")
def url(database):
    with serving(database=database) as where:
        yield where


@pytest.fixture(scope="module")
def send(url):
    sender = Sender(url)
    yield sender
    sender.http.close()
