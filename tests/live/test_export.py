"""A journal as a log: every row by a second, slow way, `Log.read` reads it, and a policy learns from it."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from driftbandits import live
from driftbandits.errors import LiveError
from driftbandits.live import export
from driftbandits.logs import Log
from tests.live.replicas import replica_of, snapshot_now
from tests.live.test_experiment import play


def test_the_log_has_what_happened(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "CELLS", 7 * 8)
    expected = []
    for number in range(20):
        choice = shop.decide()
        expected.append({"id": choice.id, "arm": choice.arm, "probability": choice.probability, "told": None})
        if number % 4 == 3:
            shop.reward(expected[number - 2]["id"], number / 32)
            expected[number - 2].update(reward=number / 32, told=number + 1)
        if number == 10:
            shop.forget(expected[0]["id"])
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist() if shop.export(tmp_path / "log.parquet") == 20 else []
    assert [row["round"] for row in rows] == list(range(20))
    for row, wanted in zip(rows, expected, strict=True):
        assert (row["id"], row["arm"], row["probability"]) == (wanted["id"], wanted["arm"], wanted["probability"])
        assert (None if np.isnan(row["told"]) else row["told"]) == wanted["told"]
        assert np.isnan(row["reward"]) == ("reward" not in wanted)
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_a_new_policy_that_learns_from_the_log_believes_what_the_experiment_believes(shop, tmp_path):
    for _ in range(30):
        choice = shop.decide()
        shop.reward(choice.id, 0.75 if choice.arm == "mid" else 0.25)
    shop.export(tmp_path / "log.parquet")
    replica = replica_of(shop)
    pupil = replica.definition.build_policy(replica.policy.arms)
    pupil.learn(Log.read(tmp_path / "log.parquet"))
    np.testing.assert_array_equal(pupil.estimate(), replica.policy.estimate())
    np.testing.assert_array_equal(pupil.law(), replica.policy.law())


def test_segments_masks_late_and_lost_rewards_are_learned_as_they_were(url, clock, tmp_path):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], segments=["mobile", "desktop"], seed=4)
        shop.arms(retire=["high"])
        waiting = []
        for number in range(40):
            allowed = ["low", "high"] if number % 5 == 0 else None
            waiting.append(shop.decide(segment=["mobile", "desktop"][number % 3 % 2], allowed=allowed))
            if number == 25:
                shop.arms(bring_back=["high"])
            if number % 2:
                choice = waiting.pop(0)
                shop.reward(choice.id, 0.9 if choice.arm == "low" else 0.1)
        shop.forget([choice.id for choice in waiting])
        shop.export(tmp_path / "log.parquet")
        policy = replica_of(shop).policy
        pupil = replica_of(shop).definition.build_policy(policy.arms)
    log = Log.read(tmp_path / "log.parquet")
    assert log.segment_names == ("mobile", "desktop")
    assert log.names == ("high", "low", "mid")
    np.testing.assert_array_equal(log.allowed[:2], [[False, True, False], [False, True, True]])
    assert log.allowed[26].all()
    pupil.learn(log)
    np.testing.assert_array_equal(pupil.estimate(), policy.estimate())
    np.testing.assert_array_equal(pupil.law(), policy.law())


def test_what_retention_has_left_is_a_log_whose_rounds_go_on(url, clock, tmp_path):
    with live.open(url, clock=clock) as database:
        shop = database.create("prices", arms=["low", "mid", "high"], policy="DiscountedUCB", seed=3)
        shop.arms(add=["top"], retire=["low"])
        for _ in range(5):
            play(shop, 4)
            snapshot_now(shop)
            clock.pass_seconds(86_400)
        whole = shop.export(tmp_path / "whole.parquet")
        before = pq.read_table(tmp_path / "whole.parquet").to_pylist()
        assert database.trim("prices", days=1)
        left = shop.export(tmp_path / "left.parquet")
        assert 0 < left < whole
        assert pq.read_table(tmp_path / "left.parquet").to_pylist() == before[-left:]


def test_a_folder_that_is_not_there_is_said(shop, tmp_path):
    with pytest.raises(LiveError, match=r"log\.parquet cannot be written"):
        shop.export(tmp_path / "no" / "log.parquet")


def test_an_empty_log_is_a_log(shop, tmp_path):
    assert shop.export(tmp_path / "log.parquet") == 0
    assert pq.read_table(tmp_path / "log.parquet").num_rows == 0
