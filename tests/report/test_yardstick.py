import dataclasses

import pytest

from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.experiments.definitions.yardstick import YARDSTICK
from driftbandits.report import write_report
from tests.report.made_up import results_of, small
from tests.report.walk import Walk

MINE = PolicySpec("AutoBandit", "Uniform")  # stands for it: nothing is played


def with_mine(name):
    experiment = small(YARDSTICK[name], 2)
    others = tuple(p for p in experiment.policies if p.label != MINE.label)
    return dataclasses.replace(experiment, policies=(MINE, *others))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("yardstick")
    names = ("yardstick/slow/d2", "yardstick/stationary/d3", "yardstick/paper/one-switch")
    path = write_report(results_of([with_mine(name) for name in names]), out=out)
    return path.read_text(encoding="utf-8"), out


def test_the_page_has_targets_worlds_and_the_figure(page):
    text, out = page
    walk = Walk(text)
    assert walk.faults == []
    assert len(walk.ids) == len(set(walk.ids))
    assert "AutoBandit and its yardstick" in text
    assert "geometric mean over 2 worlds" in text
    assert (out / "figures" / "yardstick.png").exists()


def test_without_it_there_are_the_baselines_alone(tmp_path):
    experiment = small(YARDSTICK["yardstick/slow/d2"], 2)
    others = dataclasses.replace(experiment, policies=tuple(p for p in experiment.policies if p.label != MINE.label))
    text = write_report(results_of([others]), out=tmp_path).read_text(encoding="utf-8")
    assert "SW-GPUCB (tuned here)" in text
    assert "yardstick-judged" not in text
    assert not (tmp_path / "figures" / "yardstick.png").exists()
