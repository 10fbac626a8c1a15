"""What a first reader tried: copies, rare successes, silence, cut features, damaged states."""

import copy
import pickle

import numpy as np
import pytest

from driftbandits import ArmSet, AutoBandit
from driftbandits.errors import InputError, StateError

ARMS = ArmSet(np.linspace(0, 1, 8)[:, None])
MEANS = np.cos(3 * np.linspace(0, 1, 8)) / 2


def play(policy, rounds, *, rng, means=MEANS):
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, float(np.clip(means[choice.arm] + 0.1 * rng.standard_normal(), -1, 1)))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])  # noqa: S301
def test_a_copy_goes_on_as_the_policy_does(duplicate):
    policy = AutoBandit(ARMS, seed=0)
    play(policy, 60, rng=np.random.default_rng(0))
    other = duplicate(policy)
    play(policy, 300, rng=np.random.default_rng(1))
    play(other, 300, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(policy.law(), other.law())


def test_rare_successes_are_learned():
    """Chances of 1, 3 and 8 in a hundred: a success is many deviations off, and yet no outlier."""
    chances = np.array([0.01, 0.03, 0.08])
    policy = AutoBandit(ArmSet([[0.0], [1.0], [2.0]]), seed=0, reward_range=(0.0, 1.0))
    rng = np.random.default_rng(5)
    for _ in range(3000):
        choice = policy.ask()
        policy.tell(choice.id, float(rng.random() < chances[choice.arm]))
    assert policy.estimate()[2] == pytest.approx(0.08, abs=0.03)
    assert policy.explain().noise == pytest.approx(np.sqrt(0.08 * 0.92), rel=0.25)
    assert policy.law().argmax() == 2


def test_silence_lets_samples_forget_as_beliefs_do():
    policy = AutoBandit(ARMS, seed=0)
    play(policy, 40, rng=np.random.default_rng(0))
    beliefs = policy._beliefs
    policy._pass_time(policy._clock + 50_000)
    sampled = policy._samples.rows
    drifting = [slot for slot, row in enumerate(sampled) if beliefs.rate[row] > 0]
    for slot in drifting:
        np.testing.assert_allclose(policy._samples.values[slot, 0], beliefs.mean[sampled[slot], :-1], atol=1e-3)


def test_no_change_is_found_without_a_reward():
    policy = AutoBandit(ArmSet(np.zeros((3, 1)), np.eye(3)), seed=2, reward_range=(0.0, 1.0))
    rng = np.random.default_rng(0)
    for _ in range(6):
        for _ in range(33):
            choice = policy.ask()
            policy.tell(choice.id, float(rng.random() < 0.5))
        policy.forget(policy.ask(size=3000).ids)
    assert all(change.interval[0] < change.interval[1] for change in policy.changes)


def test_a_late_reward_counts_as_seen_in_its_own_round():
    policy = AutoBandit(ArmSet(np.eye(3), np.eye(3)), seed=0, kernel="given")
    late = policy.ask()
    play(policy, 200, rng=np.random.default_rng(0), means=np.array([0.5, 0.0, -0.5]))
    before = policy._probing.seen.copy()
    policy.tell(late.id, 0.1)
    np.testing.assert_array_equal(policy._probing.seen, np.maximum(before, np.where(np.arange(3) == late.arm, 1, 0)))


def test_features_that_hold_too_little_of_the_kernel_are_refused():
    policy = AutoBandit(ArmSet.from_features(np.eye(300)), seed=0)
    with pytest.raises(InputError, match="hold only 33 % of its variance over 300 arms; give rank=300"):
        policy.ask()
    assert len(AutoBandit(ArmSet.from_features(np.eye(300)), seed=0, rank=300).law()) == 300


def test_the_weighty_features_are_kept_wherever_they_stand():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((300, 120)) * np.where(np.arange(120) < 110, 0.01, 1.0)
    policy = AutoBandit(ArmSet.from_features(features), seed=0, rank=20, kernel="given")
    policy.ask()
    rows = policy._beliefs.priors.rows.of(0)
    exact = policy.arms.features @ policy.arms.features.T
    signal = rows[:, :-1] @ rows[:, :-1].T
    np.testing.assert_allclose(signal / signal[0, 0], exact / exact[0, 0], atol=0.02)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("beliefs", "told", 0.0),
        ("beliefs", "fade", "negative"),
        ("beliefs", "breadth", "negative"),
        ("beliefs", "level", "negative"),
        ("mixture", "due", -1.0),
        ("vigilance", "hidden", -1),
        ("vigilance", "seen", "future"),
        ("samples", "rows", "twice"),
    ],
)
def test_a_damaged_state_is_refused(part, name, value):
    policy = AutoBandit(ARMS, seed=0)
    play(policy, 40, rng=np.random.default_rng(0))
    state = policy.state_dict()
    damaged = state["engine"][part]
    if value == "negative":
        damaged[name] = -1.0 - damaged[name]
    elif value == "future":
        damaged[name] = damaged[name] + 1e6
    elif value == "twice":
        damaged[name] = np.zeros_like(damaged[name]) if len(damaged[name]) > 1 else damaged[name] - 1
    else:
        damaged[name] = value
    with pytest.raises(StateError):
        AutoBandit.restore(ARMS, state)


def test_a_kernel_of_any_kind_in_the_wrong_place_is_told_where_it_belongs():
    for kernel in ("rbf", np.eye(8), None):
        with pytest.raises(InputError, match="a kernel of your own goes into the ArmSet"):
            AutoBandit(ARMS, kernel=kernel)
