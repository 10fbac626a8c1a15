import dataclasses

from driftbandits.experiments.definitions.linear import LINEAR
from driftbandits.experiments.definitions.linear_growth import LINEAR_SWEEPS
from driftbandits.report import write_report
from tests.report.made_up import results_of, small


def test_the_chapters_have_rankings_and_slopes(tmp_path):
    world = small(LINEAR["linear/one-switch/d5"])
    points = [small(e) for e in LINEAR_SWEEPS[0].experiments[:3]]
    lone = small(LINEAR_SWEEPS[1].experiments[0])
    page = write_report(results_of([world, *points, lone]), out=tmp_path).read_text(encoding="utf-8")
    for anchor in ("linear-ranking", "linear-growth-slopes", "linear-growth-regret"):
        assert f'--{anchor}"' in page
    assert 'id="claim-lb-1"' in page
    assert "Segments: L<sub>T</sub> = 2" in page  # a single point stands for itself
    assert {"linear.png", "linear-growth.png"} <= {path.name for path in (tmp_path / "figures").iterdir()}


def test_unfinished_sweeps_are_said_to_be(tmp_path):
    points = [dataclasses.replace(e, seeds=e.seeds[:3]) for e in LINEAR_SWEEPS[0].experiments[:3]]
    page = write_report(results_of(points, leave_out=2), out=tmp_path).read_text(encoding="utf-8")
    assert "6 runs along" in page
