"""Small networks on eight arms, and how to play and compare policies that have them."""

from __future__ import annotations

import dataclasses

import numpy as np

from driftbandits import ArmSet, Constants
from driftbandits._util.seeding import stream
from driftbandits.design.blocks import Replay, draw_schedule
from driftbandits.environments import Piecewise
from driftbandits.environments.noise import UniformNoise

QUICK = Constants(sigma=1.0, failure_probability=1e-2, c0=1.3, c1=0.5, c2=0.3, c3=0.01, c4=0.5)
FIRES = dataclasses.replace(QUICK, c0=1e-9)  # any tested difference is a change
CALM = dataclasses.replace(QUICK, c0=1e6)
SMALL = {"width": 16, "depth": 3, "steps": 5, "weight_decay": 0.5}


def sphere(size=8, dimension=3, seed=0):
    points = np.random.default_rng(seed).standard_normal((size, dimension))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


POINTS = sphere()
ARMS = ArmSet(POINTS)


def reward(arm, sign=1):
    return sign * 0.9 * np.cos(3.0 * np.asarray(arm))


def flipping(arms, *, horizon, switches=(), seed=0):
    means = np.random.default_rng(seed).uniform(-0.85, 0.85, len(arms))
    rows = [(-1) ** k * means for k in range(len(switches) + 1)]
    return Piecewise(arms, rows, horizon=horizon, switches=switches, noise=UniformNoise(0.1))


def quiet_seed(block=2):
    """First seed whose schedule up to `block` has no replay but the blocks themselves."""
    for seed in range(100_000):
        coins = stream(seed, "schedule")
        if all(draw_schedule(j, coins).replays == (Replay(0, 2**j, j),) for j in range(block + 1)):
            return seed
    raise AssertionError("no such seed")


def stretch(policy, sign=1):
    """Play the rounds for which the law is certain to stay; the arms and the rewards told."""
    batch = policy.ask(size=min(policy.steady_rounds(), policy.horizon - policy.rounds))
    policy.tell(batch.ids, reward(batch.arms, sign))
    return batch.arms, reward(batch.arms, sign)


def source(policy):
    return policy.state_dict()["engine"]["features"]


def weights_of(network):
    return [network.arrays.give(w).copy() for w in network.weights]


def assert_weights(network, expected, **tolerance):
    for one, other in zip(weights_of(network), expected, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), **({"atol": 0, "rtol": 0} | tolerance))


def assert_same(one, other):
    """Equality of nested states with arrays, bit for bit."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    else:
        assert one == other
