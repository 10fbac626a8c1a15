"""The operations on NumPy and on torch against their formulas and each other, alone and in a whole training."""

import math
import sys
import tracemalloc

import numpy as np
import pytest
import torch

from driftbandits.errors import InputError, MissingExtraError
from driftbandits.neural import Network, NetworkModel, tangent_gram, train
from driftbandits.neural.network import NumpyArrays
from driftbandits.neural.torch_arrays import TorchArrays
from tests.neural.oracles import flat, host_weights, sphere_points

N, M, INNER = 5, 7, 4
RNG = np.random.default_rng(0)
H = RNG.standard_normal((N, INNER))
W = RNG.standard_normal((M, INNER))
W0 = RNG.standard_normal((M, INNER))
D = RNG.standard_normal((N, M))
LAST = RNG.standard_normal((1, M))
COLUMN = RNG.standard_normal((N, 1))
WIDE_GATE = np.maximum(RNG.standard_normal((N, M)), 0.0)
GATE = np.maximum(RNG.standard_normal((N, INNER)), 0.0)
assert 0 < (GATE == 0).sum() < GATE.size


def places(dtype):
    return [NumpyArrays(dtype), TorchArrays("cpu", dtype)]


@pytest.fixture(params=["numpy-float64", "numpy-float32", "torch-float64", "torch-float32"])
def place(request):
    name, dtype = request.param.split("-")
    return NumpyArrays(np.dtype(dtype)) if name == "numpy" else TorchArrays("cpu", np.dtype(dtype))


def compare(place, found, wanted):
    single = "32" in str(place.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if single else 1e-13, atol=1e-6 if single else 1e-14)


def test_activate_is_the_relu_of_the_product(place):
    out = place.empty(N, M)
    place.activate(place.take(H), place.take(W), out)
    compare(place, place.give(out), np.maximum(H @ W.T, 0.0))
    assert (place.give(out) == 0.0).any()


def test_spread_is_a_gated_outer_product(place):
    out = place.take(np.full((N, M), 9.0))
    place.spread(place.take(COLUMN), place.take(LAST), place.take(WIDE_GATE), out)
    compare(place, place.give(out), np.where(WIDE_GATE > 0, COLUMN * LAST, 0.0))


def test_send_back_is_a_gated_product(place):
    out = place.take(np.full((N, INNER), 9.0))
    place.send_back(place.take(D), place.take(W), place.take(GATE), out)
    compare(place, place.give(out), np.where(GATE > 0, D @ W, 0.0))


def test_read_out_is_a_double_vector(place):
    found = place.read_out(place.take(D), place.take(LAST))
    assert found.shape == (N,)
    assert found.dtype == np.float64
    compare(place, found, D @ LAST[0])


@pytest.mark.parametrize("decay", [0.0, 0.25])
@pytest.mark.parametrize("rate", [0.5, 1e-9])
def test_descend_moves_the_weights_where_they_lie(place, rate, decay):
    weights, start = place.take(W), place.take(W0)
    seen = place.give(weights)
    place.descend(weights, start, place.take(D), place.take(H), rate=rate, decay=decay)
    compare(place, place.give(weights), (1 - decay) * W + decay * W0 - rate * D.T @ H)
    np.testing.assert_array_equal(seen, place.give(weights))
    compare(place, place.give(start), W0)


def test_descend_of_a_last_layer(place):
    weights = place.take(LAST)
    place.descend(weights, place.take(2 * LAST), place.take(COLUMN), place.take(D), rate=0.5, decay=0.1)
    compare(place, place.give(weights), 1.1 * LAST - 0.5 * COLUMN.T @ D)


def test_gram_is_in_double_precision(place):
    found = place.gram(place.take(H))
    kept = place.give(place.take(H)).astype(np.float64)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, kept @ kept.T, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(found, found.T)


def test_take_copies_and_give_shows(place):
    for values in (H.copy(), np.asfortranarray(H), H.astype(np.float32)):
        kept = place.take(values)
        wanted = values.copy()
        values[:] = 0.0
        compare(place, place.give(kept), wanted)
        assert isinstance(place.give(kept), np.ndarray)
    frozen = H.copy()
    frozen.flags.writeable = False
    compare(place, place.give(place.take(frozen)), H)
    room = place.empty(3, 2)
    assert (tuple(room.shape), room.dtype) == ((3, 2), place.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_allocates_nothing_of_the_size_of_the_weights(dtype):
    place = NumpyArrays(dtype)
    weights, start = place.take(np.ones((500, 500))), place.take(np.ones((500, 500)))
    back, entering, out = place.take(np.ones((4, 500))), place.take(np.ones((4, 500))), place.empty(4, 500)
    tracemalloc.start()
    try:
        place.activate(entering, weights, out)
        place.send_back(back, weights, entering, out)
        place.descend(weights, start, back, entering, rate=1e-3, decay=0.1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < weights.nbytes / 10


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-3)])
def test_tangent_kernel_and_training_agree_with_numpy(dtype, tolerance, depth, symmetric):
    points = sphere_points(9)
    counts, means = np.arange(9.0) ** 3, np.cos(np.arange(9.0))
    grams, outputs, weights, rates = [], [], [], []
    for arrays in places(dtype):
        start = Network.initial(dimension=3, width=32, depth=depth, seed=2, symmetric=symmetric, arrays=arrays)
        grams.append(tangent_gram(start, points))
        result = train(start, points, counts, means, gram=grams[-1], steps=40, weight_decay=1.0)
        rates.append(result.learning_rate)
        outputs.append(result.network.outputs(points))
        weights.append(flat(host_weights(result.network)))
        assert result.loss_after < 0.5 * result.loss_before
    np.testing.assert_allclose(grams[0], grams[1], atol=tolerance)
    np.testing.assert_allclose(outputs[0], outputs[1], atol=tolerance)
    np.testing.assert_allclose(weights[0], weights[1], atol=tolerance)
    assert rates[0] == pytest.approx(rates[1], rel=tolerance)


def test_a_torch_copy_has_weights_of_its_own():
    network = Network.initial(dimension=3, width=8, depth=3, seed=0, arrays=TorchArrays("cpu"))
    before = flat(host_weights(network))
    twin = network.copy()
    for w in twin.weights:
        w.add_(1.0)
    np.testing.assert_array_equal(flat(host_weights(network)), before)


def test_a_model_on_a_device_has_the_weights_of_the_one_without():
    settings = {"seed": 0, "width": 32, "depth": 3, "steps": 10, "learning_rate": "auto", "weight_decay": 1.0}
    plain, on_device = (NetworkModel(sphere_points(5), device=device, **settings) for device in (None, "cpu"))
    assert all(isinstance(w, torch.Tensor) and w.dtype == torch.float32 for w in on_device.start.weights)
    np.testing.assert_array_equal(flat(host_weights(plain.start)), flat(host_weights(on_device.start)))
    np.testing.assert_allclose(plain.initial.outputs, on_device.initial.outputs, atol=1e-5)
    assert on_device.shapes == plain.shapes


@pytest.mark.parametrize("device", ["gpu", "cuda:99", ""])
def test_a_device_that_is_not_there_is_refused_with_the_cure(device):
    with pytest.raises(InputError, match=f"torch cannot use device='{device}' here .*; use None for NumPy"):
        TorchArrays(device)


def test_without_torch_the_install_line_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "driftbandits.neural.torch_arrays")
    settings = {"seed": 0, "width": 4, "depth": 2, "steps": 1, "learning_rate": "auto", "weight_decay": 1.0}
    assert math.isfinite(NetworkModel(H, **settings).initial.scale)
    with pytest.raises(MissingExtraError, match=r"needs torch; .* pip install '\.\[torch\]'"):
        NetworkModel(H, device="cpu", **settings)
