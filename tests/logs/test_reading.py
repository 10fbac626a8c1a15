import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import driftbandits as db
from driftbandits._util import checks
from driftbandits.errors import InputError
from driftbandits.logs import Log, tables

GOOD = {
    "round": [0, 1, 2, 4],
    "arm": ["a", "b", "a", "c"],
    "reward": [1.0, 0.0, None, 0.5],
    "probability": [0.5, 0.25, 0.5, 1.0],
}


def same(left, right):
    for name in ("round", "arm", "reward", "probability"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    assert left.names == right.names


def frame(**columns):
    return pd.DataFrame({**GOOD, **columns})


@pytest.mark.parametrize("kind", ["parquet", "csv", "ndjson", "jsonl"])
def test_files_give_the_same_log(kind, tmp_path):
    path = tmp_path / f"log.{kind}"
    if kind == "parquet":
        frame().to_parquet(path)
    elif kind == "csv":
        frame().to_csv(path, index=False)
    else:
        frame().to_json(path, orient="records", lines=True)
    same(Log.read(path), Log.read(GOOD))
    same(Log.read(str(path)), Log.read(frame()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round,arm,reward,probability\n0,a,1,0.5\n1,,0,0.5\n", r"row 1, column 'arm': must be there, got nothing"),
        ("round,arm,reward,probability\n0,a,1,0.5\n1,b,0\n", r"log.csv: row 1: must have 4 fields .* got 3: '1,b,0'"),
        ("round;arm;reward;probability\n0;a;1;0.5\n", r"one column, .* must be separated by commas"),
        ("round,arm,reward,prob\n0,a,1,0.5\n", r"no column 'probability'; it has round, arm, reward, prob"),
    ],
)
def test_what_is_wrong_with_a_csv_is_named(text, message, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        Log.read(tmp_path / "log.csv")


def test_polars_frames_give_the_same_log():
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars==2.1.0")
    same(Log.read(polars.DataFrame(GOOD)), Log.read(GOOD))


def test_a_trace_is_a_log():
    world = db.environments.create("switching/1", seed=0, horizon=200, switches=(100,), size=8)
    trace = db.simulate(db.Uniform(world.arms, seed=0), world, seed=0)
    log = Log.read(trace, arms=world.arms)
    assert len(log) == 200
    assert len(log.names) == 8
    np.testing.assert_array_equal(log.reward, trace.reward)
    assert log.arms is world.arms


def test_a_trace_written_as_parquet_is_the_same_log(tmp_path):
    world = db.environments.create("switching/1", seed=0, horizon=50, switches=(25,), size=8)
    trace = db.simulate(db.Uniform(world.arms, seed=0), world, seed=0)
    trace.to_parquet(tmp_path / "trace.parquet")
    same(Log.read(tmp_path / "trace.parquet", arms=world.arms), Log.read(trace, arms=world.arms))


def test_columns_are_read_only_and_optional_ones_are_kept():
    log = Log.read({**GOOD, "segment": ["x", "y", "x", "x"], "told": [3, 1, None, 9]}, reward_range=(0, 1))
    assert log.segment_names == ("x", "y")
    np.testing.assert_array_equal(log.told, [3, 1, np.nan, 9])
    assert log.reward_range == (0.0, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        log.reward[0] = 2
    assert log.row(1).segment == "y"
    assert log.take(np.array([True, False, False, True])).arm.tolist() == [0, 2]


@pytest.mark.parametrize(
    "allowed",
    [
        [["a", "b"], ["b"], ["a", "b", "c"], ["c"]],
        ["a|b", "b", "a|b|c", "c"],
        [[0, 1], [1], [0, 1, 2], [2]],
        [[True, True, False], [False, True, False], [True] * 3, [False, False, True]],
    ],
)
def test_masks_in_all_forms_are_one(allowed):
    log = Log.read({**GOOD, "allowed": allowed})
    expected = [[True, True, False], [False, True, False], [True, True, True], [False, False, True]]
    np.testing.assert_array_equal(log.allowed, expected)
    assert log.row(1).offered == ("b",)


def test_laws_are_checked_and_numbers_of_laws_left_alone():
    law = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]
    assert Log.read({**GOOD, "law": law}).law.shape == (4, 3)
    assert Log.read({**GOOD, "law": [0, 0, 1, 1]}).law is None


def test_times_may_be_dates_or_numbers():
    rows = {k: v for k, v in GOOD.items() if k != "round"}
    dates = pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-02", "2024-01-08"])
    log = Log.read(pd.DataFrame({**rows, "time": dates}))
    np.testing.assert_array_equal(np.diff(log.time), [0, 86_400, 6 * 86_400])
    np.testing.assert_array_equal(Log.read({**rows, "time": [0.5, 0.5, 1, 2]}).clock, [0.5, 0.5, 1, 2])


WRONG = [
    ({"probability": [0.5, 0.0, 0.5, 1]}, r"row 1, column 'probability': must be above 0, got 0"),
    (
        {"probability": [0.5, 0.2, 1.5, 2]},
        r"row 2, column 'probability': must be at most 1, got 1.5 \(and in row 3\)",
    ),
    ({"probability": [0.5, None, 0.5, 1]}, r"row 1, column 'probability': must be there"),
    ({"probability": ["0.5", "x", "0.5", "1"]}, r"row 1, column 'probability': must be a number, got 'x'"),
    ({"reward": [1.0, np.inf, 0, 0]}, r"row 1, column 'reward': must be finite"),
    ({"reward": ["good", "1", "0", "0"]}, r"row 0, column 'reward': must be a number, got 'good'"),
    ({"round": [0, 2, 1, 3]}, r"row 2, column 'round': is before the row above it, got 1.*sort"),
    ({"round": [0, 1, 1, 3]}, r"row 2, column 'round': is the round of the row above it, got 1.*duplicates"),
    ({"round": [0, 3, 1, 3]}, r"row 2, column 'round': .* twice"),
    ({"round": [0, 1.5, 2, 3]}, r"row 1, column 'round': must be a whole number"),
    ({"round": [0, None, 2, 3]}, r"row 1, column 'round': must be there"),
    ({"round": np.array([0, 1, 2, 3], dtype="datetime64[s]")}, r"column 'round' has dates; call it 'time'"),
    ({"arm": [True, False, True, True]}, r"column 'arm' must have one name or position per row; dates, True"),
    ({"arm": ["a", None, "b", "c"]}, r"row 1, column 'arm': must be there"),
    ({"arm": [0, 1, -1, 2]}, r"row 2, column 'arm': must be a name or a position"),
    ({"allowed": ["a", "b", "b", "c"]}, r"row 2, column 'allowed': lacks the arm that was played, got 'a'"),
    ({"allowed": [["a"], [], ["a"], ["c"]]}, r"row 1, column 'allowed': offers no arm"),
    (
        {"allowed": [[True, True], [True, True], [True, True], [True, True]]},
        r"row 0, column 'allowed': must have 3 flags",
    ),
    ({"law": [[0.5, 0.5]] * 4}, r"row 0, column 'law': must have 3 probabilities, got 2"),
    ({"law": [[0.5, 0.25, 0.0]] * 4}, r"row 0, column 'law': must be probabilities that add up to 1"),
    ({"law": [[0.5, 0.25, 0.25]] * 4}, r"row 3, column 'law': disagrees with the probability logged, got 0.25"),
    ({"segment": ["x", None, "y", "x"]}, r"row 1, column 'segment': must be there"),
    ({"told": [1, 0, 3, 5]}, r"row 1, column 'told': is before the decision"),
    ({"told": [1, None, None, 5]}, r"row 1, column 'told': must be there where a reward is"),
]


def test_an_arm_that_was_offered_and_never_played_is_an_arm_unless_arms_are_given():
    columns = {**GOOD, "allowed": ["a", "b|z", "a", "c"]}
    log = Log.read(columns)
    assert log.names == ("a", "b", "c", "z")
    np.testing.assert_array_equal(log.allowed.sum(axis=0), [2, 1, 1, 1])
    with pytest.raises(InputError, match="row 1, column 'allowed': 'z' is none of the arms"):
        Log.read(columns, arms=["a", "b", "c"])


@pytest.mark.parametrize(("columns", "message"), WRONG)
def test_what_is_wrong_is_named_by_row_and_column(columns, message):
    with pytest.raises(InputError, match=message):
        Log.read({**GOOD, **columns})


def test_dates_may_be_texts():
    rows = {k: v for k, v in GOOD.items() if k != "round"}
    texts = ["2024-01-01", "2024-01-01 00:00:30", "2024-01-02T00:00:00+00:00", "2024-01-08"]
    log = Log.read({**rows, "time": texts, "told": [texts[1], texts[1], None, texts[3]]})
    np.testing.assert_array_equal(np.diff(log.time), [30, 86_370, 6 * 86_400])
    assert log.told[0] - log.time[0] == 30
    with pytest.raises(InputError, match=r"row 2, column 'time': must be a date, got '8.1.24'"):
        Log.read({**rows, "time": [*texts[:2], "8.1.24", texts[3]]})


def test_numbers_that_are_names_and_no_positions_are_names():
    prices = {**GOOD, "arm": [9, 12, 9, 14.5]}
    assert Log.read(prices, arms=["9", "12", "14.5"]).arm.tolist() == [0, 1, 0, 2]
    with pytest.raises(InputError, match="position below 3, got 9"):
        Log.read({**GOOD, "arm": [9, 12, 9, 14]}, arms=["9", "12", "13"])


def test_times_that_fall_are_named():
    rows = {k: v for k, v in GOOD.items() if k != "round"}
    with pytest.raises(InputError, match=r"row 3, column 'time': is before the row above it"):
        Log.read({**rows, "time": [1.0, 1.0, 2.0, 0.5]})


def test_arms_of_another_experiment_are_named():
    with pytest.raises(
        InputError, match=r"row 1, column 'arm': is none of the arms, got 'b'.*2 of 3 names.*another exp"
    ):
        Log.read(GOOD, arms=["a", "x", "y"])
    with pytest.raises(InputError, match=r"row 2, column 'arm': must be a position below 2, got 2"):
        Log.read({**GOOD, "arm": [0, 1, 2, 0]}, arms=["a", "b"])


def test_rewards_out_of_a_declared_range_are_named():
    with pytest.raises(InputError, match=r"row 0, column 'reward': lies outside \(0, 0.9\), got 1"):
        Log.read(GOOD, reward_range=(0, 0.9))


@pytest.mark.parametrize("missing", ["round", "arm", "reward", "probability"])
def test_a_missing_column_is_named_with_the_nearest(missing):
    rows = {k if k != missing else f"{k}s": v for k, v in GOOD.items()}
    with pytest.raises(InputError, match=f"no column '{missing}'; did you mean '{missing}s'"):
        Log.read(rows)


def test_files_that_are_no_log_are_named(tmp_path):
    (tmp_path / "log.parquet").write_text("round,arm")
    (tmp_path / "log.txt").write_text("round,arm")
    with pytest.raises(InputError, match=r"log.parquet is no log in parquet"):
        Log.read(tmp_path / "log.parquet")
    with pytest.raises(InputError, match="a log ends in"):
        Log.read(tmp_path / "log.txt")
    with pytest.raises(InputError, match="there is no log"):
        Log.read(tmp_path / "none.csv")
    (tmp_path / "bad.csv").write_text("round,arm,reward,probability\n0,a,1,0\n")
    with pytest.raises(InputError, match=r"bad.csv: row 0, column 'probability': must be above 0"):
        Log.read(tmp_path / "bad.csv")


@pytest.mark.parametrize("wrong", [3, None, [1, 2], {"round": [], "arm": [], "reward": [], "probability": []}])
def test_what_is_no_log_at_all_is_refused(wrong):
    with pytest.raises(InputError):
        Log.read(wrong)


def test_arms_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="arms must be"):
        Log.read(GOOD, arms="abc")
    with pytest.raises(InputError, match="distinct"):
        Log.read(GOOD, arms=["a", "a", "b"])
    for wrong in ((1, 0), "01", (0, 1, 2)):
        with pytest.raises(InputError, match="reward_range must be two"):
            Log.read(GOOD, reward_range=wrong)


def test_an_arm_that_is_not_there_is_named():
    log = Log.read(GOOD)
    with pytest.raises(InputError, match="no arm of the log is called 'aa'"):
        log.index("aa")
    assert log.index("b") == log.index(1) == 1


DEEP = [
    "[" * 1000 + "]" * 1000,  # a RecursionError of the reader
    "[" * 20_000 + "]" * 20_000,  # the end of the process
    "\n".join("[" * 20_000),
    '{"a": "[", "b": ' + "[" * 21 + "]" * 21 + "}",
    r'{"a": "\"", "b": ' + "[" * 21 + "]" * 21 + "}",
    '{"a": "' + "\n" + "[" * 30 + "]" * 30,  # the string ends with its line
    "]" * 500 + "[" * 30 + "]" * 30,
    '{"a": ["]", ' + '["]", ' * 30 + "1" + "]" * 31 + "}",  # texts that close nothing
]


@pytest.mark.parametrize("text", DEEP)
def test_deeply_nested_json_is_refused_before_it_is_read(tmp_path, text):
    path = tmp_path / "log.ndjson"
    path.write_text('{"round": 0, "arm": "a", "reward": 1.0, "probability": 0.5}\n' + text + "\n")
    with pytest.raises(InputError, match="more than 20 brackets"):
        Log.read(path)


def test_brackets_in_texts_are_no_nesting(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK", 100)  # a row lies in two blocks
    path = tmp_path / "log.ndjson"
    rows = [{"round": k, "arm": "[" * 30 + '"' * (k % 2), "reward": 1.0, "probability": 0.5} for k in range(50)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(Log.read(path)) == 50
    path.write_text("x" * 1000)
    with pytest.raises(InputError, match="line of more than 100 bytes"):
        Log.read(path)


def test_a_parquet_of_more_rows_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "log.parquet"
    many = 2_000_000  # of one value: a file of kilobytes
    columns = {name: np.ones(many) for name in ("round", "arm", "reward", "probability")}
    pq.write_table(pa.table(columns), path)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(checks, "memory_limit", lambda: 64e6)
    monkeypatch.setattr(checks, "NEVER_REFUSED_BYTES", 10**6)
    with pytest.raises(InputError, match=r"2,000,000 rows, would need 122\.1 MiB of memory"):
        Log.read(path)
