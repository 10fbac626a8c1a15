"""Arms: features that reproduce the kernel, and clear words for what cannot be used."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sk
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet
from driftbandits.errors import InputError, KernelError

POINTS = np.random.default_rng(0).random((60, 2))
LARGE = np.random.default_rng(1).random((2_500, 2))


def laplace(X, Y):
    return np.exp(-np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2))


def gaussian(X, Y):
    squares = np.square(X).sum(axis=1)[:, None] + np.square(Y).sum(axis=1) - 2 * X @ Y.T
    return np.exp(-squares)


KERNELS = [
    RBF(0.2),
    RBF(5.0),
    RBF([0.1, 2.0]),
    RBF(1e-3),
    sk.Matern(0.5, nu=0.5),
    sk.Matern(0.5, nu=1.5),
    sk.Matern(0.5, nu=2.5),
    sk.RationalQuadratic(0.3, alpha=0.7),
    sk.DotProduct(0.0),
    sk.DotProduct(3.0),
    sk.DotProduct(1.0) ** 3,
    sk.ConstantKernel(0.3),
    sk.ConstantKernel(40.0) * RBF(0.3) + sk.DotProduct(1.0) * sk.Matern(1.0),
    1e-9 * RBF(0.3),
    1e9 * RBF(0.3),
    sk.PairwiseKernel(metric="laplacian"),
    laplace,
    lambda X, Y: np.minimum(X[:, :1], Y[:, 0]),
    {"name": "sum", "terms": [{"name": "rbf", "length_scale": 0.1}, {"name": "linear"}]},
]


def gram(kernel, points):
    from driftbandits.arms.kernels import as_function

    return as_function(kernel)(points, points)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: getattr(kernel, "__name__", repr(kernel)))
@pytest.mark.parametrize("tolerance", [1e-4, 1e-10])
def test_features_reproduce_the_kernel_within_the_tolerance(kernel, tolerance):
    arms = ArmSet(POINTS, kernel, tolerance=tolerance)
    matrix = gram(kernel, POINTS)
    largest = matrix.diagonal().max()
    assert arms.scale == pytest.approx(max(1.0, largest))
    scaled = matrix / arms.scale
    assert arms.residual <= tolerance * min(1.0, largest) * (1 + 1e-6)
    assert np.abs(arms.features @ arms.features.T - scaled).max() <= arms.residual + 1e-13 * scaled.max()
    assert np.square(arms.features).sum(axis=1).max() <= 1 + 1e-12
    assert arms.features.shape == (60, arms.rank) == (60, len(arms.pivots))
    assert arms.features.flags.c_contiguous
    assert arms.features.dtype == np.float64


@pytest.mark.parametrize("kernel", [RBF(0.3), sk.Matern(1.0, nu=2.5) * 4.0, sk.DotProduct(1.0), gaussian])
def test_many_arms_agree_with_the_exact_matrix(kernel):
    tolerance = 1e-6
    arms = ArmSet(LARGE, kernel, tolerance=tolerance)
    matrix = gram(kernel, arms.points) / arms.scale
    assert np.abs(arms.features @ arms.features.T - matrix).max() <= tolerance * (1 + 1e-6)
    assert arms.rank < len(arms) / 4


def test_a_matrix_is_a_kernel():
    matrix = RBF(0.3)(POINTS)
    by_kernel, by_matrix = ArmSet(POINTS, RBF(0.3)), ArmSet(POINTS, matrix)
    np.testing.assert_allclose(by_matrix.features, by_kernel.features, atol=1e-9)
    assert by_matrix.kernel is None
    assert "kernel=given" in repr(by_matrix)
    listed = ArmSet(POINTS, matrix.tolist())
    framed = ArmSet(POINTS, pd.DataFrame(matrix))
    np.testing.assert_array_equal(listed.features, by_matrix.features)
    np.testing.assert_array_equal(framed.features, by_matrix.features)
    assert matrix.flags.writeable


def test_a_large_matrix_is_checked_whole():
    """2,500 arms, one pair that no covariance allows: a sample would hardly meet it."""
    matrix = RBF(0.3)(LARGE)
    assert ArmSet(LARGE, matrix, tolerance=1e-6).residual <= 1e-6
    matrix[2_321, 17] = matrix[17, 2_321] = matrix[17, 2_321] + 0.01
    with pytest.raises(KernelError, match="not positive semi-definite"):
        ArmSet(LARGE, matrix, tolerance=1e-6)


def test_a_labelled_matrix_must_have_the_order_of_the_arms():
    frame = pd.DataFrame({"x": [0.0, 1.0, 3.0]}, index=["a", "b", "c"])
    matrix = pd.DataFrame(RBF(1.0)(frame.to_numpy()), index=frame.index, columns=frame.index)
    assert ArmSet(frame, matrix).rank == 3
    with pytest.raises(InputError, match=r"another order; use \.loc\[names, names\]"):
        ArmSet(frame, matrix.loc[["b", "a", "c"], ["b", "a", "c"]])


def test_duplicates_and_rank_deficiency_are_normal():
    arms = ArmSet(np.repeat(POINTS[:7], 5, axis=0), RBF(0.1))
    assert arms.rank == 7
    np.testing.assert_allclose(arms.features[0], arms.features[4], atol=1e-12)
    assert ArmSet(POINTS, sk.DotProduct(0.0)).rank == 2
    assert ArmSet(POINTS, sk.DotProduct(1.0)).rank == 3
    assert ArmSet(POINTS, sk.ConstantKernel(0.5)).rank == 1
    assert ArmSet(np.zeros((3_000, 1)), RBF(1.0)).rank == 1
    assert ArmSet([[1.0]], RBF(1.0)).rank == 1


def test_a_slightly_indefinite_matrix_reports_what_is_left_out():
    """A rounded matrix is not quite positive semi-definite; the residual says by how much."""
    matrix = np.round(RBF(2.0)(POINTS), 8)
    with pytest.raises(KernelError, match=r"if its values are rounded .* larger tolerance"):
        ArmSet(POINTS, matrix)
    arms = ArmSet(POINTS, matrix, tolerance=1e-6)
    assert np.abs(arms.features @ arms.features.T - matrix).max() <= arms.residual + 1e-13
    assert arms.residual < 2e-6


def test_single_precision_is_enough_for_a_larger_tolerance():
    matrix = RBF(0.5)(POINTS).astype(np.float32)
    arms = ArmSet(POINTS, matrix, tolerance=1e-5)
    np.testing.assert_allclose(arms.features @ arms.features.T, matrix, atol=2e-5)


def test_a_periodic_kernel_needs_one_dimension():
    kernel = sk.ExpSineSquared(0.8, 0.4)
    line = POINTS[:, :1]
    arms = ArmSet(line, kernel)
    np.testing.assert_allclose(arms.features @ arms.features.T, kernel(line), atol=1e-9)
    with pytest.raises(KernelError, match="not positive semi-definite"):  # true: it is none on distances in the plane
        ArmSet(POINTS, kernel)


@pytest.mark.parametrize("size", [60, 2_500])
def test_a_white_kernel_is_refused(size):
    with pytest.raises(KernelError, match="WhiteKernel is noise"):
        ArmSet(LARGE[:size], RBF(0.2) + sk.WhiteKernel(0.1))


def sigmoid(X, Y):
    return np.tanh(2 * X @ Y.T - 0.5) + 1.0


@pytest.mark.parametrize("size", [60, 2_500])
@pytest.mark.parametrize("kernel", [sigmoid, lambda X, Y: 1 - np.abs(X[:, :1] - Y[:, 0]) * 3], ids=["sigmoid", "tent"])
def test_indefinite_kernels_are_refused_with_an_arm(kernel, size):
    with pytest.raises(KernelError, match=r"not positive semi-definite: .*arms? \d+"):
        ArmSet(LARGE[:size], kernel)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "variance of arm 1 given others is -3"),
        ([[0.0, 1.0], [1.0, 0.0]], "zero on every arm"),
        ([[1.0, 0.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.5, 0.0]], "arms 1 and 2 is 0.5 away"),
        ([[1.0, 0.0], [0.0, -1.0]], r"k\(x, x\) = -1 at arm 1"),
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric at arms 0 and 1, by 0.1"),
        ([[1.0, np.nan], [np.nan, 1.0]], "is nan at arms 0 and 1"),
        ([[np.inf, 0.0], [0.0, 1.0]], "is inf at arms 0 and 0"),
    ],
)
def test_unusable_matrices_are_refused_with_the_arms(matrix, message):
    with pytest.raises(KernelError, match=message):
        ArmSet(np.arange(len(matrix))[:, None], matrix)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (np.eye(3), r"matrix for 60 arms must be square of that size, got the shape \(3, 3\)"),
        (np.eye(60)[:, :3], r"got the shape \(60, 3\)"),
        ("rbf", "write {'name': 'rbf'}"),
        (0.2, "kernel must be"),
        (RBF, "pass an instance"),
        ({"name": "rfb"}, "did you mean 'rbf'"),
        (lambda X, Y: X, "it must give one value per pair"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), r"k\(x, x\) is nan at arm 0"),
        (lambda X, Y: np.zeros((len(X), len(Y))), "zero on every arm"),
        (lambda X, Y: np.exp(-np.maximum(X[:, :1] - Y[:, 0], 0)), "not symmetric"),
        (RBF([1.0, 2.0, 3.0]), "failed on points in 2 dimensions"),
        (np.eye(60) * (1 + 1j), "the values are complex, not real numbers"),
        (np.eye(60).astype(str), "the values are text, not real numbers"),
        (np.eye(60).astype("M8[s]"), "the values are dates, not real numbers"),
        (np.full((60, 60), 10**400, dtype=object), "too large"),
        (np.ma.array(np.eye(60), mask=np.eye(60) == 0), "some values are masked"),
        (scipy.sparse.eye(60, format="csr"), r"call its toarray\(\) first"),
    ],
)
def test_unusable_kernels_are_refused(kernel, message):
    with pytest.raises(InputError, match=message):
        ArmSet(POINTS, kernel)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], "at least one of each"),
        (np.empty((0, 2)), "at least one of each"),
        (np.empty((2, 0)), "at least one of each"),
        (3.0, r"shape \(arms, dimensions\)"),
        (np.zeros((2, 2, 2)), r"got \(2, 2, 2\)"),
        ([1.0, 2.0, 3.0], r"3 arms with one coordinate each use numpy.reshape\(points, \(-1, 1\)\)"),
        (pd.Series([1.0, 2.0]), "2 arms with one coordinate"),
        ([[1.0, 2.0], [3.0]], "rows of equal length"),
        ([["a", 1.0]], "must be numbers"),
        ([["1", "2"]], "must be numbers"),
        ([[None, 1.0]], "must be numbers|row 0, column 0"),
        ([[1j, 1.0]], "must be numbers"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "must be numbers"),
        ([[0.0, 1.0], [2.0, np.nan]], "points at row 1, column 1 is nan; fill or drop"),
        ([[0.0, np.inf]], "row 0, column 1 is inf"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]), "row 0, column 1 is nan"),
        (scipy.sparse.eye(3, format="csr"), r"must be dense, .* toarray\(\)"),
        (pd.DataFrame({"price": [1.0, None]}), r"row 1, column 0 \('price'\) is nan"),
        (pd.DataFrame({"price": pd.array([1, None], dtype="Int64")}), r"row 1, column 0 \('price'\) is nan"),
        (pd.DataFrame({"price": [1.0], "colour": ["red"]}), r"columns \['colour'\] of points are not numbers"),
        (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), r"columns \['day'\]"),
        (pd.DataFrame({"kind": pd.Categorical(["a"])}), r"columns \['kind'\]"),
        (pd.DataFrame({"x": []}, dtype=float), "at least one of each"),
    ],
)
def test_unusable_points_are_refused_with_the_cure(points, message):
    with pytest.raises(InputError, match=message):
        ArmSet(points)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 1.0, 1e-16, float("nan"), 10**400, "0.1", None, 1j])
def test_tolerances_out_of_range_are_refused(tolerance):
    with pytest.raises(InputError, match="tolerance must be at least 1e-14 and below 1"):
        ArmSet(POINTS, tolerance=tolerance)


def test_frames_name_columns_and_arms():
    frame = pd.DataFrame({"price": [1, 2, 3], "sale": [True, False, True], "w": [0.5, 1.5, 2.5]}, index=["a", "b", "c"])
    arms = ArmSet(frame)
    assert arms.feature_names == ("price", "sale", "w")
    assert arms.names == ("a", "b", "c")
    assert arms.index("c") == 2
    np.testing.assert_array_equal(arms.points, [[1, 1, 0.5], [2, 0, 1.5], [3, 1, 2.5]])
    assert ArmSet(frame.reset_index(drop=True)).names is None
    assert ArmSet(frame[frame["sale"]].reset_index(drop=True)[["price"]]).feature_names == ("price",)
    assert ArmSet(frame, names=["x", "y", "z"]).names == ("x", "y", "z")
    assert ArmSet(pd.DataFrame({"n": pd.array([1, 2], dtype="Int64")})).points.tolist() == [[1.0], [2.0]]
    assert ArmSet(frame.iloc[[2, 0]].reset_index()[["w"]]).names is None
    assert ArmSet(pd.DataFrame({"x": [1.0, 2.0]}, index=[5, 9])).names == ("5", "9")
    assert ArmSet(pd.DataFrame([[True], [False]])).points.tolist() == [[1.0], [0.0]]


def test_a_frame_without_an_index_will_do():
    class Type:
        def __init__(self, name):
            self.name = name

        def is_numeric(self):
            return self.name == "Float64"

        def __str__(self):
            return self.name

    class Polars:
        columns = ("x", "flag")
        dtypes = (Type("Float64"), Type("Boolean"))

        def to_numpy(self):
            return np.array([[0.5, 1.0], [1.5, 0.0]])

    arms = ArmSet(Polars())
    assert arms.feature_names == ("x", "flag")
    assert arms.names is None
    Polars.dtypes = (Type("Float64"), Type("String"))
    with pytest.raises(InputError, match=r"columns \['flag'\]"):
        ArmSet(Polars())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("abc", "single string 'abc'; use a list"),
        (["a", "b"], r"must be 3 strings, one per arm, got 2: \('a', 'b'\)"),
        (["a", "b", 3], "must be strings, got 3"),
        (["a", "b", "a"], "two arms are called 'a'"),
        (["a", "b", "c\n"], r"name of arm 2, 'c\\n', has '\\n' in it.* take it out, here with \.strip\(\)"),
        (["a", "b\tc", "d"], r"name of arm 1, 'b\\tc', .* \.replace\('\\t', ' '\)"),
        (["\x1b[31mred", "b", "c"], r"has '\\x1b' in it"),
        (["a\x00", "b", "c"], r"has '\\x00' in it"),
        (["a\x9b31m", "b", "c"], r"has '\\x9b' in it"),
        (["a\u2028b", "b", "c"], r"has '\\u2028' in it"),
        (["a\u202eb", "b", "c"], r"has '\\u202e' in it"),
        (["\ufeffa", "b", "c"], r"has '\\ufeff' in it"),
        (["\ud800", "b", "c"], r"has '\\ud800' in it"),
        (["x" * 10**6 + "\n", "b", "c"], r"name of arm 0, 'x+\.\.\.x+\\n?'"),
    ],
)
def test_unusable_names_are_refused(names, message):
    with pytest.raises(InputError, match=message):
        ArmSet([[0.0], [1.0], [2.0]], names=names)


def test_names_that_are_labels_are_kept_as_they_are():
    names = ["café", "14 €", "نم\u200cنم", "a\u00a0b", "👩\u200d🔬", "", " padded "]
    assert ArmSet(np.arange(7.0)[:, None], names=names).names == tuple(names)


def test_control_codes_are_refused_wherever_names_come_from():
    with pytest.raises(InputError, match=r"'b\\r'"):
        ArmSet(pd.DataFrame({"x": [0.0, 1.0]}, index=["a", "b\r"]))
    with pytest.raises(InputError, match=r"'b\\r'"):
        ArmSet.from_features([[0.0, 1.0], [1.0, 0.0]], names=["a", "b\r"])


def test_long_names_are_compared_and_shown_in_part():
    arms = ArmSet([[0.0], [1.0]], names=["x" * 100_000, "y" * 100_000])
    with pytest.raises(InputError, match=r"no arm is called 'xxx.*; did you mean 'xxx") as caught:
        arms.index("x" * 100_001)
    assert len(str(caught.value)) < 300


def test_a_repeated_index_is_refused_with_the_cure():
    with pytest.raises(InputError, match=r"two arms are called '0'.*reset_index\(drop=True\)"):
        ArmSet(pd.DataFrame({"x": [0.0, 1.0]}, index=[0, 0]))


def test_names_of_any_sequence():
    assert ArmSet([[0.0], [1.0]], names=np.array(["a", "b"])).names == ("a", "b")
    assert ArmSet([[0.0], [1.0]], names=pd.Series(["a", "b"])).names == ("a", "b")


def test_unknown_names_are_refused_with_the_nearest():
    arms = ArmSet([[0.0], [1.0]], names=["low price", "high price"])
    with pytest.raises(InputError, match="no arm is called 'low prize'; did you mean 'low price'"):
        arms.index("low prize")
    with pytest.raises(InputError, match="no arm is called 0"):
        arms.index(0)
    with pytest.raises(InputError, match="no names"):
        ArmSet([[0.0]]).index("a")


def test_arrays_are_copied_and_read_only():
    points = POINTS.copy()
    arms = ArmSet(points)
    points[0] = 99.0
    assert arms.points[0, 0] != 99.0
    for array in (arms.points, arms.features, arms.pivots):
        assert not array.flags.writeable


def test_from_features_keeps_them():
    features = np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    arms = ArmSet.from_features(features, names=["a", "b", "zero"])
    assert arms.scale == 16.0
    np.testing.assert_array_equal(arms.features, features / 4)
    np.testing.assert_array_equal(arms.points, features)
    assert (arms.rank, arms.residual, arms.tolerance, len(arms.pivots)) == (2, 0.0, 0.0, 0)
    assert ArmSet.from_features(features / 10).scale == 1.0


def test_from_features_with_points():
    points = pd.DataFrame({"price": [1.0, 2.0]}, index=["cheap", "dear"])
    arms = ArmSet.from_features(np.eye(2), points=points)
    assert arms.feature_names == ("price",)
    assert arms.names == ("cheap", "dear")
    assert arms.dimension == 1
    labelled = pd.DataFrame(np.eye(2), index=["a", "b"])
    assert ArmSet.from_features(labelled, points=[[1.0], [2.0]]).names == ("a", "b")
    with pytest.raises(InputError, match="got 1 point for 2 feature vectors"):
        ArmSet.from_features(np.eye(2), points=[[1.0]])


def test_from_features_refuses_what_cannot_be_used():
    with pytest.raises(KernelError, match="zero on every arm"):
        ArmSet.from_features(np.zeros((3, 2)))
    with pytest.raises(InputError, match="features at row 0, column 1 is nan"):
        ArmSet.from_features([[0.0, np.nan]])
    with pytest.raises(InputError, match="features must have one row per arm"):
        ArmSet.from_features([0.0, 1.0])


def test_box_grid():
    arms = ArmSet.box([(-1, 1), (10, 20)], points=24, kernel=RBF(1.0))
    assert arms.points.shape == (16, 2)
    np.testing.assert_allclose(np.unique(arms.points[:, 0]), [-1, -1 / 3, 1 / 3, 1])
    assert arms.points[:, 1].min() == 10
    assert arms.points[:, 1].max() == 20
    assert ArmSet.box([(0, 1)] * 3, points=7).points.tolist() == [[0.5, 0.5, 0.5]]
    for count in (1, 2, 8, 26, 27, 28, 64, 125, 1000):
        steps = round(len(ArmSet.box([(0.1, 0.7)] * 3, points=count)) ** (1 / 3))
        assert steps**3 <= count < (steps + 1) ** 3


def test_box_sobol():
    arms = ArmSet.box([(-1, 1), (10, 20)], points=100, method="sobol")
    assert arms.points.shape == (100, 2)
    assert len(np.unique(arms.points, axis=0)) == 100
    counts, _, _ = np.histogram2d(arms.points[:64, 0], arms.points[:64, 1], bins=4, range=[[-1, 1], [10, 20]])
    assert (counts == 4).all()
    assert len(ArmSet.box([(0, 1)], points=1, method="sobol")) == 1


def test_box_reaches_its_ends_exactly():
    arms = ArmSet.box([(0.1, 0.7)], points=4)
    assert (arms.points[0, 0], arms.points[-1, 0]) == (0.1, 0.7)


@pytest.mark.parametrize(
    ("bounds", "points", "method", "message"),
    [
        ((0, 1), 4, "grid", r"such as \[\(0, 1\)\], got \(0, 1\)"),
        ([], 4, "grid", "bounds must be"),
        ([(1, 0)], 4, "grid", "low < high"),
        ([(0, 0)], 4, "grid", "low < high"),
        ([(0, np.inf)], 4, "grid", "bounds must be"),
        ([(0, 1, 2)], 4, "grid", "bounds must be"),
        ([("a", "b")], 4, "grid", "bounds must be"),
        ([(0, 1), (0,)], 4, "grid", "bounds must be"),
        ([(0, 1)], 0, "grid", "at least 1"),
        ([(0, 1)], 4.0, "grid", "must be a whole number, got 4.0"),
        ([(0, 1)], 4, "random", "must be 'grid' or 'sobol', got 'random'"),
        ([(0, 1)] * 2, 10**14, "grid", r"a box of 100,000,000,000,000 points in 2 dimensions would need .* GiB"),
        ([(0, 1)] * 10_000, 2**30, "sobol", "a box of 1,073,741,824 points in 10,000 dimensions would need"),
        ([(0, 1)], 2**31, "sobol", r"at most 2\^30, got 2,147,483,648"),
        ([(0, 1)] * 2, 10**400, "grid", r"at most 2\^62, .*got 1000000000.*\(401 digits\)"),
        ([(0, 1)] * 2, 10**400, "sobol", r"at most 2\^62, .*got 1000000000.*\(401 digits\)"),
        ([(0, 1)] * 65, 10, "grid", "a grid has at most 64 dimensions, got 65; use method='sobol'"),
        ([(0, 1)] * 21_202, 10, "sobol", "at most 21,201 dimensions"),
    ],
)
def test_unusable_boxes_are_refused(bounds, points, method, message):
    with pytest.raises(InputError, match=message):
        ArmSet.box(bounds, points=points, method=method)


def test_a_grid_is_measured_by_the_points_it_has():
    assert len(ArmSet.box([(0, 1)] * 30, points=10**9)) == 1  # two steps per axis would be more


@st.composite
def boxes_with_points(draw):
    dimension = draw(st.integers(1, 3))
    lows = draw(st.lists(st.floats(-5, 5), min_size=dimension, max_size=dimension))
    sides = draw(st.lists(st.floats(0.01, 2), min_size=dimension, max_size=dimension))
    shares = draw(st.lists(st.floats(0, 1), min_size=dimension, max_size=dimension))
    bounds = [(low, low + side) for low, side in zip(lows, sides, strict=True)]
    point = [low + share * (high - low) for (low, high), share in zip(bounds, shares, strict=True)]
    return bounds, np.array(point), draw(st.floats(0.6, 5))


@given(boxes_with_points())
@settings(max_examples=100, deadline=None)
def test_every_point_of_a_box_has_an_arm_within_half_the_error(case):
    """In the sum of absolute differences, which bounds the difference of rewards with slopes of at most 1."""
    bounds, point, error = case
    arms = ArmSet.box(bounds, error=error, kernel=sk.DotProduct(1.0))
    assert np.abs(arms.points - point).sum(axis=1).min() <= error / 2 * (1 + 1e-9)
    low, high = np.array(bounds).T
    assert ((arms.points >= low) & (arms.points <= high)).all()


@pytest.mark.parametrize(
    ("bounds", "error", "count"),
    [
        ([(0, 1)], 0.1, 10),
        ([(0, 1)], 1.0, 1),
        ([(0, 1)], 7.0, 1),  # never fewer than one arm
        ([(0, 1)] * 2, 0.1, 20**2),  # cubes of side error / d
        ([(0, 0.3)] * 2, 0.2, 3**2),  # 2 * 0.3 / 0.2 is a last digit off 3
        ([(0, 0.7)] * 3, 0.7, 3**3),
        ([(-1, 1), (0, 0.5)], 0.5, 8 * 2),  # as many as each side needs
        ([(0, 1)] * 3, 0.7, 5**3),
    ],
)
def test_a_box_with_an_error_has_the_arms_of_the_rule(bounds, error, count):
    assert len(ArmSet.box(bounds, error=error, kernel=RBF(1.0))) == count


def test_a_box_with_an_error_has_an_arm_in_the_centre_of_each_cube():
    arms = ArmSet.box([(0, 1), (10, 11)], error=1.0, kernel=RBF(1.0))
    assert arms.points.tolist() == [[0.25, 10.25], [0.25, 10.75], [0.75, 10.25], [0.75, 10.75]]


def test_linear_rewards_on_a_box_are_off_by_less_than_the_error():
    """The best of the box is a corner, known in closed form: sum |theta_i| / 2."""
    rng = np.random.default_rng(0)
    arms = ArmSet.box([(-0.5, 0.5)] * 3, error=0.3, kernel=sk.DotProduct(0.0))
    assert len(arms) == 10**3
    for theta in rng.standard_normal((20, 3)):
        theta /= np.linalg.norm(theta)
        lost = np.abs(theta).sum() / 2 - (arms.points @ theta).max()
        assert -1e-12 <= lost <= 0.15


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "either points or error, got neither"),
        ({"points": 4, "error": 0.1}, "either points or error, got both"),
        ({"error": 0.0}, "error must be a finite positive number"),
        ({"error": "small"}, "error must be a number"),
        ({"error": 0.1, "method": "sobol"}, "for a grid only; use method='grid'"),
        ({"error": 1e-7}, "points in 2 dimensions would need .* GiB of memory at least, .*; take a larger error"),
        ({"error": 1e-140}, r"more than 2\^62 cubes; take a larger error"),
    ],
)
def test_unusable_errors_of_a_box_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        ArmSet.box([(0, 1)] * 2, **settings)


def test_a_box_of_too_many_axes_is_refused_for_an_error_too():
    with pytest.raises(InputError, match="at most 64 dimensions, got 65"):
        ArmSet.box([(0, 1)] * 65, error=1000.0)


def test_repr_says_what_it_is():
    assert repr(ArmSet([[0.0], [9.0]], RBF(0.2))) == (
        "ArmSet(2 arms in 1 dimension, kernel=RBF(length_scale=0.2), rank=2)"
    )


def test_arms_pickle():
    arms = ArmSet(POINTS, RBF(0.3))
    again = pickle.loads(pickle.dumps(arms))  # noqa: S301
    np.testing.assert_array_equal(again.features, arms.features)
    assert again.fingerprint() == arms.fingerprint()


def test_fingerprint_of_a_harmless_rebuild_is_the_same():
    arms = ArmSet(POINTS, RBF(0.3))
    same = [
        ArmSet(POINTS.copy(order="F"), RBF(0.3)),
        ArmSet(POINTS.tolist(), RBF(0.3)),
        ArmSet(pd.DataFrame(POINTS), {"name": "rbf", "length_scale": 0.3}),
        ArmSet(POINTS, lambda X, Y: RBF(0.3)(X, Y) * (1 + 1e-15)),
        ArmSet(POINTS, RBF(0.3)(POINTS)),
    ]
    assert {other.fingerprint() for other in same} == {arms.fingerprint()}
    zero = ArmSet([[0.0], [1.0]]).fingerprint()
    assert zero == ArmSet([[-0.0], [1.0]]).fingerprint()


@pytest.mark.parametrize("size", [60, 2_500])
def test_fingerprint_of_other_arms_differs(size):
    points = LARGE[:size]
    moved = points.copy()
    moved[size // 2, 1] += 1e-9
    others = [
        ArmSet(points, RBF(0.3)),
        ArmSet(points, RBF(0.300001)),
        ArmSet(points, sk.RationalQuadratic(0.3, alpha=1e3)),
        ArmSet(points, 2.0 * RBF(0.3)),
        ArmSet(points, 2.000001 * RBF(0.3)),
        ArmSet(points, RBF(0.3), tolerance=1e-6),
        ArmSet(points, RBF(0.3), names=[str(i) for i in range(size)]),
        ArmSet(points[::-1], RBF(0.3)),
        ArmSet(moved, RBF(0.3)),
    ]
    assert len({arms.fingerprint() for arms in others}) == len(others)


def test_fingerprint_of_other_features_differs():
    features = np.random.default_rng(0).standard_normal((30, 4))
    points = np.zeros((30, 1))
    first = ArmSet.from_features(features, points=points).fingerprint()
    rotation, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))
    assert ArmSet.from_features(features @ rotation, points=points).fingerprint() == first
    features[7, 2] += 1e-3
    assert ArmSet.from_features(features, points=points).fingerprint() != first


def test_fingerprint_of_a_matrix_notices_one_pair():
    matrix = RBF(0.1)(POINTS)
    first = ArmSet(POINTS, matrix).fingerprint()
    matrix[3, 40] = matrix[40, 3] = matrix[3, 40] + 1e-3
    matrix += 0.01 * np.eye(60)  # keeps it positive definite
    matrix /= 1.01
    assert ArmSet(POINTS, matrix).fingerprint() != first


def test_fingerprint_does_not_depend_on_the_process():
    """Another process with two BLAS threads: a grid, where equal pivots are decided by rounding."""
    code = (
        "from driftbandits import ArmSet; from sklearn.gaussian_process.kernels import RBF;"
        "print(ArmSet.box([(0, 1), (0, 1)], points=3_600, kernel=RBF(0.3), tolerance=1e-6).fingerprint())"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"OPENBLAS_NUM_THREADS": "2", "PYTHONHASHSEED": "7"},
    )
    here = ArmSet.box([(0, 1), (0, 1)], points=3_600, kernel=RBF(0.3), tolerance=1e-6).fingerprint()
    assert result.stdout.strip() == here


@st.composite
def arm_sets(draw):
    size, dimension = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    cells = st.floats(-3, 3, allow_nan=False, width=16)
    points = draw(st.lists(st.lists(cells, min_size=dimension, max_size=dimension), min_size=size, max_size=size))
    kernel = draw(st.sampled_from([RBF(0.3), RBF(5.0), sk.Matern(1.0, nu=1.5), sk.DotProduct(0.5), 3.0 * RBF(1.0)]))
    return np.array(points), kernel, draw(st.sampled_from([1e-12, 1e-8, 1e-3]))


@given(arm_sets())
@settings(max_examples=80, deadline=None)
def test_rank_and_residual_are_bounded_and_the_kernel_is_reproduced(problem):
    points, kernel, tolerance = problem
    arms = ArmSet(points, kernel, tolerance=tolerance)
    matrix = kernel(points) / arms.scale
    assert 1 <= arms.rank <= len(points)
    assert arms.residual <= tolerance * min(1.0, matrix.diagonal().max()) + 1e-14
    assert np.abs(arms.features @ arms.features.T - matrix).max() <= arms.residual + 1e-13


@given(arm_sets(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_arms_does_not_matter(problem, random):
    points, kernel, tolerance = problem
    order = list(range(len(points)))
    random.shuffle(order)
    arms, shuffled = (ArmSet(given, kernel, tolerance=tolerance) for given in (points, points[order]))
    first = (arms.features @ arms.features.T)[np.ix_(order, order)]
    assert shuffled.scale == pytest.approx(arms.scale)
    assert np.abs(first - shuffled.features @ shuffled.features.T).max() <= 2 * tolerance + 1e-12


# --- arms that have nothing in common ---------------------------------------------------------------------------


def test_separate_arms_have_nothing_in_common_and_grow_by_names():
    arms = ArmSet.separate(["storm", "derby", "recipe"])
    assert arms.independent
    np.testing.assert_array_equal(arms.features @ arms.features.T, np.eye(3))
    more = arms.without(["derby"]).extended(names=["strike", "match"])
    assert more.names == ("storm", "recipe", "strike", "match")
    assert more.points.ravel().tolist() == [0.0, 2.0, 3.0, 4.0]  # kept arms have their point, new ones one of their own
    assert more.rank == 4
    assert arms.extended(names=["strike"]).fingerprint() == ArmSet.separate([*arms.names, "strike"]).fingerprint()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ArmSet.from_features(np.eye(3), names=["a", "b", "c"]),
        lambda: ArmSet.from_features(3.0 * np.eye(3), names=["a", "b", "c"]),
        lambda: ArmSet(np.arange(3)[:, None], 4.0 * np.eye(3), ["a", "b", "c"]),
    ],
    ids=["features", "large features", "matrix"],
)
def test_every_kind_of_independent_arms_grows_by_names(make):
    arms = make()
    more = arms.extended(names=["d"])
    assert (more.names, more.dimension, more.scale) == (("a", "b", "c", "d"), arms.dimension, arms.scale)
    np.testing.assert_allclose(more.features @ more.features.T, np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(more.points[:3], arms.points)
    assert more.independent


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda arms: arms.extended([[3.0]], names=["d"]),
            r"add others with extended\(names=\[...\]\), without points",
        ),
        (lambda arms: arms.extended(names="d"), r"got 'd'; use \['d'\]"),
        (lambda arms: arms.extended(), "give names to the new arms"),
        (lambda arms: arms.extended(names=["a"]), "two arms are called 'a'"),
        (lambda arms: ArmSet.from_features(np.eye(2)).extended(names=["c"]), "give names to these arms too"),
        (lambda arms: ArmSet([[0.0], [1.0]]).extended(names=["c"]), "wants the points of the new arms"),
        (lambda arms: ArmSet.separate("abc"), "got 'abc'"),
        (lambda arms: ArmSet.separate([]), "wants the names"),
        (lambda arms: arms.check_columns(2, None), r"to the old arms with extended\(names=\[...\]\)"),
    ],
)
def test_what_cannot_be_added_to_separate_arms_is_refused_with_the_cure(call, message):
    with pytest.raises(InputError, match=message):
        call(ArmSet.separate(["a", "b", "c"]))
