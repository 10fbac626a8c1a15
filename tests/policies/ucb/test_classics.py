"""The textbook's policies against indices computed from the whole history."""

import math

import numpy as np
import pytest
import scipy.optimize

import driftbandits as db

MEANS = (0.2, 0.35, 0.6, 0.3)
ARMS = db.ArmSet(np.arange(4.0)[:, None])


def divergence(p, q):
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


def ucb1(rewards, told):
    return np.mean(rewards) + math.sqrt(2 * math.log(told) / len(rewards))


def kl_ucb(rewards, told):
    mean = float(np.clip(np.mean(rewards), 1e-12, 1 - 1e-12))
    excess = lambda q: len(rewards) * divergence(mean, q) - math.log(told)  # noqa: E731
    most = 1.0 - 1e-13
    return (
        scipy.optimize.brentq(excess, mean, most) if told > 1 and excess(most) > 0.0 else max(mean, most * (told > 1))
    )


@pytest.mark.parametrize(("kind", "index"), [(db.UCB1, ucb1), (db.KLUCB, kl_ucb)], ids=["UCB1", "kl-UCB"])
def test_the_arm_with_the_largest_index_is_played(kind, index):
    policy, rng = kind(ARMS, reward_range=(0, 1), seed=0), np.random.default_rng(1)
    rewards = [[] for _ in MEANS]
    for told in range(300):
        law = policy.law()
        if all(rewards):
            found = [index(some, told) for some in rewards]
            assert law[int(np.argmax(found))] > 0.0
            assert set(np.flatnonzero(law)) <= set(np.flatnonzero(np.isclose(found, max(found), atol=1e-9)))
        choice = policy.ask()
        reward = float(rng.random() < MEANS[choice.arm])
        policy.tell(choice, reward)
        rewards[choice.arm].append(reward)
    assert max(map(len, rewards)) == len(rewards[2])


def test_epsilon_greedy_explores_with_its_share():
    policy = db.EpsilonGreedy(ARMS, epsilon=0.2, seed=0)
    for arm in range(4):
        policy.tell(policy.ask(allowed=[arm]), MEANS[arm])
    assert policy.law() == pytest.approx([0.05, 0.05, 0.85, 0.05])
    assert policy.law(allowed=[0, 1]) == pytest.approx([0.1, 0.9, 0.0, 0.0])


def test_epsilon_greedy_explores_less_and_less():
    policy = db.EpsilonGreedy(ARMS, epsilon=1.0, decay=2.0, seed=0)
    shares = []
    for now in range(40):
        if now >= 8:
            shares.append(4.0 * policy.law().min() * (now + 1))
        choice = policy.ask()
        policy.tell(choice, MEANS[choice.arm])
    assert shares == pytest.approx([8.0] * 32)  # c N
