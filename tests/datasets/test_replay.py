"""Records by round and arm, and the world that draws from them."""

import pickle

import numpy as np
import pytest

import driftbandits as db
from driftbandits.datasets import SeriesReplay
from driftbandits.datasets.series import collect, from_table
from driftbandits.errors import InputError

ROUNDS, ARMS = 60, 5


@pytest.fixture
def record():
    """Up to six rewards per cell, none in some; arm 0 is always there."""
    draws = np.random.default_rng(0)
    rounds, arms = draws.integers(ROUNDS, size=700), draws.integers(ARMS, size=700)
    rounds, arms = np.append(rounds, np.arange(ROUNDS)), np.append(arms, np.zeros(ROUNDS, dtype=int))
    return rounds, arms, draws.uniform(-1, 1, len(rounds))


@pytest.fixture
def world(record):
    return SeriesReplay(db.ArmSet(np.eye(ARMS)), collect(*record, shape=(ROUNDS, ARMS)), reward_range=(-1, 1))


def test_cells_hold_what_was_recorded(record):
    rounds, arms, rewards = record
    cells = collect(rounds, arms, rewards, shape=(ROUNDS, ARMS))
    low, high = cells.ends()
    for t in range(ROUNDS):
        for a in range(ARMS):
            own = np.sort(rewards[(rounds == t) & (arms == a)])
            first = cells.first[t, a]
            assert (cells.values[first : first + cells.count[t, a]] == own).all()
            if len(own):
                assert cells.means[t, a] == pytest.approx(own.mean())
                assert (low[t, a], high[t, a]) == (own[0], own[-1])
            else:
                assert np.isnan([cells.means[t, a], low[t, a], high[t, a]]).all()


def test_every_record_is_as_likely_as_any_other(world, record):
    """Over an even grid of uniforms the mean is the cell's, and the largest uniform draws the last of the cell."""
    rounds, arms, rewards = record
    own = np.sort(rewards[(rounds == 3) & (arms == 0)])
    grid = (np.arange(len(own) * 100) + 0.5) / (len(own) * 100)
    drawn = np.array([world.observe(3, np.array([0]), np.zeros(1), np.array([u]))[0] for u in grid])
    assert (drawn == np.repeat(own, 100)).all()
    assert world.observe(3, np.array([0]), np.zeros(1), np.array([1 - 2.0**-53]))[0] == own[-1]


def test_rewards_are_pure_and_masked(world):
    chosen = np.zeros(ROUNDS, dtype=int)
    whole = world.rewards(0, chosen, seed=4)
    assert (whole[17:40] == world.rewards(17, chosen[17:40], seed=4)).all()
    assert (whole != world.rewards(0, chosen, seed=5)).any()
    assert len(world.rewards(5, [], seed=0)) == 0
    empty = np.argwhere(~world.allowed(0, ROUNDS))
    assert len(empty)
    with pytest.raises(InputError, match="not offered"):
        world.rewards(int(empty[0, 0]), [int(empty[0, 1])], seed=0)
    trace = db.simulate(db.GPUCB(world.arms, seed=0), world, seed=4)
    assert (trace.reward == world.rewards(0, trace.arm, 4)).all()
    copy = pickle.loads(pickle.dumps(world))  # noqa: S301
    assert (copy.rewards(0, chosen, seed=4) == whole).all()


def test_its_noise_cannot_be_used_by_mean(world):
    assert world.reward_range == (-1.0, 1.0)
    for call in (lambda: world.noise.sample(np.zeros(1), np.zeros(1)), lambda: world.noise.deviation(np.zeros(1))):
        with pytest.raises(InputError, match="rewards"):
            call()


def test_a_full_table_offers_every_arm():
    table = np.random.default_rng(1).uniform(0, 1, (20, 4))
    world = SeriesReplay(db.ArmSet(np.eye(4)), from_table(table), reward_range=(0, 1))
    assert world.allowed(0) is None
    assert (world.means(0, 20) == table).all()
    chosen = np.arange(20) % 4
    assert (world.rewards(0, chosen, seed=0) == table[np.arange(20), chosen]).all()
