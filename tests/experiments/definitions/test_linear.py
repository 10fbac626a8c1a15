import math

import numpy as np
import pytest

from driftbandits.environments import DriftingLinear, SwitchingLinear
from driftbandits.experiments.definitions.bounds import row_of
from driftbandits.experiments.definitions.linear import (
    BOX_ERROR,
    LINEAR,
    TOLD_THE_PATH,
    quick_linear_world,
    theory_rivals,
)
from driftbandits.experiments.definitions.linear_growth import (
    LINEAR_GROWTH,
    LINEAR_SWEEPS,
    QUICK_LINEAR_SWEEPS,
    SEGMENTS,
    TABLE_1,
    quick_linear_point,
)
from driftbandits.experiments.judging.slopes import allowed_slope
from driftbandits.experiments.running.build import build_policy, build_world

EVERY = {**LINEAR, **LINEAR_GROWTH}


def path_of(world):
    if isinstance(world, DriftingLinear):
        return world.path_length
    assert isinstance(world, SwitchingLinear)
    return float(np.linalg.norm(np.diff(world.thetas, axis=0), axis=1).sum())


@pytest.mark.parametrize("name", EVERY)
def test_rivals_are_told_how_far_theta_moves(name):
    experiment = EVERY[name]
    world = build_world(experiment.environment, experiment.settings, 0)
    told = [p.settings["variation"] for p in experiment.policies if p.label.endswith("(theory)") and told_path(p)]
    assert told == pytest.approx([path_of(world)] * len(TOLD_THE_PATH))


def told_path(policy):
    return policy.name in {kind.__name__ for kind in TOLD_THE_PATH}


@pytest.mark.parametrize("name", LINEAR)
def test_no_two_rows_play_the_same(name):
    played = [(p.name, repr(sorted(p.settings.items()))) for p in LINEAR[name].policies]
    assert len(set(played)) == len(played)


def test_the_box_is_cut_as_the_paper_cuts_it():
    for name in ("linear/box-one-switch/d2", "linear/box-drift/d2"):
        arms = build_world(LINEAR[name].environment, LINEAR[name].settings, 0).arms
        sides = [np.diff(np.unique(axis.round(9))) for axis in arms.points.T]
        assert all(side.max() <= BOX_ERROR / 2 for side in sides)
        assert arms.rank == 2


def test_a_longer_path_is_a_shorter_memory():
    world = build_world("linear/switching", LINEAR["linear/one-switch/d5"].settings, 0)

    def window(path):
        spec = next(p for p in theory_rivals(path) if p.name == "SlidingWindowLinUCB")
        policy = build_policy(spec, world, 0)
        policy.ask()
        return policy.window

    assert window(1.6) == np.ceil(5**0.25 * np.sqrt(10_000 / 1.6))
    assert window(16.0) < window(1.6)


def test_every_policy_of_the_sweeps_has_a_row_of_table_1():
    for sweep in LINEAR_SWEEPS:
        labels = {p.label for e in sweep.experiments for p in e.policies}
        assert set(sweep.bounds) == labels
    assert {label.partition(" (")[0] for label in labels} == set(TABLE_1)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("ADA-OPKB", (1 / 2, 1 / 2, 1, 2 / 3, 1 / 3, 2 / 3)),
        ("D-LinUCB (theory)", (3 / 4, None, 7 / 8, 3 / 4, 1 / 4, 7 / 8)),
        ("LinUCB+MASTER (theory)", (1 / 2, 1 / 2, 1, 2 / 3, 1 / 3, 1)),
        ("Restart-Adv (theory)", (2 / 3, None, 2 / 3, 2 / 3, 1 / 3, 2 / 3)),
    ],
)
def test_slopes_of_bounds_are_the_exponents_of_table_1(label, expected):
    """Along T, L_T and d where theta jumps, and T, V_T and d where it turns."""
    for sweep, exponent in zip(LINEAR_SWEEPS, expected, strict=True):
        if exponent is not None:
            assert allowed_slope(sweep, label, sweep.values) == pytest.approx(exponent, abs=1e-3), sweep.id


def test_along_segments_a_bound_in_the_variation_grows_as_the_number_of_switches():
    sweep = LINEAR_SWEEPS[1]
    switches = np.array(SEGMENTS) - 1
    expected = np.polyfit(np.log(SEGMENTS), np.log(switches**0.25), 1)[0]
    assert allowed_slope(sweep, "SW-LinUCB (theory)", sweep.values) == pytest.approx(expected)


def test_sweeps_move_one_quantity():
    rounds, segments, dimension, drifting, variation, drifting_dimension = LINEAR_SWEEPS
    for sweep, values in ((segments, segments.values), (rounds, [4] * len(rounds.values))):
        for value, experiment in zip(values, sweep.experiments, strict=True):
            assert len(experiment.settings["switches"]) == value - 1
    for sweep in (dimension, drifting_dimension):
        for d, experiment in zip(sweep.values, sweep.experiments, strict=True):
            assert (experiment.settings["dimension"], experiment.settings["size"]) == (d, 3**d)
    assert len({e.settings["speed"] * e.settings["horizon"] for e in drifting.experiments}) == 1
    assert [e.settings["horizon"] for e in variation.experiments] == [16_000] * 5


def test_a_taste_is_shorter():
    assert QUICK_LINEAR_SWEEPS[0].values == (2_000, 4_000, 8_000)
    taste = quick_linear_point(LINEAR_GROWTH["linear/growth/segments/8"])
    assert (len(taste.seeds), taste.settings["horizon"]) == (2, 2_000)
    assert quick_linear_point(LINEAR_GROWTH["linear/growth/rounds/32000"]) is None


def test_the_taste_of_a_world_is_the_same_world_in_fewer_rounds():
    switching = quick_linear_world(LINEAR["linear/two-switches/d5"])
    assert (len(switching.seeds), switching.settings["horizon"], switching.settings["switches"]) == (
        2,
        2_000,
        [300, 1_000],
    )
    whole, drifting = LINEAR["linear/box-drift/d2"], quick_linear_world(LINEAR["linear/box-drift/d2"])
    turns = [one.settings["speed"] * one.settings["horizon"] for one in (whole, drifting)]
    assert turns == pytest.approx([2 * math.pi] * 2)
    assert build_world(drifting.environment, drifting.settings, 0).arms.points.shape == (100, 2)
    assert "T = 2,000" in drifting.title


def test_variants_of_a_policy_have_one_bound():
    row = row_of("ADA-OPKB", TABLE_1)
    assert row_of("ADA-OPKB (published)", TABLE_1) is row is TABLE_1["ADA-OPKB"]
