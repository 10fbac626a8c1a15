"""The test for drift: its level without any, its power with some, and what it does not count."""

import numpy as np
import pytest

from driftbandits.datasets import drift_test
from driftbandits.errors import InputError


def panel(seed, *, rounds=400, arms=6, block=10):
    """Arms with fixed differences, noise that lasts within a block, a wandering common level, and holes."""
    draws = np.random.default_rng(seed)
    level = np.cumsum(draws.normal(size=(rounds, 1)), axis=0)
    slow = np.repeat(draws.normal(size=(rounds // block, arms)), block, axis=0)
    table = level + np.linspace(0, 2, arms) + slow + draws.normal(size=(rounds, arms))
    table[draws.random(table.shape) < 0.1] = np.nan
    return table


@pytest.mark.statistical
def test_level_under_no_drift():
    """200 panels without drift, fixed seeds: rejections at 10% are Binomial(200, 0.1); beyond 36, 2e-4."""
    rejected = sum(drift_test(panel(seed), block=10, permutations=99).p_value <= 0.1 for seed in range(200))
    assert rejected <= 36


def test_a_lasting_change_is_found():
    table = panel(0)
    table[200:] += [3.0, 0.0, 0.0, 0.0, 0.0, -3.0]
    outcome = drift_test(table, block=10)
    assert outcome.p_value == 1 / 500
    assert outcome.statistic > 2 * outcome.expected
    assert (outcome.blocks, outcome.windows) == (40, 8)


def test_a_common_level_does_not_count():
    table = np.random.default_rng(1).normal(size=(400, 6))
    raised = table + np.where(np.arange(400) < 200, 0.0, 50.0)[:, None]
    before, after = drift_test(table, block=10), drift_test(raised, block=10)
    assert after.statistic == pytest.approx(before.statistic)
    assert after.p_value == before.p_value


def test_one_block_a_window_can_show_nothing():
    """Every permutation then gives the same value, so the p-value must be 1."""
    assert drift_test(panel(3), block=50, windows=8).p_value == 1.0


def test_the_same_seed_gives_the_same_answer():
    assert drift_test(panel(2), block=10, seed=3) == drift_test(panel(2), block=10, seed=3)


@pytest.mark.parametrize(
    "wrong", [{"block": 0}, {"block": 300}, {"block": 10, "windows": 1}, {"block": 100, "windows": 8}]
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(InputError, match=r"block|windows"):
        drift_test(panel(0), **wrong)
    with pytest.raises(InputError, match="permutations"):
        drift_test(panel(0), block=10, permutations=0)


def test_tables_it_cannot_read_are_refused():
    with pytest.raises(InputError, match="two arms"):
        drift_test(np.zeros((50, 1)), block=5)
    table = np.zeros((50, 3))
    table[7] = np.nan
    with pytest.raises(InputError, match="round 7"):
        drift_test(table, block=5)
