import numpy as np
import pytest

from driftbandits.logs import Log
from driftbandits.logs.variation import find_season, variation
from tests.logs.making import logged, moving_means


def rhythm(period, rounds=2_000, seed=0):
    wave = 0.15 * np.sin(2 * np.pi * np.arange(rounds) / period)
    means = 0.5 + wave[:, None] * np.array([1.0, -1.0, 1.0])
    return logged(means, seed, learning=False)


@pytest.mark.parametrize("period", [50, 200, 400])
def test_a_period_is_found(period):
    season = find_season(rhythm(period))
    assert season is not None
    assert season.period == pytest.approx(period, rel=0.1)
    assert season.p_value == 1 / 200


@pytest.mark.parametrize("kind", ["still", "switch", "drift"])
def test_other_worlds_have_no_rhythm(kind):
    """Approximate: three logs of each kind, at seeds that are fixed."""
    for seed in range(3):
        assert find_season(logged(moving_means(kind, 600, 3), seed)) is None


def test_times_are_the_clock():
    log = rhythm(200)
    timed = Log(log.round, log.arm, log.reward, log.probability, log.names, time=3_600.0 * log.round)
    assert find_season(timed).period == pytest.approx(200 * 3_600, rel=0.1)


def test_variation_is_corrected_for_noise():
    still = variation(logged(moving_means("still", 3_000, 4), 0, learning=False))
    assert still.total < 0.05
    assert still.total <= still.by_chance
    means = np.repeat([[0.3, 0.6], [0.6, 0.6]], 1_500, axis=0)
    moved = variation(logged(means, 0, learning=False))
    assert moved.total == pytest.approx(0.3, abs=0.05)
    assert moved.total > moved.by_chance
    assert moved.window == 300
    assert moved.seen == 9
