"""Searches of settings from the command line."""

import json

from driftbandits.tuning.points import TuningWorld


def test_tuning_constants(cli, tmp_path, monkeypatch):
    study = "constants"
    small = TuningWorld("switching/1", {"horizon": 200, "switches": [100], "size": 10})
    monkeypatch.setattr("driftbandits.tuning.constants.CONSTANTS_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("driftbandits.tuning.constants.CONSTANTS_WORLDS", (small,))
    result = cli("tune", study, "--jobs", 1, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert set(printed["found"][0]["settings"]["constants"]) >= {"sigma", "c0", "c4"}
    assert printed["path"] == str(tmp_path / f"{study}.csv")
    assert printed["played"] == printed["cells"]


def test_tuning_the_comparison_goes_on_where_it_was(cli, tmp_path, monkeypatch):
    small = TuningWorld("switching/1", {"horizon": 100, "switches": [50], "size": 10})
    monkeypatch.setattr("driftbandits.tuning.comparison.COMPARISON_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("driftbandits.tuning.comparison.environment_1", lambda dimension: small)
    storage = f"sqlite:///{tmp_path / 'shared.db'}"
    arguments = ("tune", "comparison", "SW-UCB (plain)", "--jobs", 1, "--out", tmp_path, "--storage", storage)
    shown = cli(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "SW-UCB (plain), d = 10" in shown.stdout
    assert str(tmp_path / "tuned.json") in shown.stderr
    again = json.loads(cli(*arguments, "--json").stdout)
    assert again["played"] == 0
    assert (tmp_path / "shared.db").exists()
