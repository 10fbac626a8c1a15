"""How far the posterior mean of `CalibratedOPKB` may be off, by the Gaussian process it believes in."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from driftbandits.policies.calibrated.evidence import LEVEL_VARIANCE
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.types import Floats


def posterior_deviation(surrogate: Surrogate) -> Floats:
    """Standard deviation of every arm's reward, shape (N,): of F x with x ~ N(0, A^-1), A = I + F'nF / s^2."""
    features = surrogate.present
    level = np.full((len(features), 1), math.sqrt(LEVEL_VARIANCE))
    F = np.hstack([math.sqrt(surrogate.signal) * features, level])
    counts = surrogate.totals().counts
    A = (F.T * counts) @ F / surrogate.noise_variance
    A[np.diag_indices_from(A)] += 1.0
    factor = np.linalg.cholesky(A)
    spread = scipy.linalg.solve_triangular(factor, F.T, lower=True, check_finite=False)
    return np.asarray(np.sqrt(np.einsum("ra,ra->a", spread, spread)))
