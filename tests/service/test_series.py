"""What the database counts is what a walk through all rows counts."""

import random

import numpy as np
import pytest

from driftbandits import live
from driftbandits.service.series import count
from tests.live.conftest import Clock


def walked(view, width, first):
    """The slow road: every row, one after the other; decisions by range, with what became of them."""
    with view.journal() as journal:
        events = list(journal.events())
    made = {event.seq: event for event in events if event.kind == "decided"}
    how, upto = {}, 0
    for event in events:
        if event.kind == "rewarded" and not event.details.get("late"):
            how[event.decision] = ("rewarded", event.reward)
        elif event.kind == "forgotten":
            how[event.decision] = ("forgotten", None)
        elif event.kind == "expired":
            upto = event.decision
    ranges = {}
    for seq, event in made.items():
        kind, reward = how.get(seq, ("expired" if seq <= upto else "open", None))
        ranges.setdefault(seq // width, []).append((event, kind, reward))
    return [ranges[place] for place in sorted(ranges)]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A journal with everything in it: told, late, forgotten, expired, open, fallbacks."""
    clock, draw = Clock(), random.Random(3)
    url = f"sqlite:///{tmp_path_factory.mktemp('series')}/shop.db"
    with live.open(url, clock=clock) as database:
        shop = database.create(
            "shop", arms=["a", "b", "c"], policy="DiscountedUCB", patience=60, missing=0.25, reward_range=(0, 1), seed=1
        )
        known = []
        for number in range(150):
            clock.pass_seconds(draw.uniform(0, 4))
            if number == 60:
                shop.pause()
            if number == 80:
                shop.resume()
            known += shop.decide(draw.randint(1, 4))
            if draw.random() < 0.7:
                one = known.pop(draw.randrange(len(known)))
                shop.reward(one.id, draw.randint(0, 4) / 4)
            if draw.random() < 0.1:
                shop.forget(known.pop().id)
        yield database.view("shop")


@pytest.mark.parametrize("points", [1, 7, 50, 10_000])
def test_counts_are_those_of_a_walk(played, points):
    with played.journal() as journal:
        series = count(played, journal, points)
        newest = journal.newest().seq
    width = max((newest - 1) // points + 1, 1)
    slow = walked(played, width, 1)
    assert len(series.points) == len(slow) <= points + 1
    for point, rows in zip(series.points, slow, strict=True):
        kinds = [kind for _, kind, _ in rows]
        rewards = [reward for _, kind, reward in rows if kind == "rewarded"]
        assert point.decisions == len(rows)
        assert (point.begin, point.end) == (rows[0][0].time, rows[-1][0].time)
        assert point.fallbacks == sum(bool(event.details.get("fallback")) for event, _, _ in rows)
        assert (point.rewards, point.forgotten, point.expired) == tuple(
            kinds.count(kind) for kind in ("rewarded", "forgotten", "expired")
        )
        assert point.total == pytest.approx(sum(rewards))
        assert point.squares == pytest.approx(sum(reward * reward for reward in rewards))
        values = rewards + [0.25] * kinds.count("expired")
        found = series.sums(point)
        if "open" in kinds or not values:
            assert found is None
        else:
            assert (found.count, found.least, found.most) == (len(values), min(values), max(values))
            assert found.mean == pytest.approx(sum(values) / len(values))
            if len(values) > 1:
                assert found.error == pytest.approx(np.std(values, ddof=1) / len(values) ** 0.5)


def test_times_of_the_policys_decisions(played):
    with played.journal() as journal:
        series = count(played, journal, 10_000)
        own = [e.time / 1e6 for e in journal.events(kinds=("decided",)) if not e.details.get("fallback")]
    assert series.own_decisions == len(own)
    numbers = [float(number) for number in range(0, len(own), 17)]
    times = series.times_of(np.array(numbers), made=len(own), now=round(1e6 * own[-1]))
    for number, time in zip(numbers, times, strict=True):
        assert own[max(int(number) - 1, 0)] - 1e-3 <= time <= own[min(int(number) + 1, len(own) - 1)] + 1e-3


def test_decisions_made_since_the_count_lie_between_it_and_now(played):
    with played.journal() as journal:
        series = count(played, journal, 50)
    made, end = series.own_decisions, series.points[-1].end / 1e6
    numbers = np.array([made, made + 50, made + 100], dtype=float)
    now = round(1e6 * (end + 10))
    assert series.times_of(numbers, made=made + 100, now=now) == pytest.approx([end, end + 5, end + 10])
