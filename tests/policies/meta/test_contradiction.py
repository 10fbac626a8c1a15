"""MASTER's two tests alone: their thresholds, what they sum, and what they say."""

import math

import pytest

from driftbandits.policies.meta.contradiction import BlockEvidence, Strength
from driftbandits.schedule import Replay


def strength(kind="calibrated", horizon=1000):
    return Strength.at(horizon, kind=kind, c1=1.0, c2=1.0, noise=0.1, failure_probability=0.01, g1=1.0)


def test_the_numbers_of_master_s_docstring():
    """9 rho_hat(T) and 3 rho_hat(T) with the smallest admissible rho, doubled on the scale [-1, 1]."""
    for horizon, first, second in ((10**4, 107, 36), (10**6, 21, 6.9), (10**8, 3.4, 1.1)):
        theory = strength("theory", horizon)
        assert theory.first_threshold(horizon) / 2 == pytest.approx(first, rel=0.02)
        assert theory.second_threshold(horizon) / 2 == pytest.approx(second, rel=0.05)


def test_the_first_test_compares_the_mean_of_an_interval_with_the_lowest_value():
    evidence = BlockEvidence(strength(), 0)
    evidence.open(Replay(0, 2, 1), 0)
    evidence.open(Replay(1, 2, 0), 10)
    evidence.believe(0.4)
    evidence.believe(0.6)  # the lowest stays
    for ident in range(18):
        evidence.learn(ident, 0.9 if ident >= 10 else 0.3, value=0.5, width=0.1)
    assert evidence.close(1, 20) == []  # none ends there
    assert evidence.close(2, 20) == [1, 0]
    evidence.believe(0.1)  # after they ended
    assert not evidence.is_ripe(18)  # two rewards are still to come
    assert evidence.first_test(18) is None
    for ident in (18, 19, 20):
        evidence.learn(ident, 0.9, value=0.5, width=0.1)
    assert evidence.is_ripe(20)
    threshold = 0.1 * math.sqrt(2 * math.log(1e5) / 10)
    found = evidence.first_test(20)
    assert found.test == 1
    assert found.interval == (10, 20)  # the clearer of the two that end
    assert (found.statistic, found.threshold) == pytest.approx((0.9 - 0.4, threshold))
    assert evidence.first_test(20) is None  # once each


def test_the_second_test_sums_what_was_believed_and_not_earned():
    evidence = BlockEvidence(strength(), 5)
    assert evidence.second_test(5) is None
    threshold = 0.1 * math.sqrt(2 * math.log(1e5))
    for number in range(1, 30):
        evidence.learn(4 + number, 0.0, value=0.3, width=0.1)  # a gap of 0.3 - 2 * 0.1 per round
        found = evidence.second_test(5 + number)
        assert (found is not None) == (0.1 * number > threshold * math.sqrt(number))
    assert found.interval == (5, 34)
    assert (found.statistic, found.threshold) == pytest.approx((0.1, threshold / math.sqrt(29)))


def test_a_base_that_earns_what_it_believed_is_not_contradicted():
    for kind in ("calibrated", "theory"):
        evidence = BlockEvidence(strength(kind), 0)
        for ident in range(50):
            evidence.learn(ident, 0.5, value=0.5, width=0.0)
        assert evidence.second_test(50) is None
