"""Named streams: reproducible, separate, and their state as JSON."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits._util.seeding import check_seed, generator_from_state, generator_state, stream
from driftbandits.errors import InputError, StateError


def draws(*names, seed=0):
    return stream(seed, *names).integers(0, 2**63, 4).tolist()


def test_same_names_same_numbers():
    assert draws("noise", 3) == draws("noise", 3)


def test_numbers_never_change():
    """A stored seed must mean the same run in every release: these are pinned."""
    assert stream(0, "noise", 3).integers(0, 1000, 4).tolist() == [51, 583, 456, 826]


def test_integers_of_any_kind_are_one_name():
    assert draws("arm", 3) == draws("arm", np.int64(3)) == draws("arm", np.uint8(3))
    assert draws("x", seed=3) == draws("x", seed=np.int64(3))
    assert draws(np.str_("arm")) == draws("arm")


def test_different_names_are_different_streams():
    names = [(), ("a",), ("b",), ("a", "b"), ("b", "a"), ("ab",), ("a", 3), ("a", "3"), (3, "a"), ("a", 33), ("",)]
    seen = [draws(*name) for name in names] + [draws("a", seed=1)]
    assert len({tuple(numbers) for numbers in seen}) == len(seen)


def test_streams_are_uncorrelated():
    """1,000 neighbouring streams, first draw each: a normal test of mean and lag-one correlation at 5 sigma."""
    first = np.array([stream(0, "noise", index).random() for index in range(1_000)]) - 0.5
    assert abs(first.mean()) < 5 / np.sqrt(12 * 1_000)
    assert abs(np.mean(first[1:] * first[:-1])) < 5 / 12 / np.sqrt(1_000)


@pytest.mark.parametrize("name", [1.0, np.float64(1.0), True, np.True_, None, ("a",), b"a", "a\x1fstr:b"])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match="stream"):
        stream(0, "noise", name)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, np.True_, [1], float("nan")])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InputError, match=r"seed must be a(n integer from 0| non-negative integer)"):
        check_seed(seed)
    with pytest.raises(InputError, match="seed must be"):
        stream(seed, "noise")


def test_no_seed_draws_a_fresh_one_that_can_be_recorded():
    seeds = {check_seed(None) for _ in range(5)}
    assert len(seeds) == 5
    assert all(check_seed(seed) == seed for seed in seeds)
    with pytest.raises(InputError, match=r"check_seed\(None\)"):
        stream(None, "noise")


def test_seeds_beyond_64_bits_are_fine():
    assert draws("a", seed=2**100) != draws("a", seed=2**101)


@given(seed=st.integers(0, 2**64), skip=st.integers(0, 20), small=st.booleans())
@settings(max_examples=40, deadline=None)
def test_state_round_trip_through_json(seed, skip, small):
    generator = stream(seed, "state")
    generator.random(skip)
    if small:
        generator.integers(0, 10, dtype=np.uint32)  # leaves half of a 64-bit draw behind
    again = generator_from_state(json.loads(json.dumps(generator_state(generator))))
    assert generator_state(again) == generator_state(generator)
    assert (
        again.integers(0, 2**31, 9, dtype=np.uint32).tolist()
        == generator.integers(0, 2**31, 9, dtype=np.uint32).tolist()
    )
    assert again.standard_normal(5).tolist() == generator.standard_normal(5).tolist()


GOOD = generator_state(stream(0, "good"))


@pytest.mark.parametrize(
    "state",
    [
        {},
        [],
        None,
        {**GOOD, "state": "x"},
        {**GOOD, "state": None},
        {**GOOD, "state": str(2**128)},
        {**GOOD, "state": "-1"},
        {**GOOD, "inc": "2"},
        {**GOOD, "has_uint32": 2},
        {**GOOD, "uinteger": 2**32},
        {**GOOD, "uinteger": float("inf")},
        {**GOOD, "uinteger": 3.7},
        {**GOOD, "has_uint32": True},
        {**GOOD, "state": "1_000"},
        {**GOOD, "state": " 7"},
        {**GOOD, "state": "\u0663"},
        {**GOOD, "state": "9" * 10_000},
        {**GOOD, "inc": 10**400 + 1},
        {**GOOD, "inc": 1j},
        {**GOOD, "inc": [[]]},
        {**GOOD, "inc": np.array([1, 2])},
        "state",
    ],
)
def test_broken_states_are_refused(state):
    with pytest.raises(StateError, match="not the state of a random generator"):
        generator_from_state(state)


def test_other_generators_cannot_be_saved():
    with pytest.raises(StateError, match=r"only PCG64 .* got MT19937"):
        generator_state(np.random.Generator(np.random.MT19937(0)))
