"""Kernels by name, and kernels of every kind as one function."""

import copy

import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process import kernels as sk

from driftbandits import GPUCB
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.kernels import NAMED, as_function, checked, diagonal, kernel_from_config
from driftbandits.errors import InputError, KernelError, ReentryError

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
        ({"name": "rbf", "length_scale": 0}, r"rbf\.length_scale, or each .* must be a finite positive number, got 0"),
        ({"name": "rbf", "length_scale": "0.2"}, "or each entry of a list, must be a number, got '0.2'"),
        ({"name": "rbf", "length_scale": [1.0, -1.0]}, "got -1.0"),
        ({"name": "rbf", "length_scale": []}, "empty list"),
        ({"name": "rbf", "length_scale": float("nan")}, "got nan"),
        ({"name": "rbf", "length_scale": True}, "got True"),
        ({"name": "rbf", "length_scale": 10**400}, r"got 1000000000\.\.\.0000000000 \(401 digits\)"),
        ({"name": "neural_tangent", "depth": 10**12}, "must be at most 10,000, got 1000000000000"),
        ({"name": "periodic", "length_scale": [1.0, 2.0]}, "periodic.length_scale must be a number, got"),
        ({"name": "constant", "value": -1}, "constant.value must be a finite non-negative number, got -1"),
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
    with pytest.raises(KernelError, match=r"RBF\(length_scale=\[1, 2\]\) failed on points in 3 dimensions"):
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


def gaussian(X, Y):
    return np.exp(-np.square(X[:, None] - Y[None]).sum(axis=2))


class Named:
    """A kernel with a name of its own, that gives what `change` makes of a valid one."""

    def __init__(self, change):
        self._change = change

    def __call__(self, X, Y):
        return self._change(gaussian(X, Y))

    def __repr__(self):
        return "Named()"


class WrongDiagonal(sk.RBF):
    """A kernel of scikit-learn whose method for the diagonal gives something else."""

    def __init__(self, given=None, length_scale=1.0, length_scale_bounds=(1e-5, 1e5)):
        super().__init__(length_scale, length_scale_bounds)
        self.given = given

    def diag(self, X):
        return self.given(super().diag(X))


def raising(error):
    def change(values):
        raise error

    return change


ERRORS = [
    KeyError("price"), AttributeError("no such thing"), ZeroDivisionError("by zero"), RuntimeError("broken"),
    IndexError("out of bounds"), FloatingPointError("overflow"), MemoryError(), AssertionError(), StopIteration(),
    NotImplementedError("later"), OSError(2, "no such file"), RecursionError("too deep"), UserWarning("careful"),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kernel", [Named, WrongDiagonal])
def test_whatever_a_kernel_raises_is_told_with_its_name_and_the_cause(kernel, error):
    made = kernel(raising(error))
    with pytest.raises(KernelError, match=f"failed on points in 3 dimensions: {type(error).__name__}") as caught:
        ArmSet(POINTS, made)
    assert repr(made) in str(caught.value)
    assert str(error) in str(caught.value)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_inside_a_kernel_goes_through(error):
    with pytest.raises(error):
        ArmSet(POINTS, Named(raising(error())))


def test_a_kernel_whose_repr_fails_is_refused_all_the_same():
    class Unspeakable(Named):
        def __repr__(self):
            raise RuntimeError("no name")

    with pytest.raises(KernelError, match=r"kernel <Unspeakable instance.* failed .* KeyError"):
        ArmSet(POINTS, Unspeakable(raising(KeyError("price"))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: None, "gave None for 64 x 64 points"),
        (lambda values: values[:, :-1], r"gave shape \(64, 63\) for 64 x 64 points"),
        (lambda values: values[..., None], r"gave shape \(64, 64, 1\)"),
        (lambda values: 1.0, r"gave shape \(\)"),
        (lambda values: values * (1 + 1j), "the values are complex, not real numbers"),
        (lambda values: values * (1 + 0j), "the values are complex"),
        (lambda values: values.astype(str), "the values are text"),
        (lambda values: values.astype("M8[s]"), "the values are dates"),
        (lambda values: "a matrix", "it gave 'a matrix'"),
        (lambda values: np.full(values.shape, 10**400, dtype=object), "too large"),
        (lambda values: np.full(values.shape, "1.0", dtype=object), "str is not one number"),
        (lambda values: scipy.sparse.csr_matrix(values), r"csr_matrix is sparse; call its toarray\(\)"),
        (lambda values: np.ma.array(values, mask=values < 0.5), "some values are masked"),
        (lambda values: [[1.0], [1.0, 2.0]], r"it gave \[\[1\.0\], \[1\.0, 2\.0\]\]"),
        (lambda values: (row for row in values), "it gave <generator"),
        (lambda values: values * np.nan, r"k\(x, x\) is nan at arm 0"),
        (lambda values: np.where(values < 0.9, np.nan, values), "not finite at arm"),
        (lambda values: values + 0.1 * np.triu(np.ones_like(values), 1), "not symmetric"),
        (lambda values: values - 2.0 * np.where(values < 0.9, values, 0.0), "not positive semi-definite"),
    ],
)
def test_what_a_kernel_must_not_give_is_refused_with_its_name(change, message):
    with pytest.raises(KernelError, match=message) as caught:
        ArmSet(POINTS, Named(change))
    assert str(caught.value).count("Named()") == 1
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda own: own[:-1], r"gave shape \(199,\) for 200 points; it must give one value per point, shape \(200,\)"),
        (lambda own: own[:, None], r"gave shape \(200, 1\)"),
        (lambda own: None, "gave None"),
        (lambda own: own * (1 + 0j), "complex"),
        (lambda own: own.astype(str), "text"),
    ],
)
def test_a_diagonal_of_another_shape_or_kind_is_refused(given, message):
    with pytest.raises(KernelError, match=message):
        ArmSet(POINTS, WrongDiagonal(given))


@pytest.mark.parametrize(
    "change", [np.ndarray.tolist, lambda values: values.astype(object), lambda values: np.ma.array(values)]
)
def test_numbers_in_another_container_are_a_kernel(change):
    few = POINTS[:10]
    np.testing.assert_array_equal(ArmSet(few, Named(change)).features, ArmSet(few, gaussian).features)


@pytest.mark.parametrize("error", [TimeoutError("too slow"), ReentryError("inside ask")], ids=repr)
def test_what_a_signal_handler_raises_is_no_fault_of_the_kernel(error):
    def kernel(left, right):
        raise error

    with pytest.raises(type(error)):
        ArmSet(np.zeros((3, 1)), kernel=kernel)


def test_a_kernel_per_column_is_the_kernel_of_these_columns():
    points = np.random.default_rng(0).random((7, 3))
    hour = {"name": "periodic", "periodicity": 0.7, "columns": [0]}
    price = {"name": "rbf", "length_scale": 0.4, "columns": [2, 1]}
    arms = ArmSet(points, kernel={"name": "product", "terms": [hour, price]})
    apart = np.sin(np.pi * np.abs(points[:, None, 0] - points[None, :, 0]) / 0.7)
    squares = np.square(points[:, None, 1:] - points[None, :, 1:]).sum(axis=2)
    expected = np.exp(-2 * apart**2) * np.exp(-0.5 * squares / 0.4**2)
    assert arms.features @ arms.features.T == pytest.approx(expected, abs=1e-8)
    assert copy.deepcopy(arms.kernel)(points) == pytest.approx(expected)
    again = arms.with_points(np.vstack([points, points[:1] + 0.1]))
    assert (again.features @ again.features.T)[:7, :7] == pytest.approx(expected, abs=1e-8)
    for columns in ([], [0, 0], [-1], ["hour"], 1, [True]):
        with pytest.raises(InputError, match="columns must be distinct numbers"):
            kernel_from_config({"name": "rbf", "columns": columns})
    with pytest.raises(InputError, match=r"sees column 3, and points have 3"):
        ArmSet(points, kernel={"name": "rbf", "columns": [3]})


def test_a_kernel_matrix_needs_no_points():
    matrix = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    arms = ArmSet(kernel=matrix, names=["ab", "abc", "xyz"])
    assert arms.features @ arms.features.T == pytest.approx(np.array(matrix))
    assert arms.names == ("ab", "abc", "xyz")
    policy = GPUCB(arms, seed=0)
    policy.tell(policy.ask(), 0.5)
    assert GPUCB.restore(arms, policy.state_dict()).estimate() == pytest.approx(policy.estimate())
    for kernel in (None, {"name": "rbf"}, lambda x, y: x @ y.T):
        with pytest.raises(InputError, match="arms need points, one row each"):
            ArmSet(kernel=kernel, names=["a", "b"])
    with pytest.raises((InputError, KernelError)):
        ArmSet(kernel=[1.0, 2.0])
