import dataclasses

import pytest

from driftbandits.errors import InputError
from driftbandits.experiments.definitions.best_sizes import BEST_SIZES
from driftbandits.experiments.definitions.growth import GROWTH, GROWTH_ROUNDS, QUICK_SWEEPS
from driftbandits.experiments.definitions.linear import LINEAR
from driftbandits.experiments.definitions.linear_growth import LINEAR_GROWTH
from driftbandits.experiments.definitions.paper import FIVE_MATRICES, PAPER
from driftbandits.experiments.definitions.real_series import is_real
from driftbandits.experiments.definitions.seeds import TUNING_SEEDS
from driftbandits.experiments.definitions.specs import cells_of
from driftbandits.experiments.groups import (
    EXPERIMENTS,
    GROUPS,
    OWN,
    default_groups,
    find_experiments,
    group_names,
    group_of,
)
from driftbandits.experiments.groups.group import Group
from driftbandits.experiments.running.build import build_policy, build_world
from driftbandits.report.chapters import blocks_of

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


def test_no_experiment_is_in_two_groups():
    assert len(EXPERIMENTS) == sum(len(group.experiments) for group in GROUPS)
    for group in GROUPS:
        assert all(group_of(experiment.id) is group for experiment in group.experiments)


def test_an_experiment_of_ones_own_is_in_a_group_only_where_all_ids_begin_so():
    assert group_of("suite/mine").name == "suite"
    assert all(
        group_of(name) is OWN for name in ("mine", "paper/mine", "paper/d3/mine", "five/mine", "suite", "suitely/x")
    )


def test_names_and_anchors_differ():
    assert len({group.name for group in GROUPS}) == len({group.anchor for group in (*GROUPS, OWN)}) - 1 == len(GROUPS)
    assert Group("mine", "Mine", "", ()).anchor == "mine"


@pytest.mark.parametrize("group", [*GROUPS, OWN], ids=lambda group: group.name)
def test_every_chapter_can_be_made(group):
    assert callable(blocks_of(group))
    assert group.title


def test_evaluation_keeps_off_the_seeds_of_searches():
    for experiment in EXPERIMENTS.values():
        if experiment.id in BEST_SIZES:  # about what a search finds
            assert set(experiment.seeds) < set(TUNING_SEEDS)
        else:
            assert not set(experiment.seeds) & set(TUNING_SEEDS)


def test_experiments_are_found_by_id_group_and_beginning():
    assert [e.id for e in find_experiments(["switching/2", "switching/2"])] == ["switching/2"]
    names = [e.id for e in find_experiments(["switching"])]
    assert names == [f"switching/{k}{d}" for d in ("", "/d3", "/d2") for k in (1, 2)]
    assert [e.id for e in find_experiments(["switching/1/five"])] == ["switching/1/five"]
    assert len(find_experiments(["growth/rounds"])) == len(GROWTH_ROUNDS)
    assert [e.id for e in find_experiments(["paper"])] == [*PAPER, *BEST_SIZES]
    assert {e.settings["dimension"] for e in find_experiments(["paper/d3"])} == {3}
    with pytest.raises(InputError, match=r"did you mean 'switching/1'.*groups: paper, growth") as caught:
        find_experiments(["switchin/1"])
    assert "--" not in str(caught.value)


def test_what_is_played_when_nothing_is_named():
    linear = [*LINEAR, *LINEAR_GROWTH]
    assert default_groups() == ["paper", "growth", "linear"]
    assert [e.id for e in find_experiments(default_groups())] == [*PAPER, *BEST_SIZES, *GROWTH, *linear]
    assert set(default_groups(full=True)) == {"paper", "growth", "linear", "five"}
    everything = {*PAPER, *BEST_SIZES, *GROWTH, *linear, *FIVE_MATRICES}
    assert {e.id for e in find_experiments(default_groups(full=True))} == everything
    assert set(group_names()) > {"paper", "growth", "five"}


def test_a_taste_of_a_group_is_its_own():
    point, cut = GROWTH["growth/rounds/2000"], GROWTH["growth/rounds/128000"]
    assert group_of(point.id).quick(point) == QUICK_SWEEPS[0].experiments[0]
    assert group_of(cut.id).quick(cut) is None
    taste = group_of("switching/1").quick(PAPER["switching/1"])
    assert taste is not None
    assert len(taste.seeds) == 2
