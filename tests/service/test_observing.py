"""A count is kept for a while, but never one that says there is nothing where there is something."""

import threading

import pytest

from driftbandits import live
from driftbandits.service import observing
from driftbandits.service.observing import Observer, Progress
from tests.live.conftest import Clock


@pytest.fixture
def shop(tmp_path):
    with live.open(f"sqlite:///{tmp_path}/shop.db", clock=Clock()) as database:
        yield database.create("shop", arms=["a", "b"], policy="DiscountedUCB", seed=1)


@pytest.fixture
def observer(shop, monkeypatch):
    """Under so much load that what was counted would be kept for ever."""
    monkeypatch.setattr(observing, "SHARE", 1e-9)

    def progress():
        found = shop.summary()
        return Progress(found.decisions, found.decisions - found.fallbacks, found.rewards)

    return Observer(shop.view, Clock(), progress)


def counted(observer):
    points = observer.get().series.points
    return sum(point.decisions for point in points), sum(point.rewards for point in points)


def test_what_was_counted_too_early_is_counted_again(shop, observer):
    assert counted(observer) == (0, 0)
    assert observer.get().curve == ()
    made = shop.decide(40)
    assert counted(observer) == (40, 0)
    shop.rewards([(one.id, 1.0) for one in made[:10]])
    assert counted(observer) == (40, 10)
    assert sum(point.count for point in observer.get().curve) == 10


def test_what_was_counted_is_kept_until_it_shows_less_than_half(shop, observer):
    made = shop.decide(40)
    shop.rewards([(one.id, 1.0) for one in made[:10]])
    first = observer.get()
    shop.rewards([(one.id, 1.0) for one in made[10:20]])
    assert observer.get() is first
    assert first.age >= 0.0
    shop.reward(made[20].id, 1.0)
    assert counted(observer) == (40, 21)


def test_who_would_get_too_little_waits_for_who_counts(shop, observer):
    observer.get()
    shop.decide(5)
    found = []
    with observer._lock:  # somebody counts
        waiting = threading.Thread(target=lambda: found.append(counted(observer)))
        waiting.start()
        waiting.join(0.05)
        assert not found
    waiting.join(30)
    assert found == [(5, 0)]
