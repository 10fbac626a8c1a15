import pytest

from driftbandits.experiments.definitions.real_series import REAL
from driftbandits.experiments.definitions.seeds import EVALUATION_SEEDS
from driftbandits.experiments.definitions.specs import cells_of
from driftbandits.experiments.running.build import build_policy, build_world


@pytest.mark.parametrize("name", REAL)
def test_every_real_bandit_meets_the_rules(name):
    experiment = REAL[name]
    world = build_world(experiment.environment, experiment.settings, experiment.seeds[-1])
    assert len(world.arms) >= 12
    assert world.horizon >= 1500
    assert set(experiment.seeds) <= set(EVALUATION_SEEDS)
    for cell in cells_of(experiment)[: len(experiment.policies)]:
        policy = build_policy(cell.policy, world, cell.seed)
        (low, high), (least, most) = policy.reward_range, world.reward_range
        assert policy.out_of_range == "clip" or (low <= least and most <= high)
