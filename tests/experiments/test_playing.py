import dataclasses
import subprocess
import sys

import pandas as pd
import pytest

from driftbandits import experiments
from driftbandits.errors import InputError, MissingExtraError
from driftbandits.experiments import Engine, Experiment, FolderStore, MemoryStore, PolicySpec, play, runner

ONE = Engine(jobs=1)
WORLD = {"horizon": 60, "switches": [30], "size": 5}
SMALL = Experiment("small", "Small", "switching/1", WORLD, (PolicySpec("any arm", "Uniform"),), seeds=(0, 1))


@pytest.fixture
def counted(monkeypatch):
    """How many cells were played."""
    played = []
    real = runner.run_cell
    monkeypatch.setattr(runner, "run_cell", lambda cell: played.append(cell) or real(cell))
    return played


def test_without_a_store_results_are_in_memory():
    results = play([SMALL], engine=ONE)
    assert list(results.cells["seed"]) == [0, 1]
    assert results.experiments == (SMALL,)


@pytest.mark.parametrize("kind", [str, FolderStore, lambda folder: folder])
def test_a_folder_is_gone_on_from(tmp_path, counted, kind):
    first = play([SMALL], store=kind(tmp_path / "mine"), engine=ONE)
    again = play([SMALL], store=kind(tmp_path / "mine"), engine=ONE)
    assert len(counted) == 2
    pd.testing.assert_frame_equal(first.cells, again.cells)


def test_any_store_will_do(counted):
    store = MemoryStore()
    for _ in range(2):
        play([SMALL], store=store, engine=ONE)
    assert len(counted) == len(store.finished()) == 2


def test_experiments_by_id_and_group(monkeypatch):
    asked = []
    monkeypatch.setattr("driftbandits.experiments.playing.run_cells", lambda cells, **_: asked.extend(cells) or [])
    results = play(["paper/d3", "switching/1/d3", SMALL, SMALL])
    names = [e.id for e in results.experiments]
    assert names == ["switching/1/d3", "switching/2/d3", "cosine/stationary/d3", "cosine/slow/d3", "small"]
    assert {cell.settings.get("dimension") for cell in asked} == {3, None}


def test_two_experiments_of_one_name_are_refused():
    other = Experiment("small", "Another", "switching/1", WORLD, SMALL.policies, seeds=(5,))
    with pytest.raises(InputError, match="two experiments are called 'small'"):
        play([SMALL, other], engine=ONE)


def test_progress_is_shown_where_it_is_wanted(capsys):
    play([SMALL], engine=ONE)
    assert capsys.readouterr().err == ""
    play([SMALL], engine=ONE, show=True)
    assert "runs: 2/2" in capsys.readouterr().err


def test_results_say_what_was_played_in_a_line_and_show_their_summary():
    results = play([SMALL], engine=ONE)
    assert repr(results) == "Results(small: 1 policy, 2 of 2 runs)"
    shown = results._repr_html_()
    assert shown.count("<tr") == 2
    assert "any arm" in shown


def test_all_that_is_listed_is_there_and_nothing_else():
    assert set(experiments.__all__) <= set(dir(experiments))
    for name in experiments.__all__:
        assert getattr(experiments, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'plai'"):
        _ = experiments.plai


def test_playing_needs_no_figures():
    code = "import sys; from driftbandits.experiments import play; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_the_extra_the_message_says_how_to_get_it(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas.core")

    monkeypatch.setattr(experiments.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"experiments.play needs pandas.*\[experiments\]"):
        _ = experiments.play


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policies": (PolicySpec("u", "Uniform"), PolicySpec("u", "GPUCB"))}, "two policies are called 'u'"),
        ({"seeds": (0, 0)}, "seeds must differ from one another"),
        ({"seeds": (0, 2**63)}, r"at most 2\^63 - 1"),
        ({"policies": (PolicySpec("u", "Uniform"), PolicySpec("g", "GPUBC"))}, "did you mean 'GPUCB'"),
    ],
)
def test_what_cannot_be_told_apart_or_played_is_refused_before_anything_is(change, said, counted):
    with pytest.raises(InputError, match=said):
        play([dataclasses.replace(SMALL, **change)], engine=ONE)
    assert counted == []


@pytest.mark.parametrize(("given", "said"), [("suite", r"put it into \[ \]"), (SMALL, "as a list"), ([5], "got 5")])
def test_what_is_no_list_of_experiments_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        play(given, engine=ONE)
