"""Lists of settings in docstrings: own ones in one's own words, all others in those of the nearest base."""

import inspect
from typing import Any

import pytest

import driftbandits as db
from driftbandits.policies.core.docstrings import whole_docstring


class Window(db.Uniform):
    """Keeps a window.

    Parameters
    ----------
    window : rounds kept,
        at least one
    order : as it likes
    others : see `Policy`

    Slow.

    >>> 1 + 1
    2
    """

    def __init__(self, arms: db.ArmSet, *, window: int = 3, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self.window = window


class Wider(Window):
    """Without a list, but with an example.

    >>> 2 + 2
    4
    """


class Silent(Window):
    pass


def settings_listed(docstring):
    section = docstring.split("Parameters\n----------\n")[1].split("\n\n")[0]
    return [line.split(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]


@pytest.mark.parametrize("policy", [Window, Wider])
def test_every_setting_is_listed_once_in_the_order_of_the_signature(policy):
    assert settings_listed(policy.__doc__) == list(inspect.signature(policy).parameters)


def test_own_words_come_before_those_of_a_base():
    for policy in (Window, Wider):
        assert "window : rounds kept,\n    at least one\n" in policy.__doc__
        assert "order : as it likes\n" in policy.__doc__
        assert "seed : of all the policy's randomness" in policy.__doc__


def test_the_rest_of_the_docstring_stays():
    assert Window.__doc__.startswith("Keeps a window.\n\nParameters\n")
    assert Window.__doc__.endswith("range.\n\nSlow.\n\n>>> 1 + 1\n2\n")
    assert Wider.__doc__.startswith("Without a list, but with an example.\n\nParameters\n")
    assert Wider.__doc__.endswith("range.\n\n>>> 2 + 2\n4\n")


def test_errors_are_those_of_the_base():
    assert Window.__doc__.count("Raises\n------\nInputError\n") == 1


def test_no_docstring_stays_none():
    assert Silent.__doc__ is None
    assert whole_docstring(Silent, ["arms"]) is None


def test_items_of_several_names_stand_once():
    assert db.SlidingWindowNeuralUCB.__doc__.count("width, depth : ") == 1
    assert "\ndepth : " not in db.SlidingWindowNeuralUCB.__doc__
