import dataclasses

import pytest

from driftbandits.experiments.definitions.calibrated_opkb import CALIBRATED_GROUP
from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.report import write_report
from tests.report.made_up import results_of, small
from tests.report.walk import Walk

WORLDS = ("calibrated/slow/d2", "calibrated/stationary/d3", "calibrated/paper/one-switch")
ALARMS = ("calibrated/alarms/gaussian/d2",)
DELAYS = ("calibrated/delays/flip-0.4", "calibrated/delays/hidden")


def page_of(names, out, experiments=CALIBRATED_GROUP):
    return write_report(results_of([small(experiments[name], 2) for name in names]), out=out).read_text("utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("calibrated")
    return page_of((*WORLDS, *ALARMS, *DELAYS), out), out


def test_the_page_has_targets_worlds_delays_and_both_figures(page):
    text, out = page
    walk = Walk(text)
    assert walk.faults == []
    assert len(walk.ids) == len(set(walk.ids))
    parts = ("calibrated-judged", "calibrated-delays", "calibrated-paper-one-switch")
    assert {"calibrated", *(f"calibrated--{part}" for part in parts)} <= set(walk.ids)
    assert "geometric mean over 3 worlds" in text
    assert "share of runs with a false alarm, gaussian/d2, CalibratedOPKB (theory mode)" in text
    assert "flip by 0.4" in text
    for name in ("calibrated", "calibrated-delays"):
        assert (out / "figures" / f"{name}.png").exists()
        assert (out / "figures" / f"{name}.pdf").exists()


def test_the_figure_of_ratios_is_of_the_suite_alone(tmp_path):
    text = page_of(["calibrated/paper/one-switch"], tmp_path)
    assert "calibrated-judged" in text
    assert not (tmp_path / "figures" / "calibrated.png").exists()


def test_each_part_stands_alone(tmp_path):
    alarms = page_of(ALARMS, tmp_path / "alarms")
    assert "share of runs with a false alarm" in alarms
    assert "calibrated-delays" not in alarms
    delays = page_of(DELAYS, tmp_path / "delays")
    assert "calibrated-judged" not in delays
    assert "2 of 2" in delays
    assert "0 of 2" in delays


def test_without_the_subject_there_is_nothing_to_judge(tmp_path):
    experiment = CALIBRATED_GROUP["calibrated/slow/d2"]
    others = dataclasses.replace(experiment, policies=(PolicySpec("ADA-OPKB", "AdaOPKB"),))
    assert "calibrated-judged" not in page_of([others.id], tmp_path, {others.id: others})
