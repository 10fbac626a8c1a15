"""Means of arms, one by one."""

import numpy as np

from driftbandits.policies.plain.means import ArmMeans


def test_arm_means_forget_exactly():
    means = ArmMeans(2)
    for value in (0.1, 0.2, 0.3):
        means.shift(0, 1.0, value)
    for value in (0.1, 0.2, 0.3):
        means.shift(0, -1.0, value)
    assert means.sums[0] == 0.0
    assert means.index(1.0).tolist() == [np.inf, np.inf]
