"""The network's outputs and gradients against torch autograd and numeric differences, and how its weights are drawn."""

import numpy as np
import pytest
import scipy.stats

from driftbandits._util.seeding import stream
from driftbandits.errors import InputError
from driftbandits.neural import Network
from driftbandits.neural.network import initial_weights
from tests.neural.oracles import (
    central_differences,
    double_network,
    flat,
    host_weights,
    plain_outputs,
    sphere_points,
    torch_jacobian,
    torch_outputs,
    torch_weights,
    unflat,
)

POINTS = sphere_points(7)


def gradients(network, points):
    """g(x; W), one row per point, from what `sweep` gives: sqrt(m) times an outer product per layer."""
    entering, deltas = network.sweep(points)
    parts = [np.einsum("no,ni->noi", D, H) for D, H in zip([*deltas, np.ones((len(points), 1))], entering, strict=True)]
    return np.sqrt(network.width) * np.hstack([part.reshape(len(points), -1) for part in parts])


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_outputs_equal_torch(depth, symmetric):
    network = double_network(depth=depth, seed=depth, symmetric=symmetric)
    wanted = torch_outputs(torch_weights(host_weights(network)), POINTS).detach().numpy()
    np.testing.assert_allclose(network.outputs(POINTS), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_gradients_equal_torch(depth, symmetric):
    network = double_network(depth=depth, seed=depth, symmetric=symmetric)
    found = gradients(network, POINTS)
    assert np.abs(found).max() > 0.1
    np.testing.assert_allclose(found, torch_jacobian(network, POINTS), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_gradients_equal_numeric_differences(depth):
    network = double_network(depth=depth, width=5, dimension=2, seed=6)
    points = sphere_points(4, dimension=2)
    weights = host_weights(network)
    wanted = central_differences(lambda vector: plain_outputs(unflat(vector, weights), points), flat(weights))
    assert np.abs(wanted).max() > 0.1
    np.testing.assert_allclose(gradients(network, points), wanted, atol=1e-8)


def test_there_are_no_biases():
    network = double_network(depth=3)
    np.testing.assert_allclose(network.outputs(2.5 * POINTS), 2.5 * network.outputs(POINTS), rtol=1e-12)
    assert network.outputs(np.zeros((1, 3))) == 0.0


def test_single_precision_outputs_are_close_to_double():
    single = Network.initial(dimension=3, width=256, depth=4, seed=0)
    assert {w.dtype for w in single.weights} == {np.dtype(np.float32)}
    double = double_network(depth=4, width=256)
    np.testing.assert_allclose(single.outputs(POINTS), double.outputs(POINTS), atol=1e-5)


def test_a_copy_has_weights_of_its_own():
    network = double_network(depth=3)
    before = flat(network.weights)
    twin = network.copy()
    np.testing.assert_array_equal(flat(twin.weights), before)
    for w in twin.weights:
        w += 1.0
    np.testing.assert_array_equal(flat(network.weights), before)


@pytest.mark.parametrize("depth", [2, 3, 6])
def test_there_are_as_many_matrices_as_the_depth(depth):
    """p = m d + m^2 (L - 2) + m."""
    weights = initial_weights(3, 8, depth, seed=0)
    assert [w.shape for w in weights] == [(8, 3)] + [(8, 8)] * (depth - 2) + [(1, 8)]
    assert sum(w.size for w in weights) == 8 * 3 + 8 * 8 * (depth - 2) + 8
    assert [w.shape for w in initial_weights(3, 8, depth, seed=0, symmetric=True)] == [w.shape for w in weights]


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_entries_are_normal_with_variance_two_over_the_width(layer):
    """Kolmogorov-Smirnov at level 1e-3 per layer over ten seeds; a variance off by a twentieth fails in inner ones."""
    width = 128
    entries = np.concatenate([initial_weights(64, width, 3, seed=seed)[layer].ravel() for seed in range(10)])
    assert scipy.stats.kstest(entries * np.sqrt(width / 2), "norm").pvalue > 1e-3
    assert entries.var() == pytest.approx(2 / width, rel=5 * np.sqrt(2 / len(entries)))


def test_layers_come_from_streams_of_their_own():
    for layer, w in enumerate(initial_weights(3, 8, 4, seed=7)):
        draws = stream(7, "network", layer).standard_normal(w.shape, dtype=np.float32)
        np.testing.assert_allclose(w, draws * np.sqrt(2 / 8), rtol=1e-6)
    first, second = initial_weights(3, 64, 4, seed=0)[1:3]
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 5 / 64


def test_a_layer_does_not_depend_on_the_depth():
    for shallow, deep in zip(initial_weights(3, 8, 3, seed=1)[:2], initial_weights(3, 8, 5, seed=1)[:2], strict=True):
        np.testing.assert_array_equal(shallow, deep)


@pytest.mark.parametrize("symmetric", [False, True])
def test_one_seed_gives_the_same_bits(symmetric):
    first, again, other = (flat(initial_weights(3, 16, 4, seed, symmetric)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.isin(other[other != 0.0], first).any()


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_a_symmetric_network_starts_at_zero(depth):
    single = Network.initial(dimension=3, width=64, depth=depth, seed=0, symmetric=True)
    assert np.abs(single.outputs(POINTS)).max() < 1e-5
    double = double_network(depth=depth, width=64, symmetric=True)
    assert np.abs(double.outputs(POINTS)).max() < 1e-13
    half = [w[: max(1, len(w) // 2), : w.shape[1] if number == 0 else 32] for number, w in enumerate(double.weights)]
    assert np.abs(plain_outputs(half, POINTS)).min() > 1e-3


def test_an_odd_width_cannot_be_symmetric():
    with pytest.raises(InputError, match="symmetric network needs an even width, got 7"):
        Network.initial(dimension=2, width=7, depth=2, seed=0, symmetric=True)


@pytest.mark.parametrize(("width", "depth"), [(4, 1), (4, 0), (0, 2), (-2, 2)])
def test_too_small_a_network_is_refused(width, depth):
    with pytest.raises(InputError, match=f"depth of at least 2 and a width of at least 1, got {depth} and {width}"):
        Network.initial(dimension=2, width=width, depth=depth, seed=0)
