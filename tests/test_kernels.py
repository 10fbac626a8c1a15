"""Kernels by name, and kernels of every kind as one function."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

from driftbandits.errors import InputError, KernelError
from driftbandits.kernels import NAMED, as_function, checked, diagonal, kernel_from_config

POINTS = np.random.default_rng(0).random((200, 3))


@pytest.mark.parametrize(
    ("config", "kernel"),
    [
        ({"name": "rbf"}, sk.RBF(1.0)),
        ({"name": "rbf", "length_scale": 0.2}, sk.RBF(0.2)),
        ({"name": "rbf", "length_scale": [0.2, 0.3, 4]}, sk.RBF([0.2, 0.3, 4.0])),
        ({"name": "matern", "length_scale": 2, "nu": 2.5}, sk.Matern(2.0, nu=2.5)),
        ({"name": "rational_quadratic", "alpha": 0.5}, sk.RationalQuadratic(1.0, alpha=0.5)),
        ({"name": "periodic", "periodicity": 7}, sk.ExpSineSquared(1.0, 7.0)),
        ({"name": "linear", "offset": 0}, sk.DotProduct(0.0)),
        ({"name": "sum", "terms": [{"name": "rbf"}, {"name": "constant", "value": 0.5}]}, sk.RBF() + 0.5),
        ({"name": "product", "terms": ({"name": "rbf"}, {"name": "linear"})}, sk.RBF() * sk.DotProduct(0.0)),
        ({"name": "sum", "terms": [{"name": "product", "terms": [{"name": "rbf"}]}]}, sk.RBF()),
    ],
)
def test_configured_kernels_equal_those_built_in_python(config, kernel):
    np.testing.assert_array_equal(kernel_from_config(config)(POINTS), kernel(POINTS))


@pytest.mark.parametrize("name", NAMED)
def test_every_named_kernel_has_usable_defaults(name):
    values = kernel_from_config({"name": name})(POINTS[:, :1])  # the periodic one is a covariance on the line only
    assert np.linalg.eigvalsh(values).min() > -1e-10 * values.max()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"name": "rfb"}, "unknown kernel 'rfb'; did you mean 'rbf'"),
        ({"length_scale": 1.0}, "needs a 'name', one of rbf, matern"),
        ({"name": None}, "needs a 'name'"),
        ({"name": ["rbf"]}, "needs a 'name'"),
        ("rbf", "mapping with a 'name', got 'rbf'"),
        ({"name": "rbf", "lengthscale": 1.0}, "no setting 'lengthscale'; did you mean 'length_scale'"),
        ({"name": "rbf", "length_scale": 0}, r"rbf\.length_scale must be a positive number or a list of them, got 0"),
        ({"name": "rbf", "length_scale": "0.2"}, "must be a positive number or a list of them, got '0.2'"),
        ({"name": "rbf", "length_scale": [1.0, -1.0]}, "got -1.0"),
        ({"name": "rbf", "length_scale": []}, "empty list"),
        ({"name": "rbf", "length_scale": float("nan")}, "got nan"),
        ({"name": "rbf", "length_scale": True}, "got True"),
        ({"name": "periodic", "length_scale": [1.0, 2.0]}, "periodic.length_scale must be a positive number, got"),
        ({"name": "constant", "value": -1}, "constant.value must be a non-negative number, got -1"),
        ({"name": "sum"}, "wants exactly 'terms'"),
        ({"name": "sum", "terms": []}, "wants exactly 'terms'"),
        ({"name": "sum", "terms": ["rbf"]}, "mapping with a 'name', got 'rbf'"),
        ({"name": "product", "terms": [{"name": "rbf"}], "scale": 2}, "wants exactly 'terms'"),
    ],
)
def test_bad_configurations_are_refused_with_the_cure(config, message):
    with pytest.raises(InputError, match=message):
        kernel_from_config(config)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("rbf", "write {'name': 'rbf'}"),
        (sk.RBF, "is the class RBF; pass an instance"),
        (3.0, "must be a scikit-learn kernel"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, message):
    with pytest.raises(InputError, match=message):
        as_function(kernel)


def test_functions_are_checked_for_shape_and_failure():
    with pytest.raises(KernelError, match=r"gave shape \(200,\) for 200 x 200 points"):
        checked(lambda X, Y: (X * Y).sum(axis=1))(POINTS, POINTS)
    with pytest.raises(KernelError, match=r"RBF\(length_scale=\[1, 2\]\) failed on points of 3 dimensions"):
        checked(sk.RBF([1.0, 2.0]))(POINTS, POINTS)
    with pytest.raises(KernelError, match="failed on points"):
        checked(lambda X, Y: "no numbers")(POINTS, POINTS)


def test_diagonal_of_a_function_takes_few_calls():
    calls = []

    def function(X, Y):
        calls.append(X.shape)
        return X @ Y.T

    np.testing.assert_allclose(diagonal(function, POINTS), np.square(POINTS).sum(axis=1))
    assert len(calls) == 4
    assert max(rows for rows, _ in calls) == 64


def test_diagonal_of_a_scikit_learn_kernel_is_its_own():
    kernel = sk.DotProduct(0.5) + sk.RBF(0.3)
    np.testing.assert_allclose(diagonal(kernel, POINTS), kernel(POINTS).diagonal())
