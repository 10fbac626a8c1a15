"""Each trouble has its sentence, and a healthy experiment has none."""

import numpy as np
import pytest

from driftbandits.live.definition import define
from driftbandits.service import health
from driftbandits.service.series import Point, Recent, Series

DEFINITION = define(arms=["a", "b"], seed=0)
SECOND = 1_000_000


def series(shares=(0.9,) * 20, *, decisions=100, least=0.0, most=1.0, missing=None, expired=0):
    """Points of 100 decisions each, of which these shares got a reward."""
    points = [
        Point(
            first=k * decisions,
            begin=k * 100 * SECOND,
            end=(k + 1) * 100 * SECOND,
            decisions=decisions,
            fallbacks=0,
            rewards=round(share * decisions),
            total=0.5 * share * decisions,
            squares=0.5 * share * decisions,
            least=least,
            most=most,
            forgotten=0,
            expired=expired,
        )
        for k, share in enumerate(shares)
    ]
    return Series(tuple(points), missing, 1)


def newest(*, since=0, seconds=0.0, rewards=None, delays=None):
    draw = np.random.default_rng(0)
    rewards = draw.integers(0, 2, 400).astype(float) if rewards is None else rewards
    delays = draw.exponential(5.0, len(rewards)) if delays is None else delays
    return Recent(rewards, delays, 0, since, seconds)


def said(found, recent, patience=None, definition=DEFINITION):
    return health.sentences(definition, found, recent, patience=patience)


def test_a_healthy_experiment_says_nothing():
    assert said(series(), newest(since=5, seconds=3.0)) == []
    assert said(Series((), None, 0), Recent(np.zeros(0), np.zeros(0), None, 0, 0.0)) == []
    assert said(series(missing=0.0, expired=10), newest(since=5), patience=60.0) == []


def test_no_reward_at_all():
    found = series((0.0,) * 3)
    assert "no reward has come yet" in said(found, Recent(np.zeros(0), np.zeros(0), None, 300, 9.0))[0]


def test_silence_is_told_from_waiting():
    assert "no reward for 2 hours" in said(series(), newest(since=500, seconds=7200.0))[0]
    assert said(series(), newest(since=500, seconds=1.0)) == []  # not longer than rewards take
    assert said(series((0.01,) * 20), newest(since=300, seconds=7200.0)) == []  # three were to be expected


def test_all_rewards_equal():
    assert "all 1,800 rewards are 1" in said(series(least=1.0), newest())[0]
    assert said(series(least=1.0, missing=0.0, expired=5), newest(), patience=60.0) == []


def test_a_falling_share():
    fell = series((*(0.9,) * 16, *(0.4,) * 4))
    assert "got a reward, of those before 90.0%" in said(fell, newest())[0]
    assert said(series((*(0.9,) * 16, *(0.8,) * 4)), newest()) == []
    moved = series((*(0.09,) * 16, *(0.04,) * 4), missing=0.0, expired=50)
    assert said(moved, newest(), patience=10.0) == []  # clicks fell: that is the world's affair
    gone = series((*(0.09,) * 16, *(0.0,) * 8), missing=0.0, expired=50)
    assert "rewards get lost" in said(gone, newest(), patience=10.0)[0]


def test_a_range_that_is_hardly_used():
    wide = define(arms=["a", "b"], reward_range=(0, 1000), seed=0)
    assert "less than a hundredth" in said(series(most=3.0), newest(), definition=wide)[0]


@pytest.mark.parametrize("later", [True, False])
def test_delays_that_depend_on_rewards(later):
    draw = np.random.default_rng(1)
    rewards = draw.integers(0, 2, 400).astype(float)
    slow = rewards == float(later)
    delays = draw.exponential(1.0, 400) * np.where(slow, 600.0, 60.0)
    recent = newest(rewards=rewards, delays=delays)
    found = said(series(), recent)
    assert ("later" if later else "sooner") in found[0]
    assert said(series(), recent, patience=3600.0) == []
    assert "count by their age" in found[0]
    other = define(arms=["a", "b"], policy="GPUCB", seed=0)
    assert "as late as patience" in said(series(), recent, definition=other)[0]


def test_false_alarms_are_rare():
    """400 healthy experiments; each test says less than one in a million, so that any alarm at all is a fault."""
    draw = np.random.default_rng(5)
    for _ in range(400):
        shares = tuple(draw.binomial(100, 0.5, 20) / 100)
        assert said(series(shares), newest(rewards=draw.integers(0, 2, 400).astype(float))) == []


def test_the_fallback_and_one_greedy_key():
    assert health.of_mode("running", "") == []
    assert "paused" in health.of_mode("paused", "")[0]
    assert "boom" in health.of_mode("fallback", "boom")[0]
    assert health.of_keys({"a": 5000}, {}) == []
    assert health.of_keys({"a": 5000, "b": 900}, {}) == []
    assert "the key shop asked for 50,000 decisions" in health.of_keys({"a": 50_000, "b": 900}, {"a": "shop"})[0]
