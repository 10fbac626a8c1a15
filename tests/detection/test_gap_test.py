"""The change test: gaps, both directions, every arm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from driftbandits.detection.gap_test import gap_test, gaps

PROPERTY = settings(max_examples=200, deadline=None, derandomize=True)
vectors = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*[hnp.arrays(np.float64, n, elements=st.floats(-3, 3))] * 2, st.floats(1e-3, 5))
)


@PROPERTY
@given(pair=vectors)
def test_verdict_is_the_box_of_the_paper(pair):
    """Delta_I(x) - 4 Delta_C(x) > threshold or Delta_C(x) - 4 Delta_I(x) > threshold, arm by arm."""
    recent, reference, threshold = pair
    verdict = gap_test(recent, reference, threshold)
    one_sided, moved = [], []
    for x in range(len(recent)):
        now, then = max(recent) - recent[x], max(reference) - reference[x]
        one_sided += [now - 4 * then, then - 4 * now]
        if now - 4 * then > threshold or then - 4 * now > threshold:
            moved.append(x)
    assert verdict.arms == tuple(moved)
    assert verdict.changed == bool(moved)
    assert verdict.statistic == pytest.approx(max(one_sided), abs=1e-12)
    assert verdict.threshold == threshold
    assert verdict.excess == pytest.approx(verdict.statistic / threshold)


@PROPERTY
@given(pair=vectors, shift=st.floats(-2, 2))
def test_test_is_symmetric_and_blind_to_a_common_shift(pair, shift):
    recent, reference, threshold = pair
    one, other = gap_test(recent, reference, threshold), gap_test(reference, recent, threshold)
    assert one.arms == other.arms
    assert one.statistic == other.statistic
    assert gap_test(recent + shift, reference, threshold).statistic == pytest.approx(one.statistic, abs=1e-12)


def test_a_gap_may_grow_by_a_factor_of_four_plus_the_threshold():
    reference = np.array([0.5, 0.0])
    assert not gap_test(np.array([2.25, 0.0]), reference, 0.25).changed  # 2.25 - 4 * 0.5 = 0.25: not beyond
    assert gap_test(np.array([2.375, 0.0]), reference, 0.25).arms == (1,)


def test_a_gap_that_shrank_is_seen_on_the_arm_that_was_behind():
    assert gap_test(np.array([0.0, 0.0]), np.array([0.5, 0.0]), 0.25).arms == (1,)


def test_gaps():
    assert gaps(np.array([0.25, -0.5, 0.25])).tolist() == [0.0, 0.75, 0.0]
