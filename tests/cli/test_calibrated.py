import json

import pandas as pd
import pytest

from driftbandits.experiments.definitions.specs import Experiment, PolicySpec
from driftbandits.experiments.groups import EXPERIMENTS

WORLD = {"horizon": 200, "switches": [100], "size": 10, "dimension": 2}
POLICIES = (PolicySpec("CalibratedOPKB", "GPUCB"), PolicySpec("ADA-OPKB", "Uniform"))  # stand for them
TINY = tuple(
    Experiment(f"calibrated/{name}", "Tiny", "switching", {**WORLD, **changes}, POLICIES, seeds=(0, 1))
    for name, changes in {"tiny/d2": {}, "alarms/tiny/d2": {"switches": []}, "delays/flip-0.4": {}}.items()
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    for experiment in TINY:
        monkeypatch.setitem(EXPERIMENTS, experiment.id, experiment)


def test_it_writes_and_prints_verdicts_worlds_alarms_and_delays(cli, tmp_path):
    out = tmp_path / "out"
    result = cli("reproduce", *(e.id for e in TINY), "--jobs", 1, "--out", out)
    assert result.exit_code == 0, result.stderr
    written = (out / "calibrated.md").read_text()
    assert "targets: " in result.stdout
    assert "| worst world with changes, over ADA-OPKB |" in written
    assert list(pd.read_csv(out / "calibrated.csv")["world"]) == ["tiny/d2"]
    assert list(pd.read_csv(out / "calibrated-alarms.csv")["condition"]) == ["tiny/d2"] * 2
    assert list(pd.read_csv(out / "calibrated-delays.csv")["change"]) == ["flip by 0.4"] * 2
    assert (out / "figures" / "calibrated.png").exists()
    assert not (out / "yardstick.md").exists()
    targets = json.loads(cli("report", out, "--json").stdout)["targets"]
    assert {"worst world with changes, over ADA-OPKB"} < {row["target"] for row in targets}


def test_only_what_was_played_has_a_table(cli, tmp_path):
    out = tmp_path / "out"
    assert cli("reproduce", TINY[1].id, "--jobs", 1, "--out", out).exit_code == 0
    assert (out / "calibrated-alarms.csv").exists()
    assert not (out / "calibrated.csv").exists()
    assert not (out / "calibrated-delays.csv").exists()
