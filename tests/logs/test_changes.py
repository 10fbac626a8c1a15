"""Changes in a log: their false alarms, their times, and what several arms show together."""

import numpy as np
import pytest

from driftbandits.detection.wagers import POWERS, Wagers, raised_ranks
from driftbandits.logs import Log, changes
from driftbandits.logs.advising import diagnose
from driftbandits.logs.changes import (
    Joint,
    LogChange,
    episodes,
    find_changes,
    least_changes,
    locate,
    locate_joint,
    log_factors,
)
from tests.logs.making import logged, moving_means


def test_a_switch_is_found_and_dated():
    means = np.repeat([[0.3, 0.6, 0.5], [0.6, 0.3, 0.5]], 600, axis=0)
    log = logged(means, 0, learning=True)
    found = episodes(find_changes(log), len(log))
    assert len(found) == 1
    assert abs(found[0].row - 600) < 20
    assert found[0].interval[0] <= 605
    assert found[0].interval[1] >= 595


@pytest.mark.statistical
def test_where_nothing_moves_alarms_are_as_rare_as_promised():
    """60 logs of a policy that learns at 5 %: more than 9 alarms have probability below 0.002."""
    means = moving_means("still", 400, 4)
    assert sum(bool(find_changes(logged(means, seed))) for seed in range(60)) <= 9


def test_a_changed_mix_of_requests_is_no_change():
    rng = np.random.default_rng(0)
    segment = (rng.random(2_000) < np.where(np.arange(2_000) < 1_000, 0.2, 0.8)).astype(int)
    reward = 0.3 + 0.4 * segment + rng.normal(0, 0.05, 2_000)
    columns = (np.arange(2_000), rng.integers(0, 2, 2_000), reward, np.full(2_000, 0.5), ("a", "b"))
    assert find_changes(Log(*columns))
    assert not find_changes(Log(*columns, segment=segment, segment_names=("x", "y")))


def test_one_arm_that_changes_is_named():
    means = np.repeat([[0.3, 0.6, 0.5], [0.3, 0.9, 0.5]], 1_000, axis=0)
    log = logged(means, 1, learning=False)
    (change,) = diagnose(log).changes
    assert change.arms == (log.names[1],)
    assert "b rose from 0.597 to 0.898" in change.words


def test_arms_that_go_different_ways_at_one_time_are_found_where_none_alone_is(monkeypatch):
    """Rewards of 0 and 1, as clicks are."""
    rng = np.random.default_rng(0)
    rates = np.repeat([[0.5, 0.3, 0.6, 0.4], [0.33, 0.47, 0.43, 0.57]], [1_400, 1_000], axis=0)
    arm = rng.integers(0, 4, 2_400)
    reward = (rng.random(2_400) < rates[np.arange(2_400), arm]).astype(float)
    log = Log(np.arange(2_400), arm, reward, np.full(2_400, 0.25), tuple("abcd"))
    (change,) = find_changes(log)
    assert (change.cell, change.kind) == (-1, "moved")
    assert change.interval[0] <= 1_400 <= change.interval[1] < change.interval[0] + 600
    monkeypatch.setattr(changes.Joint, "_settle", lambda self: None)
    assert not find_changes(log)


@pytest.mark.parametrize("seed", range(5))
def test_locating_is_the_likeliest_split_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    numbers = np.concatenate([rng.normal(0, 1, 30), rng.normal(2, 0.5, 20)])
    floor = 1e-3 * numbers.var()
    best = min(
        range(2, 49),
        key=lambda k: k * np.log(numbers[:k].var() + floor) + (50 - k) * np.log(numbers[k:].var() + floor),
    )
    place, low, high = locate(numbers)
    assert place == best
    assert low <= place <= high


def test_stretches_that_do_not_overlap_are_counted():
    def change(since, found):
        return LogChange(since, (since, since), since, found, 0, "rose")

    assert least_changes([]) == 0
    assert least_changes([change(0, 10), change(5, 12), change(11, 20), change(21, 30)]) == 3


def by_definition(ranks, cells, number, starts):
    """The mean over starts and shares of products over cells of mixtures of products over ranks."""
    bets = np.exp(log_factors(ranks))
    chances = [1 / max(number, 2), 0.5, 0.9]
    wealth = []
    for start in starts:
        late = np.arange(len(ranks)) >= start
        factors = [bets[late & (cells == cell)].prod(axis=0).mean() for cell in range(number)]
        wealth += [np.prod([1 - chance + chance * factor for factor in factors]) for chance in chances]
    return np.mean(wealth)


@pytest.mark.parametrize("checks", [2_000, 10])
def test_evidence_is_that_of_its_definition(checks, monkeypatch):
    monkeypatch.setattr(changes, "_CHECKS", checks)
    rng = np.random.default_rng(0)
    ranks, cells = rng.random(120) ** 1.3, rng.integers(0, 3, 120)
    found = Joint(120, 3)
    for rank, cell in zip(ranks.tolist(), cells.tolist(), strict=True):
        found.see(rank, cell)
    assert found.step == max(120 // checks, 1)
    assert found.evidence == pytest.approx(by_definition(ranks, cells, 3, found.starts), rel=1e-9)


def test_bets_are_fair_and_those_of_single_streams():
    middles = (np.arange(200_000) + 0.5) / 200_000
    assert np.exp(log_factors(middles)).mean(axis=0) == pytest.approx(1.0, abs=0.06)  # the steepest power is slow
    wagers = Wagers()
    wagers.see(0.3)
    np.testing.assert_allclose(raised_ranks(np.array([0.3]))[0], wagers._won, rtol=1e-12)
    assert raised_ranks(middles).shape == (200_000, len(POWERS))


@pytest.mark.parametrize("rank", [0.01, 1 / 16, 0.3, 1 / 2, 0.51, 0.99])
def test_bets_on_odds_are_those_of_their_formula(rank):
    cut, odds = 1 / 2, 5 / 2  # of the last odds, the fifth cut
    share = odds * cut / (1 - cut + odds * cut)
    expected = share / cut if rank <= cut else (1 - share) / (1 - cut)
    assert np.exp(log_factors(np.array([rank]))[0, 3 * 9 + 4]) == pytest.approx(expected)


def test_a_log_of_very_many_cells_has_fewer_starts():
    assert len(Joint(10_000, 5_000).starts) < changes.STARTS == len(Joint(10_000, 100).starts)
    assert len(Joint(3, 2).starts) == 3


@pytest.mark.parametrize("seed", range(4))
def test_locating_is_the_split_with_the_least_squares_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 3, 80)
    rewards = rng.normal(size=80) + np.where(np.arange(80) < 50, 1.5, -1.5) * (cells - 1)

    def squares(split):
        parts = [
            rewards[part & (cells == c)] for part in (np.arange(80) < split, np.arange(80) >= split) for c in range(3)
        ]
        return sum(float(np.square(part - part.mean()).sum()) for part in parts if len(part))

    place, low, high = locate_joint(rewards, cells, 2)
    assert place == min(range(2, 79), key=squares)
    assert low <= place <= high
