"""Worlds that memory cannot hold, and numbers that are none, are refused before any work."""

import numpy as np
import pytest

from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments import Piecewise, Tabular
from driftbandits.environments.base import uniforms
from driftbandits.environments.drifting import ForgettingDrift
from driftbandits.environments.noise import GaussianNoise
from driftbandits.environments.reward_functions import CosineBandit, sphere_arms
from driftbandits.environments.switching import SwitchingKernel
from driftbandits.errors import InputError
from driftbandits.text import shown

ARMS = ArmSet([[0.0], [0.5], [1.0]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: CosineBandit(ARMS, [1.0], horizon=10**15), "phases of 1,000,000,000,000,000 rounds would need"),
        (lambda: ForgettingDrift(ARMS, horizon=10**17), "checkpoints of 100,000,000,000,000,000 rounds would need"),
        (lambda: SwitchingKernel.sample(size=10**12), "1,000,000,000,000 points in 10 dimensions would need"),
        (lambda: sphere_arms(0, size=10**12), "1,000,000,000,000 points in 10 dimensions would need"),
        (lambda: uniforms(0, 0, 10**14), "noise of 100,000,000,000,000 rounds would need"),
    ],
)
def test_what_memory_cannot_hold_is_refused_at_once(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_the_rewards_of_many_segments_are_counted_before_they_are_drawn(monkeypatch):
    from driftbandits._util import checks

    monkeypatch.setattr(checks, "NEVER_REFUSED_BYTES", 0)
    monkeypatch.setattr(checks, "memory_limit", lambda: 1e5)
    with pytest.raises(InputError, match=r"rewards of 5,000 segments would need .* fewer switches"):
        SwitchingKernel(ARMS, horizon=10_000, switches=range(1, 5_000), kind="redraw")


@pytest.mark.parametrize("horizon", [2**62 + 1, 10**400], ids=shown)
def test_horizons_beyond_64_bits_are_refused(horizon):
    with pytest.raises(InputError, match=r"horizon must be at most 2\^62"):
        Piecewise(ARMS, np.zeros((1, 3)), horizon=horizon)


def test_a_long_horizon_that_costs_nothing_is_fine():
    world = Piecewise(ARMS, np.zeros((1, 3)), horizon=10**18)
    assert len(world.rewards(10**17, [0, 1], seed=0)) == 2


@pytest.mark.parametrize("value", [10**400, 10**5000, "0.1", 1j, np.timedelta64(1), True, None], ids=shown)
def test_scales_that_are_no_numbers_are_refused(value):
    with pytest.raises(InputError, match=r"sd must be a (finite non-negative )?number, got"):
        GaussianNoise(value)
    with pytest.raises(InputError, match=r"peak must be a (finite positive )?number, got"):
        CosineBandit(ARMS, [1.0], horizon=10, peak=value)


@pytest.mark.parametrize(
    "means",
    [
        np.zeros((2, 3)) * 1j,
        np.zeros((2, 3)).astype(str),
        np.zeros((2, 3), dtype="M8[s]"),
        np.full((2, 3), 10**400, dtype=object),
        np.ma.array(np.zeros((2, 3)), mask=np.eye(2, 3)),
    ],
)
def test_tables_that_are_no_numbers_are_refused(means):
    with pytest.raises(InputError, match="means must be numbers"):
        Tabular(ARMS, means)
