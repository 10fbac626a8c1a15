import json

import pandas as pd
import pytest

from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.groups import EXPERIMENTS

TINY = Experiment(
    id="yardstick/tiny/d2",
    title="Tiny",
    environment="switching",
    settings={"horizon": 200, "switches": [100], "size": 10, "dimension": 2},
    policies=(
        PolicySpec("AutoBandit", "GPUCB", {"beta": 0.7}),  # stands for it
        PolicySpec("SW-GPUCB (tuned here)", "SlidingWindowGPUCB", {"window": 50}),
        PolicySpec("WGPUCB (tuned here)", "Uniform"),
        PolicySpec("GPUCB (tuned here)", "GPUCB"),
        PolicySpec("GPUCB (one setting)", "GPUCB"),
    ),
    seeds=(0, 1),
)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, TINY.id, TINY)


@pytest.mark.usefixtures("tiny")
def test_it_writes_and_prints_verdicts_and_worlds(cli, tmp_path):
    result = cli("reproduce", TINY.id, "--jobs", 1, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    written = (tmp_path / "out" / "yardstick.md").read_text()
    assert "targets: " in result.stdout
    assert "| over the window tuned in each world |" in written
    assert list(pd.read_csv(tmp_path / "out" / "yardstick.csv")["world"]) == ["tiny/d2"]
    assert (tmp_path / "out" / "figures" / "yardstick.png").exists()


@pytest.mark.usefixtures("tiny")
def test_targets_are_for_programs_too(cli, tmp_path):
    result = cli("reproduce", TINY.id, "--jobs", 1, "--out", tmp_path / "out", "--json")
    targets = {row["target"]: row for row in json.loads(result.stdout)["targets"]}
    assert targets["over the window tuned in each world"]["limit"] == 0.7
    assert targets["worst stationary world, over GP-UCB tuned there"]["status"] == "not played"
