import numpy as np
import pytest

from driftbandits.logs.variation import variation
from tests.logs.making import logged, moving_means


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
