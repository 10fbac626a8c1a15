"""Logs as they are kept: other names, orders, layouts, databases, and rewards in another table."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sqlalchemy as sa

from driftbandits.errors import InputError
from driftbandits.logs import Log, evaluate
from driftbandits.logs.log import suspicious_arms

GOOD = {"round": [0, 1, 2, 4], "arm": ["a", "b", "a", "c"], "reward": [1.0, 0.0, None, 0.5], "probability": [0.5] * 4}


def test_columns_may_have_other_names():
    frame = pd.DataFrame(
        {"n": GOOD["round"], "variant": GOOD["arm"], "clicked": [1, 0, 0, 1], "probability": [0.5] * 4}
    )
    log = Log.read(frame, columns={"round": "n", "arm": "variant", "reward": "clicked"})
    assert log.names == ("a", "b", "c")
    assert log.reward.tolist() == [1, 0, 0, 1]
    with pytest.raises(InputError, match="no column 'variants'; did you mean 'variant'"):
        Log.read(frame, columns={"arm": "variants"})
    with pytest.raises(InputError) as caught:
        Log.read(frame, columns={"arm": "variants", "arn": "variant", "reward": "z"})
    assert str(caught.value).splitlines() == [
        "3 problems:",
        "- the log has no column 'variants'; did you mean 'variant'?",
        "- a log has no column 'arn' that 'variant' could be; did you mean 'arm'?",
        "- the log has no column 'z'; it has n, variant, clicked, probability",
    ]
    both = Log.read({**GOOD, "other": ["x", "x", "y", "y"]}, columns={"arm": "other"})
    assert both.names == ("x", "y")  # the column that is called arm is not read


@pytest.mark.parametrize(
    "times", [[4.0, 1.0, 3.0, 2.0], ["2024-04-01", "2024-01-01", "2024-03-01T12:00", "2024-02-01"]]
)
def test_rows_are_sorted_by_time_where_asked(times):
    rows = {**GOOD, "time": times}
    del rows["round"]
    with pytest.raises(InputError, match="sort the rows"):
        Log.read(rows)
    log = Log.read(rows, sort=True)
    assert [log.names[arm] for arm in log.arm] == ["b", "c", "a", "a"]
    assert (np.diff(log.time) > 0).all()


def test_rows_that_lack_something_are_dropped_and_counted():
    rows = {**GOOD, "arm": ["a", None, "a", "c"], "probability": [0.5, 0.5, None, 0.5]}
    with pytest.raises(InputError, match="2 problems") as caught:
        Log.read(rows)
    assert "row 1, column 'arm'" in str(caught.value)
    assert "row 2, column 'probability'" in str(caught.value)
    log = Log.read(rows, drop_missing=True)
    assert log.notes == ("2 rows dropped: arm in 1, probability in 1 missing",)
    assert log.round.tolist() == [0, 4]
    assert Log.read(GOOD, drop_missing=True).notes == ()  # a reward may be missing


def test_spellings_are_merged_where_asked_and_named_otherwise():
    arm = ["orange", "Orange", "café", "cafe ", "orange", "café"] * 20
    rows = {"round": range(120), "arm": arm, "reward": [1, 0] * 60, "probability": [0.5] * 120}
    rows["allowed"] = [[name, "orange"] for name in arm]
    said = suspicious_arms(Log.read(rows))
    assert "arms 'orange' (40 rows) and 'Orange' (20 rows) differ by case, blanks or accents alone" in " ".join(said)
    assert len(said) == 2
    log = Log.read(rows, merge_names=True)
    assert log.names == ("café", "orange")
    assert log.notes == ("2 spellings of arms merged: 'cafe ' into 'café', 'Orange' into 'orange'",)
    assert log.notes[0] in evaluate(log, "orange", estimator="ips").notes
    assert not suspicious_arms(log)
    assert log.allowed.shape == (120, 2)


def test_dates_without_a_zone_are_of_the_zone_that_is_said():
    wall = ["2024-03-30 12:00", "2024-03-31 12:00"]  # summer time begins between them
    rows = {"arm": [0, 1], "reward": [0, 1], "probability": [0.5, 0.5]}
    expected = [
        datetime.datetime(2024, 3, day, hour, tzinfo=datetime.UTC).timestamp() for day, hour in ((30, 11), (31, 10))
    ]
    for time in (wall, pd.to_datetime(wall)):
        assert Log.read({**rows, "time": time}, zone="Europe/Berlin").time.tolist() == expected
    with_zone = ["2024-03-30 12:00+01:00", "2024-03-31 12:00+02:00"]
    assert Log.read({**rows, "time": with_zone}, zone="Asia/Tokyo").time.tolist() == expected
    with pytest.raises(InputError, match="no time zone 'Berlin'"):
        Log.read({**rows, "time": wall}, zone="Berlin")


def test_the_columns_of_open_bandit(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text(
        ",timestamp,item_id,position,click,propensity_score,user_feature_0\n"
        "0,2019-11-24 00:00:13.1+00:00,14,3,0,0.0125,x\n"
        "1,2019-11-24 00:00:02.5+00:00,7,1,1,0.0125,y\n"
    )
    log = Log.read(path, layout="open-bandit", sort=True)
    assert log.arm.tolist() == [7, 14]
    assert log.segment_names == ("1", "3")
    assert log.reward.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "text",
    [
        "1:-1:0.8 | x:1\n2:0:0.25 | x:2\n",
        "shared | x:1\n0:-1:0.8 | a\n| b\n\nshared | x:2\n| a\n0:0:0.25 | b\n\n",
        "\n".join(
            json.dumps({"_label_Action": arm, "_label_cost": cost, "_label_probability": share, "c": {"x": [1]}})
            for arm, cost, share in ((1, -1.0, 0.8), (2, 0, 0.25))
        ),
    ],
)
def test_decisions_of_vowpal_wabbit(text, tmp_path):
    path = tmp_path / "log.vw"
    path.write_text(text)
    log = Log.read(path, layout="vw")
    assert [log.names[arm] for arm in log.arm] == ["1", "2"]
    assert log.reward.tolist() == [1.0, 0.0]
    assert log.probability.tolist() == [0.8, 0.25]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1:x:0.5 | a\n1:0:1 | b\n2:1\n", r"line 1 is no decision .*got '1:x:0.5 \| a' \(nor are lines 3\)"),
        ("", "has no decision"),
        ("{}\n", "line 1 is no decision"),
    ],
)
def test_what_vowpal_wabbit_never_wrote_is_named(text, message, tmp_path):
    (tmp_path / "log.vw").write_text(text)
    with pytest.raises(InputError, match=message):
        Log.read(tmp_path / "log.vw", layout="vw")


def test_a_query_is_a_log(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    pd.DataFrame({**GOOD, "shop": [1, 1, 2, 2]}).to_sql("plays", engine, index=False)
    query = "select round, arm as variant, reward, probability from plays where shop = 1 order by round"
    log = Log.read(query, database=str(engine.url), columns={"arm": "variant"})
    assert log.names == ("a", "b")
    assert Log.read(sa.text("select * from plays"), database=engine).names == ("a", "b", "c")
    with pytest.raises(InputError, match="the query gave no log"):
        Log.read("select * from nothing", database=engine)


def test_rewards_that_came_later_are_joined_by_id():
    plays = pl.DataFrame({**{k: v for k, v in GOOD.items() if k != "reward"}, "id": ["k", "l", "m", "n"]})
    rewards = {"id": ["n", "k", "strange"], "reward": [0.5, 1.0, 9.0], "told": [9, 3, 9]}
    log = Log.read(plays, rewards=rewards)
    np.testing.assert_array_equal(log.reward, [1.0, np.nan, np.nan, 0.5])
    np.testing.assert_array_equal(log.told, [3, np.nan, np.nan, 9])
    assert log.notes == (
        "2 decisions without a reward in the other table",
        "1 reward of no decision in the log, left out",
    )
    with pytest.raises(InputError, match=r"id 'n' stands in rows 0, 1 of the table of rewards"):
        Log.read(plays, rewards={"id": ["n", "n"], "reward": [0, 1]})
    with pytest.raises(InputError, match="no column 'id'"):
        Log.read(GOOD, rewards=rewards)


def test_all_problems_are_said_at_once_with_their_rows():
    rows = {
        "round": [0, 2, 1, 3, 4, 5, 6],
        "arm": ["a", None, "a", "b", "a", "b", None],
        "reward": [1, 0, np.inf, 0, 1, 0, 1],
        "probability": [0.5, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0],
        "segment": ["x", "y", None, "x", "x", "x", "x"],
    }
    with pytest.raises(InputError) as caught:
        Log.read(rows)
    lines = str(caught.value).splitlines()
    assert lines[0] == "6 problems:"
    assert "row 2, column 'round': is before the row above it" in lines[1]
    assert "row 1, column 'arm': must be there, got nothing (and in row 6)" in lines[2]
    assert "row 2, column 'reward'" in lines[3]
    assert "(and in rows 3, 4, 5, 6)" in lines[4]
    assert "row 2, column 'probability': must be at most 1" in lines[5]
    assert "row 2, column 'segment'" in lines[6]
