"""Forgetting drift: its law is that of the recursion, its memory bounded, its squash as stated."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.drifting import BLOCK_ROUNDS, ForgettingDrift
from driftbandits.errors import InputError

RATE = 0.01


def _process(seed: int, *, rate: float = RATE, horizon: int = 4 * BLOCK_ROUNDS) -> np.ndarray:
    """z_t of one arm set of rank 8, shape (horizon, 8): independent standard processes."""
    arms = ArmSet.from_features(np.eye(8))
    world = ForgettingDrift(arms, horizon=horizon, rate=rate, seed=seed)
    return np.concatenate([world.coefficients(b) for b in range(horizon // BLOCK_ROUNDS)])


@pytest.mark.statistical
def test_the_process_is_stationary_with_the_stated_correlation() -> None:
    # 150 seeds x 8 features = 1,200 independent processes; at each pair of rounds the mean product is
    # compared with c = (1 - rate)^(lag / 2), sd sqrt((1 + c^2) / 1200); 60 at 4.5 sd: false alarm below 5e-4
    paths = np.concatenate([_process(seed).T for seed in range(150)])
    for start in (
        0,
        100,
        BLOCK_ROUNDS - 3,
        BLOCK_ROUNDS,
        2 * BLOCK_ROUNDS + 50,
        3 * BLOCK_ROUNDS - 1,
    ):  # inside, up to and across checkpoints
        for lag in (0, 1, 2, 5, 10, 50, 100, 200, BLOCK_ROUNDS - 1, BLOCK_ROUNDS):
            product = paths[:, start] * paths[:, min(start + lag, 4 * BLOCK_ROUNDS - 1)]
            expected = (1 - RATE) ** (min(lag, 4 * BLOCK_ROUNDS - 1 - start) / 2)
            assert abs(product.mean() - expected) < 4.5 * np.sqrt((1 + expected**2) / 1200)


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [1e-4, 0.3, 0.99])
def test_the_steps_are_independent_of_the_past(rate: float) -> None:
    # steps g_t = (z_t - sqrt(1-rate) z_{t-1}) / sqrt(rate) must be white with variance 1, into
    # checkpoints too: 8 x 40 x 1,023 of them; 12 comparisons at 4.5 sd: false alarm below 1e-4
    paths = np.stack([_process(seed, rate=rate) for seed in range(40)])
    steps = (paths[:, 1:] - np.sqrt(1 - rate) * paths[:, :-1]) / np.sqrt(rate)
    n = steps.size
    assert abs((steps**2).mean() - 1) < 4.5 * np.sqrt(2 / n)
    assert abs((steps[:, 1:] * steps[:, :-1]).mean()) < 4.5 / np.sqrt(n)
    assert abs((steps * paths[:, :-1]).mean()) < 4.5 / np.sqrt(n)
    at_checkpoints = steps[:, BLOCK_ROUNDS - 1 :: BLOCK_ROUNDS]  # the step into each checkpoint
    assert abs((at_checkpoints**2).mean() - 1) < 4.5 * np.sqrt(2 / at_checkpoints.size)


def test_means_are_the_squashed_process(arms) -> None:
    world = ForgettingDrift(arms, horizon=BLOCK_ROUNDS, rate=0.1, seed=3, sd=0.5, peak=0.7, offset=0.1)
    process = world.coefficients(0) @ arms.features.T
    np.testing.assert_allclose(world.means(0, BLOCK_ROUNDS), 0.7 * np.tanh(0.5 * process / 0.7) + 0.1, atol=1e-12)
    assert world.mean_range == pytest.approx((-0.6, 0.8))


def test_a_longer_horizon_keeps_the_first_rounds(arms) -> None:
    short = ForgettingDrift(arms, horizon=300, rate=0.1, seed=3)
    longer = ForgettingDrift(arms, horizon=3000, rate=0.1, seed=3)
    assert (short.means(0, 300) == longer.means(0, 300)).all()


def test_every_round_is_a_change(arms) -> None:
    assert ForgettingDrift(arms, horizon=700, rate=1e-4, seed=0).segments == 700


def test_many_arms_take_smaller_tiles_and_little_memory() -> None:
    points = np.linspace(0, 1, 20_000)[:, None]
    arms = ArmSet(points, kernel={"name": "rbf", "length_scale": 0.3})
    world = ForgettingDrift(arms, horizon=100_000, rate=0.01, seed=0)
    tracemalloc.start()
    world.means_of(50_000, np.arange(300))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # a block of all arms would be 41 MB per copy, the horizon 16 GB
    whole = world.means(50_100, 100)
    assert (world.means(50_163)[0] == whole[63]).all()


@pytest.mark.parametrize(
    "settings", [{"rate": 0.0}, {"rate": 1.0}, {"rate": -0.1}, {"sd": 0.0}, {"peak": -1.0}, {"horizon": 0}]
)
def test_bad_settings_are_refused(arms, settings) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        ForgettingDrift(arms, **{"horizon": 10, "seed": 0, **settings})
