"""Many decisions that run out of patience at once are closed in slices, and requests are answered between these."""

import time

import pytest

from driftbandits import live
from driftbandits.policies.base import Policy
from tests.live.replicas import replica_of, require_same

HOUR = 3_600_000_000  # microseconds
MANY = 2_000


@pytest.fixture
def slow_expiry(monkeypatch):
    """A policy that takes time to close a decision."""
    expire = Policy.expire

    def slowly(policy, ids):
        time.sleep(2e-4 * len(ids))
        return expire(policy, ids)

    monkeypatch.setattr(Policy, "expire", slowly)


def test_requests_are_answered_while_a_backlog_expires(tmp_path, slow_expiry):
    now = [HOUR]
    with live.open(f"sqlite:///{tmp_path}/shop.db", clock=lambda: now[0]) as database:
        shop = database.create("a", arms=["x", "y"], policy="DiscountedUCB", patience=60, missing=0.0, seed=0)
        other = database.create("b", arms=["x", "y"], policy="DiscountedUCB", seed=0)
        for _ in range(MANY // 1000):
            shop.decide(size=1000)
        now[0] += HOUR
        shop.decide()
        other.decide()
        while shop.summary().expired < MANY:
            time.sleep(0.01)
        view = database.view("a")
        with view.journal() as journal:
            answered = journal.newest().seq
            slices = list(journal.events(kinds=["expired"]))
            first = next(event.seq for event in journal.events(after=MANY + 1, kinds=["decided"]))
        assert len(slices) > 2
        assert first < slices[-1].seq <= answered  # answered before the backlog was closed
        require_same(view.player(), replica_of(shop))
