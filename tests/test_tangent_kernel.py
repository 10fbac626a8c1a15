"""The neural tangent kernel against its recursion by quadrature, at special angles, and as a scikit-learn kernel."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from driftbandits import GPUCB, ArmSet
from driftbandits.arms.kernels import kernel_from_config
from driftbandits.arms.sklearn_kernels import NeuralTangentKernel
from driftbandits.errors import InputError

POINTS = np.random.default_rng(0).standard_normal((12, 3))
DEPTHS = (1, 2, 3, 5)


def relu_mean(mean, sd):
    return mean * norm.cdf(mean / sd) + sd * norm.pdf(mean / sd)


def expectations(xx, xy, yy):
    """2 E[relu(u) relu(v)] and 2 E[u > 0, v > 0] for normal (u, v): v given u in closed form, u by quadrature."""
    slope, sd = xy / xx, np.sqrt(yy - xy**2 / xx)
    root = np.sqrt(xx)
    product = quad(lambda z: z * root * relu_mean(slope * z * root, sd) * norm.pdf(z), 0, 12, epsabs=1e-12)[0]
    both = quad(lambda z: norm.cdf(slope * z * root / sd) * norm.pdf(z), 0, 12, epsabs=1e-12)[0]
    return 2 * product, 2 * both


def by_recursion(x, y, depth):
    """H = sum over l = 1..L of Sigma^(l-1) times the product of Sigma-dot^(l') over l' = l..L-1."""
    xx, yy, sigma, slopes = x @ x, y @ y, [x @ y], []
    square = 2 * quad(lambda z: z**2 * norm.pdf(z), 0, 12, epsabs=1e-12)[0]
    for _ in range(depth - 1):
        product, both = expectations(xx, sigma[-1], yy)
        xx, yy = square * xx, square * yy
        sigma.append(product)
        slopes.append(both)
    return sum(sigma[layer] * np.prod(slopes[layer:]) for layer in range(depth))


@pytest.mark.parametrize("depth", DEPTHS)
def test_values_equal_the_recursion_by_quadrature(depth):
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
    found = NeuralTangentKernel(depth)(POINTS)
    cosines = [POINTS[i] @ POINTS[j] / np.linalg.norm(POINTS[i]) / np.linalg.norm(POINTS[j]) for i, j in pairs]
    assert min(cosines) < 0 < max(cosines)
    for i, j in pairs:
        assert found[i, j] == pytest.approx(by_recursion(POINTS[i], POINTS[j], depth), abs=1e-8)


@pytest.mark.parametrize("depth", DEPTHS)
def test_diagonal_is_the_depth_times_the_squared_length(depth):
    kernel = NeuralTangentKernel(depth)
    lengths = np.square(POINTS).sum(axis=1)
    np.testing.assert_allclose(kernel(POINTS).diagonal(), depth * lengths, rtol=1e-14)
    np.testing.assert_allclose(kernel.diag(POINTS), depth * lengths, rtol=1e-14)
    assert kernel(np.array([[1.0, 0.0]])) == depth


@pytest.mark.parametrize("depth", DEPTHS)
def test_matrices_are_symmetric_and_positive_semi_definite(depth):
    values = NeuralTangentKernel(depth)(POINTS)
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(values, NeuralTangentKernel(depth)(POINTS, POINTS))
    assert np.linalg.eigvalsh(values)[0] > (-1e-12 if depth == 1 else 1e-4)
    np.testing.assert_array_equal(NeuralTangentKernel(depth)(POINTS[:4], POINTS[3:]), values[:4, 3:])


def test_depth_one_is_linear():
    np.testing.assert_allclose(NeuralTangentKernel(1)(POINTS), POINTS @ POINTS.T, atol=1e-13)
    assert ArmSet(POINTS, NeuralTangentKernel(1)).rank == 3


@pytest.mark.parametrize("depth", DEPTHS)
def test_positive_factors_come_out(depth):
    kernel, factors = NeuralTangentKernel(depth), np.random.default_rng(1).uniform(0.1, 50, 12)
    wanted = factors[:, None] * kernel(POINTS) * factors
    np.testing.assert_allclose(kernel(factors[:, None] * POINTS), wanted, rtol=1e-10, atol=1e-12)


def test_equal_points_have_equal_rows_and_no_rank_of_their_own():
    points = np.vstack([POINTS, POINTS[[3, 3, 7]]])
    kernel = NeuralTangentKernel(3)
    values = kernel(points)
    np.testing.assert_array_equal(values[[12, 13, 14]], values[[3, 3, 7]])
    assert ArmSet(points, kernel).rank == ArmSet(POINTS, kernel).rank == 12


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_points_close_by_are_told_apart(depth):
    """To first order in the angle t, L - k = t L (L - 1) / (2 pi); from the cosine alone t = 1e-10 would be 0."""
    for angle in (1e-5, 1e-8, 1e-10):
        values = NeuralTangentKernel(depth)(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
        assert depth - values[0, 1] == pytest.approx(angle * depth * (depth - 1) / (2 * np.pi), rel=1e-4)


def test_opposite_and_orthogonal_points():
    """At the angle pi: -1, 0, 1 / pi for depths 1, 2, 3. At pi / 2: 0, 1 / pi, and so on by hand."""
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    for depth, wanted in ((1, -1.0), (2, 0.0), (3, 1 / np.pi)):
        assert NeuralTangentKernel(depth)(points)[0, 1] == pytest.approx(wanted, abs=1e-15)
    for depth, wanted in ((1, 0.0), (2, 1 / np.pi)):
        assert NeuralTangentKernel(depth)(points)[0, 2] == pytest.approx(wanted, abs=1e-15)
    second = np.arccos(1 / np.pi)
    third = (1 - second / np.pi) / np.pi + (np.sin(second) + (np.pi - second) / np.pi) / np.pi
    assert NeuralTangentKernel(3)(points)[0, 2] == pytest.approx(third, abs=1e-14)


@pytest.mark.parametrize("depth", DEPTHS)
def test_zero_points_have_a_kernel_of_zero(depth):
    points = np.vstack([POINTS, np.zeros((2, 3))])
    values = NeuralTangentKernel(depth)(points)
    assert not values[12:].any()
    assert not NeuralTangentKernel(depth).diag(points)[12:].any()
    np.testing.assert_array_equal(values[:12, :12], NeuralTangentKernel(depth)(POINTS))
    assert ArmSet(points, NeuralTangentKernel(depth)).rank == (3 if depth == 1 else 12)


def test_lists_and_whole_numbers_are_points():
    np.testing.assert_array_equal(
        NeuralTangentKernel(2)([[1, 0], [0, 1]]), NeuralTangentKernel(2)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    )


# --- the contract of scikit-learn -----------------------------------------------------------------------------------


def test_it_is_a_value_with_its_depth_as_parameter():
    kernel = NeuralTangentKernel(depth=4)
    assert kernel.get_params() == {"depth": 4}
    assert clone(kernel) == kernel != NeuralTangentKernel(depth=3)
    assert kernel.set_params(depth=2).depth == 2
    assert repr(kernel) == "NeuralTangentKernel(depth=2)"
    assert eval(repr(kernel)) == kernel
    assert NeuralTangentKernel().depth == 3
    assert not kernel.is_stationary()
    assert kernel.theta.shape == (0,)


def test_gradient_is_empty():
    values, gradient = NeuralTangentKernel()(POINTS, eval_gradient=True)
    np.testing.assert_array_equal(values, NeuralTangentKernel()(POINTS))
    assert gradient.shape == (12, 12, 0)
    with pytest.raises(ValueError, match="gradient can only be evaluated when Y is None"):
        NeuralTangentKernel()(POINTS, POINTS, eval_gradient=True)


def test_sums_and_products_are_kernels():
    kernel = 2.0 * NeuralTangentKernel(2) + RBF(0.5) * NeuralTangentKernel(3)
    wanted = 2.0 * NeuralTangentKernel(2)(POINTS) + RBF(0.5)(POINTS) * NeuralTangentKernel(3)(POINTS)
    np.testing.assert_allclose(kernel(POINTS), wanted)
    np.testing.assert_allclose(kernel.diag(POINTS), wanted.diagonal())
    assert kernel(POINTS, eval_gradient=True)[1].shape == (12, 12, 2)


def test_a_process_with_noise_is_fitted():
    points = np.repeat(POINTS, 3, axis=0)
    targets = np.maximum(points[:, 0], 0.0) + 0.3 * np.random.default_rng(2).standard_normal(36)
    process = GaussianProcessRegressor(NeuralTangentKernel(3) + WhiteKernel(1.0)).fit(points, targets)
    noise = process.kernel_.k2.noise_level
    assert 0.03 < noise < 0.3
    assert process.log_marginal_likelihood_value_ > process.log_marginal_likelihood([0.0])
    values = NeuralTangentKernel(3)(points)
    wanted = values @ np.linalg.solve(values + noise * np.eye(36), targets)
    np.testing.assert_allclose(process.predict(points), wanted, atol=1e-6)


@pytest.mark.parametrize("depth", [0, -1, 2.5, 3.0, True, "3", None])
def test_a_bad_depth_is_refused_when_used(depth):
    kernel = NeuralTangentKernel(depth)
    for use in (kernel, kernel.diag, lambda points: ArmSet(points, kernel)):
        with pytest.raises(InputError, match=f"depth must be .*, got {depth!r}"):
            use(POINTS)


# --- in the rest of the library -----------------------------------------------------------------------------------


def test_it_has_a_name_in_configurations():
    np.testing.assert_array_equal(
        kernel_from_config({"name": "neural_tangent"})(POINTS), NeuralTangentKernel(3)(POINTS)
    )
    with pytest.raises(InputError, match="no setting 'width'"):
        kernel_from_config({"name": "neural_tangent", "width": 3})


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_a_configured_depth_is_used(depth):
    kernel = kernel_from_config({"name": "neural_tangent", "depth": depth})
    np.testing.assert_array_equal(kernel(POINTS), NeuralTangentKernel(depth)(POINTS))


@pytest.mark.parametrize("depth", [0, 2.5, True, "3"])
def test_a_bad_depth_in_a_configuration_is_refused(depth):
    with pytest.raises(InputError, match="depth"):
        ArmSet(POINTS, {"name": "neural_tangent", "depth": depth})


def test_arms_have_its_features():
    arms = ArmSet(POINTS, NeuralTangentKernel(3))
    values = NeuralTangentKernel(3)(POINTS)
    assert arms.scale == pytest.approx(values.max())
    np.testing.assert_allclose(arms.features @ arms.features.T, values / values.max(), atol=1e-9)


def test_a_policy_learns_with_it():
    angles = np.linspace(0, np.pi, 15)
    arms = ArmSet(np.column_stack([np.cos(angles), np.sin(angles)]), NeuralTangentKernel(3))
    rewards, rng = np.cos(3 * angles) * 0.8, np.random.default_rng(0)
    policy = GPUCB(arms, seed=0, scale=0.2)
    plays = []
    for _ in range(150):
        choice = policy.ask()
        plays.append(choice.arm)
        policy.tell(choice.id, float(np.clip(rewards[choice.arm] + 0.1 * rng.standard_normal(), -1, 1)))
    assert rewards[plays[100:]].mean() > rewards.max() - 0.05
