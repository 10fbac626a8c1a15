"""Checks of single values: what is taken is given back as plain Python, what is not is refused with value and cure."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from driftbandits._util.checks import check_count, check_flag, check_path, check_positive, check_probability, check_word
from driftbandits.errors import InputError


@pytest.mark.parametrize("value", [0.25, np.float32(0.25), Fraction(1, 4), np.array(0.25)])
def test_numbers_of_any_kind_become_floats(value):
    for number in (check_positive("noise", value), check_probability("level", value)):
        assert (type(number), number) == (float, 0.25)


@pytest.mark.parametrize("value", [0, 0.0, 1, 1.5, -0.1, math.nan, math.inf, True, "0.1", None, [0.1], 10**400])
def test_what_is_no_probability_is_refused(value):
    with pytest.raises(InputError, match=r"level must lie in \(0, 1\), got "):
        check_probability("level", value)


def test_a_probability_may_be_allowed_to_be_zero_or_one_or_have_a_least_value():
    assert check_probability("floor", 0, zero=True) == 0.0
    with pytest.raises(InputError, match=r"floor must lie in \[0, 1\), got 1"):
        check_probability("floor", 1, zero=True)
    assert check_probability("discount", 1, one=True) == 1.0
    with pytest.raises(InputError, match=r"discount must lie in \(0, 1\], got 0"):
        check_probability("discount", 0, one=True)
    with pytest.raises(InputError, match="not below 1e-150"):  # what is divided by it must stay an ordinary float
        check_probability("level", math.ulp(0.0))
    assert check_probability("level", 1e-3, least=1e-3) == 1e-3
    with pytest.raises(InputError, match=r"not below 0.001"):
        check_probability("level", 0.9e-3, least=1e-3)


@pytest.mark.parametrize("value", ["Told", "", None, 1, True, ["told"], b"told"])
def test_a_word_is_one_of_those_known(value):
    with pytest.raises(InputError, match=r"order must be 'told' or 'asked', got .*; ask the clock"):
        check_word("order", value, ("told", "asked"), cure="ask the clock")


def test_words_are_listed_in_plain_english():
    assert check_word("width", "one", ("one", "two", "three")) == "one"
    with pytest.raises(InputError, match=r"width must be 'one', 'two' or 'three', got 'four'$"):
        check_word("width", "four", ("one", "two", "three"))
    with pytest.raises(InputError, match="width must be 'one', got 'four'"):
        check_word("width", "four", ("one",))


def test_counts_have_a_least_value_and_a_cure():
    assert type(check_count("window", np.int32(7))) is int
    assert check_count("a knot's round", 0, least=0) == 0
    with pytest.raises(InputError, match="a knot's round must be at least 0, got -1"):
        check_count("a knot's round", -1, least=0)
    with pytest.raises(InputError, match=r"window must be a whole number, got 7.0; write window=7"):
        check_count("window", 7.0)
    with pytest.raises(InputError, match=r"a switch must be a whole number, got 7.0$"):  # not the name of a setting
        check_count("a switch", 7.0)
    with pytest.raises(InputError, match=r"at most 2\^62"):
        check_count("window", 2**62 + 1)


@pytest.mark.parametrize("value", [1, 0, None, "yes", np.True_])
def test_flags_are_true_or_false(value):
    with pytest.raises(InputError, match="train must be True or False"):
        check_flag("train", value)


def test_paths():
    check_path("save wants a path", Path("a"))
    for wrong in ("", "a\0b", 3, None):
        with pytest.raises(InputError, match="save wants a path, got"):
            check_path("save wants a path", wrong)
