import dataclasses

import pytest

from driftbandits.experiments.definitions.growth import (
    GROWTH_ROUNDS,
    GROWTH_SEGMENTS,
    LONG_HORIZON,
    QUICK_SWEEPS,
    SWEEPS,
    sweeps_of,
    without_guests,
)
from driftbandits.experiments.definitions.specs import PolicySpec
from driftbandits.experiments.running.build import build_world


def test_sweeps_move_one_quantity_as_table_1_asks():
    rounds, drifting, segments, variation = SWEEPS
    assert (GROWTH_ROUNDS[0], GROWTH_ROUNDS[-1]) == (2_000, 128_000)
    assert (GROWTH_SEGMENTS[0], GROWTH_SEGMENTS[-1]) == (1, 16)
    for sweep in SWEEPS:
        assert len(sweep.values) == len(sweep.experiments)
        assert all(len(e.seeds) == 20 for e in sweep.experiments)
    for count, experiment in zip(segments.values, segments.experiments, strict=True):
        assert build_world(experiment.environment, experiment.settings, 0).segments == count
    worlds = [build_world(e.environment, e.settings, 0) for e in variation.experiments]
    for turns, world in zip(variation.values, worlds, strict=True):
        assert world.horizon == LONG_HORIZON
        assert world.variation == pytest.approx(worlds[0].variation * turns / variation.values[0], rel=0.02)
    assert variation.values[-1] / variation.values[0] == 16
    first, last = (build_world(e.environment, e.settings, 0) for e in drifting.experiments[:3:2])
    assert first.variation == pytest.approx(last.variation, rel=0.02)
    assert build_world("switching", rounds.experiments[-1].settings, 0).segments == 4


def test_quick_sweeps_are_shorter():
    rounds, _, segments, variation = QUICK_SWEEPS
    assert rounds.values == (2_000, 4_000, 8_000, 16_000)
    assert all(len(e.seeds) == 2 for e in rounds.experiments)
    assert segments.values == GROWTH_SEGMENTS
    assert {e.settings["horizon"] for e in variation.experiments} == {16_000}


def test_sweeps_are_those_with_two_points_or_more_and_guests_can_be_left_out():
    sweep = SWEEPS[0]
    first, second = sweep.experiments[:2]
    joined = dataclasses.replace(second, policies=(PolicySpec("guest", "Uniform"), *second.policies))
    (found,) = sweeps_of([first, joined])
    assert found.values == sweep.values[:2]
    assert found.experiments == (first, joined)
    assert without_guests([found])[0].experiments == (first, second)
    assert sweeps_of([first]) == ()
