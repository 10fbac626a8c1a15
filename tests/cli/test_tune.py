"""Searches of settings from the command line."""

import json
import shlex

from driftbandits.experiments.specs import Experiment, PolicySpec
from driftbandits.tuning.spaces import TuningWorld
from reproduction.groups import EXPERIMENTS


def test_tuning_constants(cli, tmp_path, monkeypatch):
    study = "constants"
    small = TuningWorld("switching/1", {"horizon": 200, "switches": [100], "size": 10})
    monkeypatch.setattr("reproduction.tuning.CONSTANTS_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("reproduction.tuning.CONSTANTS_WORLDS", (small,))
    result = cli("tune", study, "--jobs", 1, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert set(printed["found"][0]["settings"]["constants"]) >= {"sigma", "c0", "c4"}
    assert printed["path"] == str(tmp_path / f"{study}.csv")
    assert printed["played"] == printed["cells"]


def test_tuning_the_comparison_goes_on_where_it_was(cli, tmp_path, monkeypatch):
    small = TuningWorld("switching/1", {"horizon": 100, "switches": [50], "size": 10})
    monkeypatch.setattr("driftbandits.tuning.own.EQUAL_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("driftbandits.tuning.own.environment_1", lambda dimension: small)
    monkeypatch.setattr("reproduction.tuning.environment_1", lambda dimension: small)
    storage = f"sqlite:///{tmp_path / 'shared.db'}"
    arguments = ("tune", "comparison", "SW-UCB (plain)", "--jobs", 1, "--out", tmp_path, "--storage", storage)
    shown = cli(*arguments)
    assert shown.exit_code == 0, shown.stderr
    assert "SW-UCB (plain), d = 10" in shown.stdout
    assert str(tmp_path / "tuned.json") in shown.stderr
    again = json.loads(cli(*arguments, "--json").stdout)
    assert again["played"] == 0
    assert (tmp_path / "shared.db").exists()


def test_tuning_a_policy_and_playing_it_beside_the_others(cli, tmp_path, monkeypatch):
    small = TuningWorld("switching/1", {"horizon": 100, "switches": [50], "size": 10})
    monkeypatch.setattr("driftbandits.tuning.own.EQUAL_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("driftbandits.tuning.own.environment_1", lambda dimension: small)
    monkeypatch.setattr("reproduction.tuning.environment_1", lambda dimension: small)
    space, out = tmp_path / "space.yaml", tmp_path / "tune"
    space.write_text("label: mine\nranges: {window: [10, 50]}\nwhole: [window]\n")
    arguments = ("tune", "SlidingWindowUCB", "--space", space, "--dimension", 10, "--out", out, "--jobs", 1)
    done = cli(*arguments)
    assert done.exit_code == 0, done.stderr
    assert f"reproduce comparison --tuned {out / 'tuned-mine.json'}" in done.stderr
    found = json.loads(cli(*arguments, "--json").stdout)
    played = cli(
        "reproduce", "small", "--seeds", 1, "--tuned", found["path"], "--out", tmp_path / "played", "--jobs", 1
    )
    assert played.exit_code == 0, played.stderr
    assert "| mine |" in played.stdout
    record = json.loads((tmp_path / "played" / "run.json").read_text())
    joined = next(p for p in record["experiments"][0]["policies"] if p["label"] == "mine")
    assert joined["settings"].items() >= found["found"][0]["settings"].items()


def test_the_next_command_is_one_that_works(cli, tmp_path, monkeypatch):
    small = TuningWorld("switching/1", {"horizon": 100, "switches": [50], "size": 10})
    monkeypatch.setattr("driftbandits.tuning.own.EQUAL_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr("driftbandits.tuning.own.environment_1", lambda dimension: small)
    monkeypatch.setattr("reproduction.tuning.environment_1", lambda dimension: small)
    space = tmp_path / "space.yaml"
    space.write_text("label: my own\nranges: {window: [10, 50]}\nwhole: [window]\n")
    arguments = ("tune", "SlidingWindowUCB", "--space", space, "--out", tmp_path / "tune", "--jobs", 1)
    elsewhere = cli(*arguments, "--dimension", 3)
    assert "search it where they are compared too: --dimension 10 or --dimension 2" in elsewhere.stderr
    assert "reproduce" not in elsewhere.stderr

    said = cli(*arguments, "--dimension", 2).stderr.splitlines()[-1].partition(": ")[2]
    program, command, group, option, file = shlex.split(said)
    assert (program, command, group, option) == ("driftbandits", "reproduce", "comparison", "--tuned")

    settings = {"horizon": 100, "switches": [50], "size": 10}
    for d in (10, 2):
        played = Experiment(f"own/d{d}", "", "switching/1", {**settings, "dimension": d}, (PolicySpec("a", "Uniform"),))
        monkeypatch.setitem(EXPERIMENTS, played.id, played)
    options = (option, file, "--seeds", 1, "--jobs", 1)
    done = cli(command, "own/d10", "own/d2", *options, "--out", tmp_path / "played")
    assert done.exit_code == 0, done.stderr
    assert "left out, as nothing was searched in their dimension: own/d10\n" in done.stderr
    record = json.loads((tmp_path / "played" / "run.json").read_text())
    assert [experiment["id"] for experiment in record["experiments"]] == ["own/d2"]
    refused = cli(command, "own/d10", *options, "--out", tmp_path / "refused")
    assert refused.exit_code != 0
    assert "which need d = 10" in " ".join(refused.stderr.split())
    assert not (tmp_path / "refused").exists()


def test_one_policy_needs_a_space_and_a_study_has_its_own(cli):
    for arguments, message in [
        (("GPUCB",), "as in --space"),
        (("my.py:Mine",), "as in --space"),
        (("constants", "--space", "space.yaml"), "spaces of its own"),
        (("oracles", "--dimension", 2), "dimensions of its own"),
        (("linear", "--dimension", 2), "dimensions of its own"),
        (("GPUCB", "OPKB", "--space", "space.yaml"), "labels are for comparison"),
        (("comparisn",), "did you mean 'comparison'"),
    ]:
        refused = cli("tune", *arguments)
        assert refused.exit_code == 2
        assert message in " ".join(refused.stderr.split())
