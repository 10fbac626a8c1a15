"""The lemmas behind OPNN: information gain of the tangent kernel, and how far training moves kernel and gain.

K = G' G is the tangent kernel of a network, `tangent_gram`, as it is (not divided by its largest k(x, x)); K0 that of
the weights as drawn. That K0 approaches the kernel of infinite width is tested in `tests/neural/test_tangent.py`.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits import NeuralTangentKernel, information_gain, solve_design
from driftbandits.neural import Network, tangent_gram, train
from tests.neural.oracles import flat, host_weights, sphere_points

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True)
ARMS, ROUNDS, DECAY, SIGMA = 8, 400, 1.0, 1.0
POINTS = sphere_points(ARMS)


def features_of(gram):
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def gain(gram, rounds=ROUNDS):
    return information_gain(features_of(gram), horizon=rounds, sigma=SIGMA)


@functools.cache
def run(width, seed, depth=2, symmetric=True):
    """A network before and after TrainNN on `ROUNDS` rewards in [-1, 1]: both networks and both kernels."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(ROUNDS, np.full(ARMS, 1 / ARMS)).astype(float)
    means = rng.uniform(-1, 1, ARMS)
    start = Network.initial(dimension=3, width=width, depth=depth, seed=seed, symmetric=symmetric)
    first = tangent_gram(start, POINTS)
    network = train(start, POINTS, counts, means, gram=first, steps=50, weight_decay=DECAY).network
    return start, network, first, tangent_gram(network, POINTS)


# --- the gain of the tangent kernel ---------------------------------------------------------------------------------


@PROPERTY
@given(seed=st.integers(0, 10**6), arms=st.integers(1, 12), depth=st.integers(1, 6), log_rounds=st.floats(0, 7))
def test_gain_at_infinite_width(seed, arms, depth, log_rounds):
    """Lemma "gamma_(phi, T) = O(N log(T L))", here N log(T L / (sigma N) + 1): H has L on its diagonal."""
    rounds = 10.0**log_rounds
    kernel = NeuralTangentKernel(depth)(sphere_points(arms, seed=seed))
    found = gain(kernel, rounds)
    assert found <= arms * math.log(rounds * depth / (SIGMA * arms) + 1) * (1 + 1e-9)
    assert found >= math.log(rounds * depth / SIGMA + 1) * (1 - 1e-5)  # one arm alone


@pytest.mark.parametrize("depth", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_gain_of_a_trained_network(depth, seed):
    """The same lemma for weights near W0, and "(Lemma B.6)" that it takes: ||g(x; W)||^2 / m <= O(L), here 3 L."""
    *_, kernel = run(128, seed, depth)
    largest = kernel.diagonal().max()
    assert largest <= 3 * depth
    assert gain(kernel) <= ARMS * math.log(ROUNDS * largest / (SIGMA * ARMS) + 1) * (1 + 1e-9)


# --- training stays near the start ----------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("width", [32, 128, 512])
def test_training_stays_in_the_ball_of_the_theory(width, depth, symmetric):
    """Lemma "(Lemma B.2)": ||W - W0|| <= 2 sqrt(T / (m lambda)) after TrainNN.

    Where the output is 0 at first it is certain, with 1 for 2: the loss falls, and begins with T / 2 at most.
    """
    start, network, *_ = run(width, 0, depth, symmetric)
    moved = np.linalg.norm(flat(host_weights(network)) - flat(host_weights(start)))
    radius = math.sqrt(ROUNDS / (width * DECAY))
    assert 0.02 * radius < moved <= (1.0 if symmetric else 2.0) * radius


@pytest.mark.parametrize("width", [512, 2048])
def test_reward_functions_are_linear_in_the_features_of_a_wide_network(width):
    """Lemma "(Lemma 5.1)": r = <g(x; W0), W* - W0> with sqrt(m) ||W* - W0|| <= sqrt(2 r' H^-1 r), for wide networks.

    The smallest such W* has r' K0^-1 r, so it says K0 >= H / 2. A network of 16 units is too narrow for that.
    """
    kernel = NeuralTangentKernel(2)(POINTS)

    def least(width):
        """The largest c with K0 >= c H, worst of five networks."""
        drawn = (Network.initial(dimension=3, width=width, depth=2, seed=seed) for seed in range(5))
        return min(scipy.linalg.eigvalsh(tangent_gram(one, POINTS), kernel)[0] for one in drawn)

    assert least(width) >= 0.5
    assert least(16) < 0.5


# --- drift of kernel and gain after training ------------------------------------------------------------------------


WIDTHS, SEEDS = (64, 256, 1024), range(32)


def drifts(change):
    """Mean over the seeds of what training changes, by width."""
    return np.array([np.mean([change(*run(width, seed)[2:]) for seed in SEEDS]) for width in WIDTHS])


def slope(values):
    return float(np.polyfit(np.log(WIDTHS), np.log(values), 1)[0])


@pytest.mark.statistical
def test_drift_of_the_kernel_falls_with_the_width():
    """Lemma "||G0' G0 - G' G||_F <= O(m^(-1/3) (log m) T^(1/3) N^2 lambda^(-1/3) L^8)": the power of m.

    32 networks per width give the slope of the log drift to 0.05 (bootstrap); it is -0.71 for these seeds. With a true
    slope of -1/2 other seeds would pass -1/3 in 5e-4 of cases. The proof bounds the squared norm by the order that the
    lemma gives the norm, so what it shows is m^(-1/6).
    """
    found = drifts(lambda first, after: np.linalg.norm(after - first))
    assert slope(found) < -1 / 3
    assert found[0] > 0.1  # training does move a narrow one


@pytest.mark.statistical
def test_drift_of_the_gain_falls_with_the_width():
    """Lemma "gamma_phi <= gamma_phi0 + O(m^(-1/3) ...)": what training adds or takes away falls with m, too.

    The slope is known to 0.07 and is -0.62 for these seeds; with a true one of -1/2 the test fails in 6e-3 of others.
    """
    found = drifts(lambda first, after: abs(gain(after) - gain(first)))
    assert slope(found) < -1 / 3
    assert found[0] > 0.1


def log_det(gram, law, rounds=ROUNDS):
    root = np.sqrt(law)
    return np.linalg.slogdet(np.eye(len(gram)) + rounds / SIGMA * root[:, None] * gram * root)[1]


def check_gain_drift(first, after, rounds):
    """The steps of the proof for the law that is optimal after the change, and the lemma with its constants."""
    law = solve_design(features_of(after), regulariser=SIGMA / rounds).probabilities
    root = np.sqrt(law)
    before = np.eye(len(first)) + rounds / SIGMA * root[:, None] * first * root
    change = rounds / SIGMA * root[:, None] * (after - first) * root
    tangent = log_det(first, law, rounds) + float(np.sum(np.linalg.inv(before) * change))
    assert log_det(after, law, rounds) <= tangent + 1e-8  # log det is concave
    assert np.linalg.norm(np.linalg.inv(before)) <= math.sqrt(len(first)) * (1 + 1e-12)
    bound = math.sqrt(len(first)) * rounds / SIGMA * np.linalg.norm(after - first)
    assert tangent <= log_det(first, law, rounds) + bound + 1e-8
    assert gain(after, rounds) <= gain(first, rounds) * (1 + 1e-5) + bound + 1e-5


@pytest.mark.parametrize("width", [16, 128])
@pytest.mark.parametrize("seed", range(3))
def test_gain_after_training_is_bounded_by_the_drift_of_the_kernel(width, seed):
    """Lemma on the drift of the gain, step by step: gamma_phi <= gamma_phi0 + sqrt(N) (T / sigma) ||K - K0||_F."""
    *_, first, after = run(width, seed)
    check_gain_drift(first, after, ROUNDS)
    check_gain_drift(after, first, ROUNDS)


@PROPERTY
@given(seed=st.integers(0, 10**6), arms=st.integers(1, 8), size=st.floats(0.0, 2.0), log_rounds=st.floats(0, 4))
def test_gain_of_any_two_kernels(seed, arms, size, log_rounds):
    """The same inequality holds for any two kernels, near or far."""
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((2, arms, arms)) / math.sqrt(arms)
    first = roots[0] @ roots[0].T
    other = roots[0] + size * roots[1]
    check_gain_drift(first, other @ other.T, 10.0**log_rounds)


def test_the_proof_needs_the_symmetric_form():
    """A slip in the proof: it bounds the inverse of (T / sigma) D_P K0 + I, which is not symmetric, by 1 in norm.

    That norm can be larger. With sqrt(D_P) K0 sqrt(D_P) in the place of D_P K0, as above, the determinants are the same
    and the bound is right, so the lemma stands.
    """
    law = np.array([1.0, 0.0])
    kernel = np.array([[1.0, 0.9], [0.9, 1.0]])
    plain = np.linalg.inv(ROUNDS * law[:, None] * kernel + np.eye(2))
    root = np.sqrt(law)
    symmetric = np.linalg.inv(ROUNDS * root[:, None] * kernel * root + np.eye(2))
    assert np.linalg.det(plain) == pytest.approx(np.linalg.det(symmetric))
    assert np.linalg.norm(symmetric, 2) <= 1.0
    assert np.linalg.norm(plain, 2) > 1.3
