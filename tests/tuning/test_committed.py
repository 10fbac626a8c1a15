"""The settings that figures use, as committed."""

import json
from importlib import resources

import numpy as np
import pytest

from driftbandits import ArmSet, create_policy
from driftbandits.configuration.presets import read_settings
from driftbandits.experiments.definitions.paper import PAPER
from driftbandits.experiments.definitions.suite import SUITE_POLICIES
from driftbandits.experiments.definitions.tuned_settings import tuned_settings, tuned_specs
from driftbandits.experiments.running.cells import run_cell
from driftbandits.tuning import comparison
from driftbandits.tuning.comparison import POLICIES_ELSEWHERE, comparison_searches
from driftbandits.tuning.grids import GRIDS
from driftbandits.tuning.spaces import SPACES

SEARCHES = comparison_searches()
FILE = resources.files("driftbandits.experiments.definitions") / "tuned.json"


def test_the_file_says_how_it_was_made_and_is_as_the_command_writes_it(tmp_path):
    written = json.loads(FILE.read_text())
    assert written["how"] == comparison.how_it_was_made()
    comparison._write(tmp_path / "tuned.json", {key: value for key, value in written.items() if key != "how"})
    assert (tmp_path / "tuned.json").read_text() == FILE.read_text()


def test_it_has_what_the_command_searches():
    found = tuned_settings()
    assert {(label, int(key[2:])) for key in found if key != "how" for label in found[key]} == set(SEARCHES)
    assert [spec.label for spec in tuned_specs(10)] == list(SPACES)


def test_elsewhere_are_the_policies_that_experiments_play_there():
    figures = [p.label.removesuffix(" (tuned)") for e in PAPER.values() for p in e.policies if "(tuned)" in p.label]
    assert set(POLICIES_ELSEWHERE) == {*figures, *SUITE_POLICIES}
    assert list(POLICIES_ELSEWHERE) == [label for label in SPACES if label in POLICIES_ELSEWHERE]


def test_the_strongest_rival_since_the_paper_stands_wherever_policies_are_compared():
    for compared in (SPACES, SUITE_POLICIES, GRIDS):
        assert "DAL-GP-UCB" in compared


@pytest.mark.parametrize(("label", "dimension"), SEARCHES)
def test_settings_are_those_of_a_point_of_the_search_and_usable(label, dimension):
    entry = tuned_settings()[f"d={dimension}"][label]
    search = SEARCHES[label, dimension]
    origins = [p.origin for n, p in enumerate(search.points) if search.settings(n) == entry["settings"]]
    assert origins == [entry["origin"]]
    assert entry["policy"] == search.space.policy
    assert entry["regret_on_tuning_seeds"] > 0
    create_policy(entry["policy"], ArmSet(np.eye(3)), horizon=100, seed=0, **read_settings(entry["settings"]))


def test_the_committed_score_is_played_again():
    search = SEARCHES["Uniform", 2]
    regrets = [run_cell(search.cell(0, (seed, 0))).regret[-1] for seed in range(16)]
    assert round(float(np.mean(regrets)), 1) == tuned_settings()["d=2"]["Uniform"]["regret_on_tuning_seeds"]
