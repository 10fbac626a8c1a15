"""What a page knows of a user's class: read from its file where it was played, and from no other file."""

from driftbandits.experiments import Engine, Experiment, PolicySpec, play
from driftbandits.report.context import ReportContext

OWN = """
from pathlib import Path
import driftbandits as db

Path(__file__).with_suffix(".loaded").touch()

class Mine(db.Uniform):
    colour = "#123456"
    reports_changes = True
"""


def test_a_class_that_was_played_has_its_colour_and_says_whether_it_reports_changes(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    spec = PolicySpec("Mine", f"{file}:Mine")
    world = {"horizon": 40, "switches": [20], "size": 5}
    small = Experiment("small", "Small", "switching/1", world, (spec, PolicySpec("any arm", "Uniform")), seeds=(0,))
    context = ReportContext(play([small], engine=Engine(jobs=1)), tmp_path)
    assert context.palette["Mine"].colour == "#123456"
    assert context.detecting == {spec.name}


def test_a_file_that_nothing_was_played_of_is_not_run(tmp_path):
    file = tmp_path / "strange.py"
    file.write_text(OWN)
    world = {"horizon": 40, "switches": [20], "size": 5}
    played = Experiment("small", "Small", "switching/1", world, (PolicySpec("any arm", "Uniform"),), seeds=(0,))
    results = play([played], engine=Engine(jobs=1))
    named = Experiment("other", "Other", "switching/1", world, (PolicySpec("x", f"{file}:Mine"),), seeds=(0,))
    context = ReportContext(type(results)((played, named), results.cells, results.curves, results.summary), tmp_path)
    assert not context.detecting
    assert context.palette["x"].colour != "#123456"
    assert not file.with_suffix(".loaded").exists()
