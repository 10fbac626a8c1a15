"""What can be looked at: probabilities and intervals of every arm, health, and a decision as it was made."""

import numpy as np
import pytest

from driftbandits import live
from driftbandits.live import replica as replicas
from driftbandits.live.decision_audit import audit
from tests.live.replicas import replica_of, require_same, snapshot_now
from tests.live.test_experiment import play


def by_name(summary, segment=None):
    return {arm.name: arm for arm in summary.arms if arm.segment == segment}


def test_the_summary_has_what_the_policy_says_of_every_arm(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms={"low": [1.0], "mid": [2.0], "high": [3.0]}, seed=1)
        play(shop, 25)
        policy, arms = replica_of(shop).policy, by_name(shop.summary())
        low, high = policy.interval()
        for number, name in enumerate(["low", "mid", "high"]):
            arm = arms[name]
            assert (arm.probability, arm.estimate) == (policy.law()[number], policy.estimate()[number])
            assert (arm.low, arm.high) == (low[number], high[number])
        assert sum(arm.plays for arm in arms.values()) == 25
        shop.arms(retire=["mid"])
        arms = by_name(shop.summary())
        assert arms["mid"].retired
        assert arms["mid"].probability == 0.0
        assert sum(arm.probability for arm in arms.values()) == pytest.approx(1.0)
        assert "95 % interval" in str(shop.summary())
        require_same(shop.view.player(), replica_of(shop))


def test_paused_the_summary_has_the_probabilities_of_the_fallback(shop):
    play(shop, 5)
    shop.pause()
    assert {arm.probability for arm in shop.summary().arms} == {1 / 3}
    shop.settings(fallback="high")
    assert {arm.name: arm.probability for arm in shop.summary().arms} == {"low": 0.0, "mid": 0.0, "high": 1.0}


@pytest.mark.parametrize(("policy", "waits"), [("GPUCB", True), ("AutoBandit", False)])
def test_rewards_that_wait_for_patience_are_said(url, clock, policy, waits):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "high"], policy=policy, patience=3600, missing=0.0, seed=1)
        shop.decide()  # its reward does not come
        for _ in range(2):
            shop.rewards({choice.id: 1.0 for choice in shop.decide(size=600)})
        health = " ".join(shop.summary().health)
        assert ("1,200 of 1,200 rewards wait for decisions that are open" in health) == waits
        clock.pass_seconds(3601)
        shop.decide()
        assert "rewards wait" not in " ".join(shop.summary().health)


def test_a_policy_without_intervals_has_none(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], policy="Exp3S", seed=1)
        play(shop, 3)
        assert {(arm.low, arm.high) for arm in shop.summary().arms} == {(None, None)}


def test_with_segments_every_arm_is_shown_in_each(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], segments=["mobile", "desktop"], seed=4)
        for number in range(60):
            segment = ["mobile", "desktop"][number % 2]
            choice = shop.decide(segment=segment)
            shop.reward(choice.id, 0.9 if (choice.arm == "low") == (segment == "mobile") else 0.1)
        summary = shop.summary()
        assert len(summary.arms) == 6
        for segment in ("mobile", "desktop"):
            assert sum(arm.probability for arm in by_name(summary, segment).values()) == pytest.approx(1.0)
        mobile, desktop = by_name(summary, "mobile"), by_name(summary, "desktop")
        assert mobile["low"].estimate > 0.7 > 0.3 > desktop["low"].estimate


def test_an_audit_has_the_law_of_what_was_allowed_in_its_segment(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], segments=["mobile", "desktop"], seed=4)
        shop.arms(add=["top"])
        made = []
        for number in range(24):
            allowed = [None, ["low", "top"], ["mid", "high"]][number % 3]
            choice = shop.decide(segment=["mobile", "desktop"][number % 2], allowed=allowed)
            made.append((choice, allowed))
            shop.reward(choice.id, 0.25 * len(choice.arm) / 4)
        shop.pause()
        made.append((shop.decide(segment="mobile"), None))
        for choice, allowed in made[-6:]:
            record = audit(shop.view, choice.id)
            assert record.law[choice.arm] == choice.probability == record.probability
            assert sum(record.law.values()) == pytest.approx(1.0)
            assert {name for name, share in record.law.items() if share} <= set(allowed or record.law)
            assert set(record.estimates) == {"low", "mid", "high", "top"}


def test_what_the_policy_warns_of_is_health_and_outlives_a_snapshot(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "high"], policy="DiscountedUCB", reward_range=(0, 1000), seed=1)
        for reward in (1.0, 2.0):
            shop.rewards({choice.id: reward for choice in shop.decide(500)})
        assert "declare one that the rewards fill" in shop.summary().health[0]
        snapshot_now(shop)
    with live.open(url, clock=clock) as database:
        shop = database.experiment("prices")
        assert shop.summary().brought_back.startswith("replayed from the snapshot")
        assert "declare one that the rewards fill" in shop.summary().health[0]
        require_same(shop.view.player(), replica_of(shop))
        shop.restart()
        assert shop.summary().health == ()


def test_the_oldest_open_decisions_are_dropped_for_newer_ones(shop, monkeypatch):
    monkeypatch.setattr(replicas, "MOST_OPEN", 10)
    first = shop.decide()
    shop.decide(14)
    summary = shop.summary()
    assert (summary.open, summary.dropped) == (10, 5)
    assert "were dropped" in summary.health[-1]
    assert shop.reward(first.id, 0.5).late == 1
    require_same(shop.view.player(), replica_of(shop))


def test_changes_and_history_are_the_policy_s(shop):
    play(shop, 40)
    history, policy = shop.history(), replica_of(shop).policy
    np.testing.assert_array_equal(history.estimate, policy.history.estimate)
    assert shop.changes() == policy.changes
