"""M-UCB and CUSUM-UCB against runs computed from the whole history, round by round."""

import math

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError

ARMS = db.ArmSet(np.arange(3.0)[:, None])
ROUNDS = 900


def mean_of(now, arm):
    return (0.7, 0.4, 0.2)[arm] if now < 400 else (0.1, 0.4, 0.9)[arm]


def greedy(index):
    best = np.isclose(index, np.max(index), rtol=1e-12, atol=1e-12) if np.isfinite(index).all() else np.isinf(index)
    return best / best.sum()


def m_ucb(history, *, window, threshold, exploration):
    """Laws of M-UCB by its pseudocode, and the rounds of its alarms, for these decisions and rewards."""
    start, alarms, rewards, laws = 0, [], [[], [], []], []
    for now, (arm, reward) in enumerate(history):
        place = (now - start) % math.floor(3 / exploration)
        if place < 3:
            laws.append(np.eye(3)[place])
        else:
            width = 2 * math.log(max(now - start, 1))
            laws.append(greedy([np.mean(s) + math.sqrt(width / len(s)) if s else np.inf for s in rewards]))
        rewards[arm].append(reward)
        last = rewards[arm][-window:]
        if len(last) == window and abs(sum(last[: window // 2]) - sum(last[window // 2 :])) > threshold:
            start, rewards = now + 1, [[], [], []]
            alarms.append(now)
    return laws, alarms


def cusum_ucb(history, *, warmup, drift, threshold, exploration):
    """The same of CUSUM-UCB."""
    alarms, rewards, laws = [], [[], [], []], []
    for now, (arm, reward) in enumerate(history):
        log = math.log(max(sum(map(len, rewards)), 1))
        index = [np.mean(s) + math.sqrt(log / len(s)) if s else np.inf for s in rewards]
        laws.append((1 - exploration) * greedy(index) + exploration / 3)
        rewards[arm].append(reward)
        first, later = np.mean(rewards[arm][:warmup]), rewards[arm][warmup:]
        up = down = 0.0
        for value in later:
            up, down = max(up + value - first - drift, 0.0), max(down + first - value - drift, 0.0)
        if max(up, down) > threshold:
            rewards[arm] = []
            alarms.append(now)
    return laws, alarms


CASES = {
    "M-UCB": (db.MUCB, m_ucb, {"window": 40, "threshold": 9.0, "exploration": 0.1}),
    "CUSUM-UCB": (db.CUSUMUCB, cusum_ucb, {"warmup": 30, "drift": 0.1, "threshold": 6.0, "exploration": 0.1}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_is_that_of_the_pseudocode_and_the_change_is_found(case):
    kind, twin, settings = CASES[case]
    policy, rng = kind(ARMS, reward_range=(0, 1), horizon=ROUNDS, seed=0, **settings), np.random.default_rng(3)
    history, laws = [], []
    for now in range(ROUNDS):
        laws.append(policy.law())
        choice = policy.ask()
        reward = float(rng.random() < mean_of(now, choice.arm))
        policy.tell(choice, reward)
        history.append((choice.arm, reward))
    expected, alarms = twin(history, **settings)
    assert np.abs(np.array(laws) - np.array(expected)).max() < 1e-12
    assert [change.interval[1] - 1 for change in policy.changes] == alarms
    assert any(400 <= alarm < 500 for alarm in alarms)
    assert all(alarm >= 400 for alarm in alarms)
    assert policy.law().argmax() == 2


def test_the_sizes_of_the_theory():
    policy = db.MUCB(ARMS, window=50, exploration=None, switches=2, horizon=10_000_000, seed=0)
    b = math.sqrt(25 * math.log(2 * 3 * 1e14))
    share = math.sqrt(2 * 3 * (2 * b + 3 * math.sqrt(50)) / 2e7)
    arms = policy.ask(size=2 * math.floor(3 / share)).arms
    assert arms[:3].tolist() == arms[math.floor(3 / share) :][:3].tolist() == [0, 1, 2]


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="window must be even, got 31: its halves are compared; take 32"):
        db.MUCB(ARMS, window=31)
