"""`solve_design` checks the input, chooses a method and returns a certified design; information gain rests on it.

How much there is to learn from a set of arms: the paper's information gain, and the effective dimension.

| paper       | name                | meaning                                                              |
|-------------|---------------------|----------------------------------------------------------------------|
| gamma_{phi,T} | information_gain  | max over laws P of log det S(T P / sigma, 1)                         |
| T           | horizon             | number of rounds                                                     |
| sigma       | sigma               | regularisation, so that lambda = sigma / T                           |
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from driftbandits._util.checks import FLOAT_BYTES, as_floats, check_memory, check_positive
from driftbandits._util.guard import one_blas_thread
from driftbandits.arms.arm_set import ArmSet
from driftbandits.design.active_set import solve_active_set
from driftbandits.design.interior_point import possible_support, solve_interior_point
from driftbandits.design.problem import Design, DesignProblem, Information, Status
from driftbandits.errors import ConvergenceError, InputError
from driftbandits.text import counted, shown
from driftbandits.types import Floats, Ints

_INTERIOR_POINT_ARMS = 200  # beyond, the interior point's N^3 loses against pricing all arms a few times


class _Method(Protocol):
    def __call__(self, problem: DesignProblem, *, tolerance: float, warm_start: Floats | None = None) -> Design: ...


_METHODS: dict[str, _Method] = {"interior_point": solve_interior_point, "active_set": solve_active_set}


@one_blas_thread
def solve_design(
    arms: ArmSet | Floats,
    costs: Any = None,
    *,
    regulariser: float,
    tolerance: float = 1e-6,
    candidates: Any = None,
    warm_start: Any = None,
    method: str = "auto",
) -> Design:
    """Find the law over arms that minimises its cost less the log-determinant of what it teaches.

        minimise  costs'p - log det(Phi' diag(p) Phi + regulariser I)   over the probability simplex

    With costs zero this is the optimal design pi; with costs (beta / 2) gaps it is the law P* of OP (paper,
    section 4), whose objective is gaps'p - (2 / beta) log det.

    Parameters
    ----------
    arms : ArmSet, or an (N, r) array taken as the features Phi themselves
    costs : (N,) finite numbers, by default zero; a constant added to all of them changes nothing
    regulariser : > 0; lambda, sigma/T in the paper
    tolerance : > 0; the certified gap to reach. It is absolute, and the arithmetic is double: where leverages reach
        1e6 (a regulariser of 1e-6 together with costs of 1e6) gaps below about 1e-8 drown in rounding.
    candidates : indices or boolean mask (N,) of the arms that may be used, by default all
    warm_start : (N,) a law to start from, for example the previous block's
    method : "interior_point", "active_set", or "auto", which chooses by the number of arms

    Returns
    -------
    Design
        With probabilities (N,), zero off the candidates, and a gap over all candidates evaluated at those very
        probabilities.

    Raises
    ------
    InputError
        For unusable values.
    ConvergenceError
        If the tolerance is out of reach; the best law is its `best`.

    >>> design = solve_design(np.eye(3), costs=[0.0, 0.0, 100.0], regulariser=0.1)
    >>> design.probabilities
    array([0.5, 0.5, 0. ])
    """
    features = read_features(arms)
    count = features.shape[0]
    costs = _read_costs(costs, count)
    regulariser = check_positive("regulariser", regulariser, cure="it is sigma / T in the paper, and 1e-2 is usual")
    tolerance = check_positive("tolerance", tolerance, cure="1e-6 is usual")
    rows = _read_candidates(candidates, count)
    law = None if warm_start is None else read_law("warm_start", warm_start, count)
    if method != "auto" and method not in _METHODS:
        raise InputError(f"method must be 'auto' or one of {sorted(_METHODS)}, got {method!r}")

    problem, rows = _reduce(features, costs, regulariser, rows)
    _check_scale(problem)
    if method == "auto":
        method = "interior_point" if problem.size <= _INTERIOR_POINT_ARMS else "active_set"
    if method == "interior_point":
        needed = 2 * FLOAT_BYTES * problem.size**2  # B and B o B
        check_memory(needed, f"the interior point on {problem.size:,} arms", cure="use method='active_set'")
    found = _METHODS[method](problem, tolerance=tolerance, warm_start=_restrict_law(law, rows))
    design = _whole(found, rows, count)
    if design.status is not Status.OPTIMAL:
        raise ConvergenceError(_explain(design, problem, tolerance, method), best=design)
    return design


def _reduce(
    features: Floats, costs: Floats | None, regulariser: float, rows: Ints | None
) -> tuple[DesignProblem, Ints | None]:
    """The problem on the candidates that can carry mass, with costs from zero up; None stands for all arms."""
    if rows is not None:
        features = features[rows]
        costs = None if costs is None else costs[rows]
    if costs is None or (costs == costs[0]).all():
        return DesignProblem(features, np.zeros(features.shape[0]), regulariser), rows
    problem = DesignProblem(features, costs - costs.min(), regulariser)
    mask = possible_support(problem)
    if mask.all():
        return problem, rows
    kept = np.flatnonzero(mask)
    return problem.restrict(kept), kept if rows is None else rows[kept]


def _check_scale(problem: DesignProblem) -> None:
    """Refuse a regulariser that vanishes beside the features: S(p) would be singular in double precision."""
    largest = float(problem.squares.max())
    if not problem.regulariser > 1e-13 * largest:  # False for features whose squares overflow
        raise InputError(
            f"regulariser {problem.regulariser:.3g} is lost in rounding beside feature vectors of squared norm "
            f"{largest:.3g}; scale the features down or take a larger regulariser (of a policy: a shorter horizon)"
        )


def _restrict_law(law: Floats | None, rows: Ints | None) -> Floats | None:
    """The warm start on the arms solved for; none if it has no mass there."""
    if law is None or rows is None:
        return law
    part = law[rows]
    total = float(part.sum())
    return part / total if total > 0.0 else None


def _whole(found: Design, rows: Ints | None, count: int) -> Design:
    if rows is None:
        law = found.probabilities
    else:
        law = np.zeros(count)
        law[rows] = found.probabilities
    law.flags.writeable = False
    return Design(law, found.gap, found.status, found.iterations, found.log_det)


def _explain(design: Design, problem: DesignProblem, tolerance: float, method: str) -> str:
    largest = float(problem.squares.max()) / problem.regulariser
    rounding = float(np.finfo(np.float64).eps) * (10.0 * largest + float(problem.costs.max()))
    reason = (
        f"leverages up to {largest:.1e} leave no digits below a gap of about {rounding:.0e} in double precision"
        if tolerance < rounding
        else "no step reduces the gap any more, which is unexpected and worth a report"
    )
    return (
        f"{method} {'ran out of iterations' if design.status is Status.ITERATION_LIMIT else 'stalled'} at a gap of "
        f"{design.gap:.2e} after {design.iterations} iterations, above the tolerance {tolerance:.2e} "
        f"({counted(problem.size, 'arm')} of rank {problem.rank}, regulariser {problem.regulariser:.1e}, costs up to "
        f"{float(problem.costs.max()):.1e}): {reason}; raise the tolerance or the regulariser, or use the law in `best`"
    )


def read_features(arms: ArmSet | Floats) -> Floats:
    """Features of an ArmSet, or an array taken as such, (N, r) in C order; InputError where it cannot be one."""
    given = arms.features if isinstance(arms, ArmSet) else arms
    try:
        features: Floats = np.ascontiguousarray(as_floats(given))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"arms must be an ArmSet or an (N, r) array of features, got {type(arms).__name__}") from None
    if features.ndim != 2 or 0 in features.shape:
        raise InputError(f"features must have shape (arms, rank) with at least one of each, got {features.shape}")
    # An ArmSet has checked its own; the sum of a float array is not finite if any entry is not.
    if not isinstance(arms, ArmSet) and not np.isfinite(features.sum()):
        raise InputError("features must be finite numbers; fill or drop missing values first")
    return features


def _read_vector(name: str, given: Any, count: int) -> Floats:
    try:
        vector = as_floats(given)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be {count} numbers, one per arm, got {shown(given)}") from None
    if vector.shape != (count,):
        raise InputError(f"{name} must have shape ({count},), one number per arm, got {vector.shape}")
    if not np.isfinite(vector).all():
        arm = int(np.argmin(np.isfinite(vector)))
        raise InputError(f"{name}[{arm}] is {vector[arm]}; leave an arm out with candidates=... instead")
    return vector


def _read_costs(costs: Any, count: int) -> Floats | None:
    return None if costs is None else _read_vector("costs", costs, count)


def read_law(name: str, law: Any, count: int) -> Floats:
    """`law` as (count,) probabilities; InputError, naming the argument, where it is off the simplex."""
    vector = _read_vector(name, law, count)
    total = float(vector.sum())
    if float(vector.min()) < 0.0 or abs(total - 1.0) > 1e-6:
        raise InputError(
            f"{name} must be probabilities: smallest entry {float(vector.min()):.3g}, sum {total:.9g}; "
            f"clip it at zero and divide it by its sum, or leave it out"
        )
    return vector


def _read_candidates(candidates: Any, count: int) -> Ints | None:
    if candidates is None:
        return None
    given = np.asarray(candidates)
    if given.dtype == np.bool_:
        if given.shape != (count,):
            raise InputError(f"a mask of candidates must have shape ({count},), got {given.shape}")
        rows = np.flatnonzero(given)
    elif given.ndim == 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer)):
        rows = np.unique(given).astype(np.int64)
    else:
        raise InputError(f"candidates must be arm indices or a boolean mask, got {given.dtype} of shape {given.shape}")
    if rows.size == 0:
        raise InputError("candidates is empty; name at least one arm, or leave it out to allow all")
    if rows[0] < 0 or rows[-1] >= count:
        outside = int(rows[0] if rows[0] < 0 else rows[-1])
        raise InputError(f"candidates holds {outside}, but the arms are numbered 0 to {count - 1}")
    return rows


@one_blas_thread
def information_gain(arms: ArmSet | Floats, *, horizon: float, sigma: float, tolerance: float = 1e-6) -> float:
    """Maximum information gain of `horizon` rounds, in the paper's convention, without the factor 1/2.

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
