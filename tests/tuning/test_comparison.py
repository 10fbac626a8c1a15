import json

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.running.engines import Engine
from driftbandits.tuning import comparison, tune_comparison
from driftbandits.tuning.comparison import DIMENSIONS_WITH_ALL_POLICIES, POLICIES_ELSEWHERE, comparison_searches
from driftbandits.tuning.spaces import SPACES
from tests.tuning.small import WORLD

ONE = Engine(jobs=1)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(comparison, "COMPARISON_RUNGS", ((4, 1), (2, 2)))
    settings = dict(WORLD.settings)
    world = type(WORLD)
    monkeypatch.setattr(comparison, "environment_1", lambda d: world(WORLD.environment, {**settings, "dimension": d}))


def test_what_was_found_is_written_and_found_again(tmp_path, small):
    labels = ["Uniform", "GPUCB"]
    first, second = (tune_comparison(out=tmp_path / name, labels=labels, engine=ONE) for name in "ab")
    assert first.path.read_bytes() == second.path.read_bytes()
    written = json.loads(first.path.read_text())
    assert list(written) == ["how", "d=10", "d=3", "d=2"]
    assert written["how"].startswith("driftbandits tune comparison: 4 points and 6 cells")
    assert list(written["d=3"]) == ["GPUCB", "Uniform"]
    uniform = written["d=2"]["Uniform"]
    assert (uniform["policy"], uniform["settings"], uniform["origin"]) == ("Uniform", {}, "default")
    assert first.cells == first.played == 3 * (6 + 2)
    assert [found.name for found in first.best][:2] == ["Uniform, d = 10", "GPUCB, d = 10"]
    assert (tmp_path / "a" / "tuning.db").exists()


def test_a_second_call_plays_nothing_and_entries_not_searched_stay(tmp_path, small):
    tune_comparison(out=tmp_path, labels=["Uniform"], dimensions=[2], engine=ONE)
    more = tune_comparison(out=tmp_path, labels=["Uniform", "D-UCB (plain)"], dimensions=[2], engine=ONE)
    assert (more.cells, more.played) == (2 + 6, 6)
    tune_comparison(out=tmp_path, labels=["Uniform"], dimensions=[3], engine=ONE)
    written = json.loads(more.path.read_text())
    assert {key: list(entry) for key, entry in written.items() if key != "how"} == {
        "d=3": ["Uniform"],
        "d=2": ["D-UCB (plain)", "Uniform"],
    }
    assert {path.name for path in tmp_path.iterdir()} == {"tuned.json", "tuning.db"}


def test_a_storage_may_be_elsewhere(tmp_path, small):
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    options = {"labels": ["Uniform"], "dimensions": [2], "storage": url, "engine": ONE}
    assert tune_comparison(out=tmp_path / "a", **options).played == 2
    again = tune_comparison(out=tmp_path / "b", **options)
    assert (again.played, again.storage) == (0, url)
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["tuned.json"]


def test_progress_goes_to_standard_error_when_asked_for(tmp_path, small, capsys):
    tune_comparison(out=tmp_path, labels=["Uniform"], dimensions=[2], engine=ONE)
    assert capsys.readouterr() == ("", "")
    tune_comparison(out=tmp_path, labels=["Uniform"], dimensions=[2], engine=ONE, show=True)
    assert "2/2" in capsys.readouterr().err


def test_all_are_searched_where_all_are_compared():
    searches = comparison_searches()
    for dimension in DIMENSIONS_WITH_ALL_POLICIES:
        assert [label for label, d in searches if d == dimension] == list(SPACES)
    assert [label for label, d in searches if d == 3] == list(POLICIES_ELSEWHERE)
    assert len({search.study_name for search in searches.values()}) == len(searches)


def test_input_that_is_not_usable(tmp_path):
    with pytest.raises(InputError, match="did you mean 'SW-GPUCB'"):
        tune_comparison(out=tmp_path, labels=["SWGPUCB"])
    with pytest.raises(InputError, match="dimension must be at least 1, got 0"):
        tune_comparison(out=tmp_path, dimensions=[0])
    (tmp_path / "tuned.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        tune_comparison(out=tmp_path, labels=["Uniform"])
    with pytest.raises(InputError, match="cannot make the folder"):
        tune_comparison(out=tmp_path / "tuned.json" / "below", labels=["Uniform"])
