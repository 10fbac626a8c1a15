"""Summaries and intervals: for every policy, and right where a policy says how sure it is."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.policies import POLICIES
from driftbandits.policies.auto.beliefs import moments
from driftbandits.testing.helpers import arms_on_a_line, play

WITHOUT = {"OPKB", "AdaOPKB", "OPNN", "AdaOPNN", "LinearExp3", "Exp3S"}
NEURAL = {name: {"width": 16, "steps": 2} for name in ("OPNN", "AdaOPNN", "NeuralUCB", "SlidingWindowNeuralUCB")}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_has_a_summary_and_says_whether_it_has_an_interval(name):
    policy = POLICIES[name](arms_on_a_line(), horizon=100, seed=0, reward_range=(-2.0, 2.0), **NEURAL.get(name, {}))
    play(policy, 40)
    summary = policy.summary()
    order = np.argsort(summary.arms)
    assert summary.estimate[order] == pytest.approx(policy.estimate())
    assert summary.probability[order] == pytest.approx(policy.law())
    assert summary.plays.sum() == 40
    assert (np.diff(summary.estimate) <= 0).all()
    if name in WITHOUT:
        assert summary.low is None
        with pytest.raises(db.errors.InputError, match=f"{name} does not know .* AutoBandit, CalibratedOPKB"):
            policy.interval()
    else:
        low, high = policy.interval()
        assert (low <= high).all()
        assert low.min() >= -2.0
        assert high.max() <= 2.0
        assert summary.low[order] == pytest.approx(low)


def test_theory_mode_has_no_interval():
    with pytest.raises(db.errors.InputError, match="practical mode"):
        db.CalibratedOPKB(arms_on_a_line(), mode="theory", seed=0).interval()


def test_a_summary_as_text_html_and_table():
    arms = db.ArmSet(np.linspace(0, 1, 30)[:, None], names=["<b>&", *(f"arm {k}" for k in range(29))])
    policy = db.Uniform(arms, seed=0)
    policy.tell(policy.ask(allowed=["<b>&"]), 0.9)
    summary = policy.summary()
    lines = str(summary).splitlines()
    assert lines[0].split() == ["arm", "estimate", "95", "%", "interval", "probability", "plays", "last", "played"]
    assert lines[1].split() == ["<b>&", "0.9", "[-0.967,", "1]", "0.033", "1", "0"]
    assert lines[2].endswith("never")
    assert lines[-1] == "... and 10 more, with lower estimates"
    assert repr(summary) == str(summary)
    html = summary._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert html.count("<tr>") == 21
    table = summary.to_pandas()
    assert len(table) == len(summary) == 30
    assert table["plays"].tolist()[0] == 1
    assert table["last_played"].tolist()[1] == -1


def share_inside(policy_of, *, worlds, noise):
    """Share of intervals that hold the mean, reward functions drawn from 0.3 times the kernel."""
    arm_set = db.ArmSet(np.linspace(0, 1, 8)[:, None], RBF(0.3))
    inside = []
    for world in range(worlds):
        rng = np.random.default_rng(world)
        means = 0.3 * arm_set.features @ rng.standard_normal(arm_set.rank)
        policy = policy_of(arm_set, world)
        batch = policy.ask(size=6, allowed=rng.permutation(8)[:3])
        policy.tell(batch, means[batch.arms] + noise * rng.standard_normal(6))
        low, high = policy.interval()
        inside.append((low <= means) & (means <= high))
    return float(np.mean(inside))


def test_gaussian_intervals_hold_the_mean_as_often_as_they_say():
    """95 % +- 5 %: four standard errors if the eight arms of a world were one; by chance 6e-5. Seeds are fixed."""
    settings = {"reward_range": (-4.0, 4.0), "noise": 0.1, "ridge": 0.1**2 / 0.3**2}
    found = share_inside(lambda arms, seed: db.GPUCB(arms, seed=seed, **settings), worlds=300, noise=0.1)
    assert found == pytest.approx(0.95, abs=0.05)


def test_linear_intervals_are_those_of_bayesian_regression():
    """Two roads: the closed form of a regression with prior variance R^2 / lambda."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((9, 3)) / 3
    policy = db.LinUCB(db.ArmSet(points), noise=0.2, ridge=0.5, seed=0)
    batch = policy.ask(size=20, allowed=[0, 3, 4, 7])
    rewards = 0.1 * rng.standard_normal(20)
    policy.tell(batch, rewards)
    played = points[batch.arms]
    covariance = np.linalg.inv(np.eye(3) / (0.04 / 0.5) + played.T @ played / 0.04)
    mean = points @ covariance @ played.T @ rewards / 0.04
    half = 1.959964 * np.sqrt(np.einsum("ij,jk,ik->i", points, covariance, points))
    low, high = policy.interval()
    assert low == pytest.approx(np.clip(mean - half, -1, 1), abs=1e-6)
    assert high == pytest.approx(np.clip(mean + half, -1, 1), abs=1e-6)


def test_drifting_intervals_hold_the_mean_of_a_world_that_stands():
    """Its prior is eleven times too wide here: at least 95 %, where the chance of fewer is next to nothing."""
    found = share_inside(
        lambda arms, seed: db.TimeVaryingGPUCB(arms, rate=0.001, ridge=0.01, reward_range=(-4.0, 4.0), seed=seed),
        worlds=60,
        noise=0.1,
    )
    assert found >= 0.95


def test_the_interval_of_rewards_in_a_range_holds_by_chernoff():
    """At least 95 % of 600 means of 0/1 rewards; the bound is far from tight, so that fewer has a chance below 1e-6."""
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.01, 0.2, 600)
    policy = db.Uniform(db.ArmSet(np.arange(600.0)[:, None], np.eye(600)), reward_range=(0, 1), seed=0)
    batch = policy.ask(size=30_000)
    policy.tell(batch, (rng.random(30_000) < rates[batch.arms]).astype(float))
    low, high = policy.interval()
    assert np.mean((low <= rates) & (rates <= high)) >= 0.95
    assert np.mean(high - low) < 0.4


@pytest.mark.parametrize("size", [8, 40])
def test_autobandits_interval_is_that_of_its_hypotheses_read_one_by_one(size):
    """Two roads: variances without covariances, and the diagonal of whole covariances."""
    rank = 100 if size == 8 else 6
    policy = db.AutoBandit(db.ArmSet(np.linspace(0, 1, size)[:, None]), rank=rank, seed=0)
    play(policy, 70)
    weights = policy._mixture.weights()
    mean, deviation = moments(policy._beliefs, weights)
    rows = np.flatnonzero(weights >= 1e-3)
    share = weights[rows] / weights[rows].sum()
    readings = [policy._beliefs.reading(row) for row in rows]
    slow = sum(w * m for w, (m, _) in zip(share, readings, strict=True))
    second = sum(w * (v + m**2) for w, (m, v) in zip(share, readings, strict=True))
    assert mean == pytest.approx(slow)
    assert deviation == pytest.approx(np.sqrt(second - slow**2), rel=1e-6)


def test_calibrated_intervals_are_those_of_the_process_it_believes_in():
    """Two roads: the joint covariance of all arms, conditioned on every reward by itself."""
    policy = db.CalibratedOPKB(arms_on_a_line(), kernel="given", seed=0)
    arms, rewards = play(policy, 30)[0], None
    del rewards
    surrogate = policy._surrogate
    from driftbandits.policies.opkb.surrogate import LEVEL_VARIANCE

    prior = surrogate.signal * surrogate.present @ surrogate.present.T + LEVEL_VARIANCE
    seen = prior[:, arms]
    noisy = prior[np.ix_(arms, arms)] + surrogate.noise_variance * np.eye(30)
    covariance = prior - seen @ np.linalg.solve(noisy, seen.T)
    low, high = policy.interval()
    free = (low > -1) & (high < 1)
    assert free.any()
    assert (high - low)[free] == pytest.approx(2 * 1.959964 * np.sqrt(covariance.diagonal())[free], rel=1e-5)
