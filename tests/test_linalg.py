"""Pivoted Cholesky against the whole matrix, and the Cholesky with reported jitter."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from driftbandits._util import linalg
from driftbandits._util.linalg import cholesky, pivoted_cholesky
from driftbandits.errors import KernelError


def factor(matrix, tolerance=1e-10):
    return pivoted_cholesky(matrix.diagonal(), lambda rows, columns: matrix[rows][:, columns], tolerance=tolerance)


def gram(seed, size, rank):
    half = np.random.default_rng(seed).standard_normal((size, rank)) / np.sqrt(rank)
    return half @ half.T


@given(seed=st.integers(0, 10_000), size=st.integers(1, 30), rank=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_features_give_the_matrix_and_the_pivots_exactly(seed, size, rank):
    matrix = gram(seed, size, rank)
    result = factor(matrix, 1e-10 * matrix.diagonal().max())
    rest = matrix - result.features @ result.features.T
    assert result.features.shape[1] == len(set(result.pivots)) <= min(size, rank)
    assert result.residual <= 1e-10 * matrix.diagonal().max()
    assert np.abs(rest).max() <= result.residual + 1e-12 * matrix.diagonal().max()
    assert np.abs(rest[:, result.pivots]).max() <= 1e-12 * matrix.diagonal().max()


def test_features_of_pivots_are_lower_triangular():
    result = factor(gram(0, 20, 20))
    chosen = result.features[result.pivots]
    np.testing.assert_allclose(chosen, np.tril(chosen), atol=1e-12)
    assert (chosen.diagonal() > 0).all()


@pytest.mark.parametrize("kernel", [RBF(0.2), Matern(1.0, nu=1.5)], ids=repr)
def test_stages_beyond_the_candidates_agree_with_the_whole_matrix(kernel):
    points = np.random.default_rng(0).random((3_000, 2))
    matrix = kernel(points)
    tolerance = 1e-4
    result = factor(matrix, tolerance)
    assert result.residual <= tolerance
    assert np.abs(matrix - result.features @ result.features.T).max() <= tolerance * (1 + 1e-6)
    greedy = scipy.linalg.lapack.dpstrf(matrix, lower=1, tol=tolerance)[2]
    assert result.features.shape[1] <= 1.15 * greedy
    assert result.features.flags.c_contiguous


def test_five_thousand_arms():
    points, kernel = np.random.default_rng(1).random((5_000, 2)), RBF(0.4)
    result = pivoted_cholesky(np.ones(5_000), lambda rows, cols: kernel(points[rows], points[cols]), tolerance=1e-7)
    assert result.features.shape[1] < 100
    assert np.abs(kernel(points) - result.features @ result.features.T).max() <= 1.001e-7


def test_many_stages(monkeypatch):
    """With few candidates per stage, no spare room and small blocks, every path of growing the features is taken."""
    monkeypatch.setattr(linalg, "_MOST_CANDIDATES", 16)
    monkeypatch.setattr(linalg, "_COLUMNS_RESERVED", 3)
    monkeypatch.setattr(linalg, "_BLOCK_ENTRIES", 64)
    for seed in range(5):
        matrix = gram(seed, 300, 60) + np.diag(np.r_[np.ones(30), np.zeros(270)])
        result = factor(matrix, 1e-9)
        np.testing.assert_allclose(result.features @ result.features.T, matrix, atol=1e-8)
        assert result.features.shape[1] <= 90
        assert len(set(result.pivots)) == len(result.pivots)


def test_full_rank_beyond_the_candidates():
    result = factor(np.eye(2_500))
    assert result.features.shape == (2_500, 2_500)
    assert result.residual == 0.0


def test_a_far_cluster_is_not_missed():
    """A few arms unlike all others, at no even stride: only their own large rest finds them."""
    points = np.zeros((10_000, 1))
    points[[1234, 5678, 9_999], 0] = [5.0, 10.0, 15.0]
    kernel = RBF(1.0)
    result = pivoted_cholesky(
        np.ones(10_000), lambda rows, columns: kernel(points[rows], points[columns]), tolerance=1e-9
    )
    assert result.features.shape[1] == 4
    assert {1234, 5678, 9_999} <= set(result.pivots)


def test_zero_and_empty_matrices_have_no_features():
    assert factor(np.zeros((3, 3))).features.shape == (3, 0)
    assert factor(np.zeros((0, 0))).features.shape == (0, 0)


def test_a_rest_at_the_tolerance_ends():
    """Entries a hair below the stated diagonal: nothing is left to choose, and the loop must stop."""
    matrix = np.eye(2) * 0.5
    result = pivoted_cholesky(np.full(2, 0.5 + 1e-12), lambda rows, columns: matrix[rows][:, columns], tolerance=0.5)
    assert result.features.shape == (2, 0)
    assert result.residual == pytest.approx(0.5)


def test_indefinite_is_refused_with_the_arm():
    matrix = np.array([[1.0, 0.9, 0.0], [0.9, 0.5, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(KernelError, match=r"not positive semi-definite: the variance of arm 1 .* -0\.31"):
        factor(matrix)


def test_not_finite_is_refused_with_the_arm():
    matrix = np.eye(3)
    matrix[2, 1] = matrix[1, 2] = np.nan
    with pytest.raises(KernelError, match="not finite at arm 1"):
        factor(matrix)


def test_not_finite_outside_the_candidates_is_refused():
    def entries(rows, columns):
        left = np.arange(3_000)[rows]
        block = np.ones((len(left), len(columns)))
        block[left == bad] = np.nan
        return block

    rest = np.ones(3_000)
    bad = int(np.setdiff1d(np.arange(3_000), linalg._candidates(rest, 1e-8))[0])
    with pytest.raises(KernelError, match=f"not finite at arm {bad};"):
        pivoted_cholesky(rest, entries, tolerance=1e-8)


def test_asymmetric_is_refused_with_the_arms():
    with pytest.raises(KernelError, match=r"not symmetric: .* of arms 0 and 1 differ by 0.5"):
        factor(np.array([[1.0, 0.5], [0.0, 1.0]]))


def test_a_diagonal_of_its_own_is_refused():
    with pytest.raises(KernelError, match=r"diagonal disagree at arm 0 .* WhiteKernel"):
        pivoted_cholesky(np.full(2, 1.5), lambda rows, columns: np.eye(2)[rows][:, columns], tolerance=1e-8)


def test_cholesky_solves_and_reports_no_jitter():
    matrix = gram(3, 8, 12) + np.eye(8)
    result = cholesky(matrix)
    assert result.jitter == 0.0
    right = np.arange(16.0).reshape(8, 2)
    np.testing.assert_allclose(matrix @ result.solve(right), right, atol=1e-12)
    np.testing.assert_allclose(matrix @ result.solve(right[:, 0]), right[:, 0], atol=1e-12)
    assert result.log_det == pytest.approx(np.linalg.slogdet(matrix)[1])


def test_cholesky_jitter_is_bounded_and_reported():
    matrix = 5.0 * np.ones((4, 4))
    result = cholesky(matrix)
    assert 0.0 < result.jitter <= 5e-8
    np.testing.assert_allclose(result.factor @ result.factor.T, matrix + result.jitter * np.eye(4), atol=1e-14)


@pytest.mark.parametrize("matrix", [np.diag([1.0, -1.0]), np.zeros((2, 2))])
def test_cholesky_refuses_what_jitter_cannot_mend(matrix):
    with pytest.raises(KernelError, match="the design matrix is not positive definite"):
        cholesky(matrix, what="design matrix")


def test_cholesky_refuses_nan():
    with pytest.raises(KernelError, match="the matrix is not finite"):
        cholesky(np.array([[np.nan]]))
