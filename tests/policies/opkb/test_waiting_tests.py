"""Replays are tested once all of their rewards are there, if rewards are learned in the order asked."""

import collections

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.detection.detector import TOLD_SHARE

ARMS = db.ArmSet(np.linspace(0.0, 1.0, 6)[:, None], kernel=RBF(0.3))
QUICK = db.Constants(sigma=1.0, failure_probability=1e-2, c0=1.0, c1=0.5, c2=0.3, c3=0.005, c4=0.5)
HORIZON, CHANGE, DELAY = 1_200, 500, 60


def reward(number, arm):
    return float(np.cos(3.0 * arm / 5.0 + (np.pi if number >= CHANGE else 0.0)) * 0.8)


def watch(policy, rows):
    """Compare everything handed to the detector with sums over its rounds by hand; gives what was tested whole."""
    policy.law()
    verdict, tested = policy._detector.verdict, []

    def checked(epoch, ended):
        for item in ended:
            inside = [rows[number] for number in range(item.first_round, item.stop_round)]
            sums, counts = np.zeros_like(item.sums.sums), np.zeros_like(item.sums.counts)
            for law, arm, value in inside:
                if value is not None and law - epoch.law_base < len(counts):
                    sums[law - epoch.law_base, arm] += value
                    counts[law - epoch.law_base] += 1
            assert np.allclose(item.sums.sums, sums, atol=1e-12)
            assert (item.sums.counts == counts).all()
            if item.sums.told >= TOLD_SHARE * len(inside):
                tested.append((item.first_round, item.stop_round, item.block))
        return verdict(epoch, ended)

    policy._detector.verdict = checked
    return tested


def play(policy, delay, *, lost=0.0):
    """Every reward comes `delay` rounds late; a share of them never, which is said then."""
    rng, waiting, rows = np.random.default_rng(0), collections.deque(), {}
    tested = watch(policy, rows)
    for _ in range(HORIZON):
        choice = policy.ask()
        rows[choice.id] = (choice.law, choice.arm, None)
        waiting.append(choice)
        if len(waiting) > delay:
            old = waiting.popleft()
            if rng.random() < lost:
                policy.expire(old)
            else:
                rows[old.id] = (old.law, old.arm, reward(old.id, old.arm))
                policy.tell(old, rows[old.id][2])
    return tested


def test_late_rewards_are_tested_whole_in_the_order_asked_and_given_up_in_the_order_told():
    asked = db.AdaOPKB(ARMS, horizon=HORIZON, constants=QUICK, seed=1, order="asked")
    tested = play(asked, DELAY)
    assert len(tested) > 5
    assert any(first < CHANGE < stop or first >= CHANGE for first, stop, _ in tested)
    told = db.AdaOPKB(ARMS, horizon=HORIZON, constants=QUICK, seed=1)
    short = [stop - first for first, stop, _ in play(told, DELAY)]
    assert all(length >= DELAY for length in short)
    assert len(short) < len(tested)


def test_a_change_is_found_though_every_reward_is_late():
    policy = db.AdaOPKB(ARMS, horizon=HORIZON, constants=QUICK, seed=1, order="asked")
    play(policy, DELAY)
    assert any(change.round > CHANGE for change in policy.changes)
    for change in policy.changes:
        assert change.interval[1] <= change.round - DELAY + 1  # it waited for the rewards of the interval


@pytest.mark.parametrize("missing", [0.25, "forget"])
def test_lost_rewards_are_not_waited_for(missing):
    policy = db.AdaOPKB(ARMS, horizon=HORIZON, constants=QUICK, seed=1, order="asked", missing=missing)
    waiting = collections.deque()
    for number in range(400):
        waiting.append(policy.ask())
        if len(waiting) > 30:
            old = waiting.popleft()
            if number % 13 == 0:
                policy.expire(old)
            else:
                policy.tell(old, reward(old.id, old.arm))
    while waiting:
        policy.expire(waiting.pop())
    policy.ask()
    assert policy._ended == []


@pytest.mark.parametrize("kind", [db.AdaOPKB, db.CalibratedOPKB])
def test_restored_while_tests_wait(kind):
    settings = {"constants": QUICK} if kind is db.AdaOPKB else {"mode": "theory"}
    policy = kind(ARMS, horizon=HORIZON, seed=2, order="asked", **settings)
    waiting, seen = collections.deque(), 0
    for number in range(500):
        waiting.append(policy.ask())
        if len(waiting) > 50:
            old = waiting.popleft()
            policy.tell(old, reward(old.id, old.arm))
        if number % 40 == 39:
            seen += len(policy._ended)
            again = kind.restore(ARMS, policy.state_dict())
            for one in (policy, again):
                one.law()
            assert again.law().tolist() == policy.law().tolist()
            policy = again
    assert seen > 0
