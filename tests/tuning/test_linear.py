import json
from importlib import resources

import numpy as np
import pytest

from driftbandits.experiments.definitions.tuned_settings import LINEAR_FILE, tuned_settings
from driftbandits.experiments.running.cells import run_cell
from driftbandits.experiments.running.engines import Engine
from driftbandits.tuning import linear
from driftbandits.tuning.comparison import COMPARISON_RUNGS, how_it_was_made
from driftbandits.tuning.linear import LINEAR_DIMENSIONS, LINEAR_LABELS, linear_searches, tune_linear
from driftbandits.tuning.points import TuningWorld

SEARCHES = linear_searches()


def test_the_committed_file_has_what_the_command_searches():
    written = json.loads((resources.files("driftbandits.experiments.definitions") / LINEAR_FILE).read_text())
    assert list(written) == ["how", *(f"d={d}" for d in LINEAR_DIMENSIONS)]
    assert written["how"] == how_it_was_made(linear.COMMAND, world=linear.WORLD)
    assert all(tuple(written[f"d={d}"]) == LINEAR_LABELS for d in LINEAR_DIMENSIONS)


@pytest.mark.parametrize(("label", "dimension"), SEARCHES)
def test_settings_are_those_of_a_point_of_the_search(label, dimension):
    entry, search = tuned_settings(LINEAR_FILE)[f"d={dimension}"][label], SEARCHES[label, dimension]
    assert [p.origin for n, p in enumerate(search.points) if search.settings(n) == entry["settings"]] == [
        entry["origin"]
    ]
    assert search.rungs == COMPARISON_RUNGS


def test_a_committed_score_is_played_again():
    search, entry = SEARCHES["RestartUCB", 2], tuned_settings(LINEAR_FILE)["d=2"]["RestartUCB"]
    point = next(n for n in range(len(search.points)) if search.settings(n) == entry["settings"])
    regrets = [run_cell(search.cell(point, (seed, 0))).regret[-1] for seed in range(16)]
    assert round(float(np.mean(regrets)), 1) == entry["regret_on_tuning_seeds"]


def test_what_was_found_is_written_in_order(tmp_path, monkeypatch):
    world = TuningWorld("linear/switching", {"horizon": 200, "switches": [100], "size": 8, "dimension": 2})
    monkeypatch.setattr(linear, "COMPARISON_RUNGS", ((2, 1), (1, 2)))
    monkeypatch.setattr(linear, "LINEAR_LABELS", ("SW-LinUCB", "LinUCB"))
    monkeypatch.setattr(linear, "_world", lambda dimension: world)
    found = tune_linear(out=tmp_path, engine=Engine(jobs=1))
    written = json.loads(found.path.read_text())
    assert found.path.name == LINEAR_FILE
    assert {key: list(entry) for key, entry in written.items() if key != "how"} == {
        "d=5": ["SW-LinUCB", "LinUCB"],
        "d=2": ["SW-LinUCB", "LinUCB"],
    }
    assert tune_linear(out=tmp_path, engine=Engine(jobs=1)).played == 0
