"""Primal-dual interior point method with Mehrotra's predictor and corrector, for up to about a thousand arms.

The linear algebra of one Newton step: the weighted hat matrix and the system built from it.

| formula | name    | shape  | meaning                                                                     |
|---------|---------|--------|-----------------------------------------------------------------------------|
| K       | kernel  | (N, N) | Phi Phi'                                                                    |
| B       | hat     | (N, N) | D^1/2 Phi S^-1 Phi' D^1/2 with D = diag(p); its diagonal is p * leverage    |
| w       | products| (N,)   | p * z, the complementarity products                                         |
| M       |         | (N, N) | B o B + diag(w), the Newton matrix in the relative step delta = dp / p      |

The Hessian of -log det S is (Phi S^-1 Phi') o (Phi S^-1 Phi'). Scaled by p from both sides it is B o B, whose entries
are at most one whatever p is: arms that fade away do not spoil the conditioning.

| formula | name     | shape  | meaning                                                          |
|---------|----------|--------|------------------------------------------------------------------|
| p       | law      | (N,)   | strictly positive, sums to one                                   |
| z       |          | (N,)   | multiplier of p >= 0; only w = p z is kept                       |
| w       | products | (N,)   | p * z, all near mu on the central path                           |
| nu      | level    | scalar | multiplier of sum p = 1                                          |
| B_ii    | hat      | (N,)   | p * leverage, the diagonal of B above                            |
| u       | residual | (N,)   | p * (c - leverage - nu - z), zero when dual feasible             |
| delta   | primal   | (N,)   | dp / p                                                           |
| zeta    | dual     | (N,)   | dz / z                                                           |

Optimality is u = 0, w = 0, sum p = 1. A Newton step solves, for a wanted product t in place of w,

    (B o B + diag(w)) delta - p dnu = t - w - u,    p' delta = 0,    zeta = t / w - 1 - delta.

Everything is relative to p and z, so entries of 1e-12 are as well resolved as entries of one. The leverage of a fading
arm loses digits, eps / p_i = eps z_i / mu, but that is small beside its slack z_i; what is returned is certified apart.

Arms that are seen to fade are dropped from the iteration, which makes its last steps small and the returned law sparse.
The certificate is over all arms; should a dropped one turn out to be needed, the solve begins anew and drops none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import blas, lapack

from driftbandits.design.problem import Certificate, Design, DesignProblem, Status, gap_of, try_cholesky_in_place
from driftbandits.types import Bools, Floats, Ints

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


_JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)  # relative to the largest entry, which is at most 1 + w


def newton_system(problem: DesignProblem) -> NewtonSystem:
    """The cheaper of the two ways to B for this shape: through (N, N) or through (r, r) matrices."""
    size, rank = problem.size, problem.rank
    # Multiplications per law: potrf + potri against syrk + potrf + trsm + syrk. LAPACK's inverse runs at about half the
    # speed of products on matrices that outgrow the cache.
    through_arms = size**3 * (1.0 if size <= 64 else 1.6)
    through_features = 2.0 * size * rank**2 + rank**3 / 3 + size**2 * rank
    return ArmSpace(problem) if through_arms <= through_features else FeatureSpace(problem)


class NewtonSystem(ABC):
    """B at one law at a time, in one (N, N) buffer that later holds the Newton matrix and its factor."""

    def __init__(self, problem: DesignProblem) -> None:
        size = problem.size
        self.problem = problem
        self.matrix: Floats = np.zeros((size, size), order="F")
        self.diagonal: Floats = self.matrix.reshape(-1, order="F")[:: size + 1]  # a view: writes go to the matrix

    @abstractmethod
    def weigh(self, probabilities: Floats) -> Floats:
        """Move to the law `probabilities` and give the diagonal of B there, `p * leverage`."""

    @abstractmethod
    def _square(self) -> None:
        """Put B o B into the lower triangle of `matrix`; its diagonal may be left wrong."""

    def factor(self, probabilities: Floats, hat: Floats, products: Floats) -> bool:
        """Factor `M = B o B + diag(w)` at the law just weighed, `hat` being the diagonal of B; say whether it worked.

        M is positive definite in exact arithmetic. Rounding can break it when duplicate arms carry mass and w is near
        the last digit; a jitter of at most 1e-8 then bends the direction of one step, never the certificate.
        """
        wanted = hat * hat + products
        largest = float(wanted.max())
        for jitter in _JITTERS:
            if jitter > 0.0:  # the failed attempt has overwritten the matrix
                self.weigh(probabilities)
            self._square()
            self.diagonal[:] = wanted + jitter * largest
            if try_cholesky_in_place(self.matrix):
                return True
        return False

    def solve(self, right: Floats) -> Floats:
        """Solve `M x = right` with the factor in the buffer; `right` is (N,) or (N, k)."""
        solution, _ = lapack.dpotrs(self.matrix, right, lower=1)
        result: Floats = solution
        return result


class ArmSpace(NewtonSystem):
    """B from `I - B = (I + D^1/2 (K / lambda) D^1/2)^-1`: best when the rank is not much below the number of arms."""

    def __init__(self, problem: DesignProblem) -> None:
        super().__init__(problem)
        scaled = problem.features * (1.0 / np.sqrt(problem.regulariser))
        self.kernel: Floats = (scaled @ scaled.T).T  # symmetric: the transpose is the same matrix in Fortran order

    def weigh(self, probabilities: Floats) -> Floats:
        """Move to the law `probabilities` and give the diagonal of B there."""
        roots = np.sqrt(probabilities)
        np.multiply(roots[:, None], roots, out=self.matrix)
        self.matrix *= self.kernel
        self.diagonal += 1.0
        if not try_cholesky_in_place(self.matrix):
            return np.full(probabilities.size, np.nan)
        lapack.dpotri(self.matrix, lower=1, overwrite_c=1)
        hat: Floats = 1.0 - self.diagonal
        return hat

    def _square(self) -> None:
        np.multiply(self.matrix, self.matrix, out=self.matrix)  # off the diagonal B and I - B differ by sign only


class FeatureSpace(NewtonSystem):
    """B as the Gram matrix of `L^-1 Phi' D^1/2`: best for many arms of low rank."""

    def __init__(self, problem: DesignProblem) -> None:
        super().__init__(problem)
        self.whitened: Floats = problem.features.T

    def weigh(self, probabilities: Floats) -> Floats:
        """Move to the law `probabilities` and give the diagonal of B there."""
        scaled = np.sqrt(probabilities)[:, None] * self.problem.features
        information: Floats = (scaled.T @ scaled).T
        information.reshape(-1, order="F")[:: self.problem.rank + 1] += self.problem.regulariser
        if not try_cholesky_in_place(information):
            return np.full(probabilities.size, np.nan)
        self.whitened = blas.dtrsm(1.0, information, scaled.T, lower=1, overwrite_b=1)
        hat: Floats = np.einsum("ij,ij->j", self.whitened, self.whitened)
        return hat

    def _square(self) -> None:
        blas.dsyrk(1.0, self.whitened, c=self.matrix, trans=1, lower=1, overwrite_c=1)
        np.multiply(self.matrix, self.matrix, out=self.matrix)


ITERATION_LIMIT = 200
_MOST_STEPS_WITHOUT_GAIN = 15  # in the gap
_SHARE_OF_WAY_TO_BOUNDARY = 0.99
_MOST_HALVINGS = 7  # of a step
_MOST_MERIT_GROWTH = 2.0  # of complementarity plus |u|: more would let it cycle
_MOST_RESIDUAL = 10.0  # largest |u| in units of the complementarity
_LEAST_SHARE_DROPPED = 0.2  # dropping rebuilds the system, so it must pay


def solve_interior_point(
    problem: DesignProblem, *, tolerance: float, warm_start: Floats | None = None, limit: int = ITERATION_LIMIT
) -> Design:
    """Minimise over all arms of `problem`; O(N^3) time and O(N^2) memory per step, 5 to 15 steps.

    Gives a Design whose status says whether the gap was reached. Bad at many arms.

    >>> solve_interior_point(DesignProblem(np.eye(3), np.zeros(3), 0.1), tolerance=1e-9).probabilities
    array([0.333..., 0.333..., 0.333...])
    """
    return solve_and_certify(problem, tolerance=tolerance, warm_start=warm_start, limit=limit)[0]


def solve_and_certify(
    problem: DesignProblem, *, tolerance: float, warm_start: Floats | None = None, limit: int = ITERATION_LIMIT
) -> tuple[Design, Certificate]:
    """As `solve_interior_point`, with the certificate of the design: who goes on from it need not compute it again."""
    attempts: list[tuple[Design, Certificate]] = []
    # One start is enough but for extreme problems; the later ones are slower and share none of the first one's bets.
    for start, may_drop in _starts(problem, warm_start):
        attempts.append(_follow(_Path(problem, start, may_drop=may_drop), tolerance, limit))
        if attempts[-1][0].status is Status.OPTIMAL:
            break
    best, certificate = min(attempts, key=lambda attempt: attempt[0].gap)
    return replace(best, iterations=sum(design.iterations for design, _ in attempts)), certificate


def _starts(problem: DesignProblem, warm_start: Floats | None) -> Iterator[tuple[Floats, bool]]:
    """Laws to begin with, each with whether arms may be dropped on the way."""
    yield interior_start(problem, warm_start), True
    yield interior_start(problem, None), False
    yield np.full(problem.size, 1.0 / problem.size), False


def _follow(path: _Path, tolerance: float, limit: int) -> tuple[Design, Certificate]:
    """Take steps until the gap is certified, or neither it nor the limit leave hope."""
    problem = path.whole
    best_law, best_gap, waited = path.law, np.inf, 0
    target, status = tolerance, Status.ITERATION_LIMIT
    for iteration in range(limit):
        gap = path.gap()
        if gap <= target:
            law = path.whole_law()
            certificate = problem.certify(law)
            if certificate.gap <= tolerance:
                return Design(law, certificate.gap, Status.OPTIMAL, iteration, certificate.log_det), certificate
            if path.rows is not None:  # an arm was dropped that is needed
                return Design(law, certificate.gap, Status.STALLED, iteration, certificate.log_det), certificate
            target = 0.1 * gap
        if gap < best_gap:
            best_law, best_gap, waited = path.whole_law(), gap, 0
        else:
            waited += 1
        if waited > _MOST_STEPS_WITHOUT_GAIN or not path.advance():
            status = Status.STALLED
            break
        path.drop_fading()
    certificate = problem.certify(best_law)
    status = Status.OPTIMAL if certificate.gap <= tolerance else status
    return Design(best_law, certificate.gap, status, iteration + 1, certificate.log_det), certificate


@dataclass(frozen=True)
class _Step:
    """Relative steps of p and z, and the step of nu."""

    primal: Floats
    dual: Floats
    level: float

    def longest(self) -> float:
        """The step at which the first entry of p or z would reach zero."""
        return 1.0 / max(1e-300, -float(self.primal.min()), -float(self.dual.min()))


class _Path:
    """The primal-dual iterate; see the table of symbols above."""

    def __init__(self, problem: DesignProblem, law: Floats, *, may_drop: bool = True) -> None:
        self.whole = problem
        self.rows: Ints | None = None  # arms still in the iteration; None for all
        self.may_drop = may_drop
        self.settled = False
        self._take(problem, law)
        gradient = problem.costs - self.hat / law
        mean = float(law @ gradient)
        # nu below the smallest gradient makes z = g - nu positive and u zero, but for arms held off the edge.
        excess = max(1.5 * gap_of(law, gradient), 1e-3)
        self.level = mean - excess
        self.products: Floats = law * np.maximum(gradient - self.level, 0.1 * excess)
        self.fading: Bools = np.zeros(law.size, dtype=np.bool_)

    def _take(self, problem: DesignProblem, law: Floats) -> None:
        self.problem = problem
        self.system = newton_system(problem)
        self.law = law
        self.hat = self.system.weigh(law)

    def gap(self) -> float:
        """The Frank-Wolfe bound over the arms in the iteration, good enough to decide when to certify."""
        return gap_of(self.law, self.problem.costs - self.hat / self.law)

    def whole_law(self) -> Floats:
        """The law over all arms of the problem, with zeros where arms were dropped."""
        if self.rows is None:
            return self.law.copy()
        law = np.zeros(self.whole.size)
        law[self.rows] = self.law
        return law

    def advance(self) -> bool:
        """Take one predictor-corrector step; False where no step can be computed any more."""
        law, products = self.law, self.products
        if not self.system.factor(law, self.hat, products):
            return False
        residual = law * (self.problem.costs - self.level) - self.hat - products
        both = self.system.solve(np.array((-residual - products, law)).T)
        along = both[:, 1]
        curvature = float(law @ along)

        def complete(solved: Floats, wanted: Floats | float) -> _Step:
            level = -float(law @ solved) / curvature
            primal = solved + level * along
            return _Step(primal=primal, dual=wanted / products - 1.0 - primal, level=level)

        predictor = complete(both[:, 0], 0.0)
        length = min(1.0, predictor.longest())
        mean = float(products.mean())
        reached = float((products * (1.0 + length * predictor.primal) * (1.0 + length * predictor.dual)).mean())
        wanted = (reached / mean) ** 3 * mean - products * predictor.primal * predictor.dual
        corrector = complete(self.system.solve(wanted - residual - products), wanted)
        return self._move(corrector, off_before=float(np.abs(residual).sum()))

    def _move(self, step: _Step, *, off_before: float) -> bool:
        """Go along `step` as far as the boundary and the neighbourhood of the central path allow.

        The gradient is not linear, so a long step can leave a residual u that dwarfs the products; from such a point
        the method crawls. Shorter steps are tried until |u| is at most a few times sum w.
        """
        longest = min(1.0, _SHARE_OF_WAY_TO_BOUNDARY * step.longest())
        allowed = max(0.5 * off_before, 1e-12 * (1.0 + float(self.law @ self.problem.costs)))
        ceiling = _MOST_MERIT_GROWTH * (off_before + float(self.products.sum()))
        for halvings in (*range(_MOST_HALVINGS), *range(_MOST_HALVINGS)):
            length = longest * 0.5**halvings
            primal = 1.0 + length * step.primal
            dual = 1.0 + length * step.dual
            law = self.law * primal
            law /= law.sum()  # the step keeps the sum; this only sheds rounding
            products = self.products * primal * dual
            level = self.level + length * step.level
            hat = self.system.weigh(law)
            off = float(np.abs(law * (self.problem.costs - level) - hat - products).sum())
            total = float(products.sum())
            if off <= max(_MOST_RESIDUAL * total, allowed) and off + total <= ceiling:  # False for NaN as well
                self.law, self.products, self.level, self.hat = law, products, level, hat
                # An arm on its way out: p shrinks while z stays, and z p outweighs the curvature (p leverage)^2.
                self.fading = (primal < 0.5) & (dual > 0.5) & (hat * hat < 0.01 * products)
                self.settled = off + total < 0.1 * float(hat.sum())
                return True
            if halvings + 1 == _MOST_HALVINGS:  # nothing near enough: take what does not make matters worse
                allowed = np.inf
        return False

    def drop_fading(self) -> None:
        """Leave the fading arms out of the iteration if they are many."""
        if not (self.may_drop and self.settled) or np.count_nonzero(self.fading) < _LEAST_SHARE_DROPPED * self.law.size:
            return
        kept = np.flatnonzero(~self.fading)
        if kept.size == 0:
            return
        law = self.law[kept]
        self.rows = kept if self.rows is None else self.rows[kept]
        self.products = self.products[kept]
        self._take(self.problem.restrict(kept), law / law.sum())
        # The mass that went leaves a residual; lift w towards its size, so that the next step can reach far again.
        off = float(np.abs(self.law * (self.problem.costs - self.level) - self.hat - self.products).sum())
        self.products *= max(1.0, 0.2 * off / float(self.products.sum()))
