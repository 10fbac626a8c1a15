"""What cannot be used is refused with the value and the cure; what cannot be reached is said, with the best law."""

import dataclasses

import numpy as np
import pytest

from driftbandits.design import Status, effective_dimension, information_gain, solve_design
from driftbandits.design.interior_point import solve_interior_point
from driftbandits.design.problem import DesignProblem
from driftbandits.errors import ConvergenceError, InputError
from tests.design.oracles import certificate, make_case

EYE = np.eye(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"costs": [0.0, np.nan, 1.0]}, r"costs\[1\] is nan"),
        ({"costs": [0.0, np.inf, 1.0]}, r"costs\[1\] is inf"),
        ({"costs": [0.0, 1.0]}, r"shape \(3,\)"),
        ({"costs": "cheap"}, "3 numbers"),
        ({"regulariser": 0.0}, "regulariser must be a finite positive number, got 0.0; it is sigma / T"),
        ({"regulariser": -1.0}, "-1.0"),
        ({"regulariser": np.nan}, "nan"),
        ({"regulariser": "small"}, "small"),
        ({"regulariser": 1e-20}, "lost in rounding"),
        ({"tolerance": 0.0}, "tolerance must be a finite positive number"),
        ({"tolerance": np.inf}, "inf"),
        ({"candidates": []}, "candidates is empty"),
        ({"candidates": [False, False, False]}, "candidates is empty"),
        ({"candidates": [True, False]}, r"shape \(3,\)"),
        ({"candidates": [3]}, "holds 3"),
        ({"candidates": [-1, 0]}, "holds -1"),
        ({"candidates": [0.5]}, "float64"),
        ({"warm_start": [0.5, 0.6, 0.0]}, "sum 1.1"),
        ({"warm_start": [1.5, -0.5, 0.0]}, "-0.5"),
        ({"warm_start": [1.0]}, r"shape \(3,\)"),
        ({"method": "magic"}, "'magic'"),
        ({"regulariser": 10**400}, r"got 1000000000\.\.\.0000000000 \(401 digits\)"),
        ({"regulariser": "0.1"}, "regulariser must be a number"),
        ({"regulariser": 0.1 + 0j}, "regulariser must be a number"),
        ({"costs": ["0", "1", "2"]}, "costs must be 3 numbers"),
        ({"costs": [0, 1j, 2]}, "costs must be 3 numbers"),
        ({"costs": [0, 1, 10**400]}, "costs must be 3 numbers"),
        ({"costs": np.ma.array([0.0, 1.0, 2.0], mask=[False, True, False])}, "costs must be 3 numbers"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        solve_design(EYE, **({"regulariser": 0.1} | arguments))


@pytest.mark.parametrize(
    "arms",
    [
        np.ones(3),
        np.ones((0, 2)),
        np.full((2, 2), np.nan),
        np.full((2, 2), 1e200),
        "arms",
        None,
        np.ones((2, 2)) * 1j,
        np.ones((2, 2)).astype(str),
        np.full((2, 2), 10**400, dtype=object),
    ],
)
def test_features_refused(arms):
    with pytest.raises(InputError):
        solve_design(arms, regulariser=0.1)


def test_information_refused():
    with pytest.raises(InputError, match="horizon"):
        information_gain(EYE, horizon=0, sigma=1.0)
    with pytest.raises(InputError, match="sigma"):
        information_gain(EYE, horizon=10, sigma=-1.0)
    with pytest.raises(InputError, match="probabilities"):
        effective_dimension(EYE, regulariser=0.1, probabilities=[1.0, 1.0, 0.0])


@pytest.mark.parametrize("method", ["interior_point", "active_set"])
def test_out_of_reach_says_why_and_carries_the_best_law(method):
    case = make_case("rotated", "even", size=30, scale=1e6, regulariser=1e-6)
    with pytest.raises(ConvergenceError, match=r"above the tolerance 1.00e-30.*raise the tolerance") as caught:
        solve_design(case.features, case.costs, regulariser=1e-6, tolerance=1e-30, method=method)
    best = caught.value.best
    assert best.status is not Status.OPTIMAL
    assert best.probabilities.min() >= 0.0
    assert abs(best.probabilities.sum() - 1.0) < 1e-12
    assert certificate(case.features, case.costs, 1e-6, best.probabilities) < 1e-4


def test_iteration_limit():
    case = make_case("smooth", "even", size=30)
    problem = DesignProblem(case.features, case.costs - case.costs.min(), 1e-2)
    assert solve_interior_point(problem, tolerance=1e-9, limit=2).status is Status.ITERATION_LIMIT


def test_the_result_is_frozen():
    design = solve_design(EYE, regulariser=0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        design.gap = 0.0
    with pytest.raises(ValueError, match="read-only"):
        design.probabilities[0] = 1.0


def test_inputs_are_left_alone():
    features, costs, start = np.eye(4), np.arange(4.0), np.full(4, 0.25)
    kept = features.copy(), costs.copy(), start.copy()
    for method in ("interior_point", "active_set"):
        solve_design(features, costs, regulariser=0.1, warm_start=start, method=method)
    for given, before in zip((features, costs, start), kept, strict=True):
        np.testing.assert_array_equal(given, before)
        assert given.flags.writeable


def test_the_interior_point_is_refused_where_its_matrices_cannot_be_held():
    with pytest.raises(InputError, match=r"interior point on 2,000,000 arms would need .*; use method='active_set'"):
        solve_design(np.ones((2_000_000, 1)), regulariser=0.1, method="interior_point")
