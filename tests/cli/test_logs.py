import json
import sys

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

from tests.logs.making import logged


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    means = np.repeat([[0.3, 0.7], [0.7, 0.3]], 400, axis=0)
    log = logged(means, 0, learning=False)
    frame = pd.DataFrame(
        {
            "round": log.round,
            "arm": [log.names[k] for k in log.arm],
            "reward": log.reward,
            "probability": log.probability,
        }
    )
    where = tmp_path_factory.mktemp("log") / "log.csv"
    frame.to_csv(where, index=False)
    return where


def test_evaluate_says_what_an_arm_would_have_earned(cli, path):
    result = cli("evaluate", path, "--target", "a", "--by", "2", "--estimator", "ips")
    assert result.exit_code == 0, result.stderr
    assert "always a, by ips" in result.stdout
    assert "rounds 400 to 799" in result.stdout


def test_evaluate_gives_numbers_for_programs(cli, path):
    result = cli("evaluate", path, "--target", "0.5,0.5", "--against", "b", "--range", 0, 1, "--json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["target"] == "a law less always b"
    assert printed["parts"][0]["anytime_low"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--target", "c"], "no arm of the log is called 'c'"), (["--range", "0", "0.5"], "column 'reward'")],
)
def test_what_is_wrong_is_one_line(cli, path, options, message):
    result = cli("evaluate", path, *options)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_contexts_are_inferred_or_declared_and_policies_replayed(cli, tmp_path):
    rng = np.random.default_rng(0)
    x, arm = rng.normal(size=2_000), rng.integers(0, 2, 2_000)
    reward = 0.5 + 0.2 * np.where(arm == 0, x, -x) + rng.normal(0, 0.1, 2_000)
    columns = {"round": np.arange(2_000), "arm": np.array(["a", "b"])[arm], "reward": reward, "probability": 0.5}
    pd.DataFrame({**columns, "context.x": x}).to_csv(tmp_path / "log.csv", index=False)
    values = []
    for policy in ("DisjointLinThompson", "Uniform"):
        result = cli("evaluate", tmp_path / "log.csv", "--target", policy, "--json")
        assert result.exit_code == 0, result.stderr
        values.append(json.loads(result.stdout)["parts"][0]["value"])
    assert values[0] > values[1] + 0.1
    (tmp_path / "contexts.yaml").write_text("x: [-3, 3]\nage: number\n")
    wrong = cli("evaluate", tmp_path / "log.csv", "--contexts", tmp_path / "contexts.yaml", "--target", "a")
    assert wrong.exit_code == 1
    assert "no column 'context.age'" in wrong.stderr
    (tmp_path / "contexts.json").write_text('{"x": [-3, 3]}')
    declared = cli("evaluate", tmp_path / "log.csv", "--contexts", tmp_path / "contexts.json", "--target", "a")
    assert declared.exit_code == 0, declared.stderr


def test_advise_says_what_it_lacks_before_it_begins(cli, path, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("driftbandits.logs.advise", lambda *_, **__: pytest.fail("the work was begun"))
    result = cli("advise", path, "--out", tmp_path / "advice.html")
    assert result.exit_code == 1
    assert "the page needs matplotlib" in result.stderr
    assert "'.[experiments]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_advise_writes_a_page_and_files_that_run(cli, path, tmp_path):
    result = cli("advise", path, "--out", tmp_path / "advice.html", "--twins", 2, "--json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["moves"] is True
    assert "The world changed once, around round 4" in printed["verdict"]
    assert "The world changed once" in (tmp_path / "advice.html").read_text()
    played = cli("run", tmp_path / "advice.run.yaml", "--seeds", 1, "--jobs", 1, "--out", tmp_path / "played")
    assert played.exit_code == 0, played.stderr


def test_logs_are_read_as_they_are_kept(cli, path, tmp_path):
    """Other names, another order, rewards in a second file, and the same from a database."""
    frame = pd.read_csv(path).rename(columns={"arm": "variant", "probability": "p"})
    frame["id"] = [f"visit {k}" for k in range(len(frame))]
    frame[["id", "reward"]].iloc[:-5].to_csv(tmp_path / "paid.csv", index=False)
    rest = frame.drop(columns="reward").iloc[::-1]
    rest.to_csv(tmp_path / "plays.csv", index=False)
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    rest.to_sql("plays", sa.create_engine(url), index=False)
    names = ("--column", "arm=variant", "--column", "probability=p", "--sort", "--rewards", tmp_path / "paid.csv")
    printed = []
    for source, options in ((tmp_path / "plays.csv", ()), ("select * from plays", ("--database", url))):
        result = cli("evaluate", source, *options, *names, "--target", "a", "--estimator", "ips", "--json")
        assert result.exit_code == 0, result.stderr
        printed.append(json.loads(result.stdout))
    assert printed[0] == printed[1]
    assert "5 decisions without a reward in the other table" in printed[0]["notes"]
    assert "reward_range" in printed[0]["no_anytime"]
    wrong = cli("evaluate", path, "--column", "arm")
    assert wrong.exit_code == 2
    assert "write NAME=COLUMN" in wrong.stderr
