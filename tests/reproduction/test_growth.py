import dataclasses
import math

import numpy as np
import pytest

from driftbandits.experiments.building import build_world
from driftbandits.experiments.specs import PolicySpec
from reproduction.growth import (
    GROWTH_ARMS,
    GROWTH_DIMENSIONS,
    GROWTH_ROUNDS,
    GROWTH_SEGMENTS,
    LONG_HORIZON,
    QUICK_SWEEPS,
    RIVAL_ROUNDS,
    SWEEPS,
    TABLE_1,
    VARIATION_PER_REDRAW,
    VARIATION_PER_TURN,
    kernel_rivals,
    without_guests,
)
from reproduction.sweeps import sweeps_of


def test_sweeps_move_one_quantity_as_table_1_asks():
    rounds, drifting, segments, variation, dimension, steady, arms = SWEEPS
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
    assert [e.settings["dimension"] for e in dimension.experiments] == list(GROWTH_DIMENSIONS)
    assert {build_world("switching", e.settings, 0).segments for e in (*steady.experiments, *arms.experiments)} == {1}
    for count, value, experiment in zip(GROWTH_ARMS, arms.values, arms.experiments, strict=True):
        assert (len(build_world("switching", experiment.settings, 0).arms), value) == (count, round(math.log(count), 4))


def test_every_policy_of_the_sweeps_has_a_row_of_table_1_and_rivals_play_the_shorter_runs():
    rivals = {rival.label for rival in kernel_rivals(1.0)}
    for sweep in SWEEPS:
        assert set(sweep.bounds) == set(sweep.labels)
        assert set(sweep.sizes) == set(sweep.values)
    for sweep in SWEEPS[:5]:
        for experiment in sweep.experiments:
            playing = {policy.label for policy in experiment.policies}
            assert (rivals <= playing) == (experiment.settings["horizon"] <= RIVAL_ROUNDS)
    assert {label.partition(" (")[0] for sweep in SWEEPS for label in sweep.labels} == set(TABLE_1)


def test_rivals_are_told_about_how_far_rewards_move():
    """Redraws differ from seed to seed by a tenth or two; a turn of drift hardly does."""
    rounds, drifting, segments, *_ = SWEEPS
    found = [build_world("switching", segments.experiments[3].settings, seed).variation / 7 for seed in range(5)]
    assert np.mean(found) == pytest.approx(VARIATION_PER_REDRAW, rel=0.1)
    world = build_world("cosine", drifting.experiments[0].settings, 0)
    assert world.variation == pytest.approx(VARIATION_PER_TURN, rel=0.01)
    told = {p.settings.get("variation") for p in drifting.experiments[0].policies if "variation" in p.settings}
    assert told == {VARIATION_PER_TURN}
    assert rounds.experiments[0].policies[2].settings["variation"] == pytest.approx(3 * VARIATION_PER_REDRAW)


def test_quick_sweeps_are_shorter():
    rounds, _, segments, variation, *_ = QUICK_SWEEPS
    assert rounds.values == (2_000, 4_000, 8_000)
    assert all(len(e.seeds) == 2 for e in rounds.experiments)
    assert segments.values == GROWTH_SEGMENTS
    assert {e.settings["horizon"] for e in variation.experiments} == {4_000}


def test_sweeps_are_those_with_two_points_or_more_and_guests_can_be_left_out():
    sweep = SWEEPS[0]
    first, second = sweep.experiments[:2]
    joined = dataclasses.replace(second, policies=(PolicySpec("guest", "Uniform"), *second.policies))
    (found,) = sweeps_of([first, joined], SWEEPS)
    assert found.values == sweep.values[:2]
    assert found.experiments == (first, joined)
    assert without_guests([found])[0].experiments == (first, second)
    assert sweeps_of([first], SWEEPS) == ()
