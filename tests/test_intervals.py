import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from driftbandits._util.intervals import ConfidenceInterval, share_interval, t_interval
from reproduction.claims import judge_at_most, judge_below, judge_within


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_interval_is_that_of_scipy(values):
    if np.std(values) < 1e-6:
        return
    found = t_interval(values)
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-6, atol=1e-3)
    assert found.low <= found.estimate <= found.high
    wider = t_interval(values, level=0.99)
    assert wider.low <= found.low
    assert wider.high >= found.high


def test_interval_of_few_values():
    one = t_interval([4.0])
    assert (one.estimate, one.seeds) == (4.0, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert math.isnan(t_interval([]).estimate)
    assert t_interval([3.0, 3.0, 3.0]) == ConfidenceInterval(3.0, 3.0, 3.0, 3)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "least", "most"),
    [
        # 10,000 intervals: the share has a standard error of 0.0022, and four of them miss once in 16,000 times.
        (lambda rng, shape: rng.normal(size=shape), 0.941, 0.959),
        # Skewed as regrets are where some runs miss a change: it covers less, but not much less.
        (lambda rng, shape: rng.lognormal(sigma=0.5, size=shape) - math.exp(0.125), 0.91, 0.95),
    ],
    ids=["normal", "skewed"],
)
def test_how_often_the_interval_of_eight_seeds_covers_the_mean(draw, least, most):
    sample = draw(np.random.default_rng(0), (10_000, 8))
    intervals = [t_interval(row) for row in sample]
    share = np.mean([i.low <= 0.0 <= i.high for i in intervals])
    assert least <= share <= most


@given(st.floats(-10, 10), st.floats(0, 5), st.floats(-10, 10), st.floats(0.01, 10))
def test_verdicts_follow_the_interval(centre, half, bound, margin):
    interval = ConfidenceInterval(centre, centre - half, centre + half, seeds=10)
    below = {"holds": interval.high < bound, "does not hold": interval.low > bound}
    assert judge_below(interval, bound) == next((v for v, true in below.items() if true), "undecided")
    if interval.high != bound:
        assert judge_at_most(interval, bound) == judge_below(interval, bound)
    else:
        assert judge_at_most(interval, bound) == "holds"
    inside = abs(interval.low) <= margin and abs(interval.high) <= margin
    outside = interval.low > margin or interval.high < -margin
    assert judge_within(interval, margin) == ("holds" if inside else "does not hold" if outside else "undecided")
    few = dataclasses.replace(interval, seeds=2)
    assert {judge_below(few), judge_within(few, margin), judge_at_most(few, bound)} == {"undecided"}


@pytest.mark.parametrize(("hits", "of"), [(0, 200), (7, 200), (20, 20), (1, 3)])
def test_the_interval_of_a_share_is_where_each_tail_has_a_fortieth(hits, of):
    interval = share_interval(hits, of)
    low, high = interval.low, interval.high
    assert low <= interval.estimate == hits / of <= high
    assert interval.seeds == of
    assert low == 0.0 if hits == 0 else stats.binom.sf(hits - 1, of, low) == pytest.approx(0.025)
    assert high == 1.0 if hits == of else stats.binom.cdf(hits, of, high) == pytest.approx(0.025)
