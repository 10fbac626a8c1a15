"""How much there is to learn from a set of arms: the paper's information gain, and the effective dimension.

| paper       | name                | meaning                                                              |
|-------------|---------------------|----------------------------------------------------------------------|
| gamma_{phi,T} | information_gain  | max over laws P of log det S(T P / sigma, 1)                         |
| T           | horizon             | number of rounds                                                     |
| sigma       | sigma               | regularisation, so that lambda = sigma / T                           |
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.blas_threads import one_blas_thread
from driftbandits.checks import check_positive
from driftbandits.design.measure import Information
from driftbandits.design.solve import read_features, read_law, solve_design
from driftbandits.types import Floats


@one_blas_thread
def information_gain(arms: ArmSet | Floats, *, horizon: float, sigma: float, tolerance: float = 1e-6) -> float:
    """Largest information that `horizon` rounds can bring, in the paper's convention, without the factor 1/2.

        gamma = max_P log det(I + (T / sigma) Phi' diag(P) Phi) = max_P log det S(P, sigma / T) - r log(sigma / T)

    GP-UCB papers use half of this.

    Parameters
    ----------
    arms : ArmSet, or an (N, r) array taken as the features Phi themselves
    horizon : T, the number of rounds
    sigma : of the paper; 1 to 100 is usual
    tolerance : by what share the value may be too small, by certificate

    Returns
    -------
    float
        At most gamma, and within `tolerance` of it.

    Raises
    ------
    InputError
        For a horizon, sigma or tolerance that is not positive.
    ConvergenceError
        As `solve_design` does.

    >>> round(information_gain(np.eye(4), horizon=100, sigma=1.0), 6), round(4 * float(np.log(1 + 100 / 4)), 6)
    (13.032386, 13.032386)
    """
    features = read_features(arms)
    horizon = check_positive("horizon (the number of rounds)", horizon)
    regulariser = check_positive("sigma (1 to 100 is usual)", sigma) / horizon
    tolerance = check_positive("tolerance (a share of the value; 1e-6 is usual)", tolerance)
    # Playing one arm for ever brings log(1 + |phi|^2 / lambda): a share of that is at most the same share of gamma.
    least = float(np.log1p(np.einsum("ij,ij->i", features, features).max() / regulariser))
    if least == 0.0:
        return 0.0
    design = solve_design(arms, regulariser=regulariser, tolerance=tolerance * least)
    return max(0.0, design.log_det - int(features.shape[1]) * math.log(regulariser))


@one_blas_thread
def effective_dimension(
    arms: ArmSet | Floats, *, regulariser: float, probabilities: Any = None, tolerance: float = 1e-6
) -> float:
    """Number of directions that a law can tell apart: `trace(S^-1 (S - lambda I)) = sum_i p_i leverage_i`.

    Parameters
    ----------
    arms : ArmSet, or an (N, r) array taken as the features Phi themselves
    regulariser : lambda, sigma / T in the paper
    probabilities : the law, shape (N,); by default the optimal design at costs zero, where the value is also the
        largest leverage of any arm to within `tolerance` (Lemma 1)
    tolerance : of that design

    Returns
    -------
    float
        At most the rank, and at most the number of arms with mass.

    Raises
    ------
    InputError
        For a regulariser that is not positive, and for probabilities that are no law over these arms.

    >>> round(effective_dimension(np.eye(4), regulariser=0.25), 6)
    2.0
    """
    features = read_features(arms)
    regulariser = check_positive("regulariser (sigma / T in the paper; 1e-2 is usual)", regulariser)
    if probabilities is None:
        law = solve_design(arms, regulariser=regulariser, tolerance=tolerance).probabilities
    else:
        law = read_law("probabilities", probabilities, features.shape[0])
    used = features[law > 0.0]
    leverage = Information(features, law, regulariser).leverage(used, np.einsum("ij,ij->i", used, used))
    return float(law[law > 0.0] @ leverage)
