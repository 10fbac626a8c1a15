"""The scale of rewards is a straight line from the declared range to [-1, 1], and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftbandits as db
from driftbandits.errors import RewardError
from driftbandits.policies.core.scale import USUAL_NOISE, RewardScale, read_range

ENDS = st.floats(-1e6, 1e6)


@given(ENDS, ENDS, st.floats(0.0, 1.0))
def test_ends_go_to_the_ends_and_back(low, high, share):
    if high - low < 1e-3:
        return
    scale = RewardScale(low, high)
    assert scale.inward(low) == pytest.approx(-1.0)
    assert scale.inward(high) == pytest.approx(1.0)
    reward = low + share * (high - low)
    assert scale.outward(scale.inward(reward)) == pytest.approx(reward, abs=1e-9 * (abs(low) + abs(high)))


def test_arrays_and_numbers_give_the_same_bits():
    scale, rewards = RewardScale(-0.3, 1.9), np.linspace(-0.3, 1.9, 101)
    assert scale.inward(rewards).tolist() == [scale.inward(reward) for reward in rewards.tolist()]
    inside = scale.inward(rewards)
    assert scale.outward(inside).tolist() == [scale.outward(value) for value in inside.tolist()]


def test_sizes_do_not_depend_on_where_the_range_lies():
    for low in (-1.0, 0.0, 100.0):
        scale = RewardScale(low, low + 4.0)
        assert scale.inward_size(1.0) == 0.5
        assert scale.outward_size(0.5) == 1.0
        assert scale.noise(1.0) == 0.5
        assert scale.noise(None) == USUAL_NOISE


def test_rewards_outside_are_clipped_or_refused_by_the_first_one():
    scale = read_range((0, 2))
    given_ = np.array([1.0, 2.5, -3.0])
    inside = scale.clip(given_)
    assert inside.tolist() == [1.0, 2.0, 0.0]
    with pytest.raises(RewardError, match=r"reward 2.5 lies outside reward_range=\(0, 2\)"):
        scale.require_inside(given_, inside)
    scale.require_inside(inside, inside)


def test_a_policy_speaks_in_the_units_of_its_range():
    arms = db.ArmSet([[0.0], [1.0]])
    policy = db.GPUCB(arms, seed=0, reward_range=(100.0, 300.0))
    assert policy.estimate().tolist() == [200.0, 200.0]
    assert policy.reward_range == (100.0, 300.0)
