"""How rewards of a log move, and when: false alarms, Bayes factors and intervals against slow computations."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from driftbandits.logs import Log, movement
from driftbandits.logs.advising import diagnose
from driftbandits.logs.changes import _Step, _Window, find_changes
from driftbandits.logs.movement import SHARES, SIZES, drift_evidence, scores_of, switches
from tests.logs.making import logged, moving_means


def test_a_switch_is_found_and_dated():
    means = np.repeat([[0.3, 0.6, 0.5], [0.6, 0.3, 0.5]], 600, axis=0)
    found = find_changes(logged(means, 0, learning=True))
    (change,) = found.changes
    assert found.movement.kind == "switches"
    assert abs(change.row - 600) < 20
    assert change.interval[0] <= 600 <= change.interval[1]
    assert change.row <= change.found < 700


@pytest.mark.statistical
def test_where_nothing_moves_alarms_are_as_rare_as_promised():
    """60 logs of a policy that learns at 5 %: more than 9 alarms have probability below 0.002."""
    means = moving_means("still", 400, 4)
    assert sum(find_changes(logged(means, seed)).movement.kind != "still" for seed in range(60)) <= 9


def test_a_changed_mix_of_requests_is_no_change():
    rng = np.random.default_rng(0)
    segment = (rng.random(2_000) < np.where(np.arange(2_000) < 1_000, 0.2, 0.8)).astype(int)
    reward = 0.3 + 0.4 * segment + rng.normal(0, 0.05, 2_000)
    columns = (np.arange(2_000), rng.integers(0, 2, 2_000), reward, np.full(2_000, 0.5), ("a", "b"))
    assert find_changes(Log(*columns)).changes
    parted = find_changes(Log(*columns, segment=segment, segment_names=("x", "y")))
    assert parted.movement.kind == "still"


def test_one_arm_that_changes_is_named():
    means = np.repeat([[0.3, 0.6, 0.5], [0.3, 0.9, 0.5]], 1_000, axis=0)
    log = logged(means, 1, learning=False)
    (change,) = diagnose(log).changes
    assert change.arms == (log.names[1],)
    assert "b rose from 0.597 to 0.898" in change.words


def clicks(rates, rows, change, seed):
    """Rewards of 0 and 1 of a uniform policy; rates before and after a change."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, len(rates[0]), rows)
    late = (np.arange(rows) >= change).astype(int)
    reward = (rng.random(rows) < np.array(rates)[late, arm]).astype(float)
    return Log(np.arange(rows), arm, reward, np.full(rows, 1 / len(rates[0])), tuple("abcdefgh"[: len(rates[0])]))


def test_arms_that_go_different_ways_at_one_time_are_found_where_none_alone_is():
    log = clicks([[0.5, 0.3, 0.6, 0.4], [0.33, 0.47, 0.43, 0.57]], 2_400, 1_400, 0)
    found = find_changes(log)
    (change,) = found.changes
    assert change.interval[0] <= 1_400 <= change.interval[1] < change.interval[0] + 600
    alone = [find_changes(log.take(log.arm == arm)).movement.evidence for arm in range(4)]
    assert found.movement.evidence > max(alone) + 3.0


def amounts(rng, mean):
    """Zeros and now and then an amount with heavy tails."""
    return np.where(rng.random(len(mean)) < mean, np.exp(rng.normal(0, 1, len(mean))), 0.0)


NOISES = {
    "two values": lambda rng, mean: (rng.random(len(mean)) < mean).astype(float),
    "zeros and amounts": amounts,
    "heavy tails": lambda rng, mean: mean + 0.1 * rng.standard_t(2, len(mean)),
    "drift": lambda rng, mean: mean + 0.1 * np.linspace(0, 1, len(mean)) + rng.normal(0, 0.3, len(mean)),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", NOISES)
def test_intervals_of_changes_cover(kind):
    """30 logs with two changes. At 95 % fewer than 85 % of 50 or so covered has probability below 0.003."""
    covered = []
    for seed in range(30):
        rng = np.random.default_rng([seed, 5])
        changes = (int(rng.integers(2_000, 4_000)), int(rng.integers(6_000, 8_000)))
        part = np.searchsorted(changes, np.arange(10_000), side="right")
        arm = rng.integers(0, 3, 10_000)
        mean = np.array([[0.2, 0.4, 0.3], [0.4, 0.25, 0.3], [0.2, 0.25, 0.15]])[part, arm]
        log = Log(np.arange(10_000), arm, NOISES[kind](rng, mean), np.full(10_000, 1 / 3), tuple("abc"))
        covered += [
            any(one.interval[0] <= change <= one.interval[1] for change in changes) for one in find_changes(log).changes
        ]
    assert len(covered) > 30
    assert np.mean(covered) > 0.85


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("common", [False, True])
def test_the_profile_is_that_of_least_squares_by_brute_force(slopes, common):
    rng = np.random.default_rng(3)
    cell, row = rng.integers(0, 2, 60), np.sort(rng.choice(200, 60, replace=False))
    value = rng.normal(size=60) + np.where(row > 100, 1.5, 0.0)
    size = np.full(2, 1e4)  # of the step: so large that its prior says nothing
    window = _Window(row, cell, value, _Step(size, np.ones(2, bool), common, 1.0))

    def left(split):
        """Squares that are left with levels, slopes, and steps from the split on."""
        own = [(cell == c).astype(float) for c in range(2)]
        columns = [*own, *([part * row for part in own] if slopes else [])]
        step = np.arange(60) >= split
        steps = [] if split is None else [step.astype(float)] if common else [step * part for part in own]
        design = np.stack([*columns, *(steps if split else [])], axis=1)
        rest = value - design @ np.linalg.lstsq(design, value, rcond=None)[0]
        return float(rest @ rest)

    expected = [0.5 * (left(0) - left(split)) for split in range(1, 60)]
    np.testing.assert_allclose(window.profile(slopes)[5:-5], expected[5:-5], rtol=1e-5, atol=1e-5)


def test_the_drop_is_that_of_two_exponential_laws():
    """With noise of one variance and a small step both sides exceed x with probability exp(-x)."""
    rng = np.random.default_rng(0)
    size = np.full(1, 1e-3)
    window = _Window(
        np.arange(20_000), np.zeros(20_000, int), rng.normal(size=20_000), _Step(size, size > 0, False, 1.0)
    )
    assert window.drop(10_000) == pytest.approx(-math.log(1 - math.sqrt(0.95)), rel=0.03)


def by_definition(log):
    """log B of a change at every row, of one cell."""
    scores = scores_of(log)
    z, n = scores.value, len(scores.value)
    found = []
    for k in range(1, n):
        if min(k, n - k) < scores.least[0]:
            found.append(0.0)
            continue
        variance, difference = 1 / k + 1 / (n - k), z[k:].mean() - z[:k].mean()
        each = [
            multivariate_normal.logpdf(difference, 0, variance + g)
            - multivariate_normal.logpdf(difference, 0, variance)
            for g in SIZES
        ]
        mixed = [np.log(1 - r + r * np.exp(one)) for r in SHARES for one in each]
        found.append(np.log(np.mean(np.exp([*mixed, *each]))))
    return np.array(found)


def test_evidence_of_a_change_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    reward = rng.normal(size=80) + np.where(np.arange(80) < 50, 0, 1.5)
    log = Log(np.arange(80), np.zeros(80, int), reward, np.ones(80), ("a",))
    table, bins = movement._table(scores_of(log))
    _, logs = movement._change_evidence(table, 0, bins)
    np.testing.assert_allclose(logs, by_definition(log), rtol=1e-8, atol=1e-10)
    evidence, (row,) = switches(scores_of(log), 1.0)
    assert abs(row - 50) < 8
    assert evidence > 3.0


def test_evidence_of_a_line_is_that_of_normal_laws():
    """A line's prior adds a covariance to the scores; levels are out of both."""
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 5, (40, 1)).astype(float)
    time = (np.arange(40) + 0.5) / 40
    line = np.sqrt(12) * (time - 0.5)
    means = rng.normal(size=40) / np.sqrt(counts[:, 0]) + 0.8 * line
    sums = counts * (means - np.average(means, weights=counts[:, 0]))[:, None]
    noise = np.diag(1 / counts[:, 0]) + 1e6  # any level
    expected = [
        multivariate_normal.logpdf(means, np.zeros(40), noise + g * np.outer(line, line), allow_singular=True)
        - multivariate_normal.logpdf(means, np.zeros(40), noise, allow_singular=True)
        for g in SIZES
    ]
    mixed = [np.log(1 - r + r * np.exp(one)) for r in SHARES for one in expected]
    found = movement._of_shape(line[:, None], counts, sums, np.zeros(40, int))
    assert found == pytest.approx(np.log(np.mean(np.exp([*mixed, *expected]))), rel=1e-3)


def rhythm(period, rounds=2_000, seed=0):
    wave = 0.15 * np.sin(2 * np.pi * np.arange(rounds) / period)
    means = 0.5 + wave[:, None] * np.array([1.0, -1.0, 1.0])
    return logged(means, seed, learning=False)


@pytest.mark.parametrize("period", [50, 200, 400])
def test_a_period_is_found(period):
    found = find_changes(rhythm(period)).movement
    assert found.kind == "rhythm"
    assert found.season.low <= period <= found.season.high
    assert not find_changes(rhythm(period)).changes


def test_times_are_the_clock_of_a_rhythm():
    log = rhythm(200)
    timed = dataclasses.replace(log, time=3_600.0 * log.round)
    assert find_changes(timed).movement.season.period == pytest.approx(200 * 3_600, rel=0.1)


@pytest.mark.parametrize(("kind", "said"), [("still", "still"), ("switch", "switches"), ("drift", "drifts")])
def test_other_worlds_have_no_rhythm(kind, said):
    """Three logs of each kind, at seeds that are fixed."""
    for seed in range(3):
        assert find_changes(logged(moving_means(kind, 900, 3, seed), seed)).movement.kind == said


def test_drift_beside_a_change_is_both():
    rng = np.random.default_rng(0)
    rows = 20_000
    mean = 0.4 * np.linspace(0, 1, rows) + np.where(np.arange(rows) < 9_000, 0.0, 0.3)
    log = Log(np.arange(rows), np.zeros(rows, int), mean + rng.normal(0, 0.3, rows), np.ones(rows), ("a",))
    found = find_changes(log)
    (change,) = found.changes
    assert found.movement.slopes
    assert change.interval[0] <= 9_000 <= change.interval[1]
    assert drift_evidence(scores_of(log), [change.row]) > 10.0


def test_few_successes_prove_nothing():
    """Two successes side by side would be beyond normal chance by far."""
    reward = np.zeros(400)
    reward[[396, 398]] = 1.0
    log = Log(np.arange(400), np.zeros(400, int), reward, np.ones(400), ("a",))
    assert find_changes(log).movement.kind == "still"


ODD = {
    "constant": lambda rng, rows: np.full(rows, 3.0),
    "rare": lambda rng, rows: (rng.random(rows) < 0.01).astype(float),
    "Cauchy": lambda rng, rows: rng.standard_cauchy(rows),
    "noiseless": lambda rng, rows: (np.arange(rows) >= rows / 2).astype(float),
    "far away": lambda rng, rows: 1e12 + rng.normal(size=rows),
    "one giant": lambda rng, rows: np.where(np.arange(rows) == rows // 2, 1e9, 0.0),
}


@pytest.mark.parametrize("rewards", ODD)
@pytest.mark.parametrize(("rows", "arms"), [(1, 1), (2, 2), (3, 1), (17, 30), (100, 2), (400, 5)])
def test_no_log_is_too_odd(rewards, rows, arms):
    rng = np.random.default_rng(rows)
    time = np.sort(rng.choice([0.0, 5.0, 5.0, 100.0], rows)) if rows == 100 else None
    columns = (np.arange(rows), rng.integers(0, arms, rows), ODD[rewards](rng, rows), np.full(rows, 0.5))
    found = find_changes(Log(*columns, tuple(map(str, range(arms))), time=time))
    for change in found.changes:
        assert 0 <= change.interval[0] <= change.row <= change.interval[1] < rows
        assert change.row <= change.found < rows
    if rewards == "noiseless" and rows == 400:
        ((low, high),) = (change.interval for change in found.changes)
        assert low <= 200 <= high <= 202
    if rewards == "constant":
        assert found.movement.kind == "still"
