"""Sizes computed from the variation: by their formulas, and balanced as the analyses want."""

import numpy as np
import pytest

from driftbandits.errors import InputError
from driftbandits.policies.gp import sizes


def test_sizes_balance_their_terms():
    gain, horizon, variation = 150.0, 10_000, 3.0
    window = sizes.kernel_window(horizon=horizon, variation=variation, gain=gain)
    drift = np.sqrt(gain) * window**1.5 * (1 + variation)
    noise = gain * horizon / np.sqrt(window)
    assert drift / noise == pytest.approx(1.0, rel=0.02)
    assert sizes.kernel_discount(horizon=horizon, variation=variation, gain=gain) == pytest.approx(
        1 - 1 / window, abs=1e-4
    )
    assert sizes.linear_window(horizon=horizon, variation=0.0, dimension=5) == horizon
    assert sizes.linear_window_before_erratum(horizon=horizon, variation=1.0, dimension=5) > sizes.linear_window(
        horizon=horizon, variation=1.0, dimension=5
    )
    assert sizes.linear_discount(horizon=10_000, variation=0.0, dimension=3) == 1.0
    with pytest.raises(InputError, match="variation"):
        sizes.kernel_window(horizon=10, variation=-1.0, gain=1.0)


def test_sizes_before_the_erratum_are_the_published_formulas():
    kernel = {"horizon": 10_000, "variation": 2.0, "gain": 4.0}
    linear = {"horizon": 10_000, "variation": 2.0, "dimension": 4}
    assert sizes.kernel_window_before_erratum(**kernel) == int(np.ceil(20_000 ** (2 / 3)))
    assert sizes.kernel_discount_before_erratum(**kernel) == pytest.approx(1 - (2 / 40_000) ** (2 / 3))
    assert sizes.linear_window_before_erratum(**linear) == int(np.ceil(20_000 ** (2 / 3)))
    assert sizes.linear_period_before_erratum(**linear) == int(np.floor((40_000 / 3) ** (2 / 3)))
    assert sizes.linear_discount_before_erratum(**linear) == pytest.approx(1 - (2 / 40_000) ** (2 / 3))
    assert sizes.linear_period(**linear) == int(np.floor(np.sqrt(2) * np.sqrt(10_000 / 3)))
    for size in (sizes.kernel_window_before_erratum, sizes.kernel_window):
        assert size(horizon=50, variation=0.0, gain=1e6) == 50
