"""A journal as a log: every row by a second, slow way, and a policy that learns from it."""

import numpy as np
import pyarrow.parquet as pq

from driftbandits.live import exporting
from driftbandits.log_columns import read_columns
from tests.live.players import player_of


def test_the_log_has_what_happened(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "ROWS", 7)
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
    table = pq.read_table(tmp_path / "log.parquet")
    columns = {name: table[name].to_pylist() for name in ("round", "arm", "reward", "probability", "told")}
    player = player_of(shop)
    pupil = player.definition.build_policy(player.policy.arms)
    assert len(read_columns(pupil.arms, columns)) == 30
    pupil.learn(columns)
    np.testing.assert_array_equal(pupil.estimate(), player.policy.estimate())
    np.testing.assert_array_equal(pupil.law(), player.policy.law())


def test_an_empty_log_is_a_log(shop, tmp_path):
    assert shop.export(tmp_path / "log.parquet") == 0
    assert pq.read_table(tmp_path / "log.parquet").num_rows == 0
