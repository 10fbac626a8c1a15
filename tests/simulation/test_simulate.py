import re

import numpy as np
import pytest

import driftbandits as db
from driftbandits.environments import Tabular
from driftbandits.environments.noise import BernoulliNoise, GaussianNoise, TruncatedGaussianNoise
from driftbandits.environments.switching import SwitchingKernel
from driftbandits.errors import HorizonError, InputError


def world(horizon=1500, **settings):
    fixed = {"seed": 1, "size": 30, "dimension": 2, "switches": (700,)}
    return db.environments.create("switching", horizon=horizon, **fixed, **settings)


def by_hand(policy, world, seed):
    arms, rewards = [], []
    for now in range(world.horizon):
        choice = policy.ask()
        reward = float(world.rewards(now, [choice.arm], seed)[0])
        policy.tell(choice.id, reward)
        arms.append(choice.arm)
        rewards.append(reward)
    return arms, rewards


@pytest.mark.parametrize("build", [db.OPKB, db.AdaOPKB, db.AdaOPKB.published])
def test_steady_stretches_equal_round_by_round(build):
    here = world()
    trace = db.simulate(build(here.arms, horizon=1500, seed=3), here, seed=5)
    arms, rewards = by_hand(build(here.arms, horizon=1500, seed=3), here, seed=5)
    assert trace.arm.tolist() == arms
    assert trace.reward.tolist() == rewards


def test_regret_is_best_mean_less_own_mean():
    here = world()
    trace = db.simulate(db.OPKB(here.arms, horizon=1500, seed=0), here, seed=0)
    means = here.means(0, 1500)
    np.testing.assert_allclose(trace.regret, means.max(axis=1) - means[np.arange(1500), trace.arm], atol=1e-12)
    np.testing.assert_allclose(trace.cumulative_regret[-1], trace.regret.sum())
    assert (trace.probability > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        trace.regret[0] = 1.0


def test_a_policy_goes_on_where_it_stands():
    here = world()
    whole = db.simulate(db.AdaOPKB(here.arms, horizon=1500, seed=2), here, seed=2)
    policy = db.AdaOPKB(here.arms, horizon=1500, seed=2)
    first = db.simulate(policy, here, seed=2, rounds=401)
    again = db.AdaOPKB.restore(here.arms, policy.state_dict())
    second = db.simulate(again, here, seed=2)
    assert np.array_equal(whole.arm, np.concatenate([first.arm, second.arm]))
    assert first.changes + second.changes == whole.changes
    assert second.start == 401


def test_common_noise_for_all_policies():
    here = world()
    ones = np.zeros(1500, dtype=int)
    parts = [here.rewards(0, ones[:33], 7), here.rewards(33, ones[33:], 7)]
    assert np.array_equal(here.rewards(0, ones, 7), np.concatenate(parts))


def test_what_does_not_fit_is_refused_up_front():
    here = world()
    loud = Tabular(here.arms, np.zeros((50, 30)), noise=GaussianNoise(0.1))
    with pytest.raises(InputError, match="clip"):
        db.simulate(db.OPKB(here.arms, horizon=50), loud)
    db.simulate(db.OPKB(here.arms, horizon=50, out_of_range="clip"), loud)
    with pytest.raises(HorizonError, match="horizon=1500"):
        db.simulate(db.OPKB(here.arms, horizon=100), here)
    with pytest.raises(InputError, match="arms"):
        db.simulate(db.OPKB(db.ArmSet([[0.0], [1.0]]), horizon=1500), here)
    with pytest.raises(InputError, match="the world has"):
        db.simulate(db.OPKB(here.arms, horizon=2000), here, rounds=1501)


def test_reward_ranges_of_worlds_are_respected_by_bounded_noise():
    means = np.full((200, 3), 0.3)
    arms = db.ArmSet(np.eye(3))
    coin = Tabular(arms, means, noise=BernoulliNoise())
    trace = db.simulate(db.OPKB(arms, horizon=200, reward_range=(0, 1)), coin)
    assert set(trace.reward.tolist()) <= {0.0, 1.0}
    bounded = Tabular(arms, means, noise=TruncatedGaussianNoise(0.1))
    assert db.simulate(db.OPKB(arms, horizon=200), bounded).reward.max() <= 1.0


def test_estimates_are_in_the_users_units():
    """Bernoulli rewards in (0, 1): after 3,000 rounds the estimate of the best arm is near its mean (seed fixed)."""
    arms = db.ArmSet(np.eye(3), kernel={"name": "linear"})
    coin = Tabular(arms, np.tile([0.2, 0.5, 0.8], (3000, 1)), noise=BernoulliNoise())
    policy = db.OPKB(arms, horizon=3000, reward_range=(0.0, 1.0), constants=db.Constants(sigma=1.0))
    db.simulate(policy, coin, seed=0)
    assert int(policy.estimate().argmax()) == 2
    assert abs(policy.estimate()[2] - 0.8) < 0.1


def test_box_and_unknown_horizon_end_to_end():
    from sklearn.gaussian_process.kernels import RBF

    arms = db.ArmSet.box([(0, 1), (-1, 1)], points=64, method="sobol", kernel=RBF(0.3))
    here = SwitchingKernel(arms, horizon=3500, switches=(2000,), seed=0)
    policy = db.AdaOPKB.published(arms, horizon=None, seed=0)
    trace = db.simulate(policy, here, seed=0)
    assert len(trace) == 3500
    assert policy.rounds == 3500
    assert all(change.round not in (1024, 3072) or change.interval[0] < change.round for change in policy.changes)


def test_parquet_round_trip(tmp_path):
    here = world()
    trace = db.simulate(db.AdaOPKB.published(here.arms, horizon=1500, seed=3), here, seed=5)
    trace.to_parquet(tmp_path / "run.parquet")
    again = db.Trace.from_parquet(tmp_path / "run.parquet")
    for name in ("arm", "reward", "regret", "probability", "law"):
        assert np.array_equal(getattr(trace, name), getattr(again, name))
    assert (again.changes, again.seed, again.seconds, again.policy, again.world) == (
        trace.changes,
        trace.seed,
        trace.seconds,
        trace.policy,
        trace.world,
    )
    assert [p.name for p in tmp_path.iterdir()] == ["run.parquet"]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="not a saved trace"):
        db.Trace.from_parquet(tmp_path / "broken.parquet")


def test_a_trace_shows_itself_in_one_line():
    here = world()
    still = db.simulate(db.Uniform(here.arms, horizon=1500, seed=0), here, seed=3, rounds=100)
    assert re.fullmatch(r"Trace\(rounds 0 to 99, regret [\d.]+, no changes found, [\d.e-]+ s, seed 3\)", repr(still))
    detecting = db.simulate(db.AdaOPKB.published(here.arms, horizon=1500, seed=3), here, seed=5)
    rounds = [change.round for change in detecting.changes]
    assert len(rounds) in (1, 2, 3)
    assert f"regret {detecting.regret.sum():.5g}, changes found at {rounds}" in repr(detecting)


def test_defaults_alone_play_a_table_of_means():
    """Whoever has points and means needs no more: the usual noise keeps to the range that policies expect."""
    arms = db.ArmSet(np.random.default_rng(0).random((20, 2)))
    here = Tabular(arms, np.tile(arms.points[:, 0], (400, 1)))
    learned, chance = (db.simulate(policy(arms), here).regret.sum() for policy in (db.SlidingWindowGPUCB, db.Uniform))
    assert learned < 0.5 * chance
    assert Tabular(arms, np.full((3, 20), 7.0)).noise == GaussianNoise(0.1)
