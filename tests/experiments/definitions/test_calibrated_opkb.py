import numpy as np
import pytest

from driftbandits import information_gain
from driftbandits.experiments.definitions.calibrated_opkb import CALIBRATED_GROUP, STATIONARY_CONDITIONS
from driftbandits.experiments.definitions.ids import (
    CALIBRATED_ALARMS_PREFIX,
    CALIBRATED_DELAYS_PREFIX,
    CALIBRATED_PAPER_PREFIX,
)
from driftbandits.experiments.definitions.paper import PAPER as FIGURES
from driftbandits.experiments.definitions.rows import (
    ADA_OPKB_THEORY,
    AUTOBANDIT,
    CALIBRATED_OPKB,
    CALIBRATED_OPKB_THEORY,
)
from driftbandits.experiments.definitions.specs import cells_of
from driftbandits.experiments.definitions.suite import SUITE, WRONG_KERNELS
from driftbandits.experiments.definitions.yardstick import YARDSTICK
from driftbandits.experiments.groups import find_experiments
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.experiments.running.preflight import check_experiment


def part(prefix):
    return {name: e for name, e in CALIBRATED_GROUP.items() if name.startswith(prefix)}


def keys(experiments, label):
    return {cell.key for e in experiments for cell in cells_of(e) if cell.policy.label == label}


def test_it_has_every_suite_world_the_papers_alarms_and_delays():
    assert [e.id for e in find_experiments(["calibrated"])] == list(CALIBRATED_GROUP)
    assert len(CALIBRATED_GROUP) == len(SUITE) + 3 + 2 * len(STATIONARY_CONDITIONS) + 2 * 4 + 3
    for name, world in SUITE.items():
        mine = CALIBRATED_GROUP[name.replace("suite/", "calibrated/")]
        assert (mine.environment, mine.settings, mine.common) == (world.environment, world.settings, world.common)
        assert mine.seeds == world.seeds
        assert len(mine.policies) == 6


@pytest.mark.parametrize("label", ["ADA-OPKB", "AutoBandit"])
def test_runs_of_the_yardstick_are_used_again(label):
    worlds = {
        name: e
        for name, e in CALIBRATED_GROUP.items()
        if not name.startswith((CALIBRATED_PAPER_PREFIX, CALIBRATED_ALARMS_PREFIX, CALIBRATED_DELAYS_PREFIX))
    }
    yardstick = {name.replace("calibrated/", "yardstick/"): e for name, e in worlds.items()}
    assert keys(worlds.values(), label) == keys([YARDSTICK[name] for name in yardstick], label)
    in_paper = [YARDSTICK[name] for name in YARDSTICK if name.startswith("yardstick/paper/")]
    assert keys(in_paper, label) < keys(part(CALIBRATED_PAPER_PREFIX).values(), label)


def test_ada_opkb_on_the_papers_worlds_is_what_its_figures_play():
    figures = [FIGURES[name] for name in ("switching/1", "switching/2", "cosine/slow")]
    for label in ("ADA-OPKB", "ADA-OPKB (published)"):
        assert keys(part(CALIBRATED_PAPER_PREFIX).values(), label) == keys(figures, label)


def test_all_but_autobandit_are_told_the_kernel_of_the_suite():
    for policy in CALIBRATED_GROUP["calibrated/mismatched/d2"].policies:
        assert policy == AUTOBANDIT or policy.kernel == WRONG_KERNELS["mismatched"]


@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_the_constants_of_the_proofs_have_no_third_block(dimension):
    experiment = CALIBRATED_GROUP[f"calibrated/flip-1/d{dimension}"]
    world = build_world(experiment.environment, experiment.settings, 0)
    policy = build_policy(ADA_OPKB_THEORY, world, 0)
    assert policy.constants.scale == pytest.approx(3.3)
    gain = information_gain(world.arms.features, horizon=world.horizon, sigma=policy.constants.sigma)
    first = policy.constants.levels(gamma=gain, horizon=world.horizon, arms=len(world.arms)).block_size
    assert 4_000 < first < world.horizon < first + 2 * first


def test_nothing_changes_where_alarms_are_false():
    for name, experiment in part(CALIBRATED_ALARMS_PREFIX).items():
        world = build_world(experiment.environment, experiment.settings, 0)
        assert len(world.change_rounds) == 0
        assert (world.horizon, len(experiment.seeds)) == (10_000, 200)
        assert [p.label for p in experiment.policies] == [
            "CalibratedOPKB",
            *([CALIBRATED_OPKB_THEORY.label] if name == "calibrated/alarms/gaussian/d2" else []),
        ]


def test_rewards_of_every_condition_fit_the_range_or_are_clipped():
    for experiment in part(CALIBRATED_ALARMS_PREFIX).values():
        check_experiment(experiment)
    bernoulli = CALIBRATED_GROUP["calibrated/alarms/bernoulli/d2"]
    world = build_world(bernoulli.environment, bernoulli.settings, 0)
    assert world.reward_range == (0.0, 1.0)
    assert np.abs(world.means(0) - 0.5).max() == pytest.approx(0.4)
    assert cells_of(bernoulli)[0].policy.settings["reward_range"] == [0.0, 1.0]


def test_a_wrong_length_scale_is_believed():
    for name, told in (("too-long", 0.8), ("too-short", 0.05)):
        for dimension in (2, 10):
            (policy,) = CALIBRATED_GROUP[f"calibrated/alarms/{name}/d{dimension}"].policies
            assert policy.kernel == {"name": "rbf", "length_scale": told}
            assert policy.settings == {**CALIBRATED_OPKB.settings, "kernel": "given"}


def test_changes_have_the_size_their_name_says():
    for name, experiment in part(CALIBRATED_DELAYS_PREFIX).items():
        world = build_world(experiment.environment, experiment.settings, 0)
        assert world.change_rounds.tolist() == [3000]
        assert world.horizon == 6000
        kind, _, size = name.removeprefix(CALIBRATED_DELAYS_PREFIX).partition("-")
        moved = np.abs(world.means(3000) - world.means(2999))
        if kind == "flip":
            assert moved.max() == pytest.approx(float(size))
        elif kind == "level":
            np.testing.assert_allclose(moved, float(size))
        else:
            assert not size
            assert moved.max() > 0.1
