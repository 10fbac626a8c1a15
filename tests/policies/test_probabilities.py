"""A law adds up to 1, and no probability is larger, whatever rounding adds up to."""

from __future__ import annotations

import numpy as np
import pytest

from driftbandits import ArmSet
from driftbandits.policies import POLICIES
from tests.golden.settings import SETTINGS

ARMS = 7


@pytest.mark.parametrize("name", POLICIES)
def test_one_allowed_arm_has_exactly_1(name):
    arms = ArmSet(np.random.default_rng(0).random((ARMS, 2)))
    policy = POLICIES[name](arms, horizon=60, seed=1, reward_range=(-1.0, 1.0), **SETTINGS[name])
    for now in range(60):
        law = policy.law()
        assert abs(law.sum() - 1.0) <= 1e-15 * ARMS
        assert law.max() <= 1.0
        only = np.arange(ARMS) == now % ARMS
        assert policy.law(only).tolist() == only.tolist()
        choice = policy.ask(allowed=only if now % 2 else None)
        assert choice.probability <= 1.0
        assert choice.probability == 1.0 or not now % 2
        policy.tell(choice, float(np.cos(now) * 0.5))


def test_autobandit_keeps_its_floor():
    policy = POLICIES["AutoBandit"](ArmSet(np.random.default_rng(0).random((ARMS, 2))), seed=1, floor=0.07)
    for now in range(60):
        assert policy.law().min() >= 0.07 / ARMS
        policy.tell(policy.ask(), float(np.cos(now) * 0.5))
