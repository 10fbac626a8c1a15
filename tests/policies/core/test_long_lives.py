"""What a policy keeps is bounded, copies of any kind go on alone, and a range far too wide is noticed."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError, RewardRangeWarning, StateError, UnknownDecisionError
from driftbandits.policies.core import changes
from driftbandits.policies.core.spread import REWARDS_LOOKED_AT, Spread
from driftbandits.testing.helpers import play, require_equal

ARMS = db.ArmSet(np.linspace(0.0, 1.0, 6)[:, None])
COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),  # noqa: S301
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(
    "policy",
    [
        db.WeightedGPUCB(ARMS, discount=0.9, seed=0),
        db.WeightedGPUCB(db.ArmSet(np.eye(40)), discount=0.9, seed=0),  # so many dimensions that it has an anchor
        db.NeuralUCB(ARMS, width=16, steps=3, every=5, seed=0),
        db.AutoBandit(ARMS, seed=0),
    ],
    ids=["WeightedGPUCB", "WeightedGPUCB anchored", "NeuralUCB", "AutoBandit"],
)
def test_copies_learn_as_the_original_does_and_apart_from_it(policy, copied):
    policy = copy.copy(policy)
    play(policy, 12)
    twin = copied(policy)
    for each in (policy, twin):
        for _ in range(60):
            choice = each.ask()
            each.tell(choice, 0.15 * (choice.arm % 6))
    assert twin._guard is not policy._guard
    assert np.ptp(twin.estimate()) > 0.2
    require_equal(twin.state_dict(), policy.state_dict())


class FindsOften(db.Uniform):
    """Records a change at every reward."""

    def _learn(self, feedback):
        for row, reward in feedback.rows():
            self._learn_one(row, reward)

    def _learn_one(self, row, reward):
        self._report_change(epoch=0, interval=(row.id, row.id + 1), statistic=1.0, threshold=0.5)


def test_the_latest_changes_are_kept_and_all_are_counted(monkeypatch):
    monkeypatch.setattr(changes, "CHANGES_KEPT", 50)
    policy = FindsOften(ARMS, seed=0)
    play(policy, 130)
    assert [change.interval[0] for change in policy.changes] == list(range(80, 130))
    assert policy.changes_found == 130
    again = FindsOften.restore(ARMS, policy.state_dict())
    assert (again.changes, again.changes_found) == (policy.changes, 130)
    play(again, 1)
    assert (len(again.changes), again.changes_found) == (50, 131)
    with pytest.raises(StateError, match="changes_found"):
        FindsOften.restore(ARMS, {**policy.state_dict(), "changes_found": 49})


def test_ten_thousand_changes_are_kept():
    assert changes.CHANGES_KEPT == 10_000


def test_a_trace_has_the_changes_of_its_own_rounds():
    world = db.environments.Tabular(ARMS, np.zeros((40, 6)), noise=db.environments.UniformNoise(0.1))
    policy = FindsOften(ARMS, seed=0, reward_range=world.reward_range)
    first = db.simulate(policy, world, rounds=25)
    second = db.simulate(policy, world)
    assert [change.interval[0] for change in first.changes] == list(range(25))
    assert [change.interval[0] for change in second.changes] == list(range(25, 40))


def rewards(width, count):
    return np.random.default_rng(0).uniform(0.2, 0.2 + width, count)


@pytest.mark.parametrize("together", [1, 7, 300])
def test_rewards_that_fill_less_than_a_hundredth_of_the_range_are_noticed_once(together):
    policy = db.Uniform(ARMS, reward_range=(0.0, 100.0), seed=0)
    told = rewards(0.9, 3 * REWARDS_LOOKED_AT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, len(told), together):
            batch = policy.ask(size=len(told[start : start + together]))
            policy.tell(batch, told[start : start + together])
            if start + together < REWARDS_LOOKED_AT:
                assert caught == []
    assert [item.category for item in caught] == [RewardRangeWarning]
    assert "reward_range=(0, 100)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_warning_points_at_who_told():
    policy = db.Uniform(ARMS, reward_range=(0.0, 100.0), seed=0)
    *first, last = rewards(0.9, REWARDS_LOOKED_AT).tolist()
    for reward in first:
        policy.tell(policy.ask(), reward)
    choice = policy.ask()
    with pytest.warns(RewardRangeWarning) as caught:
        policy.tell(choice, last)
    assert [item.filename for item in caught] == [__file__]


def test_the_warning_comes_after_the_reward_is_learned():
    policy = db.Uniform(ARMS, reward_range=(0.0, 100.0), seed=0)
    *first, last = rewards(0.9, REWARDS_LOOKED_AT).tolist()
    for reward in first:
        policy.tell(policy.ask(), reward)
    choice = policy.ask()
    with pytest.raises(RewardRangeWarning):
        policy.tell(choice, last)
    assert policy.pending == 0
    policy.tell(policy.ask(), 0.5)


@pytest.mark.parametrize(
    ("told", "range_"),
    [
        (rewards(0.9, 3 * REWARDS_LOOKED_AT), (0.0, 80.0)),  # a little more than a hundredth
        (np.zeros(3 * REWARDS_LOOKED_AT), (0.0, 1.0)),  # no success yet
        (np.r_[np.zeros(2 * REWARDS_LOOKED_AT), 1.0, np.zeros(REWARDS_LOOKED_AT)], (0.0, 1.0)),  # a rare one
    ],
    ids=["fills it", "all equal", "rare successes"],
)
def test_other_rewards_are_no_reason_to_warn(told, range_):
    policy = db.Uniform(ARMS, reward_range=range_, seed=0)
    policy.tell(policy.ask(size=len(told)), told)
    for reward in told.tolist():
        policy.tell(policy.ask(), reward)


def test_what_was_seen_of_the_range_is_part_of_the_state():
    policy = db.Uniform(ARMS, reward_range=(0.0, 100.0), seed=0)
    told = rewards(0.9, REWARDS_LOOKED_AT)
    policy.tell(policy.ask(size=REWARDS_LOOKED_AT - 1), told[:-1])
    again = db.Uniform.restore(ARMS, policy.state_dict())
    with pytest.warns(RewardRangeWarning):
        again.tell(again.ask(), float(told[-1]))
    assert Spread().export() == {"seen": 0, "least": None, "most": None}


def test_rewards_of_a_lost_future_are_refused():
    """An hour-old state is restored: decisions of the hour that is lost are refused, a bare id is believed."""
    policy = db.Uniform(ARMS, seed=0)
    play(policy, 20)
    snapshot = policy.state_dict()
    lost = [policy.ask() for _ in range(100)]
    restored = db.Uniform.restore(ARMS, {**snapshot, "draws": db.Uniform(ARMS, seed=1).state_dict()["draws"]})
    for choice in lost:
        with pytest.raises(UnknownDecisionError, match="ids given out so far run from 0 to 19"):
            restored.tell(choice, 0.5)
    found = [restored.ask() for _ in range(100)]
    wrong = 0
    for choice, own in zip(lost, found, strict=True):
        if choice.arm == own.arm:
            continue
        wrong += 1
        with pytest.raises(UnknownDecisionError, match="was the policy restored from an older state"):
            restored.tell(choice, 0.5)
    assert wrong > 50
    assert restored.pending == 100
    restored.tell(lost[0].id, 0.5)
    assert restored.pending == 99


@pytest.mark.parametrize("path", [None, 3, b"x", "", "a\0b"], ids=repr)
def test_what_is_no_path_is_refused(path):
    policy = db.Uniform(ARMS)
    with pytest.raises(InputError, match="save wants a path, got"):
        policy.save(path)
    with pytest.raises(InputError, match="load wants the arms and then a path, got"):
        db.Uniform.load(ARMS, path)


@pytest.mark.parametrize("limit", ["x", float("nan"), 0, -1, 2.5], ids=repr)
def test_a_limit_is_a_number_of_bytes(limit, tmp_path):
    policy = db.Uniform(ARMS)
    policy.save(tmp_path / "state")
    with pytest.raises(InputError, match="limit must be"):
        db.Uniform.load(ARMS, tmp_path / "state", limit=limit)
    assert db.Uniform.load(ARMS, tmp_path / "state", limit=None).rounds == 0


def test_a_seed_of_thousands_of_digits_is_refused():
    with pytest.raises(InputError, match="from 0 to 2"):
        db.Uniform(ARMS, seed=10**5000)
