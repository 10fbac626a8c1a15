"""Every solution is feasible and certified by an independent computation, on every family the library promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.arms.arm_set import ArmSet
from driftbandits.design import Status, solve_design
from tests.design.oracles import COST_KINDS, FAMILIES, cases, certificate, make_case

METHODS = ("auto", "interior_point", "active_set")
fixed = settings(derandomize=True, deadline=None, max_examples=300, database=None)


def check(case, design, *, tolerance=1e-6, candidates=None):
    law = design.probabilities
    assert design.status is Status.OPTIMAL
    assert law.shape == (len(case.features),)
    assert law.min() >= 0.0
    assert abs(law.sum() - 1.0) < 1e-12
    assert not law.flags.writeable
    assert 0.0 <= design.gap <= tolerance
    exact = certificate(case.features, case.costs, case.regulariser, law, candidates)
    assert abs(exact - design.gap) <= 1e-8 + 0.1 * tolerance


@pytest.mark.parametrize("method", METHODS)
@fixed
@given(case=cases())
def test_certified_on_every_family(method, case):
    design = solve_design(case.features, case.costs, regulariser=case.regulariser, method=method)
    check(case, design)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cost_kind", COST_KINDS)
def test_extremes(family, cost_kind):
    for regulariser in (1e-6, 10.0):
        case = make_case(family, cost_kind, size=40, scale=1e6, regulariser=regulariser, seed=1)
        check(case, solve_design(case.features, case.costs, regulariser=regulariser))


@fixed
@given(case=cases(sizes=(2, 5, 20, 40)), seed=st.integers(0, 100))
def test_candidates_only(case, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random(len(case.features)) < 0.5
    mask[rng.integers(len(mask))] = True
    design = solve_design(case.features, case.costs, regulariser=case.regulariser, candidates=mask)
    rows = np.flatnonzero(mask)
    check(case, design, candidates=rows)
    assert not design.probabilities[~mask].any()
    by_index = solve_design(case.features, case.costs, regulariser=case.regulariser, candidates=rows[::-1])
    np.testing.assert_array_equal(by_index.probabilities, design.probabilities)


@fixed
@given(
    case=cases(sizes=(2, 10, 30)), method=st.sampled_from(METHODS), kind=st.sampled_from(("own", "vertex", "random"))
)
def test_any_warm_start_is_fine(case, method, kind):
    settings_ = {"regulariser": case.regulariser, "method": method}
    cold = solve_design(case.features, case.costs, **settings_)
    rng = np.random.default_rng(0)
    start = {
        "own": cold.probabilities,
        "vertex": np.eye(len(case.features))[0],
        "random": rng.dirichlet(np.ones(len(case.features))),
    }[kind]
    check(case, solve_design(case.features, case.costs, warm_start=start, **settings_))


def test_tight_tolerance():
    case = make_case("smooth", "even", size=60, scale=10.0)
    check(case, solve_design(case.features, case.costs, regulariser=1e-2, tolerance=1e-10), tolerance=1e-10)


def test_methods_agree_and_a_constant_cost_changes_nothing():
    case = make_case("smooth", "even", size=300, scale=20.0)
    values = []
    for method in METHODS:
        for offset in (0.0, 1e6):
            design = solve_design(case.features, case.costs + offset, regulariser=1e-2, method=method)
            values.append(case.costs @ design.probabilities - design.log_det)
    assert np.ptp(values) < 2e-6


@fixed
@given(case=cases(sizes=(2, 10, 40), scales=(1.0, 100.0)), seed=st.integers(0, 100))
def test_rotated_features_give_the_same_objective(case, seed):
    rank = case.features.shape[1]
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((rank, rank)))[0]
    values = []
    for features in (case.features, case.features @ rotation):
        design = solve_design(features, case.costs, regulariser=case.regulariser)
        values.append(case.costs @ design.probabilities - design.log_det)
    assert abs(values[0] - values[1]) <= 2e-6 + 1e-12 * abs(case.costs).max()


def test_an_arm_set_is_taken_by_its_features():
    rng = np.random.default_rng(0)
    arms = ArmSet(rng.random((50, 2)))
    direct = solve_design(arms.features, regulariser=1e-2)
    np.testing.assert_array_equal(solve_design(arms, regulariser=1e-2).probabilities, direct.probabilities)


def test_identical_arms_and_zero_features():
    for features in (np.ones((5, 2)), np.zeros((4, 3)), np.array([[0.0], [1.0]])):
        design = solve_design(features, regulariser=0.1)
        assert design.gap <= 1e-6
    assert solve_design(np.array([[0.0], [1.0]]), regulariser=0.1).probabilities[1] == pytest.approx(1.0, abs=1e-6)


def test_one_arm():
    design = solve_design(np.array([[0.5, 0.5]]), [7.0], regulariser=1e-3)
    assert design.probabilities.tolist() == [1.0]
    assert design.gap == 0.0


def test_known_solution_for_orthogonal_arms():
    costs = np.array([0.0, 1.0, 3.0, 50.0])
    design = solve_design(np.eye(4), costs, regulariser=0.05, tolerance=1e-12)
    used = design.probabilities > 0
    # Waterfilling: p_i = 1 / (c_i - nu) - lambda with one level nu for all arms in use.
    level = costs[used] - 1.0 / (design.probabilities[used] + 0.05)
    assert np.ptp(level) < 1e-9
    assert used.tolist() == [True, True, True, False]


def test_sparse_where_the_optimum_is():
    rng = np.random.default_rng(3)
    arms = ArmSet(rng.random((1000, 1)), kernel={"name": "rbf", "length_scale": 1.0})
    design = solve_design(arms, regulariser=1e-2)
    assert len(design.support) < 60


def test_repeatable():
    case = make_case("smooth", "even", size=400)
    laws = [solve_design(case.features, case.costs, regulariser=1e-2).probabilities for _ in range(2)]
    np.testing.assert_array_equal(laws[0], laws[1])
