"""One small world of every kind; a test that asks for `world` runs on each."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from driftbandits import environments as envs
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.reward_functions import sphere_arms

ARMS = 12
HORIZON = 600  # more than two blocks of the forgetting drift


def small_arms() -> ArmSet:
    return sphere_arms(5, size=ARMS, dimension=2, kernel={"name": "rbf", "length_scale": 0.5})


def _tabular() -> envs.Environment:
    table = np.random.default_rng(1).uniform(-0.7, 0.7, (HORIZON, ARMS)).round(1)  # rounding makes ties
    table[100:200] = table[100]
    return envs.Tabular(small_arms(), table, noise=envs.TruncatedGaussianNoise(0.2))


def _piecewise() -> envs.Environment:
    values = np.random.default_rng(2).uniform(-0.7, 0.7, (4, ARMS))
    values[2] = values[1]  # a switch that changes nothing
    return envs.Piecewise(small_arms(), values, horizon=HORIZON, switches=(1, 300, 599), noise=envs.StudentTNoise(0.1))


def _switching(kind: str) -> envs.Environment:
    return envs.SwitchingKernel(small_arms(), horizon=HORIZON, switches=(150, 400), kind=kind, seed=4)  # type: ignore[arg-type]


def _cosine() -> envs.Environment:
    knots = ((50, 0.0), (150, math.pi), (200, math.pi), (201, 4.0), (500, 4.0), (501, 0.0))
    return envs.CosineBandit(small_arms(), [0.6, 0.8], horizon=HORIZON, phase=knots, noise=envs.UniformNoise(0.2))


def _forgetting() -> envs.Environment:
    return envs.ForgettingDrift(
        small_arms(), horizon=HORIZON, rate=0.05, seed=6, offset=0.5, peak=0.4, noise=envs.BernoulliNoise()
    )


def _turning() -> envs.Environment:
    return envs.DriftingLinear(small_arms(), horizon=HORIZON, speed=0.02, seed=8)


def _jumping() -> envs.Environment:
    return envs.SwitchingLinear(small_arms(), horizon=HORIZON, switches=(150, 400), kind="redraw", seed=7)


BUILDERS: dict[str, Callable[[], envs.Environment]] = {
    "tabular": _tabular,
    "piecewise": _piecewise,
    "flip": lambda: _switching("flip"),
    "redraw": lambda: _switching("redraw"),
    "partial": lambda: _switching("partial"),
    "hidden": lambda: _switching("hidden"),
    "cosine": _cosine,
    "forgetting": _forgetting,
    "linear jumps": _jumping,
    "linear drift": _turning,
}


@pytest.fixture
def arms() -> ArmSet:
    return small_arms()


@pytest.fixture(params=list(BUILDERS))
def build(request: pytest.FixtureRequest) -> Callable[[], envs.Environment]:
    """Builds a fresh copy of one world."""
    return BUILDERS[request.param]


@pytest.fixture
def world(build: Callable[[], envs.Environment]) -> envs.Environment:
    return build()
