"""Uniform draws every arm alike."""

import math

import numpy as np
import pytest

import driftbandits as db
from driftbandits.testing import POLICY_CHECKS


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_conforms(check):
    check(db.Uniform)


def test_uniform_is_uniform_for_ever():
    policy = db.Uniform(db.ArmSet(np.linspace(0, 1, 6)[:, None]), horizon=5000, seed=0)
    assert policy.steady_rounds() == 5000
    batch = policy.ask(size=5000)
    policy.tell(batch.ids, np.where(batch.arms == 2, 1.0, -1.0))
    assert policy.law().tolist() == [1 / 6] * 6
    assert policy.estimate().tolist() == [-1, -1, 1, -1, -1, -1]
    counts = np.bincount(batch.arms, minlength=6)
    assert abs(counts - 5000 / 6).max() < 5 * math.sqrt(5000 / 6)
