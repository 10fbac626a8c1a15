"""Many arms: the passes over coarse samples and promising pools end in a certificate over all arms."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits.arms.arm_set import ArmSet
from driftbandits.design import solve_design
from driftbandits.design.active_set import _Search
from driftbandits.design.interior_point import ArmSpace, FeatureSpace
from driftbandits.design.problem import DesignProblem, Information
from tests.design.oracles import certificate


def _curve(count, degree, seed):
    points = np.random.default_rng(seed).uniform(-1, 1, count)
    return points, np.ascontiguousarray(np.polynomial.legendre.legvander(points, degree)) / np.sqrt(degree + 1)


@pytest.mark.parametrize("count", [3_000, 30_000, 200_000])
def test_many_arms_of_low_rank(count):
    points, features = _curve(count, 6, seed=count)
    for costs in (np.zeros(count), 20 * points**2):
        design = solve_design(features, costs, regulariser=1e-2)
        assert design.gap <= 1e-6
        assert certificate(features, costs, 1e-2, design.probabilities) <= 1.01e-6
        assert len(design.support) <= 200  # neighbours on a dense curve are all but equal


def test_polynomial_design_on_an_interval():
    """Guest (1958): without a regulariser the D-optimal points are the ends and the roots of P'_n, weighted alike."""
    points = np.linspace(-1, 1, 20_001)
    features = np.polynomial.legendre.legvander(points, 3)
    design = solve_design(features, regulariser=1e-7, tolerance=1e-7)
    assert design.gap <= 1e-7
    for node in (-1.0, -np.sqrt(0.2), np.sqrt(0.2), 1.0):  # weights as exact as the root of the gap: the top is flat
        assert design.probabilities[np.abs(points - node) < 1e-2].sum() == pytest.approx(0.25, abs=6e-4)


def test_far_apart_arms_come_in_quickly():
    """No arm resembles another, so nothing can be said of one from its neighbours."""
    design = solve_design(np.eye(400), regulariser=1.0, method="active_set")
    np.testing.assert_allclose(design.probabilities, 1 / 400, atol=1e-6)
    assert design.iterations < 60


def test_a_good_warm_start_saves_work():
    points, features = _curve(20_000, 9, seed=5)
    first = solve_design(features, 10 * points, regulariser=1e-3)
    again = solve_design(features, 10.1 * points, regulariser=1e-3, warm_start=first.probabilities)
    cold = solve_design(features, 10.1 * points, regulariser=1e-3)
    assert again.iterations <= cold.iterations


@pytest.mark.parametrize("near", [0.002, 0.1])
def test_a_loose_design_of_many_arms_is_certified_from_wherever_it_begins(near):
    """From the law of another regulariser, or from none: the gap over all arms, computed anew."""
    points = np.random.default_rng(1).random((10_000, 2))
    features = ArmSet(points, RBF(0.2)).features
    begin = solve_design(features, regulariser=near, tolerance=0.05).probabilities
    for warm_start in (None, begin):
        law = solve_design(features, regulariser=0.01, tolerance=0.05, warm_start=warm_start).probabilities
        matrix = features.T @ (law[:, None] * features) + 0.01 * np.eye(features.shape[1])
        leverage = np.einsum("ij,ji->i", features, np.linalg.solve(matrix, features.T))
        assert law.min() >= 0.0
        assert law.sum() == pytest.approx(1.0)
        assert leverage.max() - law @ leverage <= 0.05 + 1e-9


def test_arms_that_carry_directions_together_are_not_dropped_together():
    """Many arms of little weight each: without them the next law would have to find these directions anew."""
    points = np.random.default_rng(0).random((10_000, 2))
    costs = 30.0 * (1.0 - np.cos(5.0 * points[:, 0]) * np.cos(4.0 * points[:, 1]))
    design = solve_design(ArmSet(points, RBF(0.2)), costs, regulariser=0.017, tolerance=1e-3)
    assert design.iterations <= 90  # 43; and 183 if all that look idle are dropped


def test_working_sets_of_many_arms_stay_small():
    """Neighbours share weight that one of them could carry: a step costs the cube of their number."""
    points = np.random.default_rng(0).random((12_000, 2))
    features = np.ascontiguousarray(ArmSet(points, RBF(0.15)).features[:, :100])
    design = solve_design(features, regulariser=1e-3, tolerance=0.05)
    assert design.support.size <= 540  # 441; and 674 if arms of little slack are all kept


def test_the_pass_that_settles_all_arms_certifies_them(monkeypatch):
    """Where the pool is all arms, they are not priced again for the certificate."""
    laws = []
    price = _Search.price
    monkeypatch.setattr(_Search, "price", lambda self, pool: laws.append(self.law.tobytes()) or price(self, pool))
    features = np.random.default_rng(0).standard_normal((3000, 4))
    design = solve_design(features, regulariser=0.01, method="active_set")
    assert len(laws) == len(set(laws)) > 1
    assert design.gap == pytest.approx(certificate(features, np.zeros(3000), 0.01, design.probabilities), abs=1e-9)


@pytest.mark.parametrize("support", [3, 12, 60])
def test_leverage_both_ways(support):
    """Through arms and through features: the same numbers."""
    rng = np.random.default_rng(support)
    features = rng.standard_normal((60, 8))
    law = np.zeros(60)
    law[:support] = rng.dirichlet(np.ones(support))
    information = Information(features, law, 0.1)
    matrix = features.T @ (law[:, None] * features) + 0.1 * np.eye(8)
    expected = features @ np.linalg.solve(matrix, features.T)
    squares = (features**2).sum(axis=1)
    for chosen in (information, Information(features, law, 0.1, through_arms=False)):
        np.testing.assert_allclose(chosen.leverage(features, squares), expected.diagonal(), rtol=1e-9)
    np.testing.assert_allclose(information.cross(features[:5], features), expected[:5], atol=1e-9)
    assert information.log_det == pytest.approx(np.linalg.slogdet(matrix)[1])
    assert information.through_arms is (support <= 32)


def test_newton_systems_agree():
    rng = np.random.default_rng(0)
    problem = DesignProblem(rng.standard_normal((12, 5)), np.zeros(12), 0.1)
    law, products, right = rng.dirichlet(np.ones(12)), rng.random(12), rng.random(12)
    solutions = []
    for kind in (ArmSpace, FeatureSpace):
        system = kind(problem)
        hat = system.weigh(law)
        assert system.factor(law, hat, products)
        solutions.append(system.solve(right))
    np.testing.assert_allclose(solutions[0], solutions[1], rtol=1e-9)
    scaled = np.sqrt(law)[:, None] * problem.features
    full = scaled @ np.linalg.solve(scaled.T @ scaled + 0.1 * np.eye(5), scaled.T)
    np.testing.assert_allclose((full**2 + np.diag(products)) @ solutions[0], right, rtol=1e-9)


def test_duplicates_with_no_slack_left_need_jitter():
    problem = DesignProblem(np.ones((4, 1)), np.zeros(4), 1e-3)
    system = ArmSpace(problem)
    law = np.full(4, 0.25)
    assert system.factor(law, system.weigh(law), np.zeros(4))
