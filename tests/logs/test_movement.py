import numpy as np
import pytest

from driftbandits.logs import Log, movement
from driftbandits.logs.advising import diagnose
from driftbandits.logs.movement import LogChange, episodes, find_changes, least_changes, locate
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
    monkeypatch.setattr(movement.Together, "_settle", lambda self: None)
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
