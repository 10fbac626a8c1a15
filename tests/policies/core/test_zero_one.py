"""Rewards of 0 and 1 under the default range are noticed, once."""

import warnings

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import StateError, ZeroOneRewardsWarning
from driftbandits.policies.core.zero_one import REWARDS_NEEDED

ARMS = db.ArmSet(np.linspace(0, 1, 4)[:, None])
CLICKS = (np.arange(3 * REWARDS_NEEDED) % 9 == 5).astype(float)


@pytest.mark.parametrize("together", [1, 7, 300])
def test_they_are_noticed_once_and_the_cure_is_named(together):
    policy = db.Uniform(ARMS, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, len(CLICKS), together):
            told = CLICKS[start : start + together]
            batch = policy.ask(size=len(told))
            policy.tell(batch, told)
            assert bool(caught) == (start + len(told) >= REWARDS_NEEDED)
    assert [item.category for item in caught] == [ZeroOneRewardsWarning]
    assert "pass reward_range=(0, 1)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_single_reward_points_at_who_told():
    policy = db.Uniform(ARMS, seed=0)
    for reward in CLICKS[: REWARDS_NEEDED - 1].tolist():
        policy.tell(policy.ask(), reward)
    choice = policy.ask()
    with pytest.warns(ZeroOneRewardsWarning) as caught:
        policy.tell(choice, 0.0)
    assert [item.filename for item in caught] == [__file__]


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        (CLICKS, {"reward_range": (0.0, 1.0)}),
        (np.zeros(300), {}),
        (np.ones(300), {}),
        (np.r_[CLICKS[:50], 0.5, CLICKS], {}),
        (2.0 * CLICKS - 1.0, {}),
    ],
    ids=["declared", "no success", "no failure", "another reward", "from -1 to 1"],
)
def test_other_rewards_are_no_reason_to_warn(told, settings):
    for together in (True, False):
        policy = db.Uniform(ARMS, seed=0, **settings)
        if together:
            policy.tell(policy.ask(size=len(told)), told)
        else:
            for reward in told.tolist():
                policy.tell(policy.ask(), reward)


def test_what_was_seen_is_part_of_the_state():
    policy = db.Uniform(ARMS, seed=0)
    policy.tell(policy.ask(size=REWARDS_NEEDED - 1), CLICKS[: REWARDS_NEEDED - 1])
    again = db.Uniform.restore(ARMS, policy.state_dict())
    with pytest.warns(ZeroOneRewardsWarning):
        again.tell(again.ask(), 0.0)
    once_more = db.Uniform.restore(ARMS, again.state_dict())
    once_more.tell(once_more.ask(size=50), CLICKS[:50])  # it has been said


def test_a_state_that_cannot_be_is_refused():
    state = db.Uniform(ARMS, seed=0, reward_range=(0.0, 1.0)).state_dict()
    state["zero_one"]["looking"] = True
    with pytest.raises(StateError):
        db.Uniform.restore(ARMS, state)
