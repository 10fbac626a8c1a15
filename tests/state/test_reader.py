"""A Reader gives values of the kind asked for, or a StateError that names the place."""

import numpy as np
import pytest

from driftbandits import state as states
from driftbandits.errors import StateError

NUMBERS = [10**400, -(10**400), np.inf, np.nan, np.float32("inf"), 1j, np.complex128(1), "1", None, True, [1.0]]


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(type(value).__name__))
def test_numbers_that_are_none_are_refused(value):
    with pytest.raises(StateError, match=r"state\.x must be a finite number"):
        states.Reader({"x": value}).number("x")


WHOLE = [2**63, -(2**63) - 1, 10**5000, 1.0, "1", True, None, np.uint64(2**64 - 1)]


@pytest.mark.parametrize("value", WHOLE, ids=lambda value: str(type(value).__name__))
def test_whole_numbers_have_64_bits(value):
    with pytest.raises(StateError, match=r"state\.x must be a whole number"):
        states.Reader({"x": value}).integer("x", low=-(2**70))


def test_numbers_of_all_kinds_are_read():
    reader = states.Reader({"a": 2**63 - 1, "b": np.int64(-4), "c": 10**300, "d": np.float32(0.5)})
    assert (reader.integer("a"), reader.integer("b", low=-5)) == (2**63 - 1, -4)
    assert (reader.number("c"), reader.number("d")) == (1e300, 0.5)


ARRAYS = {
    "other byte order": np.array([1.0, 2.0]).astype(">f8"),
    "single precision": np.zeros(2, dtype=np.float32),
    "objects": np.array([1.0, None]),
    "masked": np.ma.masked_array([1.0, 2.0], mask=[False, True]),
    "a list": [1.0, 2.0],
    "too long": np.zeros(3),
    "too deep": np.zeros((2, 1)),
    "not finite": np.array([1.0, np.nan]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_of_the_type_and_shape_asked_for(name):
    with pytest.raises(StateError, match=r"state\.x (must|has)"):
        states.Reader({"x": ARRAYS[name]}).array("x", np.float64, (2,))


def test_a_giant_value_is_not_written_out_in_the_message():
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    for value in (nested, [[0.5] * 100] * 20_000, "x" * 10**7, dict.fromkeys(range(10**5))):
        with pytest.raises(StateError) as caught:
            states.Reader({"x": value}).number("x")
        assert len(str(caught.value)) < 300
    while nested:  # or taking it apart would go as deep
        nested = nested.pop()
