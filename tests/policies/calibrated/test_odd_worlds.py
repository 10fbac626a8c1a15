"""Worlds and settings at the edge: rough kernels, the smallest level, degenerate rewards, other units."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, CalibratedOPKB
from driftbandits.errors import InputError
from tests.policies.calibrated.worlds import MEANS, line


@pytest.mark.parametrize("kernel", ["auto", "given"])
def test_a_rough_kernel_on_many_arms_works(kernel):
    points = np.random.default_rng(0).random((250, 5))
    policy = CalibratedOPKB(ArmSet(points, RBF(0.02)), kernel=kernel)
    batch = policy.ask(size=400)
    policy.tell(batch.ids, points[batch.arms, 0] - 0.5)
    assert policy.law().sum() == pytest.approx(1.0)


def test_the_smallest_false_alarm_there_is():
    with pytest.raises(InputError, match="not below"):
        CalibratedOPKB(line(), false_alarm=math.ulp(0.0))
    CalibratedOPKB(line(), false_alarm=1e-300).ask()


@pytest.mark.parametrize("mode", ["practical", "theory"])
@pytest.mark.parametrize("rewards", ["constant", "exact", "0/1", "heavy"])
@pytest.mark.filterwarnings("error", "ignore:all 100 rewards so far are 0 or 1")
def test_degenerate_rewards_raise_neither_warnings_nor_alarms(rewards, mode):
    policy, rng = CalibratedOPKB(line(), mode=mode, false_alarm=0.01, out_of_range="clip"), np.random.default_rng(5)
    draw = {
        "constant": lambda arm: 1.0,
        "exact": lambda arm: float(MEANS[arm]),
        "0/1": lambda arm: float(rng.random() < 0.5 + MEANS[arm] / 2),
        "heavy": lambda arm: float(MEANS[arm] + 0.1 * rng.standard_cauchy()),
    }[rewards]
    for t in range(400):
        choice = policy.ask()
        policy.tell(choice.id, draw(choice.arm))
        if t % 100 == 0:
            assert policy.law().sum() == pytest.approx(1.0, abs=1e-12)
            assert np.isfinite(policy.estimate()).all()
    assert policy.changes == ()


def test_the_unit_of_rewards_does_not_matter():
    """A factor of 2 is exact in floating point: the same decisions, estimates and changes but for their unit."""
    one, two = CalibratedOPKB(line(), seed=3), CalibratedOPKB(line(), seed=3, reward_range=(-2, 2))
    rng = np.random.default_rng(2)
    for t in range(500):
        choice = one.ask()
        assert two.ask() == choice
        sign = 1 if t < 300 else -1
        reward = float(sign * MEANS[choice.arm] + 0.1 * rng.standard_normal())
        one.tell(choice.id, reward)
        two.tell(choice.id, 2 * reward)
    np.testing.assert_array_equal(two.estimate(), 2 * one.estimate())
    assert [change.round for change in one.changes] == [change.round for change in two.changes]
    assert two.changes[0].before == tuple(2 * value for value in one.changes[0].before)
