"""Information gain and effective dimension against closed forms, and the lemmas that speak of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from driftbandits.arms.arm_set import ArmSet
from driftbandits.design import effective_dimension, information_gain, solve_design
from tests.design.oracles import cases, make_case


@pytest.mark.parametrize(("count", "horizon", "sigma"), [(1, 10, 1.0), (7, 1000, 100.0), (300, 10_000, 1.0)])
def test_orthogonal_arms(count, horizon, sigma):
    expected = count * np.log1p(horizon / (count * sigma))
    assert information_gain(np.eye(count), horizon=horizon, sigma=sigma) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dimension", [1, 3, 8])
def test_linear_kernel_bound(dimension):
    """Appendix C: gamma <= d log(T / (sigma d) + 1) for features of norm at most one."""
    rng = np.random.default_rng(dimension)
    features = rng.standard_normal((400, dimension))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    gain = information_gain(features, horizon=5_000, sigma=2.0)
    bound = dimension * np.log(5_000 / (2.0 * dimension) + 1)
    assert 0.9 * bound < gain <= bound * (1 + 1e-9)


@pytest.mark.parametrize("kernel", [RBF(0.2), Matern(0.3, nu=2.5), Matern(0.3, nu=1.5)])
def test_growth_is_monotone_and_slower_than_any_power(kernel):
    """Appendix C: gamma grows with T; for the smooth kernel like log(T)^(d+1), for Matern like a small power of T."""
    arms = ArmSet(np.linspace(0, 1, 200)[:, None], kernel=kernel)
    horizons = 10.0 ** np.arange(1, 7)
    gains = np.array([information_gain(arms, horizon=t, sigma=1.0) for t in horizons])
    assert (np.diff(gains) > 0).all()
    slopes = np.diff(np.log(gains)) / np.log(10)
    assert (np.diff(slopes) < 1e-3).all()
    assert slopes[-1] < (0.2 if isinstance(kernel, Matern) is False else 1 / kernel.nu)


def test_no_law_brings_more():
    rng = np.random.default_rng(0)
    arms = ArmSet(rng.random((60, 2)), kernel=RBF(0.3))
    gain = information_gain(arms, horizon=1_000, sigma=1.0)
    for law in rng.dirichlet(np.full(60, 0.2), size=200):
        scaled = arms.features.T @ (1_000 * law[:, None] * arms.features) + np.eye(arms.rank)
        assert np.linalg.slogdet(scaled)[1] <= gain * (1 + 1e-6)


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(case=cases(sizes=(1, 2, 10, 40)), seed=st.integers(0, 100))
def test_lemma_1(case, seed):
    """The optimal design's leverage is on all its arms at most its mean plus the gap, and that at most gamma."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(rng.random(len(case.features)) < 0.7)
    rows = rows if rows.size else np.array([0])
    largest = max(1.0, np.einsum("ij,ij->i", case.features, case.features).max())
    features, regulariser = case.features / np.sqrt(largest), case.regulariser
    design = solve_design(features, regulariser=regulariser, candidates=rows)
    law = design.probabilities
    information = features.T @ (law[:, None] * features) + regulariser * np.eye(features.shape[1])
    leverage = np.einsum("ij,ji->i", features, np.linalg.solve(information, features.T))
    slack = 1e-9 / regulariser
    assert leverage[rows].max() <= law @ leverage + design.gap + slack
    gamma = design.log_det - features.shape[1] * np.log(regulariser)  # T / sigma = 1 / lambda
    assert law @ leverage <= gamma + slack


def test_effective_dimension():
    case = make_case("smooth", "zero", size=50)
    rank = case.features.shape[1]
    uniform = np.full(50, 0.02)
    information = case.features.T @ (uniform[:, None] * case.features)
    expected = np.trace(np.linalg.solve(information + 1e-2 * np.eye(rank), information))
    assert effective_dimension(case.features, regulariser=1e-2, probabilities=uniform) == pytest.approx(expected)
    optimal = effective_dimension(case.features, regulariser=1e-2)
    design = solve_design(case.features, regulariser=1e-2)
    assert optimal <= min(rank, len(design.support))
    assert optimal > 0
    assert effective_dimension(case.features, regulariser=1e-6) > optimal
    assert effective_dimension(np.eye(5), regulariser=1e-9) == pytest.approx(5.0, rel=1e-6)
