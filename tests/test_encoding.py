"""Frames as points: numbers standardised, words one-hot, and the same again for more rows."""

import numpy as np
import pandas as pd
import pytest

import driftbandits as db
from driftbandits.errors import InputError

FRAME = pd.DataFrame(
    {"price": [5.0, 10.0, 15.0], "colour": ["red", "blue", "red"], "new": [True, False, True], "same": [7, 7, 7]},
    index=["a", "b", "c"],
)


def test_numbers_are_standardised_and_words_one_hot():
    arms = db.ArmSet.from_frame(FRAME)
    assert arms.names == ("a", "b", "c")
    assert arms.feature_names == ("price", "colour=blue", "colour=red", "new", "same")
    assert arms.points[:, 0] == pytest.approx((FRAME["price"] - 10) / np.std([5, 10, 15]))
    assert arms.points[:, 1].tolist() == [0, 1, 0]
    assert arms.points[:, 2].tolist() == [1, 0, 1]
    assert arms.points[:, 3].std() == pytest.approx(1.0)
    assert arms.points[:, 4].tolist() == [0, 0, 0]


def test_without_scaling_numbers_stay():
    assert db.ArmSet.from_frame(FRAME, scale=False).points[:, 0].tolist() == [5, 10, 15]


def test_more_rows_mean_the_same():
    first = db.ArmSet.from_frame(FRAME)
    more = pd.DataFrame({"price": [10.0, 30.0], "colour": ["red", "red"], "new": [True, True], "same": [7, 8]})
    second = db.ArmSet.from_frame(more, like=first, names=["d", "e"])
    assert second.points[0, 0] == 0.0
    assert second.feature_names == first.feature_names
    assert second.points[1, 4] == 1.0


def test_arms_that_follow_others_know_how_rows_are_read():
    first = db.ArmSet.from_frame(FRAME)
    policy = db.GPUCB(first, seed=0)
    policy.tell(policy.ask(), 0.5)
    fewer = policy.with_arms(first.without([2])).arms
    for later in (fewer, first.extended([first.points[0]], names=["d"])):
        assert db.ArmSet.from_frame(FRAME, like=later).points.tolist() == first.points.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: db.ArmSet.from_frame([[1.0]]), "wants a DataFrame"),
        (lambda: db.ArmSet.from_frame(FRAME, categorical="refuse"), "column 'colour' is not of numbers"),
        (lambda: db.ArmSet.from_frame(FRAME, categorical="ordinal"), "onehot"),
        (lambda: db.ArmSet.from_frame(FRAME.assign(price=[1.0, np.nan, 2.0])), "column 'price' is nan in row 1"),
        (lambda: db.ArmSet.from_frame(FRAME.assign(colour=["red", None, "red"])), "column 'colour' is empty in row 1"),
        (lambda: db.ArmSet.from_frame(FRAME.iloc[:0]), "0 rows"),
        (lambda: db.ArmSet.from_frame(pd.DataFrame([[1, 2]], columns=["x", "x"])), "the same name"),
        (lambda: db.ArmSet.from_frame(FRAME, like=db.ArmSet([[0.0]])), "made by ArmSet.from_frame"),
        (lambda: db.ArmSet.from_frame(FRAME, like=FRAME), "made by ArmSet.from_frame"),
        (lambda: db.ArmSet.from_frame(FRAME, scale="no"), "scale must be True or False, got 'no'"),
        (lambda: db.ArmSet.from_frame(FRAME.drop(columns="new"), like=db.ArmSet.from_frame(FRAME)), "no column 'new'"),
        (
            lambda: db.ArmSet.from_frame(
                FRAME.assign(colour=["red", "blue", "green"]), like=db.ArmSet.from_frame(FRAME)
            ),
            "'green', unknown to the arms before",
        ),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
