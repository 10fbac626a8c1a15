"""Values and names inside messages."""

import numpy as np
import pandas as pd
import pytest

from driftbandits import AdaOPKB, ArmSet
from driftbandits.errors import HorizonError, InputError
from driftbandits.text import breaking, counted, label, shown


@pytest.mark.parametrize("value", [0, -7, 10**59, 0.1, 1e-300, "text", None, True, (0, 1), [1, 2], {"a": 1}, 1j, b"x"])
def test_what_is_short_is_shown_as_it_is(value):
    assert shown(value) == repr(value)


@pytest.mark.parametrize("power", [60, 61, 99, 400, 4299, 4300, 10_000])
@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_long_numbers_are_shown_by_their_ends_and_their_digits(power, shift):
    number = 10**power + shift
    digits = power + 1 if shift >= 0 else power
    if number < 10**60:
        assert shown(number) == "9" * 60
        return
    first = "9" * 10 if shift < 0 else "1000000000"
    last = {-1: "9" * 10, 0: "0" * 10, 1: "0000000001"}[shift]
    assert shown(number) == f"{first}...{last} ({digits:,} digits)"
    assert shown(-number) == f"-{shown(number)}"


@pytest.mark.parametrize(
    "value",
    [
        np.arange(10**6),
        np.zeros((1000, 1000)),
        list(range(10**6)),
        ["text"] * 10**5,
        "x" * 10**6,
        pd.DataFrame(np.zeros((500, 40))),
        {str(i): [i] * 100 for i in range(1000)},
        [[10**5000]] * 100,
        np.array([10**1000, 1], dtype=object),
    ],
)
def test_what_is_long_is_shortened_to_one_line(value):
    text = shown(value)
    assert len(text) <= 100
    assert "\n" not in text


def test_a_repr_that_fails_does_no_harm():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no name")

    assert shown(Broken()).startswith("<Broken instance at")
    assert shown([Broken()]).startswith("[<Broken instance at")


@pytest.mark.parametrize("name", ["a", "14 EUR", "café", "نم\u200cنم", "👩\u200d🔬", "a\u00a0b", "it's", "\u200b"])
def test_names_that_can_be_read_are_left_alone(name):
    assert label(name) == name
    assert breaking(name) is None


@pytest.mark.parametrize("code", list("\n\r\t\x00\x1b\x7f\x85\x9b\u2028\u2029\u202e\u2066\ufeff\ud800"))
def test_codes_that_garble_a_text_are_found_and_escaped(code):
    name = f"left{code}right"
    assert breaking(name) == code
    assert label(name) == repr(name)
    assert label(name).isprintable()


def test_names_that_cannot_be_seen_are_quoted_and_long_ones_cut():
    assert label("") == "''"
    assert label(" a") == "' a'"
    assert len(label("x" * 10**6)) == 100


def test_one_thing_is_counted_in_the_singular():
    assert [counted(number, "round") for number in (0, 1, 2, 10_000)] == [
        "0 rounds",
        "1 round",
        "2 rounds",
        "10,000 rounds",
    ]
    arms = ArmSet([[0.0]])
    assert repr(arms).startswith("ArmSet(1 arm in 1 dimension, ")
    policy = AdaOPKB(arms, horizon=1)
    assert repr(policy).startswith("AdaOPKB(1 arm, ")
    policy.ask()
    with pytest.raises(HorizonError, match="after 1 of 1 round;"):
        policy.ask()
    with pytest.raises(InputError, match="got 2 rewards for 1 decision;"):
        policy.tell([0], [0.1, 0.2])
