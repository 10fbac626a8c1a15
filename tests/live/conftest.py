"""A database of its own for every test, and a clock that stands still until it is told."""

import pytest

from driftbandits import live
from driftbandits.live import connections


@pytest.fixture(autouse=True)
def _quick(monkeypatch, request):
    """Commits do not wait for the disk, but in tests that ask for the fixture `durable`."""
    if "durable" not in request.fixturenames:
        monkeypatch.setitem(connections._PRAGMAS, "synchronous", "OFF")


@pytest.fixture
def durable():
    """See `_quick`."""


class Clock:
    def __init__(self):
        self.now = 1_700_000_000_000_000

    def __call__(self):
        return self.now

    def pass_seconds(self, seconds):
        self.now += round(seconds * 1e6)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def shop(url, clock):
    with live.open(url, clock=clock) as database:
        yield database.create("prices", arms=["low", "mid", "high"], policy="DiscountedUCB", seed=3)
