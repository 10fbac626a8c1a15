import dataclasses

import pytest

from driftbandits import datasets
from driftbandits.errors import InputError
from driftbandits.experiments.building import build_policy, build_world
from driftbandits.experiments.runner import run_cell
from driftbandits.experiments.specs import cells_of
from reproduction.real_data import REAL, reference_table


@pytest.mark.parametrize("name", REAL)
def test_every_real_bandit_meets_the_rules(name):
    experiment = REAL[name]
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[-1])
    assert len(world.arms) >= 12
    assert world.horizon >= 1500
    assert experiment.seeds == tuple(range(datasets.OFFSETS))
    for cell in cells_of(experiment)[: len(experiment.policies)]:
        policy = build_policy(cell.policy, world, cell.seed)
        (low, high), (least, most) = policy.reward_range, world.reward_range
        assert policy.out_of_range == "clip" or (low <= least and most <= high)


def test_references_fall_short_of_the_best_of_every_round_in_their_order():
    experiment = dataclasses.replace(REAL["real/digits"], seeds=(0,))
    table = reference_table([experiment]).set_index("reference")["shortfall"]
    assert table["fixed"] > table["1 switch"] > table["3 switches"] > table["10 switches"] > 0
    uniform = next(cell for cell in cells_of(experiment) if cell.policy.label == "Uniform")
    assert run_cell(uniform).regret[-1] > table["fixed"]


def test_references_are_for_real_data():
    fake = dataclasses.replace(REAL["real/digits"], id="mine", environment="switching/1")
    with pytest.raises(InputError, match="'mine' is not made from real data"):
        reference_table([fake])
