"""Sizes computed from the variation: by their formulas, and balanced as the analyses want."""

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import InputError
from driftbandits.policies.gp import forgetting


def test_sizes_balance_their_terms():
    gain, horizon, variation = 150.0, 10_000, 3.0
    window = forgetting.kernel_window(horizon=horizon, variation=variation, gain=gain)
    drift = np.sqrt(gain) * window**1.5 * (1 + variation)
    noise = gain * horizon / np.sqrt(window)
    assert drift / noise == pytest.approx(1.0, rel=0.02)
    assert forgetting.kernel_discount(horizon=horizon, variation=variation, gain=gain) == pytest.approx(
        1 - 1 / window, abs=1e-4
    )
    assert forgetting.linear_window(horizon=horizon, variation=0.0, dimension=5) == horizon
    assert forgetting.linear_discount(horizon=10_000, variation=0.0, dimension=3) == 1.0
    with pytest.raises(InputError, match="variation"):
        forgetting.kernel_window(horizon=10, variation=-1.0, gain=1.0)


def test_sizes_are_the_corrected_formulas_within_the_horizon():
    linear = {"horizon": 10_000, "variation": 2.0, "dimension": 4}
    assert forgetting.linear_period(**linear) == int(np.floor(np.sqrt(2) * np.sqrt(10_000 / 3)))
    assert forgetting.kernel_window(horizon=50, variation=0.0, gain=1e6) == 50


ARMS = db.ArmSet(np.linspace(0, 1, 10)[:, None])
FORGETTING = {
    db.RestartGPUCB: ("period", "variation"),
    db.SlidingWindowGPUCB: ("window", "variation"),
    db.WeightedGPUCB: ("discount", "variation"),
    db.RestartLinUCB: ("period", "variation"),
    db.SlidingWindowLinUCB: ("window", "variation"),
    db.DiscountedLinUCB: ("discount", "variation"),
    db.SlidingWindowUCB: ("window", "switches"),
    db.DiscountedUCB: ("discount", "switches"),
}


@pytest.mark.parametrize(("kind", "names"), FORGETTING.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_size_is_what_is_given_else_computed_from_what_is_told_else_the_usual(kind, names):
    size, drift = names
    small = 0.9 if size == "discount" else 7
    assert getattr(kind(ARMS, **{size: small, drift: 2.0}), size) == small
    usual, told = kind(ARMS), kind(ARMS, **{drift: 2.0})
    assert not usual.needs_horizon
    assert told.needs_horizon
    for policy in (usual, told):
        policy.ask()
    assert getattr(usual, size) == usual._usual_size
    assert getattr(told, size) == told._compute_size(1_024)  # the first horizon where none is known
    assert getattr(told, size) != getattr(usual, size)
    again = kind.restore(ARMS, usual.state_dict())
    assert getattr(again, size) == usual._usual_size


def test_the_usual_ridge_follows_the_noise_and_not_the_unit_of_rewards():
    assert db.GPUCB(ARMS).ridge == 0.1
    assert db.NeuralUCB(ARMS, width=8).ridge == 0.3
    assert db.GPUCB(ARMS, noise=0.5).ridge == 2.5
    assert db.GPUCB(ARMS, noise=5.0, reward_range=(0.0, 20.0)).ridge == 2.5
    assert db.GPUCB(ARMS, noise=0.0).ridge == 1e-4
    assert db.GPUCB(ARMS, noise=0.5, ridge=0.2).ridge == 0.2
