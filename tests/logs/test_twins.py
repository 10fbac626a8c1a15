import dataclasses
import json
import runpy

import numpy as np
import pytest

import driftbandits as db
from driftbandits.logs import Log, advise, posterior
from driftbandits.logs.cells import MOST_CELLS, cell_arms, cells_of, merged, offered
from driftbandits.logs.twins import FIXED, fixed_regret, play_twins, sample_world
from tests.logs.making import logged, moving_means


def with_segments(rounds=400, seed=0):
    """Arm a is best for x, b for y; how many come from each changes over time."""
    rng = np.random.default_rng(seed)
    segment = (rng.random(rounds) < np.linspace(0.2, 0.8, rounds)).astype(int)
    arm = rng.integers(0, 3, rounds)
    means = np.array([[0.7, 0.3, 0.2], [0.3, 0.7, 0.2]])
    reward = means[segment, arm] + rng.normal(0, 0.05, rounds)
    names, probability = ("a", "b", "c"), np.full(rounds, 1 / 3)
    return Log(np.arange(rounds), arm, reward, probability, names, segment=segment, segment_names=("x", "y"))


def test_what_rows_offered_is_counted_one_by_one():
    log = with_segments(50)
    allowed = np.random.default_rng(1).random((50, 3)) < 0.7
    log = dataclasses.replace(log, allowed=allowed)
    rows = np.arange(10, 30)
    expected = [
        [log.segment[row] == s and bool(allowed[row, a]) for s in range(2) for a in range(3)] for row in rows.tolist()
    ]
    np.testing.assert_array_equal(offered(log, rows), expected)
    np.testing.assert_array_equal(offered(dataclasses.replace(log, segment=None), rows), allowed[rows])
    assert offered(dataclasses.replace(log, segment=None, allowed=None), rows) is None
    assert cell_arms(log).pair(int(cells_of(log)[7])) == (log.names[log.arm[7]], log.segment_names[log.segment[7]])


def test_segments_too_many_to_tell_apart_are_averaged_over():
    log = with_segments(50)
    assert merged(log) is log
    many = dataclasses.replace(log, segment_names=tuple(str(k) for k in range(MOST_CELLS)))
    assert merged(many).segment is None


def test_twins_offer_what_the_log_offered():
    base = logged(moving_means("switch", 400, 4), 0, learning=False)
    allowed = np.random.default_rng(0).random((400, 4)) < 0.6
    allowed[np.arange(400), base.arm] = True
    log = dataclasses.replace(base, allowed=allowed)
    bins = posterior.bins_of(log)
    fitted = posterior.fit(bins, posterior.hypotheses(log, [])[0])
    world = sample_world(log, bins, fitted, cell_arms(log), 0, 0)[1]
    np.testing.assert_array_equal(world.allowed(0, 400), allowed)
    found = play_twins(log, bins, [fitted], np.ones(1), twins=2)
    assert len(found.by_twin) == 4  # CalibratedOPKB learns nothing where not all arms are offered
    assert all(min(regrets) >= 0 for regrets in found.by_twin.values())


def test_who_never_changes_plays_the_first_that_is_offered():
    mask = [[True, True, True], [False, True, True], [False, False, True]]
    arms = db.ArmSet.from_features(np.eye(3))
    world = db.environments.Tabular(arms, [[0.1, 0.5, 0.2]] * 3, allowed=mask)
    assert fixed_regret(world, np.array([0, 2, 1])) == pytest.approx((0.4 + 0.3 + 0.0) / 3)


def test_a_mix_of_requests_that_changes_is_no_reason_to_adapt(tmp_path):
    advice = advise(with_segments(), twins=2)
    assert advice.moves is False
    assert advice.season is None
    assert advice.variation.total < 0.05
    assert advice.regrets.interval(FIXED).estimate < 0.02  # a for x, b for y: one arm for all would lose 0.2
    assert "always a (x), b (y)" in advice.recommendation.why
    assert advice.beliefs.names[4] == "b (y)"
    advice.save(tmp_path / "advice.html")
    body = json.loads((tmp_path / "advice.service.json").read_text())
    assert body["segments"] == ["x", "y"]
    world = runpy.run_path(str(tmp_path / "advice_twin.py"))["twin"](1)
    assert world.arms.crossing.names == ("x", "y")
    assert (world.allowed(0, 400).sum(axis=1) == 3).all()
