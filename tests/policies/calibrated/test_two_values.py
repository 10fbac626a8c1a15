"""Rewards of two values: when they are taken for that, what is believed then, and what it earns."""

import numpy as np
import pytest

from driftbandits import ArmSet, CalibratedOPKB
from driftbandits import state as states
from driftbandits.errors import StateError
from driftbandits.policies.calibrated.two_values import LOW, Values
from tests.policies.calibrated.worlds import belief_of


def seen(rows, size=3):
    values = Values(size)
    for arm, reward in rows:
        values.see(arm, reward)
    return values


@pytest.mark.parametrize(
    ("rows", "two"),
    [
        ([], False),
        ([(0, 1.0)] * 5, False),  # both kinds must be seen
        ([(0, LOW)] * 5, False),
        ([(0, LOW), (1, 1.0)] * 5, False),  # of one arm
        ([(0, LOW), (0, 1.0)], True),
        ([(0, LOW), (0, 0.5), (1, 0.25), (1, 0.25)], True),  # prices: a value for every arm
        ([(0, LOW), (0, 0.5), (0, 0.25), (1, LOW)], False),
    ],
)
def test_two_values_are_the_low_end_and_one_other_for_every_arm(rows, two):
    assert seen(rows).two == two


def test_a_third_value_ends_it_for_good():
    values = seen([(0, LOW), (0, 1.0), (0, 0.0)])
    for _ in range(100):
        values.see(0, LOW)
    assert not values.two


def test_deviations_are_as_large_as_the_rate():
    values = seen([(0, LOW)] * 97 + [(0, 1.0)] * 3)
    assert values.rate == 0.03
    assert values.deviation == pytest.approx(0.06)  # 3 % of a range of 2
    assert seen([(0, LOW)] * 3 + [(0, 1.0)] * 97).deviation == pytest.approx(0.06)
    assert seen([(0, LOW)] * 97 + [(0, 0.0)] * 3).deviation == pytest.approx(0.03)


def test_a_copy_is_the_same():
    values = seen([(2, LOW), (2, 0.5), (0, 0.25)])
    copy = Values(3)
    copy.load(states.Reader(values.export()))
    assert (copy.two, copy.rate, copy.deviation) == (values.two, values.rate, values.deviation)
    for one in (values, copy):
        one.see(0, 0.5)
        assert not one.two


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("valued", np.array([2, 3])),
        ("valued", np.array([2, 2])),
        ("values", np.array([0.5, 1.5])),
        ("values", np.array([0.5, LOW])),
        ("highs", 1),
        ("lows", 0),
        ("lows", -1),
        ("low_arms", np.array([3])),
        ("third", 1),
    ],
)
def test_a_broken_state_is_refused(key, value):
    saved = seen([(2, LOW), (2, 0.5), (0, 0.25)]).export()
    with pytest.raises(StateError):
        Values(3).load(states.Reader({**saved, key: value}))


# --- in the policy ----------------------------------------------------------------------------------------------


RATES = np.linspace(0.005, 0.044, 20)


def shop(seed, rounds, prices=1.0):
    """20 arms in any order whose rewards are 0 or 1 (or their price); mean reward, of the best one's."""
    rng = np.random.default_rng([seed, 1])
    means = RATES[rng.permutation(20)] * prices
    policy = CalibratedOPKB(ArmSet(np.eye(20)), reward_range=(0, float(np.max(prices))), seed=seed)
    earned, looks = 0.0, 0
    for _ in range(rounds):
        choice = policy.ask()
        price = np.broadcast_to(prices, 20)[choice.arm]
        policy.tell(choice.id, float(price * (rng.random() < means[choice.arm] / price)))
        earned, looks = earned + means[choice.arm], looks + (choice.law < 0)
    return policy, earned / rounds / means.max(), looks


def test_signals_are_looked_for_around_the_rate():
    """True deviations of 0.0115, 0.023 inside: found to a factor of 3, where 1/16 of the range was the least before."""
    policy, _, looks = shop(0, 6000)
    assert belief_of(policy).two_valued
    assert 0.023 / 3 < np.sqrt(belief_of(policy).signal) < 0.023 * 3
    assert looks == 0  # a success is no surprise
    assert policy.changes == ()


def test_a_third_value_brings_ordinary_signals_back():
    policy, _, _ = shop(0, 500)
    for value in np.linspace(0.1, 0.9, 40):  # twice the arms: one of them has two of these at least
        policy.tell(policy.ask().id, float(value))
    assert not belief_of(policy).two_valued
    belief_of(policy).advance()
    assert belief_of(policy).signal > 1 / 300


@pytest.mark.parametrize("prices", [1.0, np.linspace(5, 10, 20)], ids=["clicks", "prices"])
def test_rare_successes_are_learned_from(prices):
    """Mean over 3 runs of 6,000 rounds: above 0.66 of the best arm's reward, where chance has 0.56 or less."""
    assert np.mean([shop(seed, 6000, prices)[1] for seed in range(3)]) > 0.66
