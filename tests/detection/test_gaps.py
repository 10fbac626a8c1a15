"""The change test: gaps, both directions, every arm.

The gap test of theory mode, by itself: streams would nearly always fire first.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from driftbandits.design.blocks import Replay
from driftbandits.detection.gaps import GapWidths, _compare, _Side, gap_test, gaps
from driftbandits.policies.opkb.parts import Epoch, OpenReplay

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


ARMS = 4
LAW = np.full(ARMS, 1 / ARMS)
REGULARISER = 1e-3
MEANS = np.array([0.6, 0.2, 0.0, -0.2])
NOISE = 0.01


def side(estimate, width):
    return _Side(np.array(estimate), np.array(width))


def test_a_gap_must_grow_by_more_than_a_factor_of_four_and_the_widths():
    """Arm 1 has gap 0.1 before and 1 now: 1 - 0.4 against (h_I + max h_I) + 4 (h_C + max h_C)."""
    before, now = [1.0, 0.9], [1.0, 0.0]
    for width, fires in ((0.05, True), (0.0599, True), (0.0601, False)):  # 0.6 = 10 * width
        verdict = _compare(side(now, [width] * 2), side(before, [width] * 2))
        assert verdict.changed is fires
        assert verdict.statistic == pytest.approx(0.6 / (10 * width))
    assert not _compare(side([1.0, 0.61], [1e-6] * 2), side(before, [1e-6] * 2)).changed  # 0.39 < 4 * 0.1


def test_a_gap_that_shrank_is_seen_with_the_roles_exchanged():
    now, before = side([1.0, 0.9], [0.01] * 2), side([1.0, 0.0], [0.02] * 2)
    assert _compare(now, before).statistic == pytest.approx((1.0 - 0.4) / (2 * 0.02 + 4 * 2 * 0.01))


def test_only_arms_that_may_be_best_widen_the_gaps_of_others():
    wide = side([1.0, 0.98, -5.0], [0.01, 0.02, 3.0])
    np.testing.assert_allclose(wide.slack, [0.03, 0.04, 3.02])


def played(*, rounds, after, seed=0):
    """An epoch of one block with MEANS, and a whole second block with `after`, both drawn from LAW."""
    rng = np.random.default_rng(seed)
    # the replay of index 1 has twice as many rounds
    facts = SimpleNamespace(noise_variance=NOISE, block_size=rounds // 2)
    epoch, gaps = Epoch(0, 0), GapWidths(0.1, facts)
    epoch.view(np.eye(ARMS), REGULARISER)
    for block, means in enumerate((MEANS, after)):
        epoch.add(LAW, None, block)
        gaps.open(block * rounds)
        arms = rng.integers(ARMS, size=rounds)
        values = means[arms] + math.sqrt(NOISE) * rng.standard_normal(rounds)
        epoch.blocks[-1].add(np.full(rounds, block), arms, values)
        for t, (arm, value) in enumerate(zip(arms.tolist(), values.tolist(), strict=True)):
            gaps.see(block, arm, value, block * rounds + t)
    replay = OpenReplay(Replay(0, 2, 1), block=1, first_tag=1, first_round=rounds, sums=epoch.blocks[-1])
    return epoch, gaps, replay


def test_widths_are_empirical_bernstein_of_the_single_rounds_and_the_bias_of_the_ridge():
    epoch, gaps, _ = played(rounds=300, after=MEANS)
    rng = np.random.default_rng(0)  # as `played` has it
    arms = rng.integers(ARMS, size=300)
    values = MEANS[arms] + math.sqrt(NOISE) * rng.standard_normal(300)
    d = 0.01
    direct = np.zeros((300, ARMS))
    direct[np.arange(300), arms] = values / (LAW[arms] + REGULARISER)  # phi' S^-1 phi(a) y with phi the identity
    leverage = 1 / (1 / ARMS + REGULARISER)
    log_term = math.log(3 / d)
    width = (
        np.sqrt(2 * direct.var(axis=0) * log_term / 300)
        + 3 * (4 * leverage) * log_term / 300  # residuals lie in [-2, 2]
        + math.sqrt(NOISE * leverage / 300)
    )
    np.testing.assert_allclose(gaps._side(epoch, MEANS, gaps._up_to(0), d).width, width, rtol=1e-10)


def test_a_flip_fires_and_nothing_does_not():
    """Noise is a tenth of the gaps and rounds are many: neither can fail but for numbers of 10 standard deviations."""
    epoch, gaps, replay = played(rounds=40_000, after=-MEANS)
    found = gaps.verdict(epoch, [replay])
    assert found is not None
    assert found.first_round == 40_000
    assert 0 in found.verdict.arms
    assert "replay of law 1" in found.stream
    np.testing.assert_allclose(found.before[0], 0.6, atol=0.05)
    np.testing.assert_allclose(found.after[0], -0.6, atol=0.05)
    epoch, gaps, replay = played(rounds=40_000, after=MEANS)
    assert gaps.verdict(epoch, [replay]) is None


def test_a_replay_of_which_too_little_was_told_is_not_tested():
    epoch, gaps, replay = played(rounds=40_000, after=-MEANS)
    gaps._facts.block_size = 30_000
    assert gaps.verdict(epoch, [replay]) is None
