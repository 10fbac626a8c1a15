"""The generalised likelihood ratio test: its statistic against all splits by hand, thresholds, alarms by chance."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits import state as states
from driftbandits.detection.glr import (
    MOST_SPLITS_PER_ARM,
    History,
    bernoulli_divergence,
    export_histories,
    gaussian_divergence,
    glr_threshold,
    read_histories,
)
from driftbandits.errors import StateError


def gaussian(left, right):
    return gaussian_divergence(left, right, 0.1)


def filled(rewards, spacing=1):
    history = History(spacing)
    for ident, reward in enumerate(rewards):
        history.add(reward, 10 * ident)
    return history


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40), st.sampled_from([gaussian, bernoulli_divergence]))
@settings(max_examples=100, deadline=None)
def test_the_statistic_is_the_largest_over_all_splits(rewards, divergence):
    split = filled(rewards).best_split(divergence)
    whole = np.mean(rewards)
    by_hand = [
        s * float(divergence(np.mean(rewards[:s]), whole))
        + (len(rewards) - s) * float(divergence(np.mean(rewards[s:]), whole))
        for s in range(1, len(rewards))
    ]
    assert split.statistic == pytest.approx(max(by_hand), rel=1e-6, abs=1e-9)
    s = split.last_round // 10 + 1
    assert by_hand[s - 1] == pytest.approx(max(by_hand), rel=1e-6, abs=1e-9)
    assert (split.before, split.after) == pytest.approx((np.mean(rewards[:s]), np.mean(rewards[s:])), abs=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30))
@settings(max_examples=50, deadline=None)
def test_the_gaussian_statistic_has_a_closed_form(rewards):
    """s (n - s) / n (difference of the two means)^2 / (2 R^2)."""
    n = len(rewards)
    closed = [s * (n - s) / n * (np.mean(rewards[:s]) - np.mean(rewards[s:])) ** 2 / 0.02 for s in range(1, n)]
    assert filled(rewards).best_split(gaussian).statistic == pytest.approx(max(closed), rel=1e-9, abs=1e-9)


def test_the_bernoulli_divergence_is_sharper_than_what_is_safe_for_any_rewards():
    """Pinsker: on [-1, 1] it is never below the Gaussian one with R = 1."""
    means = np.linspace(-1, 1, 41)
    for other in means:
        assert (bernoulli_divergence(means, other) >= gaussian_divergence(means, other, 1.0) - 1e-9).all()


def test_nothing_to_split_before_the_second_reward():
    assert History(1).best_split(gaussian) is None
    assert filled([0.5]).best_split(gaussian) is None
    assert filled([0.5] * 5, spacing=5).best_split(gaussian) is None
    assert filled([0.5] * 6, spacing=5).best_split(gaussian).statistic == 0.0


def test_memory_is_bounded_and_a_late_change_is_still_found():
    history = filled([0.5] * 5000 + [-0.5] * 40)
    assert len(history.sums) < MOST_SPLITS_PER_ARM
    split = history.best_split(gaussian)
    assert abs(split.last_round - 49_990) <= 10 * history.spacing
    assert split.before == pytest.approx(0.5, abs=0.01)


def test_thresholds():
    assert glr_threshold("practical", pulls=50, failure_probability=0.05) == pytest.approx(math.log(50**1.5 / 0.05))
    x = math.log(3 * 50**1.5 / 0.05) / 2
    theory = 2 * (x + 4 * math.log(1 + x + math.sqrt(2 * x))) + 6 * math.log(1 + math.log(50))
    assert glr_threshold("theory", pulls=50, failure_probability=0.05) == pytest.approx(theory)


def alarm(rewards, rule, delta):
    """Number of rewards after which the test first fires, or None."""
    history = History(1)
    for ident, reward in enumerate(rewards):
        history.add(reward, ident)
        split = history.best_split(gaussian)
        if split is not None and split.statistic > glr_threshold(rule, pulls=ident + 1, failure_probability=delta):
            return ident + 1
    return None


@pytest.mark.statistical
def test_alarms_by_chance_are_as_rare_as_promised():
    # 300 streams of 200 normal rewards tested after each; with a chance of alarm of 0.1 each, more than 50 alarms have
    # probability below 5e-4
    rng = np.random.default_rng(0)
    found = [alarm(rng.normal(0.2, 0.1, 200), "practical", 0.1) for _ in range(300)]
    assert sum(number is not None for number in found) <= 50


@pytest.mark.parametrize("rule", ["practical", "theory"])
def test_a_jump_is_found_as_soon_as_the_closed_form_says(rule):
    """Without noise the statistic after s + m rewards is s m / (s + m) jump^2 / (2 R^2)."""
    jump, s, delta = 0.4, 30, 0.01
    expected = next(
        s + m
        for m in range(1, 1000)
        if s * m / (s + m) * jump**2 / 0.02 > glr_threshold(rule, pulls=s + m, failure_probability=delta)
    )
    assert alarm([0.2] * s + [0.2 - jump] * 200, rule, delta) == expected


def reader(histories):
    return states.Reader(export_histories(histories), "state")


def test_histories_survive_being_saved():
    histories = {3: filled([0.5, -0.25, 0.125]), 1: filled(np.linspace(-1, 1, 700)), 7: filled([0.5], spacing=4)}
    again = read_histories(reader(histories), arms=8, rounds=7000)
    assert sorted(again) == [1, 3, 7]
    for arm, history in histories.items():
        for name in History.__slots__:
            assert getattr(again[arm], name) == getattr(history, name)


@pytest.mark.parametrize(
    ("arms", "rounds"), [(3, 100), (4, 20)], ids=["an arm that does not exist", "a round still to come"]
)
def test_histories_that_cannot_be_are_refused(arms, rounds):
    histories = {3: filled([0.5, -0.25, 0.125])}
    assert read_histories(reader(histories), arms=4, rounds=100)
    with pytest.raises(StateError):
        read_histories(reader(histories), arms=arms, rounds=rounds)


@pytest.mark.parametrize("name", ["pulls", "spacings", "splits", "totals", "split_sums"])
def test_damaged_histories_are_refused(name):
    exported = export_histories({3: filled([0.5, -0.25, 0.125])})
    exported[name] = exported[name] + 5
    with pytest.raises(StateError):
        read_histories(states.Reader(exported, "state"), arms=4, rounds=100)
