import dataclasses
import itertools

import pytest

from driftbandits.configuration.presets import read_settings
from driftbandits.errors import InputError
from driftbandits.experiments.definitions.catalogue import (
    DEFAULT_GROUPS,
    EXPERIMENTS,
    FIVE_MATRICES,
    GROUPS,
    PAPER,
    find_experiments,
    full,
    quick,
)
from driftbandits.experiments.definitions.growth import (
    GROWTH_ROUNDS,
    GROWTH_SEGMENTS,
    LONG_HORIZON,
    SWEEPS,
    quick_sweep,
)
from driftbandits.experiments.definitions.real_series import is_real
from driftbandits.experiments.definitions.seeds import EVALUATION_SEEDS, TUNING_SEEDS
from driftbandits.experiments.definitions.specs import Cell, PolicySpec, cells_of
from driftbandits.experiments.definitions.suite import SUITE_DIMENSIONS, SUITE_POLICIES, SUITE_WORLDS
from driftbandits.experiments.definitions.tuned_settings import tuned_spec
from driftbandits.experiments.running.build import build_policy, build_world

SYNTHETIC = {name: e for name, e in EXPERIMENTS.items() if not is_real(e)}
NEURAL = {"AdaOPNN", "OPNN", "NeuralUCB", "SlidingWindowNeuralUCB"}


def small(policy):
    """The policy with a network that is built at once."""
    if policy.name not in NEURAL or policy.settings.get("width") == "infinite":
        return policy
    return dataclasses.replace(policy, settings={**policy.settings, "width": 8})


@pytest.mark.parametrize("name", SYNTHETIC)
def test_every_experiment_can_be_built(name):
    experiment = SYNTHETIC[name]
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[0])
    assert world.horizon == experiment.settings["horizon"]
    labels = [policy.label for policy in experiment.policies]
    assert len(set(labels)) == len(labels)
    for cell in cells_of(experiment)[: len(labels)]:
        policy = build_policy(small(cell.policy), world, cell.seed)
        low, high = policy.reward_range
        least, most = world.reward_range
        assert policy.out_of_range == "clip" or (low <= least and most <= high)


def test_tuning_and_evaluation_seeds_are_apart():
    assert not set(TUNING_SEEDS) & set(EVALUATION_SEEDS)
    for experiment in EXPERIMENTS.values():
        assert not set(experiment.seeds) & set(TUNING_SEEDS)


def test_the_paper_has_its_worlds_at_three_dimensions_and_its_seeds():
    for name in ("switching/1", "switching/2", "cosine/stationary", "cosine/slow"):
        assert len(PAPER[name].seeds) == (50 if name == "cosine/stationary" else 25)
        for dimension in (2, 3):
            assert PAPER[f"{name}/d{dimension}"].settings["dimension"] == dimension
        assert min(p.seeds or 25 for p in PAPER[name].policies) >= 8
    assert PAPER["switching/1"].settings["dimension"] == 10
    world = build_world("switching/1", PAPER["switching/1"].settings, 0)
    assert world.change_rounds.tolist() == [3000]


def test_the_five_matrices_of_the_authors_code():
    for name, experiment in FIVE_MATRICES.items():
        assert {policy.settings["depth"] for policy in experiment.policies} == {5}, name
        assert all(policy.name in NEURAL for policy in experiment.policies)


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


def test_suite_has_every_world_at_every_dimension():
    assert set(GROUPS["suite"]) == {f"suite/{n}/d{d}" for n, d in itertools.product(SUITE_WORLDS, SUITE_DIMENSIONS)}
    for experiment in GROUPS["suite"].values():
        assert [policy.label for policy in experiment.policies] == list(SUITE_POLICIES)


def test_experiments_are_found_by_id_group_and_beginning():
    assert [e.id for e in find_experiments(["switching/2", "switching/2"])] == ["switching/2"]
    names = [e.id for e in find_experiments(["switching"])]
    assert names == [f"switching/{k}{d}" for d in ("", "/d3", "/d2") for k in (1, 2)]
    assert [e.id for e in find_experiments(["switching/1/five"])] == ["switching/1/five"]
    assert len(find_experiments(["growth/rounds"])) == len(GROWTH_ROUNDS)
    assert len(find_experiments(DEFAULT_GROUPS)) == len(GROUPS["paper"]) + len(GROUPS["growth"])
    with pytest.raises(InputError, match="did you mean 'switching/1'"):
        find_experiments(["switchin/1"])


def test_quick_and_full_change_seeds_and_widths_only():
    experiment = PAPER["switching/1"]
    taste, whole = quick(experiment), full(experiment)
    assert len(taste.seeds) == 2
    assert {p.settings["width"] for p in taste.policies if p.label.startswith("ADA-OPNN")} == {256}
    assert [p.label for p in taste.policies] == [p.label for p in whole.policies]
    assert len(cells_of(whole)) == 25 * len(experiment.policies)
    assert len(cells_of(experiment)) < len(cells_of(whole))
    short = quick_sweep(SWEEPS[0])
    assert short.values == (2_000, 4_000, 8_000, 16_000)
    assert all(len(e.seeds) == 2 for e in short.experiments)
    assert quick_sweep(SWEEPS[2]).values == GROWTH_SEGMENTS
    assert {e.settings["horizon"] for e in quick_sweep(SWEEPS[3]).experiments} == {16_000}


def test_a_key_names_what_is_played():
    cell = Cell("switching/1", {"horizon": 500}, PolicySpec("A", "OPKB", {"constants": "published"}), 0)
    assert cell.key == dataclasses.replace(cell, policy=dataclasses.replace(cell.policy, label="B", seeds=3)).key
    others = [
        dataclasses.replace(cell, seed=1),
        dataclasses.replace(cell, settings={"horizon": 501}),
        dataclasses.replace(cell, environment="switching/2"),
        dataclasses.replace(cell, policy=PolicySpec("A", "OPKB")),
        dataclasses.replace(cell, policy=dataclasses.replace(cell.policy, kernel={"name": "linear"})),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 6
    with pytest.raises(InputError, match="plain values"):
        _ = dataclasses.replace(cell, settings={"noise": object()}).key


def test_common_settings_reach_every_policy_and_its_own_win():
    experiment = GROUPS["suite"]["suite/heavy-tails/d2"]
    assert {cell.policy.settings["out_of_range"] for cell in cells_of(experiment)} == {"clip"}
    own = PolicySpec("mine", "OPKB", {"out_of_range": "error"})
    mixed = dataclasses.replace(experiment, policies=(own,))
    assert cells_of(mixed)[0].policy.settings["out_of_range"] == "error"


def test_tuned_settings_by_label():
    assert tuned_spec("SW-GPUCB", 10).name == "SlidingWindowGPUCB"
    read_settings(tuned_spec("SW-GPUCB", 10).settings)
    with pytest.raises(InputError, match="no tuned settings for 'SWGPUCB'"):
        tuned_spec("SWGPUCB", 10)
