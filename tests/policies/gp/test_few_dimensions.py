"""D-LinUCB's carried matrices against the regression written out from every reward told, in long runs."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.policies.gp.weighted import REWARDS_BETWEEN_SUMS, DiscountedLinUCB, FewDimensions

RNG = np.random.default_rng(11)
RIDGE = 0.05
POINTS = {
    "one dimension": np.linspace(-1.0, 1.0, 7)[:, None],
    "ten dimensions": RNG.standard_normal((30, 10)) / 3.0,
    "twins in a plane of four dimensions": np.repeat(RNG.standard_normal((9, 2)) @ RNG.standard_normal((2, 4)), 2, 0),
    "sizes from 0.01 to 100": np.logspace(-2, 2, 12)[:, None] * RNG.standard_normal((12, 3)),
}


def written_out(points, log, *, now, eta):
    """Mean and sd in round `now` from all (round, arm, reward) told: Russac et al. 2019, with nothing carried."""
    first = RIDGE * np.eye(points.shape[1])
    second, right = first.copy(), np.zeros(points.shape[1])
    for told, arm, value in log:
        weight, x = eta ** (now - told), points[arm]
        first += weight * np.outer(x, x)
        second += weight**2 * np.outer(x, x)
        right += weight * value * x
    solved = np.linalg.solve(first, points.T)
    return right @ solved, np.sqrt(RIDGE * np.einsum("ij,ik,kj->j", solved, second, solved))


def reward(arm, now):
    return float(0.6 * np.sin(0.7 * arm + now / 40))


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS.keys())
@pytest.mark.parametrize("eta", [1.0, 0.99, 0.5])
def test_a_run_longer_than_two_sums(points, eta):
    policy = DiscountedLinUCB(db.ArmSet(points), discount=eta, ridge=RIDGE, seed=4)
    log, held = [], []
    while len(log) < 2 * REWARDS_BETWEEN_SUMS + 20:
        choice = policy.ask()
        if choice.id % 9 == 4:
            held.append(choice)
            continue
        log.append((choice.id, choice.arm, reward(choice.arm, choice.id)))
        policy.tell(choice.id, log[-1][2])
        if choice.id % 31 == 30:  # an old one, and rounds that pass without a reward
            late = held.pop(0)
            log.append((late.id, late.arm, -0.4))
            policy.tell(late.id, -0.4)
            policy.forget(policy.ask(size=5).ids)
        if choice.id % 5 == 0 or len(log) % REWARDS_BETWEEN_SUMS < 3:
            mean, sd = written_out(points, log, now=policy._clock, eta=eta)
            beliefs = policy._believe()
            np.testing.assert_allclose(beliefs.mean, mean, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(beliefs.sd, sd, rtol=1e-8, atol=1e-9)
    assert isinstance(policy._few, FewDimensions)


def test_weights_are_those_of_every_reward_told():
    eta, points = 0.97, POINTS["ten dimensions"]
    policy = DiscountedLinUCB(db.ArmSet(points), discount=eta, seed=2)
    naive = np.zeros((3, len(points)))
    for now in range(REWARDS_BETWEEN_SUMS + 50):
        choice = policy.ask()
        naive *= [[eta], [eta**2], [eta]]
        naive[:, choice.arm] += (1.0, 1.0, reward(choice.arm, now))
        policy.tell(choice.id, reward(choice.arm, now))
        if now % 10 == 0:
            np.testing.assert_allclose(policy._weights, naive, rtol=1e-12, atol=1e-300)


def test_looking_changes_nothing_and_going_on_from_a_state_is_going_on_to_the_bit():
    arms = db.ArmSet(POINTS["ten dimensions"])
    policy, looked_at = (DiscountedLinUCB(arms, discount=0.98, seed=1) for _ in range(2))
    for now in range(REWARDS_BETWEEN_SUMS + 90):
        for one in (policy, looked_at):
            choice = one.ask()
            one.tell(choice.id, reward(choice.arm, now))
        assert looked_at.information_gain >= 0.0
        looked_at.estimate()
    assert np.array_equal(policy._index(), looked_at._index())
    again = DiscountedLinUCB.restore(arms, policy.state_dict())
    for now in range(REWARDS_BETWEEN_SUMS + 90):
        for one in (policy, again):
            choice = one.ask()
            one.tell(choice.id, reward(choice.arm, now))
        assert np.array_equal(policy._index(), again._index())


@pytest.mark.parametrize("eta", [1e-9, 0.5])
def test_what_has_faded_away_altogether(eta):
    points = POINTS["ten dimensions"]
    policy = DiscountedLinUCB(db.ArmSet(points), discount=eta, ridge=RIDGE)
    for arm in (3, 4):
        policy.tell(policy.ask(allowed=[arm]).id, 0.5)
        policy._believe()
    policy.forget(policy.ask(size=3000).ids)
    policy.tell(policy.ask(allowed=[5]).id, 0.25)
    mean, sd = written_out(points, [(policy._clock, 5, 0.25)], now=policy._clock, eta=eta)
    np.testing.assert_allclose(policy._believe().mean, mean, atol=1e-12)
    np.testing.assert_allclose(policy._believe().sd, sd, atol=1e-12)
