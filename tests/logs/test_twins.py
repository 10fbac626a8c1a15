"""Twins: what the log says of its arms over time, worlds sampled from it, and who plays in them."""

import dataclasses
import json
import runpy

import numpy as np
import pytest
from scipy import stats

import driftbandits as db
from driftbandits.logs import Log, advise, twins
from driftbandits.logs.estimators import bin_rewards
from driftbandits.logs.log import MOST_CELLS, cell_arms, cells_of, merged, offered
from driftbandits.logs.movement import Movement
from driftbandits.logs.twins import FIXED, Hypothesis, fixed_regret, play_twins, sample_world
from tests.logs.making import logged, moving_means


@pytest.fixture(scope="module")
def bins():
    return bin_rewards(logged(moving_means("drift", 120, 3), 0), most=12)


FEATURES = np.array([[1.0, 0.0, 0.7], [0.6, 0.8, 0.7], [0.0, 1.0, 0.7]])
KINDS = [
    Hypothesis("x", FEATURES, 0.0, 2.0),
    Hypothesis("x", FEATURES, 0.01, 0.5),
    Hypothesis("x", FEATURES, 0.0, 2.0, fresh=(4, 9)),
]


def dense(bins, hypothesis):
    """Prior covariance of f over all (bin, arm), from the definition, and the rows of it that were observed."""
    size, arms = len(bins), len(hypothesis.features)
    since = np.concatenate([[0], np.cumsum(bins.rows[:-1])])
    stretch = np.searchsorted(hypothesis.fresh, np.arange(size), side="right")
    together = (stretch[:, None] == stretch).astype(float)
    begun = np.array([since[[0, *hypothesis.fresh][k]] for k in stretch])
    walked = np.minimum(since[:, None], since) - begun[:, None]
    time = together * (hypothesis.start + hypothesis.rate * walked)
    prior = np.kron(time, hypothesis.features @ hypothesis.features.T)
    of_entry = np.repeat(np.arange(size), np.diff(bins.firsts))
    return prior, of_entry * arms + bins.cell


@pytest.mark.parametrize("hypothesis", KINDS, ids=lambda one: one.kind)
def test_filter_and_samples_agree_with_one_big_linear_system(bins, hypothesis):
    fitted = twins.fit(bins, hypothesis)
    prior, seen = dense(bins, hypothesis)
    system = prior[np.ix_(seen, seen)] + np.diag(1 / bins.count)
    level = bins.count @ bins.mean / bins.count.sum()
    error = bins.mean - level
    within = bins.squares.sum() - (bins.count * bins.mean**2).sum()
    number = bins.count.sum()
    noise = (error @ np.linalg.solve(system, error) + within) / number
    assert fitted.noise == pytest.approx(noise, rel=1e-8)
    logs = np.linalg.slogdet(system)[1] + np.log(bins.count).sum() + number * np.log(noise)
    expected = -0.5 * logs - len(hypothesis.fresh) * np.log(len(bins))
    assert fitted.evidence == pytest.approx(expected, rel=1e-8)
    gain = prior[:, seen] @ np.linalg.inv(system)
    mean = (level + gain @ error).reshape(len(bins), -1)
    covariance = noise * (prior - gain @ prior[seen])
    drawn = twins.sample(bins, fitted, np.random.default_rng(0), 4_000)
    deviation = np.sqrt(np.diag(covariance)).reshape(mean.shape)
    assert np.abs((drawn.mean(axis=0) - mean) / deviation).max() < 5 / np.sqrt(4_000)  # 36 values: fails 1 in 50,000
    flat = drawn.reshape(4_000, -1) - mean.ravel()
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((flat.T @ flat / 4_000 - covariance) / scale).max() < 0.15


@pytest.mark.parametrize(("world", "kind"), [("still", "still"), ("drift", "drifts")])
def test_the_right_kind_of_world_has_the_weight(world, kind):
    log = logged(moving_means(world, 1_500, 4, seed=1), 0)
    bins = bin_rewards(log, most=twins.BINS)
    fitted = [twins.fit(bins, one, keep=False) for one in twins.hypotheses(log, Movement("still", 0.0), [])]
    weights = twins.weights_of(fitted)
    best = sum(w for w, one in zip(weights, fitted, strict=True) if one.hypothesis.kind == kind)
    assert best > 0.8


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
    bins = bin_rewards(log, most=twins.BINS)
    fitted = twins.fit(bins, twins.hypotheses(log, Movement("still", 0.0), [])[0])
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


def test_a_long_log_is_played_whole_with_a_round_for_several_rows(monkeypatch):
    monkeypatch.setattr(twins, "MOST_ROUNDS", 300)
    means = np.repeat([[0.2, 0.7], [0.7, 0.2]], 500, axis=0)
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 1_000)
    reward = (rng.random(1_000) < means[np.arange(1_000), arm]).astype(float)
    log = Log(np.arange(1_000), arm, reward, np.full(1_000, 0.5), ("a", "b"))
    bins = bin_rewards(log, most=twins.BINS)
    hypothesis = twins.hypotheses(log, Movement("switches", 9.0), [bins.of_row[500]])[-1]
    fitted = twins.fit(bins, hypothesis)
    twin, world = sample_world(log, bins, fitted, cell_arms(log), 0, 0)
    assert (twin.scale, world.horizon) == (4, 250)
    assert world.noise == twins.SharesOfSuccesses(4)
    np.testing.assert_array_equal(world.means(0, 250).argmax(axis=1), np.arange(250) < 125)
    found = play_twins(log, bins, [fitted], np.ones(1), twins=2)
    assert found.scale == 4
    windows = [p.settings["window"] for p in found.players.values() if p.policy == "SlidingWindowGPUCB"]
    assert windows == [400]  # 100 rounds of four rows
    assert found.interval(FIXED).estimate == pytest.approx(0.25, abs=0.08)


def test_shares_of_successes_are_those_of_a_binomial_law():
    uniforms = (np.arange(400) + 0.5) / 400
    noise = twins.SharesOfSuccesses(7)
    for mean in (0.0, 0.03, 0.5, 1.0):
        found = noise.sample(np.full(400, mean), uniforms)
        np.testing.assert_allclose(found, stats.binom.ppf(uniforms, 7, mean) / 7)
        assert noise.deviation(np.array([mean]))[0] == pytest.approx(np.sqrt(mean * (1 - mean) / 7))
