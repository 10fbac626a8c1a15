"""Totals in hindsight against brute force over every sequence of arms."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import driftbandits as db
from driftbandits.datasets import benchmarks_of, filled, switching_totals, turnover
from driftbandits.environments import Tabular
from driftbandits.environments.noise import GaussianNoise
from driftbandits.errors import InputError

TABLES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 4)),
    elements=st.integers(-8, 8).map(lambda number: number / 8),  # sums of these are exact
)


def brute_force(table, switches):
    rounds, arms = table.shape
    totals = [
        sum(table[t, arm] for t, arm in enumerate(sequence))
        for sequence in itertools.product(range(arms), repeat=rounds)
        if sum(a != b for a, b in itertools.pairwise(sequence)) <= switches
    ]
    return max(totals)


@settings(max_examples=60, deadline=None)
@given(TABLES, st.integers(0, 4))
def test_against_every_sequence(table, most):
    totals = switching_totals(table, most=most)
    assert totals.tolist() == [brute_force(table, switches) for switches in range(most + 1)]


def test_ends_of_the_scale():
    table = np.random.default_rng(0).normal(size=(200, 7))
    totals = switching_totals(table, most=199)
    assert (np.diff(totals) >= 0).all()
    assert totals[0] == pytest.approx(table.sum(axis=0).max())
    assert totals[-1] == pytest.approx(table.max(axis=1).sum())


@pytest.mark.parametrize(
    ("table", "most"), [([[np.nan, 0.0]], 1), ([0.0, 1.0], 1), ([[0.0]], -1), (np.empty((0, 2)), 1)]
)
def test_what_cannot_be_summed_is_refused(table, most):
    with pytest.raises(InputError, match=r"table|most"):
        switching_totals(table, most=most)


def test_an_arm_that_is_away_gets_the_mean_of_those_offered():
    arms = db.ArmSet(np.arange(3.0)[:, None])
    mask = np.array([[True, True, False], [True, True, True], [False, True, False]])
    means = np.array([[0.0, 0.5, 9.0], [0.25, 0.0, 1.0], [9.0, 0.75, 9.0]])
    world = Tabular(arms, means, allowed=mask, noise=GaussianNoise(0.0))
    assert filled(world).tolist() == [[0.0, 0.5, 0.25], [0.25, 0.0, 1.0], [0.75, 0.75, 0.75]]
    totals = benchmarks_of(world)
    assert totals == {"per step": 2.25, "fixed": 2.0, "1 switch": 2.25, "3 switches": 2.25, "10 switches": 2.25}
    trace = db.simulate(db.Uniform(arms, seed=0, reward_range=(0, 1)), world)
    own = sum(means[t, arm] for t, arm in enumerate(trace.arm))
    assert totals["per step"] - trace.regret.sum() == pytest.approx(own)


def test_turnover():
    assert turnover([1]) == 0.0
    assert turnover([1, 1, 1]) == 0.0
    assert turnover([1, 2, 1]) == 1.0
