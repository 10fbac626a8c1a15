"""WGPUCB's anchor and the arms since against the regression written out, in every round of runs that move it."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.gp.weighted import _FEW_DIMENSIONS, DiscountedLinUCB, WeightedGPUCB

RNG = np.random.default_rng(3)
RIDGE = 0.05
ROUGH = db.ArmSet(RNG.standard_normal((45, 8)), RBF(2.0))  # full rank, arms that tell of each other
TWINS = db.ArmSet(np.repeat(RNG.standard_normal((40, 8)), 2, axis=0), RBF(2.0))  # rank half the arms
MANY = {"rough": ROUGH, "twins": TWINS}


def written_out(features, log, *, now, eta):
    """Mean, sd and gain in round `now` from all (round, arm, reward) told, each with its own weight."""
    rounds, arms, rewards = (np.array(column) for column in zip(*log, strict=True))
    weights = eta ** (now - rounds).astype(float)
    played, identity = features[arms], np.eye(features.shape[1])
    first = played.T @ (played * weights[:, None]) + RIDGE * identity
    second = played.T @ (played * np.square(weights)[:, None]) + RIDGE * identity
    mean = features @ np.linalg.solve(first, played.T @ (weights * rewards))
    variance = RIDGE * np.einsum("ij,ji->i", features, np.linalg.solve(first, features.T))
    return mean, np.sqrt(variance), 0.5 * np.linalg.slogdet(second / RIDGE)[1]


def check(policy, log, eta):
    mean, sd, gain = written_out(policy.arms.features, log, now=policy._clock, eta=eta)
    beliefs = policy._believe()
    np.testing.assert_allclose(beliefs.mean, mean, atol=1e-9)
    np.testing.assert_allclose(beliefs.sd, sd, atol=1e-9)
    assert policy.information_gain == pytest.approx(gain, rel=1e-9, abs=1e-9)
    assert beliefs.gain == (pytest.approx(gain, rel=1e-9, abs=1e-9) if policy.beta == "ridge" else 0.0)


def reward(arm, now):
    return float(0.6 * np.sin(0.7 * arm + now / 40))


@pytest.mark.parametrize("arms", MANY.values(), ids=MANY.keys())
@pytest.mark.parametrize("eta", [1.0, 0.99, 0.7])
def test_every_round_of_a_run(arms, eta):
    """Much exploring at first, so the anchor moves; then one arm for longer than the past is computed ahead."""
    assert arms.rank > _FEW_DIMENSIONS
    policy = WeightedGPUCB(arms, horizon=200, discount=eta, ridge=RIDGE, beta="ridge")
    log, anchors = [], {}  # those that are kept cannot give another their id
    for now in range(200):
        choice = policy.ask(allowed=None if now < 120 else [7])
        log.append((now, choice.arm, reward(choice.arm, now)))
        policy.tell(choice.id, log[-1][2])
        check(policy, log, eta)
        anchors[id(policy._anchor)] = policy._anchor
    assert len(anchors) > 1


def test_late_rewards_and_rounds_without_any():
    eta = 0.95
    policy = WeightedGPUCB(ROUGH, horizon=1000, discount=eta, ridge=RIDGE)
    log, held = [], []
    for step in range(60):
        choice = policy.ask()
        if step % 3 != 1:
            log.append((choice.id, choice.arm, reward(choice.arm, step)))
            policy.tell(choice.id, log[-1][2])
        else:
            held.append(choice)
        if step % 7 == 6:  # old ones, newest first
            late = held.pop()
            log.append((late.id, late.arm, -0.4))
            policy.tell(late.id, -0.4)
        if step % 20 == 19:  # rounds that pass without a reward
            policy.forget(policy.ask(size=50).ids)
        policy.law()
        policy._move()
        check(policy, log, eta)


def test_what_has_faded_away_altogether():
    policy = WeightedGPUCB(ROUGH, discount=0.5, ridge=RIDGE)
    for arm in (3, 4):
        policy.tell(policy.ask(allowed=[arm]).id, 0.5)
        policy._believe()
    policy.forget(policy.ask(size=3000).ids)
    policy.tell(policy.ask(allowed=[5]).id, 0.25)
    check(policy, [(policy.rounds - 1, 5, 0.25)], 0.5)


def test_going_on_from_a_state_is_going_on_to_the_bit():
    policy = WeightedGPUCB(ROUGH, horizon=300, discount=0.98)
    for now in range(100):
        choice = policy.ask()
        policy.tell(choice.id, reward(choice.arm, now))
    again = WeightedGPUCB.restore(ROUGH, policy.state_dict())
    for now in range(100, 160):
        for one in (policy, again):
            choice = one.ask()
            one.tell(choice.id, reward(choice.arm, now))
        assert np.array_equal(policy._index(), again._index())


def test_anchor_and_factors_choose_alike(monkeypatch):
    chosen = []
    for few in (_FEW_DIMENSIONS, 1000):
        monkeypatch.setattr("driftbandits.policies.gp.weighted._FEW_DIMENSIONS", few)
        policy = WeightedGPUCB(ROUGH, horizon=400, discount=0.98, seed=1)
        assert not policy.estimate().any()
        assert policy._anchored == (few == _FEW_DIMENSIONS)
        for now in range(400):
            choice = policy.ask()
            chosen.append(choice.arm)
            policy.tell(choice.id, reward(choice.arm, now))
    assert chosen[:400] == chosen[400:]


def test_d_linucb_follows_the_recursions_of_its_paper():
    """Russac et al. 2019, algorithm 1: the newest reward has weight 1 in V, V2 and b, also where one comes late."""
    eta, identity = 0.9, np.eye(3)
    points = RNG.standard_normal((12, 3)) / 4.0
    policy = DiscountedLinUCB(db.ArmSet(points), horizon=60, discount=eta, ridge=RIDGE)
    V, V2, b = RIDGE * identity, RIDGE * identity, np.zeros(3)
    held = None
    policy.law()  # it begins
    for now in range(60):
        beliefs = policy._believe()
        theta, inverse = np.linalg.solve(V, b), np.linalg.inv(V)
        np.testing.assert_allclose(beliefs.mean, points @ theta, atol=1e-10)
        squares = RIDGE * np.einsum("ij,ij->i", points @ inverse @ V2 @ inverse, points)
        np.testing.assert_allclose(beliefs.sd, np.sqrt(squares), atol=1e-10)
        assert policy.information_gain == pytest.approx(0.5 * np.linalg.slogdet(V2 / RIDGE)[1])
        choice = policy.ask()
        x, y = points[choice.arm], reward(choice.arm, now)
        V, V2, b = eta * V + (1 - eta) * RIDGE * identity, eta**2 * V2 + (1 - eta**2) * RIDGE * identity, eta * b
        if now == 20:
            held = choice.id, x, y
            continue
        V, V2, b = V + np.outer(x, x), V2 + np.outer(x, x), b + y * x
        policy.tell(choice.id, y)
        if now == 30:
            ident, x, y = held
            weight = eta ** (now - ident)
            V, V2, b = V + weight * np.outer(x, x), V2 + weight**2 * np.outer(x, x), b + weight * y * x
            policy.tell(ident, y)


def test_the_newest_reward_has_faded_once_in_wgpucb_and_not_in_d_linucb():
    for kind, newest in ((WeightedGPUCB, 0.5), (DiscountedLinUCB, 1.0)):
        policy = kind(db.ArmSet(np.eye(3)), horizon=10, discount=0.5)
        for arm in (0, 1):
            policy.tell(policy.ask(allowed=[arm]).id, 0.5)
        assert policy.state_dict()["engine"]["weights"][0].tolist() == [0.5 * newest, newest, 0.0]


@pytest.mark.parametrize("width", ["one_matrix", "two_matrix"])
def test_more_dimensions_than_arms(width):
    """The points of 40 arms in 60 dimensions, and the same points turned into 40."""
    points = RNG.standard_normal((40, 60)) / 8.0
    chosen = []
    for some in (points, np.linalg.qr(points.T)[1].T):
        policy = DiscountedLinUCB(db.ArmSet(some), horizon=100, discount=0.95, width=width)
        for now in range(100):
            choice = policy.ask()
            policy.tell(choice.id, reward(choice.arm, now))
        assert policy._features.shape == (40, 40)
        chosen.append(policy.estimate())
    np.testing.assert_allclose(*chosen, atol=1e-9)


def test_widths_of_the_same_gain_are_those_of_gpucb():
    """Before the first round too: MASTER asks a base for them without playing it."""
    settings = {"ridge": RIDGE, "beta": "ridge"}
    assert WeightedGPUCB(ROUGH, **settings)._factor(2.0) == db.GPUCB(ROUGH, **settings)._factor(2.0)


def test_the_width_of_the_authors_takes_the_largest_gain_of_the_horizon():
    """The data do not change it, a longer horizon does; without one it doubles with the rounds."""
    policy = WeightedGPUCB(ROUGH, horizon=500, discount=0.99, ridge=RIDGE, beta="authors", bound=0.8, noise=0.1)
    factors = set()
    for now in range(40):
        choice = policy.ask()
        policy.tell(choice.id, reward(choice.arm, now))
        factors.add(policy._factor(policy.information_gain))
    gain = 0.5 * db.information_gain(ROUGH, horizon=500, sigma=RIDGE)
    (factor,) = factors
    assert factor == pytest.approx(0.8 + 0.1 * np.sqrt(2 * (gain + np.log(100))))
    restored = WeightedGPUCB.restore(ROUGH, policy.state_dict())
    assert [restored.ask().arm for _ in range(5)] == [policy.ask().arm for _ in range(5)]
    endless = WeightedGPUCB(ROUGH, discount=0.99, ridge=RIDGE, beta="authors")
    assert endless.needs_horizon
    endless.ask()
    with pytest.raises(InputError, match="beta must be"):
        DiscountedLinUCB(ROUGH, beta="authors")
