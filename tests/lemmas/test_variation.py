"""Lemmas on the means alone, nothing random: gaps of two intervals, and the partition into nearly steady intervals.

V_I is the sum of max_x |r_(t+1)(x) - r_t(x)| over steps inside I, L_I one more than the number of changes inside it,
and mu_I = c1 (|I| / E)^(-1/2).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits import Constants
from driftbandits.detection.gaps import gaps

PROPERTY = settings(max_examples=200, deadline=None, derandomize=True)


def variation(means, first, last):
    """V of the rounds `first` up to and including `last`."""
    return float(np.abs(np.diff(means[first : last + 1], axis=0)).max(axis=1).sum())


def random_means(seed, rounds, arms, *, change):
    """Random walks that move in a share `change` of the rounds."""
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal((rounds, arms)) * rng.exponential(size=(rounds, 1)) ** 2
    steps[rng.random(rounds) >= change] = 0.0
    return np.cumsum(steps, axis=0)


worlds = st.builds(
    random_means,
    st.integers(0, 2**32 - 1),
    st.integers(1, 30),
    st.integers(1, 6),
    change=st.sampled_from([0.1, 0.5, 1]),
)


# --- |Delta_I1(x) - Delta_I2(x)| <= 2 V_I ---------------------------------------------------------------------------


def interval(data, length):
    first = data.draw(st.integers(0, length - 1))
    return first, data.draw(st.integers(first, length - 1))


@PROPERTY
@given(means=worlds, data=st.data())
def test_gaps_of_two_intervals_differ_by_at_most_twice_the_variation_around_them(means, data):
    """Lemma "For any interval I, any of its sub-intervals I1, I2 and any x, |Delta_I1(x) - Delta_I2(x)| <= 2 V_I"."""
    one, other = interval(data, len(means)), interval(data, len(means))
    around = variation(means, min(one[0], other[0]), max(one[1], other[1]))
    rewards = [means[first : last + 1].mean(axis=0) for first, last in (one, other)]
    assert np.abs(rewards[0] - rewards[1]).max() <= around + 1e-9  # the step of the proof
    assert np.abs(gaps(rewards[0]) - gaps(rewards[1])).max() <= 2 * around + 1e-9


def test_twice_the_variation_is_attained():
    """The best arm falls by v and another rises by v: its gap grows from 0 to 2 v, so no factor below 2 will do."""
    means = np.array([[0.5, 0.5], [0.2, 0.8]])
    grown = gaps(means[1]) - gaps(means[0])
    assert grown[0] == pytest.approx(2 * variation(means, 0, 1))


# --- the partition into nearly steady intervals ---------------------------------------------------------------------


def level(rounds, size):
    """mu_I of the theory, where c1 = 1/2 and E = `size`."""
    return 0.5 * math.sqrt(size / rounds)


def greedy(means, size):
    """The proof's partition: every interval goes on as long as V <= mu; as (first, last)."""
    parts, first = [], 0
    for last in range(len(means)):
        if variation(means, first, last) > level(last - first + 1, size):
            parts.append((first, last - 1))
            first = last
    return [*parts, (first, len(means) - 1)]


def fewest(means, size):
    """Least number of intervals with V <= mu that make up all rounds, by trying all ends."""
    best = [0]
    for last in range(len(means)):
        ends = [first for first in range(last + 1) if variation(means, first, last) <= level(last - first + 1, size)]
        best.append(1 + min(best[first] for first in ends))
    return best[-1]


@PROPERTY
@given(means=worlds, gamma=st.floats(0.01, 3.0), scale=st.floats(0.001, 1.0))
def test_partition_into_nearly_steady_intervals(means, gamma, scale):
    """Lemma "Given an interval J, we can partition it ... such that V_Jk <= mu_Jk", with both bounds on its size.

    The size is at most L_J and (gamma log(C N / delta) / 2)^(-1/3) V^(2/3) |J|^(1/3) + 1; greed is also the best.
    """
    means = scale * means
    levels = Constants.theory(bound=0.5, noise=0.5, failure_probability=0.5).levels(
        gamma=gamma, horizon=len(means), arms=means.shape[1]
    )
    size, log_term = levels.block_size, math.log(16 * len(means) * max(math.log2(len(means)), 1.0) * means.shape[1])
    parts = greedy(means, size)
    assert [first for first, _ in parts] == [0, *(last + 1 for _, last in parts[:-1])]
    for first, last in parts:
        assert variation(means, first, last) <= level(last - first + 1, size)
    segments = 1 + int(np.any(np.diff(means, axis=0) != 0.0, axis=1).sum())
    total = variation(means, 0, len(means) - 1)
    assert len(parts) <= segments
    assert len(parts) <= (gamma * log_term / 2) ** (-1 / 3) * total ** (2 / 3) * len(means) ** (1 / 3) + 1 + 1e-9
    assert len(parts) == fewest(means, size)


def test_an_interval_ends_because_of_the_step_after_it():
    """A slip in the proof: it has V_[s, e] > mu_[s, e + 1], where greed gives V_[s, e + 1] > mu_[s, e + 1].

    With one jump V_[s, e] is 0. The bound stands all the same: the steps of the [s_k, e_k + 1] are disjoint too, so
    their variations still sum to V_J at most.
    """
    means = np.repeat([[0.0], [50.0]], 10, axis=0)
    (first, last), rest = greedy(means, size=1)
    assert (first, last, rest) == (0, 9, (10, 19))
    assert variation(means, first, last) == 0.0
    assert variation(means, first, last + 1) > level(last - first + 2, 1)


def test_both_bounds_on_the_partition_can_be_the_smaller():
    """One jump: two intervals, by L. A slow drift in every round: far fewer than L, by V."""
    jump = np.repeat([[0.0], [50.0]], 100, axis=0)
    drift = np.linspace(0.0, 1.0, 200)[:, None]
    assert len(greedy(jump, size=1)) == 2
    assert 1 < len(greedy(drift, size=1)) <= (1 / 8) ** (-1 / 3) * 1.0 * 200 ** (1 / 3) + 1 < 200
