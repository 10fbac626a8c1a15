"""The tangent Gram matrix against gradients formed in full, and its way to the kernel of infinite width."""

import tracemalloc

import numpy as np
import pytest

from driftbandits.neural import Network, NeuralTangentKernel, tangent_gram, train
from tests.neural.oracles import (
    central_differences,
    double_network,
    flat,
    host_weights,
    plain_outputs,
    sphere_points,
    torch_jacobian,
    unflat,
)

WIDTHS = (64, 128, 256, 512, 1024, 2048)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_gram_equals_the_products_of_torch_gradients(depth, symmetric):
    network = double_network(depth=depth, seed=depth, symmetric=symmetric)
    points = sphere_points(9)
    jacobian = torch_jacobian(network, points)
    np.testing.assert_allclose(tangent_gram(network, points), jacobian @ jacobian.T / 12, rtol=1e-11, atol=1e-13)


def test_gram_of_a_trained_network_equals_the_products_of_torch_gradients():
    start, points = double_network(depth=3), sphere_points(6)
    gram = tangent_gram(start, points)
    network = train(
        start, points, np.full(6, 9.0), np.linspace(-1, 1, 6), gram=gram, steps=30, weight_decay=0.1
    ).network
    jacobian = torch_jacobian(network, points)
    assert np.abs(tangent_gram(network, points) - gram).max() > 0.1
    np.testing.assert_allclose(tangent_gram(network, points), jacobian @ jacobian.T / 12, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("depth", [2, 4])
def test_gram_equals_the_products_of_numeric_gradients(depth):
    network = double_network(depth=depth, width=5, dimension=2, seed=6)
    points = sphere_points(4, dimension=2)
    weights = host_weights(network)
    numeric = central_differences(lambda vector: plain_outputs(unflat(vector, weights), points), flat(weights))
    np.testing.assert_allclose(tangent_gram(network, points), numeric @ numeric.T / 5, atol=1e-7)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_gram_is_positive_semi_definite_to_double_precision(depth):
    """Many more points than weights, some of them twice, on a network in single precision."""
    points = np.repeat(sphere_points(60, dimension=2), 2, axis=0)
    gram = tangent_gram(Network.initial(dimension=2, width=4, depth=depth, seed=1), points)
    assert gram.dtype == np.float64
    np.testing.assert_array_equal(gram, gram.T)
    eigenvalues = np.linalg.eigvalsh(gram)
    assert eigenvalues[0] > -1e-12 * eigenvalues[-1]
    assert eigenvalues[-1] > 1.0
    np.testing.assert_allclose(gram[::2], gram[1::2], rtol=1e-12)


def test_gram_takes_less_memory_than_one_gradient():
    network, points = Network.initial(dimension=4, width=1024, depth=3, seed=0), sphere_points(20, dimension=4)
    weights = sum(w.size for w in network.weights)
    tracemalloc.start()
    try:
        tangent_gram(network, points)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * weights / 8


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_single_precision_is_close_to_double(depth):
    points = sphere_points(10)
    single = tangent_gram(Network.initial(dimension=3, width=256, depth=depth, seed=0), points)
    double = tangent_gram(double_network(depth=depth, width=256), points)
    np.testing.assert_allclose(single, double, atol=1e-4)
    assert np.abs(single - double).max() > 0.0


@pytest.mark.parametrize(("depth", "symmetric", "seeds"), [(2, False, 100), (3, False, 24), (3, True, 24)])
def test_gram_approaches_the_kernel_of_infinite_width_like_one_over_the_root(depth, symmetric, seeds):
    """The RMS error over the seeds is known to a tenth, so the slope of its log to 0.035: the interval is 3.5 of these.

    With a wrong limit the error levels off and the slope is near 0.
    """
    points = sphere_points(6)
    limit, diagonal = NeuralTangentKernel(depth)(points), np.eye(6, dtype=bool)
    errors = np.empty((len(WIDTHS), 2))
    for row, width in enumerate(WIDTHS):
        settings = {"dimension": 3, "width": width, "depth": depth, "symmetric": symmetric}
        drawn = [Network.initial(seed=1000 * width + seed, **settings) for seed in range(seeds)]
        found = np.stack([tangent_gram(network, points) - limit for network in drawn])
        errors[row] = np.sqrt(np.mean(found[:, diagonal] ** 2)), np.sqrt(np.mean(found[:, ~diagonal] ** 2))
    slopes = np.polyfit(np.log(WIDTHS), np.log(errors), 1)[0]
    assert (np.abs(slopes + 0.5) < 0.12).all(), slopes
    assert (errors[-1] < 0.3).all(), errors[-1]
    if depth == 2:  # the variance of |h|^2 + |delta|^2 is 12 / m
        np.testing.assert_allclose(errors[:, 0] * np.sqrt(WIDTHS), np.sqrt(12), rtol=0.25)
