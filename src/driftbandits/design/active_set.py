"""Working set around the interior point method, for any number of arms: O(N r) memory, a few passes over the features.

| name    | meaning                                                                                         |
|---------|-------------------------------------------------------------------------------------------------|
| working | the arms the inner problem is solved on, some hundreds                                          |
| pool    | the arms priced to find violators: a coarse sample first, then the most promising arms of all   |
| level   | p'g, the value every g_i has at the optimum where p_i > 0; a violator has g_i below it          |

    solve on the working set -> price the pool -> add its violators, drop arms without mass -> repeat

When the pool holds no violator any more, all arms are priced with one pass; if some violate, the most promising arms of
that pass become the next pool. Only the last pass certifies, and it is over all arms.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from driftbandits._util.linalg import some_largest
from driftbandits.design.interior_point import separable_law, solve_and_certify
from driftbandits.design.problem import Design, DesignProblem, Information, Status, gap_of
from driftbandits.types import Bools, Floats, Ints

_PIVOTED_ARMS = 1024  # among which the first working set is sought: among more it is no better
_FIRST_POOL_SIZES = (4096, 16384, 65536)  # drawn at random: a stride would meet the rows of a grid
_POOL_SIZE = 4096  # promising arms kept from a full pass; they are priced many times for the price of one pass
_FEW_ARMS = 1_000  # of which a working set may be large
_SLACK_KEPT = 10.0  # working arms with a slack up to this many times the gap stay, of few arms
_SHARE_KEPT = 0.05  # p times leverage, of a working arm that stays
_GAPS_LOST = 40.0  # by which dropping arms of many may raise the gap
_VIOLATORS_PER_ARM, _VIOLATORS_PER_ARM_OF_MANY = 3, 1  # taken per round from among those nearest to one working arm
_SHARE_OF_GAP, _SHARE_OF_GAP_OF_MANY = 0.5, 0.9  # of the gap asked for, to which the pool of all arms is settled
_LEAST_SHARE_OF_TARGET = 0.3  # to which a working set of many is solved: what is missing then are arms
_VERY_MANY_ARMS = 32_768  # of which the pool is too small a part for the larger share: more passes would follow
_LEAST_WEIGHT, _LEAST_WEIGHT_OF_MANY = 0.01, 0.1  # p times leverage, of an arm of a warm start worth beginning with
_NEAR_CORRELATION = 0.5  # from which an arm counts as near another
_VIOLATORS_PER_ROUND = 8192  # examined
_MOST_ROUNDS = 60
_MOST_FAILURES = 6  # passes over all arms that do not reduce the gap by a tenth
_EPS = float(np.finfo(np.float64).eps)


def solve_active_set(problem: DesignProblem, *, tolerance: float, warm_start: Floats | None = None) -> Design:
    """Minimise over all arms of `problem`, holding only some hundreds of them in the inner problem at a time.

    Gives a Design whose status says whether the gap was reached.

    >>> rng = np.random.default_rng(0)
    >>> problem = DesignProblem(rng.standard_normal((3000, 4)), np.zeros(3000), 0.01)
    >>> solve_active_set(problem, tolerance=1e-6).status
    <Status.OPTIMAL: 'optimal'>
    """
    search = _Search(problem, tolerance)
    samples = _coarse_samples(problem.size)
    search.begin(_first_working_set(problem, samples[0], warm_start), warm_start)
    target = 0.1 * problem.rank  # loosely: after a sample the gap over all arms is a few, however well it is settled
    for sample in samples[:-1]:
        target = max(0.1 * target, 0.5 * tolerance)  # of a sample no more is wanted than of all arms
        pool = problem.restrict(sample)
        search.settle(pool, sample, search.price(pool), target=target)
    gradient = search.price(problem)
    rows: Ints = np.empty(0, dtype=np.int64)
    best, failures = np.inf, 0
    while True:
        gap = search.gap_over(gradient)
        failures = 0 if gap < 0.9 * best else failures + 1
        best = min(gap, best)
        if gap <= tolerance or failures > _MOST_FAILURES:
            design = search.design(gradient)
            if design.status is Status.OPTIMAL or failures > _MOST_FAILURES:
                return design
        rows, target = search.promising(gradient, rows), max(search.share * tolerance, 0.005 * gap)
        if rows.size == problem.size:
            gradient = search.settle(problem, rows, gradient, target=target)
        else:
            search.settle(problem.restrict(rows), rows, gradient[rows], target=target)
            gradient = search.price(problem)


class _Search:
    """The working set, its law, and the information matrix there."""

    def __init__(self, problem: DesignProblem, tolerance: float) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.iterations = 0
        self.few = few = problem.size <= _FEW_ARMS
        self.share = _SHARE_OF_GAP if few or problem.size > _VERY_MANY_ARMS else _SHARE_OF_GAP_OF_MANY
        self.least_share = 0.0 if few else _LEAST_SHARE_OF_TARGET
        self.per_arm = _VIOLATORS_PER_ARM if few else _VIOLATORS_PER_ARM_OF_MANY
        rounding = _EPS * (float(problem.squares.max()) / problem.regulariser) ** 2  # of leverages through features
        self.loose = not few and rounding < 1e-3 * tolerance

    def begin(self, working: Ints, warm_start: Floats | None) -> None:
        """Solve on the first working set, loosely."""
        law = None
        if warm_start is not None:
            part = warm_start[working]
            law = part / part.sum() if part.sum() > 0.0 else None
        self._solve(working, law, tolerance=1e-2 * self.problem.rank)

    def _solve(self, working: Ints, law: Floats | None, *, tolerance: float) -> None:
        inner = self.problem.restrict(working)
        design, found = solve_and_certify(inner, tolerance=max(tolerance, 0.02 * self.tolerance), warm_start=law)
        self.iterations += design.iterations
        self.inner_gap = design.gap
        kept = design.support
        self.working, self.law = working[kept], design.probabilities[kept]
        self.information = found.information  # of the arms with mass alone
        if kept.size == inner.size:
            self.inner, self.leverage = inner, found.leverage
        else:
            self.inner = inner.restrict(kept)
            self.leverage = self.information.leverage(self.inner.features, self.inner.squares)
        self.level = float(self.law @ (self.inner.costs - self.leverage))
        self.pricing = self._cheapest_to_price_with()

    def _cheapest_to_price_with(self) -> Information:
        """S of the law; through features where this is exact enough, and half the work for a pass over many arms."""
        if not (self.loose and self.information.through_arms and 2 * self.law.size > self.problem.rank):
            return self.information
        return Information(self.inner.features, self.law, self.problem.regulariser, through_arms=False)

    def price(self, pool: DesignProblem) -> Floats:
        """Gradient of every arm of `pool`, with one pass over its features."""
        return pool.costs - self.pricing.leverage(pool.features, pool.squares)

    def promising(self, gradient: Floats, earlier: Ints) -> Ints:
        """The next pool: the arms of smallest gradient, as many violators drawn from all, and the `earlier` pool.

        Where leverages are flat the smallest gradients are those of one region; settled alone, they push the violation
        into the next. The draw covers every region, and what has once been in the pool stays: none comes up twice.
        """
        if gradient.size <= 2 * _POOL_SIZE:
            return np.arange(gradient.size)
        rows = np.union1d(earlier, some_largest(-gradient, _POOL_SIZE))
        below = np.flatnonzero(gradient < self.level)
        if below.size > _POOL_SIZE:
            below = np.random.default_rng(0).choice(below, _POOL_SIZE, replace=False)
        rows = np.union1d(rows, below)
        return rows if 2 * rows.size < gradient.size else np.arange(gradient.size)

    def gap_over(self, gradient: Floats) -> float:
        """The Frank-Wolfe bound if the smallest gradient of all arms is that of `gradient`."""
        return self.level - float(gradient.min())

    def settle(self, pool: DesignProblem, rows: Ints, gradient: Floats, *, target: float) -> Floats:
        """Solve, price and add until the gap over `pool`, the arms `rows`, is at most `target`, or stays as it is.

        `gradient` is what the pool is priced at now; gives what it is priced at then.
        """
        best, failures = np.inf, 0
        for _ in range(_MOST_ROUNDS):
            gap = self.gap_over(gradient)
            failures = 0 if gap < best else failures + 1
            best = min(gap, best)
            if gap <= target or failures > 4:
                break
            fresh = np.setdiff1d(rows[self._violators(pool, gradient)], self.working)
            everyone = np.ones(self.working.size, dtype=np.bool_)
            kept = self._worth_keeping(gap) if failures == 0 else everyone  # never run in circles
            law = np.concatenate([self.law[kept] / self.law[kept].sum(), np.zeros(fresh.size)])
            wanted = min(max(0.1 * gap, self.least_share * target), target)
            if fresh.size == 0:  # all that is wrong is the inner law itself
                wanted = 0.1 * min(wanted, self.inner_gap)
            self._solve(np.concatenate([self.working[kept], fresh]), law, tolerance=wanted)
            gradient = self.price(pool)
        return gradient

    def _worth_keeping(self, gap: float) -> Bools:
        """Working arms that carry weight; of few arms, also those whose slack the present gap could still overturn.

        Of many arms, neighbours share weight that one could carry, and steps cost the cube of their number: slack or
        not, those of least weight go. But a hundred of them may carry a few directions together: where those dropped
        have the share s of all p times leverage, S loses no more than s of itself, and leverages rise by s / (1 - s) of
        themselves.
        """
        share = self.law * self.leverage
        kept: Bools = share > _SHARE_KEPT
        if self.few:
            slack = self.inner.costs - self.leverage - self.level
            return kept | (slack <= _SLACK_KEPT * gap)
        order = np.argsort(share, kind="stable")
        most = min(_GAPS_LOST * gap / float(self.leverage.max()), 0.5)
        kept[order[np.cumsum(share[order]) > most]] = True
        return kept

    def _violators(self, pool: DesignProblem, gradient: Floats) -> Ints:
        """Positions in the pool of the arms to add: the worst few near each working arm, and the worst far from all."""
        below = np.flatnonzero(gradient < self.level - self.inner_gap)
        if below.size > _VIOLATORS_PER_ROUND:
            below = below[some_largest(-gradient[below], _VIOLATORS_PER_ROUND)]
        if below.size <= 64:
            return below
        below = below[np.argsort(gradient[below], kind="stable")]
        cosines = np.abs(self.information.cross(pool.features[below], self.inner.features))
        cosines /= np.sqrt(self.leverage)
        nearest = cosines.argmax(axis=1)
        size = np.sqrt(np.maximum(pool.costs[below] - gradient[below], 1e-300))
        near = cosines[np.arange(below.size), nearest] > _NEAR_CORRELATION * size
        far = np.flatnonzero(~near)[: max(64, self.working.size)]
        chosen: Ints = below[np.concatenate([_first_of_each(nearest, near, self.per_arm), far])]
        return chosen

    def design(self, gradient: Floats) -> Design:
        """Certify the law over all arms; `gradient` is what they are priced at."""
        law = np.zeros(self.problem.size)
        law[self.working] = self.law
        gap = gap_of(law, gradient)
        status = Status.OPTIMAL if gap <= self.tolerance else Status.STALLED
        return Design(law, gap, status, self.iterations, self.information.log_det)


def _first_of_each(groups: Ints, mask: Bools, number: int) -> Ints:
    """Positions of the first `number` members of each group, among those in `mask`."""
    places = np.flatnonzero(mask)
    order = places[np.argsort(groups[places], kind="stable")]
    if order.size == 0:
        return order
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.r_[True, sorted_groups[1:] != sorted_groups[:-1]])
    turn = np.arange(order.size) - np.repeat(starts, np.diff(np.r_[starts, order.size]))
    first: Ints = order[turn < number]
    return first


def _coarse_samples(size: int) -> list[Ints]:
    """Arms of the first pools, from coarse to fine: fixed random samples of a large set, last the set itself."""
    rng = np.random.default_rng(0)
    samples = [np.sort(rng.choice(size, count, replace=False)) for count in _FIRST_POOL_SIZES if size > 2 * count]
    return [*samples, np.arange(size)]


def _first_working_set(problem: DesignProblem, sample: Ints, warm_start: Floats | None) -> Ints:
    """Support of the warm start, or pivots: the arms a greedy volume maximiser takes first, where mass is cheap."""
    if warm_start is not None:
        return np.union1d(_carrying(problem, warm_start), np.argsort(problem.costs, kind="stable")[:16])
    cheapest = sample[np.argsort(problem.costs[sample], kind="stable")[:16]]
    if problem.size > _PIVOTED_ARMS:
        sample = np.random.default_rng(0).choice(sample, _PIVOTED_ARMS, replace=False)
    part = problem.restrict(sample)
    weights = np.sqrt(separable_law(part))
    triangle, pivots, _, _, _ = lapack.dgeqp3((weights[:, None] * part.features).T)
    pivots = pivots[: part.rank] - 1
    left = np.abs(triangle.diagonal()[: pivots.size]) / np.maximum(weights[pivots], 1e-150)
    # The j-th arm, with mass 1 / j, adds about log(1 + left^2 / (j lambda)): stop where that is little.
    telling = left**2 > 0.1 * problem.regulariser * np.arange(1, pivots.size + 1)
    return np.union1d(sample[pivots[telling]], cheapest)


def _carrying(problem: DesignProblem, law: Floats) -> Ints:
    """The arms that a law, which may have been solved loosely, truly rests on."""
    support = np.flatnonzero(law)
    leverage = problem.measure(law).leverage(problem.features[support], problem.squares[support])
    least = _LEAST_WEIGHT if problem.size <= _FEW_ARMS else _LEAST_WEIGHT_OF_MANY
    return support[law[support] * leverage > least]
