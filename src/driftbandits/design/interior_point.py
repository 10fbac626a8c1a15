"""Primal-dual interior point method with Mehrotra's predictor and corrector, for up to about a thousand arms.

| formula | name     | shape  | meaning                                                          |
|---------|----------|--------|------------------------------------------------------------------|
| p       | law      | (N,)   | strictly positive, sums to one                                   |
| z       |          | (N,)   | multiplier of p >= 0; only w = p z is kept                       |
| w       | products | (N,)   | p * z, all near mu on the central path                           |
| nu      | level    | scalar | multiplier of sum p = 1                                          |
| B_ii    | hat      | (N,)   | p * leverage, from `newton.py`                                   |
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

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from driftbandits.design.newton import newton_system
from driftbandits.design.problem import Certificate, DesignProblem, gap_of
from driftbandits.design.result import Design, Status
from driftbandits.design.starting_point import interior_start
from driftbandits.types import Bools, Floats, Ints

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
