"""Where a solve begins: arms that can be left out for certain, and a law that is exact for orthogonal features."""

from __future__ import annotations

import numpy as np

from driftbandits.design.problem import DesignProblem
from driftbandits.types import Bools, Floats

_UNIFORM_SHARE = 0.1  # of every start: an interior point method must start inside
_NEWTON_STEPS = 30


def possible_support(problem: DesignProblem) -> Bools:
    """Mark the arms that an optimal law may use; the others cost more than they can ever bring.

    With kappa_i = |phi_i|^2, every law has `kappa_i / (lambda + max kappa) <= leverage_i <= kappa_i / lambda`, and at
    the optimum `g_i > min_j g_j` means p_i = 0. So arm i is out if c_i - kappa_i / lambda exceeds the smallest
    c_j - kappa_j / (lambda + max kappa).

    >>> problem = DesignProblem(np.eye(2), np.array([0.0, 50.0]), 0.1)
    >>> possible_support(problem)
    array([ True, False])
    """
    squares = problem.squares
    best = float((problem.costs - squares / (problem.regulariser + float(squares.max()))).min())
    mask: Bools = problem.costs - squares / problem.regulariser <= best
    return mask


def separable_law(problem: DesignProblem) -> Floats:
    """The optimal law if every N / r arms were alike and all others orthogonal to them, roughly solved.

        p_i = (r / N) max(0, 1 / (c_i - nu) - lambda / kappa_i),   with nu < min c such that it sums to one

    Kernels of high dimension or short length scale are close to this case with r = N. Costs must have minimum zero.
    Gives an array (N,) that is non-negative and sums to one.
    """
    squares = problem.squares
    floor = problem.regulariser / np.maximum(squares, 1e-300)
    costs = problem.costs
    goal = max(1.0, problem.size / problem.rank)
    level = float((costs - 1.0 / (goal + floor)).min())  # here the sum is at least the goal
    safe = level
    law = np.ones(problem.size)
    for _ in range(_NEWTON_STEPS):
        inverse = 1.0 / (costs - level)
        law = np.maximum(inverse - floor, 0.0)
        total = float(law.sum())
        if abs(total - goal) < 0.05 * goal:
            break
        if total < goal:  # gone too far: Newton on the sum, convex in the level, cannot overshoot from the safe side
            level = safe
            continue
        slope = float(inverse @ (inverse * (law > 0.0)))
        safe = level + (goal - total) / slope
        level += total * (1.0 - total / goal) / slope  # Newton on 1 / sum, nearly linear in the level
    total = float(law.sum())
    return law / total if 0.0 < total < np.inf else np.full(problem.size, 1.0 / problem.size)


def interior_start(problem: DesignProblem, warm_start: Floats | None) -> Floats:
    """A law with every arm positive: the warm start if there is one, else the separable law, blended with uniform."""
    law = separable_law(problem) if warm_start is None else warm_start
    return (1.0 - _UNIFORM_SHARE) * law + _UNIFORM_SHARE / problem.size
