"""Arms that come and go in an experiment: what is known goes on, and a replay stands where it stood."""

import pytest

from driftbandits import live
from driftbandits.errors import InputError
from tests.live.replicas import replica_of, require_same, snapshot_now

FEATURES = {"low": [1.0], "mid": [2.0], "high": [3.0]}


def play(shop, rounds):
    for _ in range(rounds):
        choice = shop.decide()
        shop.reward(choice.id, {"low": 0.2, "mid": 0.5, "high": 0.4}.get(choice.arm, 0.9))


@pytest.mark.parametrize("policy", ["AutoBandit", "GPUCB", "DiscountedUCB", "CalibratedOPKB"])
@pytest.mark.parametrize("arms", [FEATURES, list(FEATURES)], ids=["features", "names"])
def test_arms_come_and_go_and_a_replay_stands_where_it_stood(url, clock, policy, arms):
    new = {"name": "top", "features": [3.5]} if arms is FEATURES else "top"
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=arms, policy=policy, seed=4)
        play(shop, 20)
        waiting = shop.decide()
        assert shop.arms(add=[new], retire=["low"])["active"] == ["mid", "high", "top"]
        assert replica_of(shop).policy.rounds == 21
        play(shop, 30)
        assert shop.reward(waiting.id, 0.5).accepted == 1
        played = {shop.decide().arm for _ in range(20)}
        assert "low" not in played
        shop.arms(bring_back=["low"], retire=["mid"])
        play(shop, 10)
        require_same(shop.view.player(), replica_of(shop))
        snapshot_now(shop)
        before = replica_of(shop)
        before.cost = 0.0
    with live.open(url, clock=clock) as database:
        shop = database.experiment("prices")
        assert shop.summary().brought_back.startswith("replayed from the snapshot")
        require_same(replica_of(shop), before)
        play(shop, 5)
        assert database.view("prices").check().problems == ()
        shop.restart()
        assert shop.decide().arm != "mid"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"add": ["top"]}, "must have 1 features"),
        ({"add": [{"name": "mid", "features": [2.0]}]}, "already"),
        ({"add": [{"name": "top", "features": [2.0, 1.0]}]}, "must have 1 features"),
        ({"add": [{"name": "top", "features": ["x"]}]}, "finite"),
        ({"retire": ["low", "mid", "high"]}, "no arm would be left"),
        ({"bring_back": ["top"]}, "no arm is called"),
    ],
)
def test_a_change_of_arms_that_cannot_be_is_refused_and_changes_nothing(url, clock, change, says):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=FEATURES, seed=4)
        play(shop, 3)
        events = shop.summary().events
        with pytest.raises(InputError, match=says):
            shop.arms(**change)
        assert shop.summary().events == events
        play(shop, 3)
        require_same(shop.view.player(), replica_of(shop))
