"""What the journal says over time: counted ranges, the curve with its band, and how long a count is kept."""

import itertools
import random
import threading

import numpy as np
import pytest
from scipy import stats

from driftbandits import live
from driftbandits._util.intervals import share_interval, t_interval
from driftbandits.service import series
from driftbandits.service.series import LEAST, MOST_POINTS, Observer, Point, Progress, Series, Sums, band, count, curve
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


def point_of(place, rewards, expired=0):
    sums = Sums.of(rewards)
    begin = 1_000_000 * place
    decisions = len(rewards) + expired
    return Point(
        place, begin, begin + 500_000, decisions, 0, len(rewards), sums.total, sums.squares, sums.least, sums.most, 0,
        expired,
    )  # fmt: skip


@pytest.mark.parametrize("size", [1, 19, 20, 33, 4_000])
def test_points_are_joined_until_they_can_be_read(size):
    draw = random.Random(size)
    rewards = [[draw.random() for _ in range(draw.randint(1, 9))] for _ in range(size)]
    series = Series(tuple(point_of(place, some) for place, some in enumerate(rewards)), None, size)
    found = curve(series, (0.0, 1.0))
    values = [one for some in rewards for one in some]
    assert sum(point.count for point in found) == len(values) == sum(point.decisions for point in found)
    assert len(found) == 1 or min(point.count for point in found) >= LEAST / 2
    assert len(found) <= MOST_POINTS
    assert sum(point.mean * point.count for point in found) == pytest.approx(sum(values))
    assert all(one.end < two.begin for one, two in itertools.pairwise(found))
    assert all(point.low < point.mean < point.high for point in found if point.count > 1)


@pytest.mark.parametrize(("least", "most"), [(0.0, 1.0), (-3.0, 5.0), (1000.0, 1001.0)])
@pytest.mark.parametrize("hits", [0, 1, 12, 32, 33])
def test_two_values_have_the_interval_of_a_share(least, most, hits):
    sums = Sums.of([most] * hits + [least] * (33 - hits))
    wanted = share_interval(hits, 33)
    low, high = band(sums, sums + Sums.of([least, most]), (least, most))
    assert low == pytest.approx(least + wanted.low * (most - least), abs=1e-6)
    assert high == pytest.approx(least + wanted.high * (most - least), abs=1e-6)


def test_other_rewards_have_students_interval_cut_to_the_range():
    rewards = [0.1, 0.25, 0.3, 0.9, 0.2]
    wanted = t_interval(rewards)
    sums = Sums.of(rewards)
    assert band(sums, sums, (-1.0, 1.0)) == pytest.approx((wanted.low, wanted.high))
    assert band(sums, sums, (0.0, 0.5)) == pytest.approx((max(wanted.low, 0.0), 0.5))


def test_all_alike_claims_no_certainty():
    """Whatever share of other rewards lies beyond the band would have shown itself with 97.5 %."""
    alike = Sums.of([0.5] * 40)
    low, high = band(alike, alike, (0.0, 1.0))
    share = (high - 0.5) / 0.5
    assert stats.binom.pmf(0, 40, share) == pytest.approx(0.025)
    assert 0.5 - low == pytest.approx(high - 0.5)
    assert band(alike, alike + Sums.of([0.4, 0.6]), (0.0, 1.0)) == pytest.approx((0.5 - 0.1 * share, 0.5 + 0.1 * share))


def test_the_band_covers_the_share_as_often_as_it_says():
    """1,000 points of 30 clicks at 3 %, each covered with at least 95 %: below 930 by chance once in a hundred."""
    draw = np.random.default_rng(5)
    everything = Sums.of([0.0, 1.0])
    hits = draw.binomial(30, 0.03, size=1_000)
    ends = {k: band(Sums.of([1.0] * k + [0.0] * (30 - k)), everything, (0.0, 1.0)) for k in set(hits.tolist())}
    assert sum(ends[k][0] <= 0.03 <= ends[k][1] for k in hits.tolist()) >= 930


def test_missing_rewards_are_rewards_where_silence_counts():
    points = tuple(point_of(place, [1.0], expired=29) for place in range(4))
    assert [point.mean for point in curve(Series(points, 0.0, 4), (0.0, 1.0))] == pytest.approx([1 / 30] * 4)
    [told] = curve(Series(points, None, 4), (0.0, 1.0))
    assert (told.mean, told.count) == (1.0, 4)
    assert told.low == pytest.approx(share_interval(4, 4).low)


@pytest.fixture
def shop(tmp_path):
    with live.open(f"sqlite:///{tmp_path}/shop.db", clock=Clock()) as database:
        yield database.create("shop", arms=["a", "b"], policy="DiscountedUCB", seed=1)


@pytest.fixture
def observer(shop, monkeypatch):
    """Under so much load that what was counted would be kept for ever."""
    monkeypatch.setattr(series, "SHARE", 1e-9)

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
