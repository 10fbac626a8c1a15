import pytest

from driftbandits import datasets
from driftbandits.errors import InputError
from driftbandits.experiments.seeds import (
    DEFAULT_SEEDS,
    DEVELOPMENT,
    EVALUATION,
    MOST_RUNS_PER_EXPERIMENT,
    TUNING,
    check_seed_count,
    check_seeds,
    default_seeds,
)
from driftbandits.tuning.spaces import Space, TuningWorld
from driftbandits.tuning.study import Search


def test_seeds_of_real_data_are_all_start_offsets():
    assert default_seeds("real/digits") == tuple(range(datasets.OFFSETS))
    assert default_seeds("switching/1") == DEFAULT_SEEDS


def test_the_three_ranges_never_meet_even_where_all_of_them_are_taken():
    ranges = [DEVELOPMENT, TUNING, EVALUATION]
    taken = [set(one.take(MOST_RUNS_PER_EXPERIMENT)) for one in ranges]
    assert sum(map(len, taken)) == len(set().union(*taken))
    for one, seeds in zip(ranges, taken, strict=True):
        assert one.holds(seeds)
        assert not any(other.holds(list(seeds)[:1]) for other in ranges if other is not one)
        with pytest.raises(InputError, match=f"1,000,000 {one.purpose} seeds, asked for 1000001"):
            one.take(MOST_RUNS_PER_EXPERIMENT + 1)


def test_a_search_in_a_world_for_evaluation_alone_is_refused():
    for world in ("linear/drifting", "cosine/stationary", "real/digits"):
        with pytest.raises(InputError, match="for evaluation alone"):
            Search("mine", Space("GPUCB", {"beta": (0.1, 1.0)}, dict), (TuningWorld(world, {}),), ((2, 1),))


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
