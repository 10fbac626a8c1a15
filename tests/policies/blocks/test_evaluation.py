"""The log of another policy as a first evaluation: a ridge regression by a second way, and a policy that goes on."""

import numpy as np
import pytest

from driftbandits import OPKB, AdaOPKB, ArmSet, CalibratedOPKB
from driftbandits.testing.helpers import require_equal

ARMS = ArmSet(np.linspace(0.0, 1.0, 9)[:, None])


def a_log(rows, seed=0):
    draw = np.random.default_rng(seed)
    arms = draw.integers(0, 9, rows)
    rewards = np.round(0.5 * np.cos(arms - 3.0) + 0.1 * draw.standard_normal(rows), 3).clip(-1, 1)
    return {"arm": arms, "reward": rewards, "probability": np.full(rows, 1 / 9)}


def play(policy, rounds):
    """In the world of the log."""
    played = []
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice, float(0.5 * np.cos(choice.arm - 3.0)))
        played.append(choice)
    return played


@pytest.mark.parametrize("make", [OPKB, AdaOPKB, CalibratedOPKB])
def test_it_begins_with_what_the_log_says_and_goes_on(make):
    policy = make(ARMS, horizon=2000, seed=1)
    policy.learn(a_log(400))
    assert policy.rounds == 400
    assert policy._epoch.number == 0
    assert int(policy.estimate().argmax()) == 3
    again = make.restore(ARMS, policy.state_dict())
    assert play(again, 60) == play(policy, 60)
    require_equal(again.state_dict(), policy.state_dict())
    assert policy.changes_found == 0


def test_the_estimate_is_the_ridge_regression_on_the_log():
    policy = OPKB(ARMS, horizon=2000, seed=1)
    log = a_log(300)
    policy.learn(log)
    features, regulariser = ARMS.features, policy._epoch.regulariser
    played = features[log["arm"]]
    gram = played.T @ played / 300 + regulariser * np.eye(features.shape[1])
    expected = features @ np.linalg.solve(gram, played.T @ log["reward"] / 300)
    np.testing.assert_allclose(policy.estimate(), expected, atol=1e-9)


def test_where_the_horizon_doubles_only_what_came_since_the_last_start_counts():
    policy = OPKB(ARMS, horizon=None, seed=1)
    log = a_log(1500)
    policy.learn(log)
    assert (policy.rounds, policy._phase_start) == (1500, 1024)
    assert policy._epoch.blocks[0].told == 476
    play(OPKB.restore(ARMS, policy.state_dict()), 20)


def test_a_log_without_rewards_is_a_beginning():
    policy = OPKB(ARMS, horizon=2000, seed=1)
    policy.learn({**a_log(50), "reward": np.full(50, np.nan)})
    assert policy.rounds == 50
    play(policy, 20)
