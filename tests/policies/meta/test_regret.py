"""The regret bounds of MASTER's bases, by their formulas."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.policies.meta.regret import regret_rate


def test_rates_follow_the_formulas():
    points = np.random.default_rng(0).standard_normal((30, 3))
    points /= np.linalg.norm(points, axis=1).max()
    arms, horizon = db.ArmSet(points, RBF(0.5)), 5000
    given = {"horizon": horizon, "noise": 0.1, "failure_probability": 0.01}
    noise = 0.1 * math.sqrt(0.5 * math.log(horizon / 0.01))
    log_det = 3 * math.log(1 + horizon / 3)
    radius = 1.0 + 0.1 * math.sqrt(2 * math.log(100) + log_det)  # OFUL's, with lambda = 1
    linear = regret_rate(db.LinUCB(arms, ridge=1.0, beta="ridge"), **given)
    assert linear == pytest.approx(radius * math.sqrt(log_det / math.log(2)) + noise)
    gain = 0.5 * db.information_gain(arms, horizon=horizon, sigma=0.05)
    beta = 1.0 + 0.1 / math.sqrt(0.05) * math.sqrt(2 * gain + 2 * math.log(100))
    kernel = regret_rate(db.GPUCB(arms, ridge=0.05, beta="ridge"), scale=2.0, **given)
    assert kernel == pytest.approx(2 * (beta * math.sqrt(2 * gain / math.log(21)) + noise))


def test_of_other_bases_nothing_is_known():
    arms = db.ArmSet([[0.0], [1.0]])
    assert regret_rate(db.SlidingWindowUCB(arms, window=5), horizon=100, noise=0.1, failure_probability=0.01) == 1.0
