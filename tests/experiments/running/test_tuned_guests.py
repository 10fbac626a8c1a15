"""Settings that a search found, played in experiments."""

import json

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.comparison import COMPARISON
from driftbandits.experiments.definitions.paper import PAPER
from driftbandits.experiments.running.tuned_guests import read_tuned, tuned_guests


def entry(window):
    settings = {"window": window}
    return {"policy": "SlidingWindowUCB", "settings": settings, "origin": "search", "regret_on_tuning_seeds": 12.5}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tuned-mine.json"
    path.write_text(json.dumps({"how": "by hand", "d=10": {"mine": entry(500)}, "d=2": {"mine": entry(100)}}))
    return path


def test_each_experiment_gets_the_settings_of_its_dimension(file):
    found = tuned_guests([file], list(COMPARISON.values()))
    assert list(found) == list(COMPARISON)
    windows = {name: [(spec.label, spec.settings["window"]) for spec in specs] for name, specs in found.items()}
    assert windows["comparison/switching/1/d10"] == windows["comparison/cosine/slow/d10"] == [("mine", 500)]
    assert windows["comparison/switching/2/d2"] == [("mine", 100)]
    # the dimension is that of the world, also where the experiment does not say it
    ((spec,),) = tuned_guests([file], [PAPER["cosine/slow"]]).values()
    assert spec.settings["window"] == 500


def test_an_experiment_is_played_where_every_file_has_its_dimension(tmp_path, file):
    other = tmp_path / "tuned-other.json"
    other.write_text(json.dumps({"how": "by hand", "d=10": {}, "d=2": {"other": entry(50)}}))
    found = tuned_guests([file, other], list(COMPARISON.values()))
    assert set(found) == {name for name in COMPARISON if name.endswith("/d2")}
    assert [spec.label for spec in found["comparison/switching/1/d2"]] == ["mine", "other"]


def test_nothing_was_searched_in_any_of_the_dimensions(tmp_path, file):
    empty = tmp_path / "tuned-empty.json"
    empty.write_text('{"how": "by hand"}')
    with pytest.raises(InputError) as caught:
        tuned_guests([file, empty], [PAPER["cosine/slow/d3"], COMPARISON["comparison/switching/1/d2"]])
    assert str(caught.value) == (
        f"no settings were found for these experiments, which need d = 2, d = 3: {file} has d = 10, d = 2; "
        f"{empty} has none; search there too"
    )


def test_a_file_that_is_none(tmp_path, file):
    for text, message in [
        ('{"d=2": {}}', "how is missing"),
        ('{"how": "x", "d=2": {"mine": {"polcy": "X"}}}', "polcy"),
        ('{"how": "x", "d=2": 3}', "d=2"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_tuned(file)
    with pytest.raises(InputError, match="there is no file"):
        read_tuned(tmp_path / "none.json")
