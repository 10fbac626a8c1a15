"""Training from counts and means against autograd on the raw history, its limits, and step sizes that are too large."""

import itertools
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.errors import ConvergenceError, ConvergenceWarning, InputError
from driftbandits.neural import Network, largest_step, tangent_gram, train
from tests.neural.oracles import (
    central_differences,
    double_network,
    flat,
    host_weights,
    plain_loss,
    plain_outputs,
    sphere_points,
    torch_descent,
    torch_jacobian,
    torch_outputs,
    unflat,
)

POINTS = sphere_points(6)


def history(seed, size=6, rounds=40):
    """Arms in a random order, most of them many times and one never, with noisy rewards; and their counts and means."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(size - 1, size=rounds)
    rewards = np.linspace(-1, 1, size)[arms] + 0.3 * rng.standard_normal(rounds)
    counts = np.bincount(arms, minlength=size).astype(float)
    means = np.bincount(arms, weights=rewards, minlength=size) / np.maximum(counts, 1)
    return arms, rewards, counts, means


def trained(start, counts, means, *, points=POINTS, steps=5, learning_rate="auto", weight_decay=2.0):
    gram = tangent_gram(start, points)
    return train(
        start,
        points,
        counts,
        means,
        gram=gram,
        steps=steps,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
    )


@pytest.mark.parametrize("steps", [1, 2, 9])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_counts_and_means_train_like_the_raw_history(depth, symmetric, steps):
    start = double_network(depth=depth, seed=depth, symmetric=symmetric)
    arms, rewards, counts, means = history(depth)
    result = trained(start, counts, means, steps=steps)
    wanted = torch_descent(start, POINTS, arms, rewards, steps=steps, rate=result.learning_rate, weight_decay=2.0)
    assert np.abs(flat(wanted) - flat(start.weights)).max() > 1e-3
    for found, matrix in zip(result.network.weights, wanted, strict=True):
        np.testing.assert_allclose(found, matrix, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("weight_decay", [0.0, 30.0])
def test_weight_decay_is_that_of_the_loss(weight_decay):
    start = double_network(depth=3)
    arms, rewards, counts, means = history(0)
    result = trained(start, counts, means, steps=20, weight_decay=weight_decay)
    settings = {"steps": 20, "rate": result.learning_rate, "weight_decay": weight_decay}
    wanted = torch_descent(start, POINTS, arms, rewards, **settings)
    np.testing.assert_allclose(flat(result.network.weights), flat(wanted), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_steps_follow_the_numeric_gradient(depth):
    """The second step starts away from W0, so the pull of the weight decay is in it."""
    start = double_network(depth=depth, width=5, dimension=2, seed=6)
    points, (_, _, counts, means) = sphere_points(6, dimension=2), history(1)
    initial = host_weights(start)

    def loss(vector):
        return plain_loss(unflat(vector, initial), initial, points, counts, means, 4.0)

    rate = trained(start, counts, means, points=points, steps=1, weight_decay=4.0).learning_rate
    path = [flat(initial)]
    for steps in (1, 2):
        result = trained(start, counts, means, points=points, steps=steps, learning_rate=rate, weight_decay=4.0)
        path.append(flat(result.network.weights))
    for here, there in itertools.pairwise(path):
        slope = central_differences(loss, here)
        np.testing.assert_allclose((here - there) / rate, slope, atol=1e-7 * np.abs(slope).max())


def test_losses_are_the_data_part_before_and_after():
    start = double_network(depth=3)
    _, _, counts, means = history(2)
    result = trained(start, counts, means, steps=10)
    before, after = (
        0.5 * np.sum(counts * (plain_outputs(host_weights(network), POINTS) - means) ** 2)
        for network in (start, result.network)
    )
    assert result.loss_before == pytest.approx(before, rel=1e-12)
    assert result.loss_after == pytest.approx(after, rel=1e-12)
    assert after < 0.9 * before


def test_arms_never_seen_do_not_matter():
    start = double_network(depth=3)
    _, _, counts, means = history(3)
    gram, seen = tangent_gram(start, POINTS), counts > 0
    assert not seen.all()
    settings = {"steps": 8, "weight_decay": 1.0}
    without = train(start, POINTS[seen], counts[seen], means[seen], gram=gram[np.ix_(seen, seen)], **settings)
    means[~seen] = np.nan
    gram[~seen] = gram[:, ~seen] = 1e9
    result = train(start, POINTS, counts, means, gram=gram, **settings)
    np.testing.assert_array_equal(flat(result.network.weights), flat(without.network.weights))
    assert result.learning_rate == without.learning_rate


def test_the_start_is_left_as_it_was():
    for start in (double_network(depth=3), Network.initial(dimension=3, width=16, depth=3, seed=0)):
        before = flat(start.weights)
        first = trained(start, *history(0)[2:])
        np.testing.assert_array_equal(flat(start.weights), before)
        again = trained(start, *history(0)[2:])
        np.testing.assert_array_equal(flat(first.network.weights), flat(again.network.weights))


def test_no_steps_give_the_start():
    start = double_network(depth=2)
    result = trained(start, *history(0)[2:], steps=0)
    np.testing.assert_array_equal(flat(result.network.weights), flat(start.weights))
    assert result.loss_before == result.loss_after


def test_single_precision_trains_like_double():
    _, _, counts, means = history(0)
    single, double = (
        trained(network, counts, means, steps=50).network.outputs(POINTS)
        for network in (Network.initial(dimension=3, width=64, depth=3, seed=0), double_network(depth=3, width=64))
    )
    np.testing.assert_allclose(single, double, atol=1e-4)


@pytest.mark.parametrize(("depth", "widths"), [(2, (256, 4096, 65_536)), (3, (32, 128, 512))])
def test_a_wide_network_trained_long_is_kernel_ridge_regression(depth, widths):
    """f = f0 + K (K + lambda N^-1)^-1 (y - f0), at arms never seen too; the rest falls as the width grows."""
    _, _, counts, means = history(5, rounds=12)
    seen = np.flatnonzero(counts)
    rests = []
    for width in widths:
        start = double_network(depth=depth, width=width)
        K, f0 = tangent_gram(start, POINTS), start.outputs(POINTS)
        weights = np.linalg.solve(K[np.ix_(seen, seen)] + np.diag(2.0 / counts[seen]), (means - f0)[seen])
        limit = f0 + K[:, seen] @ weights
        result = trained(start, counts, means, steps=200)
        rests.append(np.abs(result.network.outputs(POINTS) - limit).max() / np.abs(limit - f0).max())
    assert rests[-1] < (0.001 if depth == 2 else 0.02), rests
    assert rests[-1] < 0.5 * rests[0], rests


@pytest.mark.parametrize("depth", [2, 3])
def test_the_largest_step_is_two_over_the_largest_curvature(depth):
    """The Hessian of the loss where the outputs are the rewards, which leaves its Gauss-Newton part alone."""
    start, points = double_network(depth=depth, width=6, dimension=2), sphere_points(4, dimension=2)
    counts = np.array([3.0, 0.0, 7.0, 1.0])
    initial = torch.tensor(flat(start.weights))
    shapes = [w.shape for w in start.weights]
    outputs = torch.tensor(start.outputs(points))

    def loss(vector):
        parts = torch.split(vector, [rows * columns for rows, columns in shapes])
        weights = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        misfit = 0.5 * torch.sum(torch.tensor(counts) * (torch_outputs(weights, points) - outputs) ** 2)
        return misfit + 0.5 * start.width * 1.5 * torch.sum((vector - initial) ** 2)

    top = float(torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, initial))[-1])
    found = largest_step(tangent_gram(start, points), counts, width=6, weight_decay=1.5)
    assert found == pytest.approx(2 / top, rel=1e-9)
    jacobian = torch_jacobian(start, points)
    assert top == pytest.approx(np.linalg.eigvalsh(jacobian.T * counts @ jacobian)[-1] + 6 * 1.5, rel=1e-9)


def test_gradient_descent_is_stable_below_the_largest_step_and_not_above():
    """On the linearised network, whose loss is the quadratic that the step size is about."""
    start = double_network(depth=3)
    _, _, counts, means = history(0)
    bound = largest_step(tangent_gram(start, POINTS), counts, width=start.width, weight_decay=2.0)
    jacobian, rest = torch_jacobian(start, POINTS), start.outputs(POINTS) - means
    for share, falls in ((0.98, True), (1.02, False)):
        move = np.zeros(jacobian.shape[1])
        for _ in range(2000):
            slope = jacobian.T @ (counts * (rest + jacobian @ move)) + start.width * 2.0 * move
            move = move - share * bound * slope
        assert bool(np.abs(slope).max() < 1e-6) is falls


def test_nothing_seen_bounds_the_step_by_the_weight_decay():
    assert largest_step(np.eye(3), np.zeros(3), width=5, weight_decay=2.0) == pytest.approx(2 / (5 * 2))
    assert largest_step(np.eye(0), np.zeros(0), width=5, weight_decay=2.0) == pytest.approx(2 / (5 * 2))


def test_too_large_a_step_is_refused_with_one_that_works():
    start = double_network(depth=3, width=64)
    _, _, counts, means = history(0)
    bound = largest_step(tangent_gram(start, POINTS), counts, width=64, weight_decay=2.0)
    with pytest.raises(InputError, match="would make training diverge; use 'auto' or at most") as caught:
        trained(start, counts, means, learning_rate=1.5 * bound)
    named = float(re.search(r"at most (\S+)$", str(caught.value)).group(1))
    assert 0.45 * bound < named < 0.55 * bound
    result = trained(start, counts, means, learning_rate=named, steps=50)
    assert result.learning_rate == named
    assert result.loss_after < 0.5 * result.loss_before


@pytest.mark.parametrize("share", [1.0, 0.0, -0.1, float("nan"), float("inf")])
def test_step_sizes_outside_the_bounds_are_refused(share):
    start = double_network(depth=2)
    bound = largest_step(tangent_gram(start, POINTS), np.ones(6), width=12, weight_decay=2.0)
    with pytest.raises(InputError, match="learning_rate"):
        trained(start, np.ones(6), np.zeros(6), learning_rate=share * bound)


def test_auto_is_half_of_the_largest_step():
    start = double_network(depth=3, width=64)
    _, _, counts, means = history(0)
    bound = largest_step(tangent_gram(start, POINTS), counts, width=64, weight_decay=2.0)
    assert trained(start, counts, means).learning_rate == pytest.approx(bound / 2, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_auto_lowers_the_whole_loss_at_every_step(seed):
    start = double_network(depth=3, width=128, seed=seed)
    rng = np.random.default_rng(seed)
    counts, means = np.floor(10 ** rng.uniform(0, 5, 6)), rng.uniform(-1, 1, 6)
    losses = []
    for steps in range(12):
        weights = host_weights(trained(start, counts, means, steps=steps).network)
        losses.append(plain_loss(weights, host_weights(start), POINTS, counts, means, 2.0))
    assert (np.diff(losses) < 0).all()


@given(
    seen=st.lists(st.tuples(st.integers(1, 10**5), st.floats(-1, 1)), min_size=1, max_size=6),
    depth=st.sampled_from([2, 3, 5]),
    width=st.sampled_from([4, 16, 64]),
    seed=st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore::driftbandits.errors.ConvergenceWarning")
def test_auto_never_raises_the_loss(seen, depth, width, seed):
    counts, means = np.array(seen, dtype=float).T
    points = POINTS[: len(seen)]
    start = double_network(depth=depth, width=width, seed=seed)
    result = trained(start, counts, means, points=points, steps=25, weight_decay=1.0)
    before, after = (
        0.5 * np.sum(counts * (plain_outputs(host_weights(network), points) - means) ** 2)
        for network in (start, result.network)
    )
    assert np.isfinite(flat(result.network.weights)).all()
    assert after <= before * (1 + 2e-6) + 2e-12 * counts.sum()


def narrow():
    """Four units, a step size just below the bound: the curvature grows on the way and the loss rises."""
    return double_network(depth=5, width=4, seed=40), np.full(6, 1e4), np.linspace(-1, 1, 6)


def test_a_loss_that_rises_later_is_warned_of_and_cured_by_halving():
    start, counts, means = narrow()
    rate = 0.95 * largest_step(tangent_gram(start, POINTS), counts, width=4, weight_decay=1.0)
    with pytest.warns(ConvergenceWarning, match="made the loss rise; trying again with half of it") as caught:
        result = trained(start, counts, means, steps=100, learning_rate=rate, weight_decay=1.0)
    named = [f"step size {rate / 2**number:.2g} made" in str(entry.message) for number, entry in enumerate(caught)]
    assert all(named)
    assert result.learning_rate == pytest.approx(rate / 2 ** len(caught), rel=1e-12)
    assert np.isfinite(flat(result.network.weights)).all()
    assert result.loss_after < 0.5 * result.loss_before


def test_training_begins_again_from_the_start():
    start, counts, means = narrow()
    rate = 0.95 * largest_step(tangent_gram(start, POINTS), counts, width=4, weight_decay=1.0)
    with pytest.warns(ConvergenceWarning):
        result = trained(start, counts, means, steps=100, learning_rate=rate, weight_decay=1.0)
    anew = trained(start, counts, means, steps=100, learning_rate=result.learning_rate, weight_decay=1.0)
    np.testing.assert_array_equal(flat(result.network.weights), flat(anew.network.weights))


@pytest.mark.filterwarnings("ignore::driftbandits.errors.ConvergenceWarning")
def test_training_that_cannot_work_says_so():
    start = double_network(depth=2)
    with pytest.raises(ConvergenceError, match="no step size made the loss fall") as caught:
        trained(start, np.ones(6), np.full(6, np.nan))
    assert caught.value.best is start
