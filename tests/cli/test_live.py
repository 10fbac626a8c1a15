"""Experiments in a database from the command line."""

import json

import pytest
from typer.testing import CliRunner

from driftbandits import live
from driftbandits.cli.app import app


def run(*words):
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def made(url, tmp_path):
    (tmp_path / "prices.json").write_text('{"arms": ["low", "high"], "policy": "DiscountedUCB", "seed": 1}')
    done = run("experiments", "create", "prices", str(tmp_path / "prices.json"), "-d", url)
    assert done.exit_code == 0, done.stderr
    with live.open(url) as database:
        shop = database.experiment("prices")
        for _ in range(4):
            shop.reward(shop.decide().id, 0.5)
    return url


def test_made_listed_shown_exported_and_checked(made, tmp_path):
    rows = json.loads(run("experiments", "list", "-d", made, "--json").stdout)
    assert rows == [{"name": "prices", "policy": "DiscountedUCB", "arms": 2, "events": 9}]
    assert "4 decisions, 4 rewards" in run("experiments", "show", "prices", "-d", made).stdout
    assert json.loads(run("experiments", "show", "prices", "-d", made, "--json").stdout)["rewards"] == 4
    done = run("experiments", "export", "prices", str(tmp_path / "log.parquet"), "-d", made)
    assert "4 decisions written to" in done.stderr
    assert run("db", "check", made).stdout.startswith(
        "prices: sound; 9 events, 0 snapshots\n  there is no snapshot yet"
    )
    assert "up to date" in run("db", "upgrade", made).stderr


@pytest.mark.parametrize("words", [("db", "check"), ("experiments", "list", "-d"), ("experiments", "show", "x", "-d")])
def test_looking_makes_no_database(tmp_path, words):
    done = run(*words, f"sqlite:///{tmp_path}/typo.db")
    assert done.exit_code == 1
    assert "there is no database" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_check_changes_nothing(made):
    def content():
        with live.open(made) as database, database.engine.connect() as connection:
            return list(connection.connection.iterdump())

    before = content()
    assert run("db", "check", made).exit_code == 0
    assert run("experiments", "show", "prices", "-d", made).exit_code == 0
    assert content() == before


def test_damage_is_found_and_ends_in_an_error(made):
    with live.Database(made) as database, database.writing() as connection:
        connection.exec_driver_sql("UPDATE events SET reward = 0.25 WHERE seq = 5")
    done = run("db", "check", made)
    assert done.exit_code == 1
    assert "DAMAGED" in done.stdout
    assert "event 5" in done.stdout


def test_the_doctor_says_what_is_there(made, tmp_path):
    rows = {row["what"]: row for row in json.loads(run("doctor", "-d", made, "--json").stdout)}
    assert rows["commit"]["found"].endswith("ms at most")
    assert rows["experiments"]["found"] == "1"
    new = run("doctor", "-d", f"sqlite:///{tmp_path}/new.db", "--json")
    assert new.exit_code == 0
    assert not (tmp_path / "new.db").exists()
    ill = run("doctor", "-d", f"sqlite:///{tmp_path}/no/such.db", "--json")
    assert ill.exit_code == 1
    assert "No such file" in json.loads(ill.stdout)[-1]["found"]


@pytest.mark.parametrize(
    ("content", "says"),
    [("{", "is not JSON"), ("[]", "must hold a mapping"), ('{"arms": ["a"], "polcy": 1}', "did you mean 'policy'")],
)
def test_a_file_that_makes_no_experiment_is_one_line(url, tmp_path, content, says):
    (tmp_path / "x.json").write_text(content)
    done = run("experiments", "create", "x", str(tmp_path / "x.json"), "-d", url)
    assert done.exit_code == 1
    assert says in done.stderr


def test_an_unknown_experiment_is_one_line(made):
    done = run("experiments", "show", "price", "-d", made)
    assert (done.exit_code, "did you mean 'prices'" in done.stderr) == (1, True)
