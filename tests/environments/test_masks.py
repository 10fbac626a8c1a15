"""Worlds that do not offer every arm in every round."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from driftbandits.environments import Tabular
from driftbandits.environments import base as base_module
from driftbandits.environments.noise import GaussianNoise, TruncatedGaussianNoise
from driftbandits.environments.reward_functions import CosineBandit
from driftbandits.errors import InputError

HORIZON = 300


@pytest.fixture
def table() -> np.ndarray:
    table = np.random.default_rng(1).uniform(-0.7, 0.7, (HORIZON, 12)).round(1)  # rounding makes ties
    table[100:200] = table[100]
    return table


@pytest.fixture
def mask() -> np.ndarray:
    mask = np.random.default_rng(2).random((HORIZON, 12)) < 0.3
    mask[np.arange(HORIZON), np.random.default_rng(3).integers(12, size=HORIZON)] = True
    return mask


def test_by_default_every_arm_is_offered(arms, table) -> None:
    assert Tabular(arms, table).allowed(0, HORIZON) is None
    assert CosineBandit(arms, [1.0, 0.0], horizon=10).allowed(3) is None


def test_an_open_mask_changes_no_number(arms, table) -> None:
    plain, masked = Tabular(arms, table), Tabular(arms, table, allowed=np.ones_like(table, dtype=bool))
    chosen = np.random.default_rng(4).integers(12, size=HORIZON)
    assert (plain.rewards(0, chosen, seed=3) == masked.rewards(0, chosen, seed=3)).all()
    assert (plain.best(0, HORIZON) == masked.best(0, HORIZON)).all()
    assert plain.mean_range == masked.mean_range
    assert plain.variation == masked.variation
    assert plain.best_arm_changes == masked.best_arm_changes
    assert plain.change_rounds.tolist() == masked.change_rounds.tolist()


def test_what_is_not_offered_never_shows(arms, table, mask) -> None:
    """Huge values behind the mask, and NaN, give the same world."""
    high = Tabular(arms, np.where(mask, table, 1e9), allowed=mask, noise=TruncatedGaussianNoise(0.1))
    gone = Tabular(arms, np.where(mask, table, np.nan), allowed=mask, noise=TruncatedGaussianNoise(0.1))
    assert np.array_equal(high.means(0, HORIZON), gone.means(0, HORIZON), equal_nan=True)
    assert high.mean_range == gone.mean_range == (table[mask].min(), table[mask].max())
    assert (high.best(0, HORIZON) == np.where(mask, table, -np.inf).max(axis=1)).all()
    assert (high.best(17, 30) == gone.best(17, 30)).all()
    chosen = mask.argmax(axis=1)
    assert (high.means_of(0, chosen) == table[np.arange(HORIZON), chosen]).all()
    assert np.isfinite(gone.rewards(0, chosen, seed=1)).all()
    assert (gone.allowed(5, 7) == mask[5:12]).all()


@pytest.mark.parametrize("cells", [2**20, 50])  # in one piece, and four rounds per piece
def test_truth_is_that_of_arms_offered_twice(arms, table, mask, cells, monkeypatch) -> None:
    monkeypatch.setattr(base_module, "LARGEST_TABLE", cells)
    world = Tabular(arms, table, allowed=mask)
    steps = [
        max((abs(table[t, a] - table[t - 1, a]) for a in range(12) if mask[t, a] and mask[t - 1, a]), default=0.0)
        for t in range(1, HORIZON)
    ]
    assert world.change_rounds.tolist() == [t + 1 for t, step in enumerate(steps) if step > 0]
    assert world.variation == pytest.approx(sum(steps), rel=1e-12)
    shown = np.where(mask, table, -np.inf)
    cost = np.where(shown[0] == shown[0].max(), 0.0, np.inf)
    for row in shown[1:]:
        cost = np.where(row == row.max(), np.minimum(cost, cost.min() + 1), np.inf)
    assert world.best_arm_changes == cost.min()


def test_an_arm_not_offered_has_no_reward(arms, table, mask) -> None:
    mask[7, 3] = False
    world = Tabular(arms, table, allowed=mask)
    for call in (lambda: world.rewards(7, [3], seed=0), lambda: world.means_of(7, [3])):
        with pytest.raises(InputError, match="arm 3 is not offered in round 7"):
            call()
    chosen = mask.argmax(axis=1)
    chosen[7] = 3
    with pytest.raises(InputError, match="arm 3 is not offered in round 7"):
        world.rewards(0, chosen, seed=0)
    assert len(world.rewards(7, [], seed=0)) == 0


@pytest.mark.parametrize("shape", [(12,), (HORIZON, 11), (0, 12), (HORIZON - 1, 12)])
def test_masks_of_the_wrong_shape_are_refused(arms, table, shape) -> None:
    with pytest.raises(InputError, match="shape"):
        Tabular(arms, table, allowed=np.ones(shape, dtype=bool))


def test_bad_masks_are_refused(arms, table, mask) -> None:
    with pytest.raises(InputError, match="allowed must be booleans"):
        Tabular(arms, table, allowed=mask.astype(int))
    table[4, 2] = np.nan
    mask[4, 2] = True
    with pytest.raises(InputError, match=r"means\[4, 2\] is nan; every entry that is offered"):
        Tabular(arms, table, allowed=mask)
    mask[9] = False
    with pytest.raises(InputError, match="no arm in round 9"):
        Tabular(arms, table, allowed=mask)


def test_a_mask_is_copied_frozen_and_pickled(arms, table, mask) -> None:
    world = Tabular(arms, table, allowed=mask, noise=GaussianNoise(0.1))
    before = mask[0].copy()
    mask[0] = ~mask[0]
    assert (world.allowed(0) == before).all()
    with pytest.raises(ValueError, match="read-only"):
        world.allowed(0)[0, 0] = True
    copy = pickle.loads(pickle.dumps(world))  # noqa: S301
    assert (copy.allowed(0, HORIZON) == world.allowed(0, HORIZON)).all()
    assert "allowed=<300 x 12 array>" in repr(copy)
    with pytest.raises(InputError, match="rounds"):
        world.allowed(HORIZON)
