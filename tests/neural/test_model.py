"""The network as a source of features for arms, and the sums it is trained from."""

import re

import numpy as np
import pytest

from driftbandits.errors import InputError, KernelError
from driftbandits.neural import (
    ArmsSeen,
    NetworkModel,
    NeuralTangentKernel,
    largest_step,
    on_sphere,
    tangent_gram,
    train,
)
from tests.neural.oracles import flat, sphere_points

POINTS = np.random.default_rng(0).random((8, 2))
SEEN = ArmsSeen(np.array([3.0, 0, 0, 10, 1, 0, 7, 2]), np.array([1.5, 0, 0, -9, 0.3, 0, 2, 0]))


def model(points=POINTS, **settings):
    given = {"seed": 0, "width": 64, "depth": 3, "steps": 20, "learning_rate": "auto", "weight_decay": 1.0}
    return NetworkModel(points, **{**given, **settings})


@pytest.mark.parametrize("settings", [{}, {"depth": 2}, {"symmetric": True}, {"width": 4}], ids=str)
def test_features_reproduce_the_tangent_kernel_divided_by_its_scale(settings):
    network = model(**settings)
    for view, weights in ((network.initial, network.start), (network.view(network.start), network.start)):
        gram = tangent_gram(weights, on_sphere(POINTS))
        assert view.scale == gram.diagonal().max()
        np.testing.assert_allclose(view.features @ view.features.T, gram / view.scale, atol=1e-9)
        np.testing.assert_array_equal(view.outputs, weights.outputs(on_sphere(POINTS)))


def test_a_trained_view_is_that_of_the_trained_network():
    network = model()
    after = network.train(SEEN).network
    view, gram = network.view(after), tangent_gram(after, on_sphere(POINTS))
    np.testing.assert_allclose(view.features @ view.features.T, gram / gram.diagonal().max(), atol=1e-9)
    np.testing.assert_array_equal(view.outputs, after.outputs(on_sphere(POINTS)))
    assert np.abs(view.outputs - network.initial.outputs).max() > 0.1


def test_features_reproduce_the_tangent_kernel_itself_if_it_is_not_normalised():
    network = model(normalise=False)
    assert network.initial.scale == 1.0
    features = network.initial.features
    np.testing.assert_allclose(features @ features.T, tangent_gram(network.start, on_sphere(POINTS)), atol=1e-9)


def test_what_is_seen_of_the_arms_cannot_be_written():
    view = model().initial
    for values in (view.features, view.outputs):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_infinite_width_has_the_features_of_the_kernel(depth):
    view = model(width="infinite", depth=depth).initial
    assert view.scale == pytest.approx(depth, rel=1e-12)
    wanted = NeuralTangentKernel(depth)(on_sphere(POINTS)) / depth
    np.testing.assert_allclose(view.features @ view.features.T, wanted, atol=1e-9)
    np.testing.assert_array_equal(view.outputs, np.zeros(8))


def test_infinite_width_has_no_weights():
    network = model(width="infinite")
    assert network.shapes == []
    with pytest.raises(InputError, match="infinite width has no weights"):
        _ = network.start


def test_a_network_that_is_zero_everywhere_is_refused_with_the_cure():
    network = model(width=1)
    network.start.weights[0][:] = -np.abs(network.start.weights[0])
    network.points = np.abs(network.points)
    with pytest.raises(KernelError, match="zero on every arm; use a width above 1"):
        network.view(network.start)


def test_weights_that_are_not_finite_are_refused():
    network = model()
    network.start.weights[-1][0, 0] = np.nan
    with pytest.raises(KernelError, match="not finite; use a smaller learning_rate"):
        network.view(network.start)


def test_training_starts_from_the_initial_weights_each_time():
    network = model()
    wanted = train(
        network.start,
        on_sphere(POINTS),
        SEEN.counts,
        SEEN.sums / np.maximum(SEEN.counts, 1),
        gram=tangent_gram(network.start, on_sphere(POINTS)),
        steps=20,
        weight_decay=1.0,
    )
    for _ in range(2):
        np.testing.assert_array_equal(flat(network.train(SEEN).network.weights), flat(wanted.network.weights))


def test_settings_reach_the_network_and_its_training():
    network = model(symmetric=True, weight_decay=5.0, steps=3)
    assert np.abs(network.initial.outputs).max() < 1e-5
    gram, means = network.start_gram, SEEN.sums / np.maximum(SEEN.counts, 1)
    rate = 0.4 * largest_step(gram, SEEN.counts, width=64, weight_decay=5.0)
    settings = {"steps": 3, "learning_rate": rate, "weight_decay": 5.0}
    wanted = train(network.start, on_sphere(POINTS), SEEN.counts, means, gram=gram, **settings)
    found = model(symmetric=True, **settings).train(SEEN)
    assert found.learning_rate == rate
    np.testing.assert_array_equal(flat(found.network.weights), flat(wanted.network.weights))


def test_stored_weights_make_the_same_network():
    network = model()
    after = network.train(SEEN).network
    back = network.restore([w.copy() for w in after.weights])
    np.testing.assert_array_equal(back.outputs(network.points), after.outputs(network.points))
    assert network.shapes == [(64, 3), (64, 64), (1, 64)]


def test_a_rate_that_could_diverge_within_the_horizon_is_refused_with_one_that_cannot():
    """The worst history has every round on the arm with the largest k(x, x)."""
    network = model()
    rounds, worst = 500, int(network.start_gram.diagonal().argmax())
    counts = np.where(np.arange(8) == worst, float(rounds), 0.0)
    bound = largest_step(network.start_gram, counts, width=64, weight_decay=1.0)
    model(learning_rate=0.999 * bound).check_rate(rounds)
    with pytest.raises(InputError, match="can make training diverge within 500 rounds") as caught:
        model(learning_rate=1.001 * bound).check_rate(rounds)
    assert f"learning_rate={1.001 * bound:g}" in str(caught.value)
    assert f"(the bound is {bound:.2g}); use learning_rate='auto' or" in str(caught.value)
    named = float(re.search(r"at most (\S+)$", str(caught.value)).group(1))
    model(learning_rate=named).check_rate(rounds)
    result = model(learning_rate=named).train(ArmsSeen(counts, -counts))
    assert result.loss_after < result.loss_before


def test_a_checked_rate_is_stable_for_every_history_of_that_length():
    network, rng = model(), np.random.default_rng(1)
    bound = 2 / (64 * (1.0 + 100 * network.start_gram.diagonal().max()))
    for _ in range(50):
        counts = rng.multinomial(100, rng.dirichlet(np.full(8, 0.2))).astype(float)
        assert largest_step(network.start_gram, counts, width=64, weight_decay=1.0) >= bound * (1 - 1e-9)


def test_auto_and_infinite_width_need_no_check():
    model().check_rate(10**9)
    model(width="infinite", learning_rate=1e9).check_rate(10**9)


def test_training_on_nothing_seen_gives_the_start():
    network = model()
    result = network.train(ArmsSeen.none(8))
    np.testing.assert_array_equal(flat(result.network.weights), flat(network.start.weights))
    assert result.loss_before == result.loss_after == 0.0


@pytest.mark.parametrize("point", [[[0.0, 0.0]], [[3.0, 4.0]]])
def test_a_single_arm(point):
    network = model(points=np.array(point))
    np.testing.assert_allclose(network.initial.features @ network.initial.features.T, [[1.0]])
    result = network.train(ArmsSeen(np.array([50.0]), np.array([25.0])))
    assert result.network.outputs(network.points) == pytest.approx(0.5, abs=0.02)


def test_equal_arms_share_their_features_and_their_rewards():
    points = np.repeat(sphere_points(3), 2, axis=0)
    network = model(points=points)
    assert network.initial.features.shape == (6, 3)
    split = ArmsSeen(np.array([2.0, 6, 1, 0, 3, 3]), np.array([1.0, -3, 0.5, 0, 1, 2]))
    outputs = network.view(network.train(split).network).outputs
    merged = model(points=points[::2]).train(
        ArmsSeen(split.counts.reshape(3, 2).sum(1), split.sums.reshape(3, 2).sum(1))
    )
    np.testing.assert_allclose(outputs[::2], outputs[1::2], atol=1e-5)
    np.testing.assert_allclose(outputs[::2], merged.network.outputs(points[::2]), atol=1e-4)


def test_sums_one_by_one_and_at_once_have_the_same_bits():
    rng = np.random.default_rng(0)
    arms, rewards = rng.integers(4, size=200), rng.standard_normal(200)
    slow, fast = ArmsSeen.none(5), ArmsSeen.none(5)
    for arm, reward in zip(arms, rewards, strict=True):
        slow.add(int(arm), float(reward))
    fast.add_many(arms, rewards)
    np.testing.assert_array_equal(slow.counts, fast.counts)
    np.testing.assert_array_equal(slow.sums, fast.sums)
    np.testing.assert_array_equal(fast.counts, np.bincount(arms, minlength=5))
    np.testing.assert_allclose(fast.means[:4], [rewards[arms == arm].mean() for arm in range(4)], rtol=1e-12)
    assert fast.means[4] == 0.0
