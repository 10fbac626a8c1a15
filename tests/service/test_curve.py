"""The curve of rewards: its points have everything that was closed, and bands that claim no more than they know."""

import itertools
import random

import numpy as np
import pytest
from scipy import stats

from driftbandits.intervals import share_interval, t_interval
from driftbandits.service.curve import LEAST, MOST_POINTS, band, curve
from driftbandits.service.series import Point, Series, Sums


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
