import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from driftbandits.cli.options import merge, read_policy, read_settings
from driftbandits.cli.run import read
from driftbandits.configuration import references
from driftbandits.errors import InputError
from driftbandits.experiments.run_files import run_schema

ROOT = Path(__file__).parents[2]
YAML = """
environment:
  name: switching/1
  settings: {horizon: 200, switches: [100], size: 10}
policies:
  - Uniform
  - name: SlidingWindowUCB
    label: short
    settings: {window: 1e2}
seeds: 2
"""
TOML = """
seeds = 2
policies = ["Uniform", {name = "SlidingWindowUCB", label = "short", settings = {window = 100}}]
[environment]
name = "switching/1"
settings = {horizon = 200, switches = [100], size = 10}
"""
WORLD = ("--environment", "switching/1", "--set", "horizon=200", "--set", "switches=[100]", "--set", "size=10")


def test_a_file_is_played(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(YAML.replace("1e2", "100"))
    result = cli("run", "mine.yaml", "--jobs", 1, "--policy", "GPUCB", "--json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert {row["experiment"] for row in printed["summary"]} == {"mine"}
    assert [row["policy"] for row in printed["summary"]] == ["Uniform", "short", "GPUCB"]
    assert Path("results/mine/report.html").exists()
    other = cli("run", "mine.yaml", "--jobs", 1)
    assert other.exit_code == 1
    assert "already holds 6 finished runs; add --resume" in other.stderr
    before = {part: part.stat().st_mtime_ns for part in Path("results/mine/cells").iterdir()}
    the_same = cli("run", "mine.yaml", "--jobs", 1, "--policy", "GPUCB")
    assert the_same.exit_code == 0, the_same.stderr
    assert {part: part.stat().st_mtime_ns for part in Path("results/mine/cells").iterdir()} == before
    again = cli("run", "mine.yaml", "--jobs", 1, "--policy", "GPUCB", "--resume")
    assert again.exit_code == 0, again.stderr


def test_yaml_toml_and_options_say_the_same(tmp_path):
    for name, text in (("mine.yaml", YAML.replace("1e2", "100")), ("mine.toml", TOML), ("mine.yml", YAML)):
        (tmp_path / name).write_text(text)
    first = read(tmp_path / "mine.yaml", None, [], [], None)
    assert read(tmp_path / "mine.toml", None, [], [], None) == first
    assert read(tmp_path / "mine.yml", None, [], [], None) == first
    options = ["horizon=200", "switches=[100]", "size=10"]
    other = read(None, "switching/1", ["Uniform", "SlidingWindowUCB,window=100,label=short"], options, 2)
    assert (other.settings, other.policies, other.seeds) == (first.settings, first.policies, first.seeds)


def test_options_go_over_the_file(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(YAML)
    changed = read(file, None, ["OPKB"], ["horizon=300", "noise.name=gaussian"], 5)
    assert changed.settings == {"horizon": 300, "switches": [100], "size": 10, "noise": {"name": "gaussian"}}
    assert changed.seeds == (0, 1, 2, 3, 4)
    assert [policy.label for policy in changed.policies] == ["Uniform", "short", "OPKB"]


def test_a_world_of_ones_own(cli, tmp_path):
    world = f"{ROOT / 'examples' / 'own_world.py'}:weekends"
    arguments = (
        "--environment",
        world,
        "--set",
        "weeks=1",
        "--set",
        "visitors=30",
        "--policy",
        "Uniform",
        "--seeds",
        1,
    )
    result = cli("run", *arguments, "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert pd.read_parquet(tmp_path / "cells.parquet")["experiment"].tolist() == ["weekends"]


@pytest.mark.parametrize("form", ["{folder}/mine.py:Mine", "harmful.mine:Mine"])
def test_a_report_runs_no_code_that_the_folder_names(cli, tmp_path, monkeypatch, form):
    """The record and the finished runs may be a stranger's: the class was played there, not here."""
    trap = "import pathlib\nfrom driftbandits.policies import Uniform\nclass Mine(Uniform): pass\n"
    (tmp_path / "harmful").mkdir()
    places = [tmp_path / "mine.py", tmp_path / "harmful" / "__init__.py", tmp_path / "harmful" / "mine.py"]
    for place in places:
        place.write_text(trap + f"pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    policy = form.format(folder=tmp_path)
    out = tmp_path / "out"
    world = ("--environment", "switching/1", "--set", "horizon=60", "--set", "switches=[30]")
    result = cli("run", *world, "--policy", f"{policy},label=own", "--seeds", 1, "--jobs", 1, "--out", out)
    assert result.exit_code == 0, result.stderr
    (tmp_path / "ran").unlink()
    for name in [name for name in sys.modules if name.startswith(("driftbandits_user_mine", "harmful"))]:
        monkeypatch.delitem(sys.modules, name)  # as in another process
    references._load_module.cache_clear()
    result = cli("report", out)
    assert result.exit_code == 0, result.stderr
    assert not (tmp_path / "ran").exists()
    assert "own" in (out / "report.html").read_text(encoding="utf-8")


def test_real_data_has_as_many_seeds_as_offsets():
    assert read(None, "real/digits", ["Uniform"], [], None).seeds == (0, 1, 2, 3, 4)


def test_results_go_to_a_folder_named_after_the_world(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = cli("run", *WORLD, "--policy", "Uniform", "--seeds", 1, "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "results" / "switching-1" / "report.html").exists()


def test_the_schema_is_printed(cli):
    result = cli("run", "--schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == run_schema()


def test_settings_are_yaml_values_with_dots_for_what_is_inside():
    given = read_settings(["a=1", "b.c=1e-3", "b.d=[1, 2]", "e=true", "f=two words", "g={h: 1}", "i="])
    assert given == {
        "a": 1,
        "b": {"c": 1e-3, "d": [1, 2]},
        "e": True,
        "f": "two words",
        "g": {"h": 1},
        "i": None,
    }
    assert merge({"a": {"b": 1}}, {"a": 2}) == {"a": 2}


@pytest.mark.parametrize(
    ("text", "name", "label", "settings"),
    [
        ("OPKB", "OPKB", "OPKB", {}),
        ("my.module:Mine", "my.module:Mine", "Mine", {}),
        ("OPKB,label=a b", "OPKB", "a b", {}),
        ("OPKB, label=5 , scale=2", "OPKB", "5", {"scale": 2}),
        (
            "Master,base=GPUCB,base_settings.ridge=0.1",
            "Master",
            "Master",
            {"base": "GPUCB", "base_settings": {"ridge": 0.1}},
        ),
        ("X,r=[-1, 1],m={a: 1, b: [2, 3]},q='x, y'", "X", "X", {"r": [-1, 1], "m": {"a": 1, "b": [2, 3]}, "q": "x, y"}),
        ("X,a=[[0, 1], [2, 3]],b=[4]", "X", "X", {"a": [[0, 1], [2, 3]], "b": [4]}),
    ],
)
def test_a_policy_is_a_name_then_settings(text, name, label, settings):
    policy = read_policy(text)
    assert (policy.name, policy.label, policy.settings) == (name, label, settings)


@pytest.mark.parametrize("text", ["", ",a=1", "a=1", "OPKB,a", "OPKB,=1", "OPKB,a b=1", "OPKB,a=1,a.b=2", "OPKB,a=[1"])
def test_what_is_no_policy_is_refused(text):
    with pytest.raises(InputError):
        read_policy(text)
