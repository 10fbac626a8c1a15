"""The study of the paper where it is, and what is said where it is not."""

import pytest
from typer.testing import CliRunner

import driftbandits as db
from driftbandits.cli.app import app
from driftbandits.experiments import Experiment, PolicySpec, play, study
from driftbandits.experiments.study import StudyNotFoundError, load_study, study_experiments, study_folder


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A place from which no checkout is seen."""
    monkeypatch.setattr(study, "__file__", str(tmp_path / "a" / "b" / "c" / "study.py"))
    monkeypatch.chdir(tmp_path)


def test_in_a_checkout_it_is_found_by_name():
    assert (study_folder() / "reproduction" / "paper.py").is_file()
    assert "switching/1" in study_experiments()
    assert load_study("groups", purpose="a test").GROUPS


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    "arguments", [("reproduce",), ("tune", "constants"), ("tune", "comparison"), ("list", "experiments")]
)
def test_elsewhere_commands_say_where_it_is_and_end_with_2(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "it is the folder reproduction/ of the driftbandits repository" in result.stderr


@pytest.mark.usefixtures("elsewhere")
def test_elsewhere_one_can_compare_and_play_experiments_of_ones_own():
    assert study_experiments() == {}
    with pytest.raises(StudyNotFoundError, match="the experiment 'suite' needs the study of the paper"):
        play(["suite"])
    with pytest.raises(db.errors.InputError, match="no world is called 'suite/slow/d2'"):
        db.compare(db.Uniform, "suite/slow/d2", jobs=1)
    world = {"horizon": 50, "switches": [25], "size": 5}
    mine = Experiment("mine", "Mine", "switching/1", world, (PolicySpec("chance", "Uniform"),), seeds=(0,))
    assert len(play([mine], engine=db.experiments.Engine(jobs=1)).cells) == 1


@pytest.mark.usefixtures("elsewhere")
def test_a_folder_that_is_only_called_so_is_not_the_study(tmp_path):
    (tmp_path / "reproduction").mkdir()
    assert study_folder() is None
