"""Patience by the clock: decisions without a reward close as missing, in one event; a replay closes the same ones."""

import time

import numpy as np
import pytest
import sqlalchemy as sa

from driftbandits import live
from driftbandits.errors import InputError, NotStoredError
from driftbandits.live.connections import WRITING
from tests.live.replicas import replica_of, require_same


@pytest.fixture
def shop(url, clock):
    with live.open(url, clock=clock) as database:
        yield database.create(
            "prices", arms=["low", "mid", "high"], policy="DiscountedUCB", seed=3, patience=65, missing=0.0
        )


def events_of(shop, kind):
    return [event for event in shop.events() if event["kind"] == kind]


def test_what_runs_out_of_patience_counts_as_missing(shop, clock):
    choices = []
    for _ in range(6):
        choices.append(shop.decide())
        clock.pass_seconds(10)
    shop.reward(choices[4].id, 1.0)
    policy = replica_of(shop).policy
    assert (policy.pending, policy.held) == (5, 1)
    clock.pass_seconds(15)  # 75 s after the first, 65 after the second, 55 after the third: patience is 65
    shop.decide()
    assert [event["decision"] for event in events_of(shop, "expired")] == [3]
    assert shop.reward(choices[0].id, 1.0) == live.RewardAnswer(late=1)
    assert shop.reward(choices[2].id, 1.0) == live.RewardAnswer(accepted=1)
    summary = shop.summary()
    assert (summary.expired, summary.late, summary.rewards, summary.open) == (2, 1, 2, 3)
    assert replica_of(shop).policy.expired == 2
    require_same(shop.view.player(), replica_of(shop))


def test_it_learns_in_the_order_of_the_decisions(shop, clock):
    first, second = shop.decide(), shop.decide()
    before = replica_of(shop).policy.estimate()
    shop.reward(second.id, 1.0)
    np.testing.assert_array_equal(replica_of(shop).policy.estimate(), before)
    shop.reward(first.id, 1.0)
    assert (replica_of(shop).policy.estimate() != before).any()


def test_the_log_has_the_missing_rewards(shop, clock, tmp_path):
    import pyarrow.parquet as pq

    shop.decide(3)
    clock.pass_seconds(66)
    last = shop.decide()
    shop.reward(last.id, 0.5)
    shop.export(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert [(row["reward"], row["told"]) for row in rows] == [(0.0, 3.0)] * 3 + [(0.5, 4.0)]


def test_patience_can_be_changed_and_not_taken_away(shop, clock):
    shop.decide()
    assert shop.settings(patience=10)["patience"] == 10
    clock.pass_seconds(11)
    shop.decide()
    assert shop.summary().expired == 1
    for wrong in (None, 0, -1, "long"):
        with pytest.raises(InputError):
            shop.settings(patience=wrong)
    require_same(shop.view.player(), replica_of(shop))


def test_a_database_that_cannot_be_written_to_is_not_tried_all_the_time(shop, clock):
    shop.decide()
    tries = []

    def fail(connection):
        if connection.get_execution_options().get(WRITING):
            tries.append(1)
            raise sa.exc.OperationalError("COMMIT", None, Exception("injected: the disk is full"))

    sa.event.listen(shop.view.engine, "commit", fail)
    clock.pass_seconds(66)
    with pytest.raises(NotStoredError, match="the disk is full"):
        shop.decide()
    time.sleep(0.3)
    assert len(tries) == 1
    sa.event.remove(shop.view.engine, "commit", fail)
    shop.decide()
    assert shop.summary().expired == 1
    require_same(shop.view.player(), replica_of(shop))


def test_nobody_need_call_for_time_to_run_out(url):
    with live.open(url) as database:
        shop = database.create(
            "quick", arms=["a", "b"], policy="DiscountedUCB", seed=0, patience=0.05, missing="forget"
        )
        shop.decide()
        end = time.monotonic() + 60
        while not events_of(shop, "expired") and time.monotonic() < end:
            time.sleep(0.01)
        assert shop.summary().expired == 1
