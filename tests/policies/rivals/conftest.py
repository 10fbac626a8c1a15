"""Arms that all tests of this folder play on."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db


@pytest.fixture
def arms():
    return db.ArmSet(np.linspace(0, 1, 6)[:, None], RBF(0.2))
