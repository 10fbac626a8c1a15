"""AutoBandit with patience by the clock: open decisions count, and everything stands after a replay to the bit."""

import numpy as np
import pytest

from attacks.common import AttackRow
from attacks.live import kill_once
from driftbandits import live
from driftbandits.live.definition import define
from driftbandits.testing.helpers import require_equal
from tests.live.conftest import Clock
from tests.live.replicas import replica_of, require_same, snapshot_now

ARMS = ["low", "mid", "high"]
CHANCES = {"low": 0.05, "mid": 0.1, "high": 0.3, "top": 0.2}
MAKE = {"arms": ARMS, "seed": 3, "patience": 60, "missing": 0.0}


@pytest.fixture
def shop(url, clock):
    with live.open(url, clock=clock) as database:
        yield database.create("prices", **MAKE)


class Customers:
    """Visits, sales within minutes or after patience, pauses, another patience, arms that come and go."""

    def __init__(self, clock, seed, *, amounts=False):
        self.clock, self.rng, self.amounts = clock, np.random.default_rng(seed), amounts
        self.coming = []
        self.calls = 0

    def come(self, shop, calls):
        for _ in range(calls):
            self._one(shop)

    def _one(self, shop):
        rng, self.calls = self.rng, self.calls + 1
        jump = rng.random()
        self.clock.pass_seconds(0.0 if jump < 0.2 else -3.0 if jump < 0.25 else 500.0 if jump < 0.26 else rng.random())
        due = [sale for sale in self.coming if sale[0] <= self.clock.now]
        for sale in due:
            self.coming.remove(sale)
            shop.reward(sale[1], sale[2])
        if self.calls == 150:
            shop.settings(patience=25)
        if self.calls == 220:
            shop.arms(add=["top"], retire=["low"])
        if self.calls == 300:
            shop.settings(patience=90)
        if rng.random() < 0.03:
            shop.pause()
            shop.decide()
            shop.resume()
        size = int(rng.integers(1, 4))
        allowed = ["mid", "high"] if rng.random() < 0.2 else None
        for choice in shop.decide(size, allowed=allowed):
            if rng.random() < CHANCES[choice.arm]:
                wait = 10.0 ** rng.uniform(-1.0, 2.2)
                amount = float(rng.uniform(0.2, 1.0)) if self.amounts else 1.0
                self.coming.append((self.clock.now + round(1e6 * wait), choice.id, amount))
            elif rng.random() < 0.02:
                shop.forget(choice.id)


def same_as_replayed(shop):
    player, replica = shop.view.player(), replica_of(shop)
    require_same(player, replica)
    assert list(player.expired.items()) == list(replica.expired.items())
    assert player.notices == replica.notices


@pytest.mark.parametrize("seed", range(3))
def test_a_replay_stands_where_the_experiment_stands_from_any_snapshot(shop, clock, seed):
    customers = Customers(clock, seed, amounts=seed == 1)
    for _ in range(6):
        customers.come(shop, 60)
        snapshot_now(shop)
        same_as_replayed(shop)
    policy = replica_of(shop).policy
    assert policy._exposures.active
    assert policy._exposures.timed
    assert policy.late > 0
    assert shop.view.check().verdict == "identical"


def test_closed_and_opened_elsewhere_it_decides_as_one_that_was_never_closed(tmp_path):
    states = []
    for name, parts in (("whole", [300]), ("parts", [70, 1, 29, 150, 50])):
        clock = Clock()
        customers = Customers(clock, 5)
        url = f"sqlite:///{tmp_path}/{name}.db"
        with live.open(url, clock=clock) as database:
            database.make("prices", define(**MAKE))
        for calls in parts:
            with live.open(url, clock=clock) as database:
                shop = database.experiment("prices")
                customers.come(shop, calls)
                state = replica_of(shop).policy.state_dict()
                same_as_replayed(shop)
        states.append(state)
    require_equal(states[0], states[1])


def test_decisions_of_different_times_are_not_replayed_as_of_one(shop, clock):
    for _ in range(100):
        clock.pass_seconds(0.4)
        shop.decide()
    assert len({event["time"] for event in shop.events()}) > 90
    same_as_replayed(shop)
    assert replica_of(shop).policy._exposures.now == clock.now / 1e6


def test_an_audit_has_the_law_that_was_recorded(shop, clock):
    customers = Customers(clock, 2)
    customers.come(shop, 80)
    clock.pass_seconds(20.0)  # a step is due before the next decision
    choice = shop.decide()
    law = replica_of(shop).policy.law()
    customers.come(shop, 20)
    record = shop.decision(choice.id)
    assert (record.arm, record.probability) == (choice.arm, choice.probability)
    assert record.law[choice.arm] == choice.probability
    if law[ARMS.index(choice.arm)] == choice.probability:  # no step came with the decision itself
        assert list(record.law.values()) == law.tolist()


def test_a_reward_after_patience_corrects_the_estimate_and_survives_a_restart(url, clock):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", **MAKE)
        choices = [shop.decide() for _ in range(200)]
        clock.pass_seconds(10)
        for choice in choices[::20]:
            shop.reward(choice.id, 1.0)
        clock.pass_seconds(60)
        shop.decide()
        assert shop.summary().expired == 190
        snapshot_now(shop)
        clock.pass_seconds(5)
        waiting = [choice for choice in choices[1::20] if choice.arm == choices[1].arm]
    with live.open(url, clock=clock) as database:
        shop = database.experiment("prices")
        before = replica_of(shop).policy.estimate()
        for choice in waiting:
            assert shop.reward(choice.id, 1.0) == live.RewardAnswer(late=1)
        clock.pass_seconds(5)
        shop.decide()
        arm = ARMS.index(choices[1].arm)
        after = replica_of(shop).policy.estimate()
        assert after[arm] > before[arm]
        assert shop.reward(waiting[0].id, 1.0).late == 0  # repeated: it counts once
        same_as_replayed(shop)
    with live.open(url, clock=clock) as database:
        np.testing.assert_array_equal(replica_of(database.experiment("prices")).policy.estimate(), after)


def test_it_learns_before_patience_is_over_and_without_any_order(shop, clock):
    for _ in range(400):
        clock.pass_seconds(0.05)
        choice = shop.decide()
        if choice.arm == "high":
            shop.reward(choice.id, 1.0)
    policy = replica_of(shop).policy
    assert shop.summary().expired == 0
    assert int(policy.law().argmax()) == ARMS.index("high")


def test_an_experiment_with_open_decisions_survives_kill_9(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with live.open(url) as database:
        database.make("prices", define(**{**MAKE, "patience": 600}))
    row = AttackRow("kill")
    kill_once(url, row, answers=60, seconds=0.0)
    assert not row.broken, row.examples
    assert (row.tries, row.counts["brought back bit for bit"]) == (1, 1)
