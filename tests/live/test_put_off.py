"""What AutoBandit puts off is done in small parts before its state is read, and requests are answered in between."""

import threading

import numpy as np

from driftbandits import ArmSet, AutoBandit, live
from tests.live.replicas import replica_of, require_same

NAMES = [f"arm {number}" for number in range(40)]


def test_a_decision_does_not_wait_until_a_summary_has_been_made(tmp_path, monkeypatch):
    order, begun, decided = [], threading.Event(), threading.Event()

    def catch_up(_):
        begun.set()
        assert decided.wait(60)
        return len(order) < 2  # more is left, for as long as the decision is not answered

    with live.open(f"sqlite:///{tmp_path}/shop.db") as database:
        shop = database.create("shop", arms=["low", "high"], seed=0)
        shop.decide()
        monkeypatch.setattr(AutoBandit, "catch_up", catch_up)
        summary = shop.submit("summary", {})
        summary.add_done_callback(lambda _: order.append("summary"))
        assert begun.wait(60)
        choice = shop.submit("decide", {"size": 1, "allowed": None, "segment": None})
        choice.add_done_callback(lambda _: order.extend(["asked", "decided"]))
        decided.set()
        assert choice.result(60)
        assert summary.result(60).decisions == 2
        assert order == ["asked", "decided", "summary"]


def test_what_was_put_off_is_the_same_whenever_it_is_done(tmp_path):
    """Beside a replay, which does it when it must."""
    with live.open(f"sqlite:///{tmp_path}/shop.db") as database:
        shop, parts = database.create("shop", arms=NAMES, seed=0), 0
        replica = replica_of(shop)
        for number in range(400):
            shop.reward(shop.decide(), 0.1 * (number % 7))
            for _ in range(number % 5):
                parts += replica.policy.catch_up()
        assert parts > 20
        require_same(database.view("shop").player(), replica)


def test_catching_up_ends_and_changes_no_law():
    policy, left = AutoBandit(ArmSet(np.arange(40.0)[:, None]), seed=0), 0
    for number in range(200):
        policy.tell(policy.ask(), 0.1 * (number % 7))
        law = policy.law().tolist()
        while policy.catch_up():
            left += 1
            assert policy.law().tolist() == law
        assert not policy.catch_up()
    assert left > 20
