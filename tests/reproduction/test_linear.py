import dataclasses
import math

import numpy as np
import pytest

from driftbandits.environments.linear import DriftingLinear, SwitchingLinear
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.results import collect
from reproduction import growth
from reproduction.groups import judge
from reproduction.linear import (
    BOX_ERROR,
    LINEAR,
    LINEAR_GROWTH,
    LINEAR_SWEEPS,
    QUICK_LINEAR_SWEEPS,
    SEGMENTS,
    TABLE_1,
    TOLD_THE_PATH,
    judge_linear,
    quick_linear_point,
    quick_linear_world,
    theory_rivals,
)
from reproduction.page import write_report
from reproduction.sweeps import allowed_slope, information_gain_of, row_of
from tests.reproduction.made_up import results_of, small
from tests.reproduction.made_up_results import noise, played

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


def with_gain(sweep, label, rounds, gain):
    """Slope of T^rounds gamma_T^gain along a sweep over T, from gains computed here."""
    spec = next(p for p in sweep.experiments[0].policies if p.label == label)
    gains = np.array([information_gain_of(e, spec) for e in sweep.experiments])
    return np.polyfit(np.log(sweep.values), np.log(gains**gain * np.array(sweep.values) ** rounds), 1)[0]


@pytest.mark.parametrize(
    ("label", "expected", "gains"),
    [
        ("ADA-OPKB", (None, 1 / 2, 1, None, 1 / 3, 1), (1 / 2, 1 / 3)),
        ("D-LinUCB (theory)", (None, None, 1, None, 1 / 4, 1), (7 / 8, 7 / 8)),
        ("LinUCB+MASTER (theory)", (None, 1 / 2, 1, None, 1 / 3, 1), (1, 1)),
        ("Restart-Adv (theory)", (2 / 3, None, 1, 2 / 3, 1 / 3, 1), None),
    ],
)
def test_slopes_of_bounds_are_the_exponents_of_table_1(label, expected, gains):
    """Along T, L_T and d where theta jumps, and T, V_T and d where it turns; in T with the growth of gamma_T.

    In d no bound has less than slope 1, for all have a term d sqrt(T).
    """
    for sweep, exponent in zip(LINEAR_SWEEPS, expected, strict=True):
        if exponent is not None:
            assert allowed_slope(sweep, label, sweep.values) == pytest.approx(exponent, abs=1e-3), sweep.id
    for sweep, gain in zip((LINEAR_SWEEPS[0], LINEAR_SWEEPS[3]), gains or (), strict=False):
        row = row_of(label, TABLE_1)
        rounds = (row.drifts if sweep.id.endswith("drifting-rounds") else row.jumps)[0].rounds
        found = allowed_slope(sweep, label, sweep.values)
        assert found == pytest.approx(with_gain(sweep, label, rounds, gain), abs=1e-3)
        assert found > rounds + 0.05


def test_the_linear_row_is_judged_as_the_kernel_row_is():
    """LB-1 and T1 have the same law, with gamma_T as it is; the linear row is read as it is printed too."""
    kernel, linear = growth.TABLE_1["ADA-OPKB"], TABLE_1["ADA-OPKB"]
    assert linear.jumps[: len(kernel.jumps)] == kernel.jumps
    assert linear.drifts[: len(kernel.drifts)] == kernel.drifts


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


ONE_SWITCH = dataclasses.replace(LINEAR["linear/one-switch/d5"], seeds=tuple(range(6)))


def claim(results, name):
    return next(c for c in judge_linear(results).claims if c.id == name)


def checks_here(results, name, label):
    return [
        c for c in claim(results, name).checks if c.verdict != "not run" and c.statement.startswith(f"{label} minus")
    ]


def along(sweep, slopes):
    """Regret with the slope of each label, 0.1 where none is given."""
    values = {e.id: value for value, e in zip(sweep.values, sweep.experiments, strict=True)}

    def regret(name, label, seed):
        return 100 * values[name] ** slopes.get(label, 0.1) * (1 + 0.001 * noise(f"{name}{label}", seed))

    return played(sweep.experiments, regret)


def test_nothing_played_is_not_judged():
    assert judge_linear(collect([], [])) is None


@pytest.mark.parametrize(
    ("sweep", "slope", "verdict"),
    [(LINEAR_SWEEPS[0], 0.69, "holds"), (LINEAR_SWEEPS[0], 0.75, "does not hold"), (LINEAR_SWEEPS[5], 0.9, "holds")],
)
def test_growth_is_judged_by_the_bound_with_its_logarithms(sweep, slope, verdict):
    found = claim(along(sweep, {"ADA-OPKB": slope}), "LB-1")
    mine = next(c for c in found.checks if c.settings == ("ADA-OPKB",) and c.verdict != "not run")
    assert mine.verdict == verdict
    assert mine.estimate == pytest.approx(slope, abs=0.01)


def test_each_rival_is_judged_by_its_own_bound():
    slopes = {"D-LinUCB (theory)": 0.7, "LinUCB+MASTER (theory)": 0.7}
    found = {c.statement.partition(",")[0]: c for c in claim(along(LINEAR_SWEEPS[0], slopes), "LB-2").checks}
    assert found["D-LinUCB (theory)"].verdict == "holds"
    assert found["LinUCB+MASTER (theory)"].verdict == "does not hold"
    assert len(found) == 8


@pytest.mark.parametrize(("regret", "verdict"), [(190.0, "holds"), (210.0, "does not hold")])
def test_keeping_up_is_at_most_twice_the_best_rival(regret, verdict):
    own = {"ADA-OPKB": regret, "SW-LinUCB (tuned)": 100.0}
    results = played([ONE_SWITCH], lambda _, label, seed: own.get(label, 900.0) + noise(label, seed))
    told, tuned = checks_here(results, "LB-3", "ADA-OPKB")
    assert tuned.verdict == verdict
    assert "2 times SW-LinUCB (tuned)" in tuned.statement
    assert told.verdict == "holds"


def test_those_told_nothing_are_compared_one_by_one():
    own = {"ADA-OPKB": 300.0, "LinUCB+MASTER (theory)": 200.0}
    results = played([ONE_SWITCH], lambda _, label, seed: own.get(label, 900.0) + noise(label, seed))
    found = {c.statement: c.verdict for c in checks_here(results, "LB-4", "ADA-OPKB")}
    assert sorted(found.values()) == ["does not hold", "holds", "holds", "holds"]
    assert next(s for s, v in found.items() if v == "does not hold").startswith("ADA-OPKB minus LinUCB+MASTER")


def test_two_seeds_decide_nothing():
    results = played([dataclasses.replace(ONE_SWITCH, seeds=(0, 1))], lambda _, label, seed: 100.0 + noise(label, seed))
    given = [c for c in claim(results, "LB-4").checks if c.verdict != "not run"]
    assert {c.verdict for c in given} == {"undecided"}
    assert all("fewer than 3 seeds" in c.note for c in given)


def test_it_is_one_of_the_judgements_with_a_file_of_its_own():
    results = played([ONE_SWITCH], lambda _, label, seed: 100.0 + noise(label, seed))
    found = judge(results)
    assert [list(one.files) for one in found.each] == [["linear.md"]]
    assert "| LB-3 |" in found.files["linear.md"]


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
