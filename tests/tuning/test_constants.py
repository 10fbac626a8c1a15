import csv

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.running.engines import Engine
from driftbandits.policies import Constants
from driftbandits.tuning import constants, tune_constants
from driftbandits.tuning.study import Search
from tests.tuning.small import WORLD


@pytest.mark.parametrize("study", ["constants", "neural"])
def test_the_best_constants_and_every_score_are_kept(study, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "CONSTANTS_RUNGS", ((4, 1), (2, 2)))
    monkeypatch.setattr(constants, "CONSTANTS_WORLDS", (WORLD,))
    tuned = tune_constants(study, out=tmp_path, engine=Engine(jobs=1))
    (found,) = tuned.best
    assert tuned.cells == tuned.played == 6
    assert found.settings["constants"]["c0"] == Constants(**found.values).c0
    with (tmp_path / f"{study}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["cells"] for row in rows] == ["2", "2", "1", "1"]
    assert float(rows[0]["regret"]) == found.regret
    assert float(rows[0]["sigma"]) == found.values["sigma"]


def search(study):
    space = constants.CONSTANTS_STUDIES[study]
    return Search(study, space, constants.CONSTANTS_WORLDS, constants.CONSTANTS_RUNGS, default=False)


@pytest.mark.parametrize("study", ["constants", "neural"])
def test_the_budget_is_the_one_stated(study):
    assert (len(search(study).points), search(study).cells) == (512, 2464)


def test_the_defaults_are_points_of_their_search():
    """They were found by it, so the points must not have moved since."""
    for study, default in (("constants", Constants.tuned()), ("neural", Constants.neural())):
        assert default in [Constants(**point.values) for point in search(study).points]


def test_an_unknown_study_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(InputError, match="did you mean 'neural'"):
        tune_constants("neurall", out=tmp_path)
