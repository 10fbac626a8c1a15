"""The harness of live traffic: its baseline, the shop, what is asked of the numbers."""

import numpy as np
import pytest

import driftbandits as db
from benchmarks.live.rows import ROWS, at_least, at_most
from benchmarks.live.segments import rates
from benchmarks.live.shop import PRICES, RATES, Delay, options, play
from benchmarks.live.thompson import BetaThompson

# Rewards of any size above the lowest are successes to it, so a new arm with larger ones is nothing special.
CHECKS = [check for check in db.testing.POLICY_CHECKS if check.__name__ != "new_arms_are_played"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_baseline_is_a_policy(check):
    check(BetaThompson)


def test_the_baseline_is_thompson_sampling():
    """The arm played is best in a draw of Beta posteriors: of two arms with (1, 40) and (5, 40), as often as it is."""
    arms = options(2)
    policy = BetaThompson(arms, seed=0, reward_range=(0.0, 1.0))
    for _ in range(4):
        policy._begin_once()
        policy._won[1] += 1.0
    second = np.mean([policy.ask().arm for _ in range(2000)])
    generator = np.random.default_rng(0)
    exact = np.mean(generator.beta(5, 40, 50_000) > generator.beta(1, 40, 50_000))
    assert second == pytest.approx(exact, abs=0.03)


class Noting(db.Uniform):
    """Keeps the order in which rewards are told."""

    def _learn(self, feedback):
        for row, reward in feedback.rows():
            self._learn_one(row, reward)

    def _learn_one(self, row, reward):
        self.noted = [*getattr(self, "noted", []), row.id]


@pytest.mark.parametrize(
    ("delay", "late"), [(Delay(), {0}), (Delay(5, 5), {5}), (Delay(2, 9), {2, 9})], ids=["now", "late", "by reward"]
)
def test_rewards_are_told_when_they_are_due(delay, late):
    policy = Noting(options(), seed=0, reward_range=(0.0, 1.0))
    played = play(policy, lambda _: np.full(20, 0.5), seed=0, delay=delay, rounds=100)
    assert len(policy.noted) == 100 - policy.pending
    assert policy.pending <= max(late)
    assert (policy.noted == sorted(policy.noted)) == (len(late) == 1)
    assert played.share() == 1.0


def test_all_policies_meet_the_same_luck_and_earn_what_they_play():
    still = {"seed": 3, "rounds": 50, "prices": PRICES}
    one, other = (play(db.Uniform(options(), seed=s, reward_range=(0, 24)), lambda _: RATES, **still) for s in (0, 1))
    np.testing.assert_array_equal(one.best, other.best)
    np.testing.assert_allclose(one.worth, (RATES * PRICES)[one.arms])
    assert RATES.argmax() != (RATES * PRICES).argmax() != PRICES.argmin()


def test_the_shop_is_the_one_of_the_table():
    assert len(RATES) == len(PRICES) == 20
    assert (RATES.min(), RATES.max()) == (0.005, 0.044)
    assert len(set(RATES.tolist())) == len(set(PRICES.tolist())) == 20
    assert rates().shape == (5, 20)
    assert rates().min() == pytest.approx(0.005)
    assert rates().max() == pytest.approx(0.044)


def test_questions_are_judged_on_their_own_side():
    found = [{"x": 1.0}, {"x": 2.0}]

    def mean(rows):
        return float(np.mean([row["x"] for row in rows]))

    assert at_most("x", 1.5, mean).holds(mean(found))
    assert not at_most("x", 1.4, mean).holds(mean(found))
    assert not at_least("x", 1.6, mean).holds(mean(found))
    assert {"still", "late", "patience", "halving", "prices", "new-arm", "segments"} <= set(ROWS)
