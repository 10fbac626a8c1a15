"""The solver against two that share nothing with it: Frank-Wolfe with away steps, and Clarabel through cvxpy."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.frank_wolfe import frank_wolfe, objective
from driftbandits.design import solve_design
from tests.design.oracles import cases, make_case


@settings(derandomize=True, deadline=None, max_examples=40, database=None)
@given(case=cases(sizes=(2, 5, 12, 25), scales=(1e-3, 1.0, 100.0)))
def test_no_worse_than_frank_wolfe(case):
    costs = case.costs - case.costs.min()
    design = solve_design(case.features, costs, regulariser=case.regulariser)
    other = frank_wolfe(case.features, costs, case.regulariser, tolerance=1e-4, iterations=2_000)
    ours = objective(case.features, costs, case.regulariser, design.probabilities)
    assert ours <= other.objective + 1.1e-6
    assert ours >= other.objective - other.gap - 1e-6  # its own certificate bounds ours from below


def test_frank_wolfe_itself_converges():
    case = make_case("smooth", "even", size=30)
    assert frank_wolfe(case.features, case.costs, 1e-2, tolerance=1e-3).gap <= 1e-3


@pytest.mark.parametrize("family", ["identity", "rank one", "linear", "smooth", "duplicates"])
@pytest.mark.parametrize("cost_kind", ["zero", "even"])
def test_agrees_with_clarabel(family, cost_kind):
    case = make_case(family, cost_kind, size=10, scale=5.0, regulariser=1e-2, seed=2)
    law = cvxpy.Variable(10, nonneg=True)
    rank = case.features.shape[1]
    information = case.features.T @ cvxpy.diag(law) @ case.features + 1e-2 * np.eye(rank)
    problem = cvxpy.Problem(cvxpy.Minimize(case.costs @ law - cvxpy.log_det(information)), [cvxpy.sum(law) == 1])
    problem.solve(solver=cvxpy.CLARABEL)
    design = solve_design(case.features, case.costs, regulariser=1e-2)
    assert objective(case.features, case.costs, 1e-2, design.probabilities) == pytest.approx(problem.value, abs=1e-4)
