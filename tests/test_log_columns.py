"""Columns of a log: what is refused, and when rewards count as told."""

import numpy as np
import pytest

from driftbandits import GPUCB, ArmSet, LinearExp3
from driftbandits.errors import InputError
from driftbandits.policies.log_columns import read_columns

ARMS = ArmSet([[0.0], [0.5], [1.0]], names=["low", "mid", "high"])
GOOD = {"arm": [0, 1, 2, 1], "reward": [0.1, 0.2, 0.3, 0.4], "probability": [0.5, 0.25, 0.25, 1.0]}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"arm": [0, 1, 2, 3]}, "row 3, column 'arm'.*got 3"),
        ({"arm": ["low", "mid", "top", "mid"]}, "row 2, column 'arm'.*got 'top'"),
        ({"arm": [0.5, 1, 2, 1]}, "indices or names"),
        ({"arm": 3}, "sequence"),
        ({"reward": [0.1, np.inf, 0.1, 0.1]}, "row 1, column 'reward'.*got inf"),
        ({"reward": [0.1, "much", 0.1, 0.1]}, "must hold numbers"),
        ({"probability": [0.5, 0.0, 0.5, 0.5]}, "row 1, column 'probability'.*got 0.0"),
        ({"probability": [0.5, np.nan, 0.5, 0.5]}, "row 1, column 'probability': must be there"),
        ({"probability": [0.5]}, "probability has 1"),
        ({"round": [0, 2, 1, 3]}, "at row 2"),
        ({"time": [0, np.nan, 1, 3]}, "at row 1"),
        ({"told": [1, 0, 3, 4]}, "row 1, column 'told'.*got 0.0"),
        ({"allowed": np.zeros((4, 3), dtype=bool)}, "row 0"),
        ({"allowed": [[0, 1], [1], [2], [1]]}, "boolean array"),
    ],
)
def test_what_is_wrong_is_named(wrong, says):
    with pytest.raises(InputError, match=says):
        read_columns(ARMS, {**GOOD, **wrong})


@pytest.mark.parametrize("name", ["arm", "reward", "probability"])
def test_a_missing_column_is_named(name):
    with pytest.raises(InputError, match=f"'{name}' is missing"):
        read_columns(ARMS, {key: value for key, value in GOOD.items() if key != name})


def test_rewards_count_as_told_before_the_first_row_that_is_not_earlier():
    log = read_columns(ARMS, {**GOOD, "time": [10.0, 20.0, 20.0, 50.0], "told": [20.0, 21.0, np.nan, 90.0]})
    assert log.told_before.tolist() == [1, 3, 3, 4]


def test_late_rewards_and_unknown_ones_are_learned_as_they_came():
    original = GPUCB(ARMS, seed=3)
    rows, told = [], {}
    for number in range(60):
        choice = original.ask()
        rows.append(choice)
        if number >= 5 and number % 7:
            original.tell(number - 5, 0.1 * rows[number - 5].arm)
            told[number - 5] = number + 1
    for number in range(60):
        if number not in told:
            original.forget(number)
    pupil = GPUCB(ARMS, seed=3)
    pupil.learn(
        {
            "arm": [row.arm for row in rows],
            "probability": [row.probability for row in rows],
            "reward": [0.1 * row.arm if row.id in told else None for row in rows],
            "told": [told.get(row.id, 60) for row in rows],
        }
    )
    np.testing.assert_array_equal(pupil.estimate(), original.estimate())
    assert (pupil.ask(), pupil.pending) == (original.ask(), original.pending)


def test_a_policy_that_weighs_by_its_law_refuses_the_log_of_another_and_stays_new():
    policy = LinearExp3(ARMS, horizon=100, seed=0)
    before = policy.law()
    with pytest.raises(InputError, match="row 0 of the log was not drawn from its law"):
        policy.learn(GOOD)
    assert policy.rounds == 0
    np.testing.assert_array_equal(policy.law(), before)
