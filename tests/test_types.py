"""The small records."""

import dataclasses
import pickle

import numpy as np
import pytest

from driftbandits.types import Change, Decision, Decisions, read_only


def decisions(first=0):
    return Decisions(
        ids=np.arange(first, first + 2),
        arms=np.array([4, 5]),
        probabilities=np.array([0.5, 0.25]),
        laws=np.array([0, 0]),
    )


def change(**other):
    values = {
        "round": 120, "epoch": 1, "block": 2, "interval": (100, 120), "compared_with": 1, "statistic": 1.2345,
        "threshold": 0.9, "arms": (3, 7), "before": (0.5, -0.25), "after": (-0.5, -0.125),
    }  # fmt: skip
    return Change(**{**values, **other})


def test_read_only_view_leaves_the_original_writable():
    array = np.zeros(2)
    view = read_only(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    array[0] = 1.0
    assert view[0] == 1.0


def test_decisions_iterate_as_plain_python_values():
    rows = list(decisions())
    assert rows == [Decision(id=0, arm=4, probability=0.5, law=0), Decision(id=1, arm=5, probability=0.25, law=0)]
    assert type(rows[0].arm) is int
    assert type(rows[0].probability) is float
    assert len(decisions()) == 2


def test_decisions_compare_by_value():
    assert decisions() == decisions()
    assert decisions() != decisions(first=1)
    assert decisions() != "something else"
    with pytest.raises(TypeError, match="unhashable"):
        hash(decisions())


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        next(iter(decisions())).arm = 3  # type: ignore[misc]


@pytest.mark.parametrize("record", [decisions(), change(), Decision(0, 1, 0.5, 0)])
def test_records_pickle(record):
    assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301


def test_a_decision_has_a_name_and_is_compared_without_it():
    plain, named = Decision(0, 1, 0.5, 2), Decision(0, 1, 0.5, 2, name="red")
    assert plain == named
    assert hash(plain) == hash(named)
    assert repr(plain) == "Decision(id=0, arm=1, probability=0.5, law=2)"
    assert repr(named) == "Decision(id=0, arm=1, probability=0.5, law=2, name='red')"
    assert plain.name is None


def test_decisions_know_the_names_of_their_arms():
    named = dataclasses.replace(decisions(), arm_names=tuple("abcdef"))
    assert named == decisions()
    assert [row.name for row in Decisions.joined([named, named])] == ["e", "f", "e", "f"]
    assert [row.name for row in decisions()] == [None, None]


def test_a_change_reads_well():
    assert str(change()) == (
        "Around round 100 the rewards of arm 3 and 1 other changed: arm 3 fell from 0.5 to -0.5, arm 7 rose from "
        "-0.25 to -0.125. Found at round 120. (rounds 100 to 119 against epoch 1; statistic 1.23 > 0.9)"
    )


def test_a_change_with_odds_says_them_in_two_digits():
    text = str(change(round=11_950, interval=(10_120, 11_950), odds=41_000.0, arms=(), before=(), after=()))
    assert text.startswith(
        "Around round 10,120 rewards changed, of which arms cannot be said. Found at round 11,950; odds 41,000 to 1. ("
    )


def test_a_change_names_its_arms_largest_move_first():
    text = str(change(names=("blue", "red"), before=(0.0, 0.0), after=(0.1, -0.4)))
    assert "the rewards of red and 1 other changed: red fell from 0 to -0.4, blue rose from 0 to 0.1." in text


def test_a_change_keeps_digits_whatever_the_unit():
    text = str(change(before=(0.00012, 15_000.0), after=(0.00034, 12_500.0)))
    assert "arm 3 rose from 0.00012 to 0.00034" in text
    assert "arm 7 fell from 1.5e+04 to 1.25e+04" in text


def test_a_change_of_many_arms_stays_short():
    many = change(arms=tuple(range(10)), before=(0.0,) * 10, after=tuple(np.linspace(0.1, 1.0, 10)))
    assert "of arm 9 and 9 others changed: arm 9 rose from 0 to 1, arm 8 rose from 0 to 0.9, arm 7 rose" in str(many)
    assert "arm 6" not in str(many)


def test_a_change_stays_on_one_line_whatever_its_arms_are_called():
    wild = ("two\nlines", "\x1b[31mred", "tur\u202ened")
    moved = {"arms": (1, 2, 3), "before": (0.0,) * 3, "after": (0.3, 0.2, 0.1)}
    text = str(change(names=wild, stream="a\rb", forgot="c\td", **moved))
    assert text.isprintable()
    assert "'two\\nlines' rose from 0 to 0.3, '\\x1b[31mred' rose from 0 to 0.2, 'tur\\u202ened' rose" in text
    assert "'a\\rb'" in text
    assert text.endswith("forgot 'c\\td')")


def test_a_change_shortens_long_names_and_shows_empty_ones():
    text = str(change(names=("x" * 100_000, "")))
    assert "xx...xx" in text
    assert "'' rose from -0.25 to -0.125" in text
    assert len(text) < 600
