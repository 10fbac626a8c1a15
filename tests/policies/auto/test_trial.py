"""New arms are tried, and no longer than it takes."""

import numpy as np

import driftbandits as db
from driftbandits.policies.auto.trial import TRIAL_SHARE, Trial

SHOP = db.ArmSet(np.linspace(0.0, 1.0, 4)[:, None], names=list("abcd"))
MORE = SHOP.extended([[1.3], [1.6]], names=["new", "newer"])


def played():
    """A policy that knows four arms, the last of them the best."""
    policy = db.AutoBandit(SHOP, seed=0, reward_range=(0, 1))
    rng = np.random.default_rng(0)
    for _ in range(400):
        choice = policy.ask()
        policy.tell(choice, float(rng.random() < (0.3 if choice.arm == 3 else 0.05)))
    return policy


def test_new_arms_share_a_tenth_of_the_rounds():
    policy = played().with_arms(MORE)
    tried = policy.law()
    policy._trial.left[:] = 0
    other = db.AutoBandit.restore(MORE, policy.state_dict()).law()
    untried = (other - 0.001 / 6) * (1.0 - TRIAL_SHARE)  # the floor stays as it is
    np.testing.assert_allclose(tried - 0.001 / 6 - untried, 0.999 * np.array([0, 0, 0, 0, 0.05, 0.05]), atol=1e-12)


def test_a_trial_ends_when_the_arm_was_told_often_enough():
    policy = played().with_arms(MORE)
    owed = int(policy._trial.left[4])
    assert 8 <= owed <= 40  # about two over the mean chance of success
    new = np.arange(6) == 4
    for _ in range(owed):
        assert policy.law()[4] >= TRIAL_SHARE / 2 * (1.0 - 0.001)
        policy.tell(policy.ask(allowed=new), 0.0)
    assert policy._trial.left.tolist()[:5] == [0] * 5
    assert policy.law()[4] < TRIAL_SHARE / 2


def test_an_arm_that_is_not_allowed_is_not_tried():
    policy = played().with_arms(MORE)
    choice = policy.ask(allowed=np.arange(6) < 4)
    assert choice.arm < 4
    assert Trial(3).law() is None
    trial = Trial(3)
    trial.begin(np.array([2]), plays=3)
    assert trial.law(np.array([True, True, False])).sum() == 0.0


def test_where_noise_is_small_four_plays_are_a_trial():
    policy = db.AutoBandit(SHOP, seed=0)
    for _ in range(100):
        choice = policy.ask()
        policy.tell(choice, 0.1 * choice.arm)
    assert policy.with_arms(MORE)._trial.left.tolist() == [0, 0, 0, 0, 4, 4]


def test_trials_go_on_after_arms_change_again_and_after_a_restart():
    policy = played().with_arms(MORE)
    fewer = policy.with_arms(MORE.without(["a"]))
    assert fewer._trial.left.tolist() == policy._trial.left.tolist()[1:]
    again = db.AutoBandit.restore(MORE, policy.state_dict())
    assert again._trial.left.tolist() == policy._trial.left.tolist()
    np.testing.assert_array_equal(again.law(), policy.law())


def test_what_is_known_of_kept_arms_stays_to_the_last_digits():
    policy = played()
    np.testing.assert_allclose(policy.with_arms(MORE).estimate()[:4], policy.estimate(), atol=1e-14, rtol=0.0)


def test_an_arm_that_surprised_is_followed_through_a_change_of_arms():
    """Or forgotten with its arm: its old number is another arm's, or none."""
    policy = played()
    policy._vigilance._stale, policy._vigilance._rival = 3, 0
    fewer = policy.with_arms(policy.arms.without(["a"]))
    assert (fewer._vigilance._stale, fewer._vigilance._rival) == (2, -1)
    assert policy.with_arms(policy.arms.without(["d"]))._vigilance._stale == -1
