"""The rules of the factor beta, by their formulas."""

import math

import numpy as np
import pytest

from driftbandits.errors import InputError
from driftbandits.policies.gp.beta import CONFIDENCE_RULES, check_beta, confidence_factor, drift_factor


def test_confidence_rules():
    kwargs = {"gain": 3.0, "ridge": 0.25, "noise": 0.2, "bound": 1.5, "failure_probability": 0.1}
    log = np.log(10.0)
    assert confidence_factor("ridge", **kwargs) == pytest.approx(1.5 + 0.4 * np.sqrt(6 + 2 * log))
    assert confidence_factor("igp", **kwargs) == pytest.approx(1.5 + 0.2 * np.sqrt(2 * (4 + log)))
    assert confidence_factor("paper", **kwargs) == pytest.approx(1 + np.sqrt(2 * (7 + log)))
    assert confidence_factor("authors", **kwargs) == pytest.approx(1.5 + 0.2 * np.sqrt(2 * (3 + log)))
    assert confidence_factor(2.5, **kwargs) == 2.5


def test_drift_rules():
    assert drift_factor(0.7, arms=5, rounds=9, failure_probability=0.1) == 0.7
    beta = 2 * math.log(5 * math.pi**2 * 81 / 0.6)
    assert drift_factor("finite", arms=5, rounds=9, failure_probability=0.1) == pytest.approx(math.sqrt(beta))
    assert drift_factor("practical", arms=5, rounds=9, failure_probability=0.1) == pytest.approx(
        math.sqrt(0.8 * math.log(36))
    )


@pytest.mark.parametrize("wrong", ["finite", "", -1.0, float("nan"), True, None])
def test_other_factors_are_refused(wrong):
    with pytest.raises(InputError, match="beta must be"):
        check_beta(wrong, CONFIDENCE_RULES)
