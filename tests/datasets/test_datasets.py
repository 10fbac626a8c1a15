"""The recipes: size, range, what made them, their copies, and what happens without the data."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits import datasets
from driftbandits.datasets import flights, series
from driftbandits.datasets.series import data_file
from driftbandits.errors import InputError, MissingDataError

NAMES = datasets.names()  # their packages are among the pinned ones, so none is skipped


@pytest.mark.parametrize("name", NAMES)
def test_size_range_and_kernel(name):
    for offset in range(datasets.OFFSETS):
        world = datasets.create(name, offset=offset)
        assert len(world.arms) >= 12
        assert world.horizon >= 1500
        low, high = world.reward_range
        assert (low, high) in ((-1.0, 1.0), (0.0, 1.0))
        means = world.means(0, world.horizon)
        assert low <= np.nanmin(means) < np.nanmax(means) <= high
        assert world.arms.names is not None


@pytest.mark.parametrize("name", NAMES)
def test_replicates_are_equally_long_and_never_wrap(name):
    panel = datasets.load(name)
    parts = [panel.played(offset) for offset in range(datasets.OFFSETS)]
    assert len({len(part) for part in parts}) == 1
    assert parts[0][0] == panel.preparation >= 0.05 * len(panel.cells)
    assert parts[-1][-1] == len(panel.cells) - 1
    starts = np.diff([part[0] for part in parts])
    assert (starts == len(panel.cells) // 20).all()


@pytest.mark.parametrize("name", NAMES)
def test_copies_hold_the_same_rounds_in_another_order(name):
    panel, here = datasets.load(name), datasets.create(name)
    table = here.means(0, here.horizon)
    back = datasets.create(name, copy="reversed")
    assert np.array_equal(back.means(0, back.horizon), table[::-1], equal_nan=True)
    mixed = datasets.create(name, copy="shuffled", seed=3).means(0, here.horizon)
    keys = [np.nan_to_num(rows, nan=9.0) for rows in (table, mixed)]
    assert (np.sort(keys[0].sum(axis=1)) == np.sort(keys[1].sum(axis=1))).all()
    assert not np.array_equal(mixed, table, equal_nan=True)
    again = datasets.create(name, copy="shuffled", seed=3).means(0, here.horizon)
    assert np.array_equal(mixed, again, equal_nan=True)
    block = next(
        place for place in range(0, here.horizon, panel.block) if np.array_equal(mixed[0], table[place], equal_nan=True)
    )
    assert np.array_equal(mixed[: panel.block], table[block : block + panel.block], equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_semi_real_copy_has_a_known_truth(name):
    panel = datasets.load(name)
    world = datasets.create(name, copy="semi-real", seed=1)
    cells = panel.cells.rows(panel.played(0))
    mask = world.allowed(0, world.horizon)
    offered = np.ones_like(cells.offered) if mask is None else mask
    truth = series.moving_average(cells.means, panel.smoothing)
    assert (world.means(0, world.horizon)[offered] == truth[offered]).all()
    chosen = offered.argmax(axis=1)
    rewards = world.rewards(0, chosen, seed=2)
    low, high = world.reward_range
    assert low <= rewards.min()
    assert rewards.max() <= high
    residual = rewards - world.means_of(0, chosen)
    # blocks of at most ten rounds hang together: 4 standard errors of so many independent blocks, seeds fixed
    assert abs(residual.mean()) < 4 * residual.std() / np.sqrt(len(residual) / panel.block)


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_policy_can_play(name):
    world = datasets.create(name)
    for build in (db.GPUCB, db.AdaOPKB):
        policy = build(world.arms, horizon=world.horizon, seed=0, reward_range=world.reward_range)
        trace = db.simulate(policy, world, rounds=200)
        assert (trace.regret >= 0).all()


def test_the_best_configuration_moves_with_the_phase():
    """Under noise slow learners win, under churn fast ones with decay, on clean images fast ones without."""
    panel = datasets.load("digits")
    starts = [0, *panel.changes]
    best = [panel.arms.points[panel.cells.means[start : start + 350].mean(axis=0).argmax()] for start in starts]
    rate, decay = np.array(best).T  # each scaled to [0, 1]
    clean, churn, noisy = [0, 3, 6], [1, 4, 7], [2, 5]
    assert rate[noisy].max() < 0.5 < min(rate[clean].min(), rate[churn].min())
    assert decay[clean].max() < decay[churn].min()


@pytest.mark.parametrize("name", NAMES[:2])
def test_drift_shows_where_it_should(name):
    world = datasets.create(name)
    table, block = world.means(0, world.horizon), {"flights": 42, "digits": 50}[name]
    assert datasets.drift_test(table, block=block).p_value < 0.01


@pytest.mark.parametrize("name", NAMES[:1])
def test_flights_are_real_ones(name):
    panel = datasets.load(name)
    assert len(panel.arms) == flights.ARMS
    assert panel.cells.offered.any(axis=1).all()
    assert 0.9 < panel.cells.offered.mean() < 1.0
    assert panel.cells.count.max() > 10
    east, north = panel.arms.points[panel.arms.index("LAX")] - panel.arms.points[panel.arms.index("BOS")]
    assert east < -3.5
    assert north < -0.5


def test_wrong_names_get_the_nearest_valid_one():
    with pytest.raises(InputError, match="did you mean 'flights'"):
        datasets.create("flight")
    with pytest.raises(InputError, match="did you mean 'shuffled'"):
        datasets.create("digits", copy="shufled")
    for offset in (-1, 5, 1.5, True):
        with pytest.raises(InputError, match="offset"):
            datasets.create("digits", offset=offset)


def test_absent_data_name_the_package():
    with pytest.raises(MissingDataError, match=r"pip install --no-deps nothing==1\.0"):
        data_file("driftbandits_no_such_module", "data.csv", package="nothing==1.0", dataset="none")
    with pytest.raises(ImportError, match="'none' needs"):
        data_file("driftbandits", "no-such-file.csv", package="nothing==1.0", dataset="none")
