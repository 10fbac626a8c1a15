import pytest

from driftbandits import datasets
from driftbandits.errors import InputError
from driftbandits.experiments.seeds import (
    EVALUATION_SEEDS,
    MOST_RUNS_PER_EXPERIMENT,
    TUNING_SEEDS,
    check_seed_count,
    check_seeds,
    default_seeds,
)


def test_seeds_of_real_data_are_all_start_offsets():
    assert default_seeds("real/digits") == tuple(range(datasets.OFFSETS))
    assert default_seeds("switching/1") == EVALUATION_SEEDS


def test_no_figure_uses_a_tuning_seed():
    assert not set(EVALUATION_SEEDS) & set(TUNING_SEEDS)


def test_seeds_are_limited_before_they_are_counted_out():
    assert check_seed_count(MOST_RUNS_PER_EXPERIMENT) == MOST_RUNS_PER_EXPERIMENT
    with pytest.raises(InputError, match="seeds must be at most 1,000,000, got 1000000000; play some of its seeds"):
        check_seed_count(10**9)


def test_seeds_that_tables_cannot_hold_are_refused():
    assert check_seeds((0, 2**63 - 1)) == (0, 2**63 - 1)
    with pytest.raises(InputError, match=r"at most 2\^63 - 1, got 9223372036854775808"):
        check_seeds((0, 2**63))
    with pytest.raises(InputError, match="differ"):
        check_seeds((1, 1))
