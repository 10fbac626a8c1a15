"""MASTER and BOB test and score intervals once all their rewards are there, if learned in the order asked."""

import collections

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.policies.rivals.contradiction import BlockEvidence
from driftbandits.policies.rivals.nested import Exp3

ARMS = db.ArmSet(np.linspace(0.0, 1.0, 5)[:, None], kernel=RBF(0.3))
DELAY = 40


def reward(number, arm, change=300):
    return 0.1 * arm - 0.6 if number < change else 0.7 - 0.1 * arm


def play_late(policy, rounds, delay=DELAY):
    waiting = collections.deque()
    for _ in range(rounds):
        waiting.append(policy.ask())
        if len(waiting) > delay:
            old = waiting.popleft()
            policy.tell(old, reward(old.id, old.arm))
    return policy


def watched(monkeypatch, arms_of):
    """Compare every interval that Test 1 looks at with the rewards of its rounds; gives how many were complete."""
    complete, plain = [], BlockEvidence.first_test

    def first_test(self, first_open):
        for item in self.ended:
            if item.stop_round <= first_open:
                rounds = range(item.first_round, item.stop_round)
                if item.told == len(rounds):
                    total = sum(reward(number, arms_of[number]) for number in rounds)
                    assert item.total == pytest.approx(total)
                    complete.append((item.first_round, item.stop_round))
        return plain(self, first_open)

    monkeypatch.setattr(BlockEvidence, "first_test", first_test)
    return complete


class Keeping(dict):
    """Arms by round, filled by the policy's own decisions."""


def master(order, arms_of):
    policy = db.Master(ARMS, horizon=700, seed=1, length=16, order=order)
    plain = policy._drawn

    def drawn(arms, counted):
        for place, arm in enumerate(arms):
            arms_of[policy.rounds - len(arms) + place] = arm
        plain(arms, counted)

    policy._drawn = drawn
    return policy


def test_master_tests_whole_intervals_though_rewards_are_late(monkeypatch):
    arms_of = Keeping()
    complete = watched(monkeypatch, arms_of)
    policy = play_late(master("asked", arms_of), 700)
    assert len(complete) > 3
    assert policy.late == 0 or policy.changes  # rewards are late only for what a restart has closed
    assert any(change.round > 300 for change in policy.changes)
    asked = len(complete)
    complete.clear()
    play_late(master("told", arms_of), 700)
    assert len(complete) < asked


def test_master_goes_on_from_its_state_while_tests_wait():
    policy = db.Master(ARMS, horizon=700, seed=1, length=16, order="asked")
    waiting, past = collections.deque(), 0
    for number in range(290):
        waiting.append(policy.ask())
        if len(waiting) > DELAY:
            old = waiting.popleft()
            policy.tell(old, reward(old.id, old.arm))
        if number % 30 == 20:
            past += len(policy._past) + len(policy._gone) + len(policy._evidence.ended)
            again = db.Master.restore(ARMS, policy.state_dict())
            assert np.array_equal(again.law(), policy.law())
            policy = again
    assert past > 0


def test_bob_scores_a_block_by_all_its_rewards(monkeypatch):
    scores, plain = [], Exp3.update

    def update(self, tried, reward, law=None):
        scores.append(reward)
        plain(self, tried, reward, law)

    monkeypatch.setattr(Exp3, "update", update)
    policy = db.BanditOverBandit(ARMS, base="SlidingWindowUCB", horizon=400, seed=0, block=25, order="asked")
    arms, waiting = [], collections.deque()
    for _ in range(400):
        waiting.append(policy.ask())
        arms.append(waiting[-1].arm)
        if len(waiting) > DELAY:
            old = waiting.popleft()
            policy.tell(old, reward(old.id, old.arm))
    rewards = np.array([reward(number, arm) for number, arm in enumerate(arms)]).reshape(-1, 25)
    wanted = np.clip(0.5 + rewards.sum(axis=1) / 50.0, 0.0, 1.0)
    assert len(scores) >= 13
    assert scores == pytest.approx(wanted[: len(scores)].tolist())
    assert len(db.BanditOverBandit.restore(ARMS, policy.state_dict())._past) == len(policy._past) > 0


def test_a_law_given_is_that_of_the_draw():
    """Exp3 with the present law named is Exp3 without."""
    one, two = Exp3(3, rounds=20), Exp3(3, rounds=20)
    for tried, reward_ in ((0, 0.5), (2, 1.0), (0, 0.25)):
        one.update(tried, reward_)
        two.update(tried, reward_, two.probabilities)
    assert np.array_equal(one.log_weights, two.log_weights)
