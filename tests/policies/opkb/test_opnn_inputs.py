"""OPNN and ADA-OPNN: settings and points of all kinds, and trainings that fail."""

from __future__ import annotations

import numpy as np
import pytest

import driftbandits.neural.network
from driftbandits import OPNN, AdaOPNN, ArmSet, Constants, Variant
from driftbandits.errors import ConvergenceError, ConvergenceWarning, InputError, KernelError
from driftbandits.neural import Network, NetworkModel, Training, tangent_gram
from tests.policies.opkb.small_networks import (
    ARMS,
    POINTS,
    QUICK,
    SMALL,
    assert_same,
    reward,
    source,
    stretch,
    weights_of,
)

# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [OPNN, AdaOPNN])
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"width": 0}, "width"),
        ({"width": -1}, "width"),
        ({"width": 2.5}, "width"),
        ({"width": True}, "width"),
        ({"width": None}, "width"),
        ({"width": "wide"}, "infinite"),
        ({"width": 10**6}, "width"),
        ({"depth": 1}, "depth"),
        ({"depth": 3.0}, "depth"),
        ({"steps": 0}, "steps"),
        ({"steps": "many"}, "steps"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"learning_rate": None}, "learning_rate"),
        ({"weight_decay": 0}, "weight_decay"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"weight_decay": float("nan")}, "weight_decay"),
        ({"train": "yes"}, "train"),
        ({"train": 1}, "train"),
        ({"symmetric": 0}, "symmetric"),
        ({"normalise": "no"}, "normalise"),
        ({"device": 3}, "device"),
        ({"device": "quantum"}, "quantum"),
        ({"constants": 3}, "Constants"),
        ({"weight_decays": 3}, "did you mean 'weight_decay'"),
        ({"kernel": 3}, "no setting 'kernel'"),
        ({"every": 3}, "no setting 'every'"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_settings_are_refused_when_it_is_built(kind, wrong, named):
    with pytest.raises(InputError, match=named):
        kind(ARMS, horizon=100, **{"width": 16, **wrong})


def test_an_odd_width_cannot_be_symmetric():
    with pytest.raises(InputError, match="even width"):
        OPNN(ARMS, horizon=100, width=15, symmetric=True)


def test_a_network_that_is_zero_everywhere_is_refused():
    """With a width of 1 it happens that no arm passes the only gate."""
    dead = [not tangent_gram(Network.initial(dimension=3, width=1, depth=3, seed=s), POINTS).any() for s in range(20)]
    assert 0 < sum(dead) < 20
    assert np.isfinite(OPNN(ARMS, horizon=100, seed=dead.index(False), width=1).law()).all()
    with pytest.raises(KernelError, match="use a width above 1"):
        OPNN(ARMS, horizon=100, seed=dead.index(True), width=1).law()


def test_a_step_size_that_could_diverge_is_refused_with_one_that_works():
    with pytest.raises(InputError, match=r"learning_rate=0\.01 can make training diverge within 300 rounds") as refused:
        AdaOPNN(ARMS, horizon=300, learning_rate=0.01, constants=QUICK, **SMALL)
    workable = float(str(refused.value).rsplit(" ", 1)[1])
    policy = AdaOPNN(ARMS, horizon=300, learning_rate=workable, constants=QUICK, **SMALL)
    while policy.rounds < 300:
        stretch(policy)
    assert policy.trainings >= 4
    # The bound is 2 / (m (lambda + T max k(x, x))): just below it is taken, just above is not.
    network = Network.initial(dimension=3, width=16, depth=3, seed=0)
    heavy = {**SMALL, "weight_decay": 200.0}
    bound = 2 / (16 * (200 + 300 * tangent_gram(network, POINTS).diagonal().max()))
    AdaOPNN(ARMS, horizon=300, learning_rate=0.999 * bound, **heavy)
    with pytest.raises(InputError, match="diverge"):
        AdaOPNN(ARMS, horizon=300, learning_rate=1.001 * bound, **heavy)
    AdaOPNN(ARMS, horizon=300, learning_rate=0.01, train=False, **SMALL)  # never used


def test_a_fixed_step_size_needs_a_horizon():
    with pytest.raises(InputError, match="known horizon"):
        OPNN(ARMS, learning_rate=1e-9, **SMALL)
    with pytest.raises(InputError, match="known horizon"):
        AdaOPNN.published(ARMS)


def test_defaults_and_the_published_form():
    assert OPNN(ARMS).constants == AdaOPNN(ARMS).constants == Constants.neural()
    assert OPNN(ARMS).variant == Variant.paper()
    published = AdaOPNN.published(ARMS, horizon=500, width=64)
    assert (published.constants, published.variant) == (Constants.published_neural(), Variant.published())
    assert "learning_rate=1e-08" in repr(published)
    assert "normalise=False" in repr(published)
    steady = OPNN.published(ARMS, horizon=500, width=64, train=False)
    assert (steady.constants, steady.variant) == (Constants.published_stationary(), Variant.published())
    assert AdaOPNN.published(ARMS, horizon=500, constants=Constants.neural()).constants == Constants.neural()


def test_without_normalise_the_features_are_the_tangent_kernel_itself():
    policy = OPNN(ARMS, horizon=100, normalise=False, **SMALL)
    policy.ask()
    features = source(policy)["first"]
    np.testing.assert_allclose(features @ features.T, tangent_gram(policy.network, POINTS), rtol=1e-6)


@pytest.mark.parametrize(
    "points",
    [
        [[0.0], [1.0], [2.0], [5.0]],
        [[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0], [3.0, 6.0]],
        [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.3]],
        [[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]],
        [[1.0], [-1.0]],
        [[0.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[1e9], [1e9 + 1.0], [-1e9]],
    ],
    ids=["line", "parallel", "origin", "equal points", "opposite", "one at 0", "all at 0", "far"],
)
def test_any_points_work(points):
    """Nothing is learned at the origin or told apart along a ray by a network without biases: points are lifted."""
    arms = ArmSet(points)
    policy = AdaOPNN(arms, horizon=200, constants=QUICK, **SMALL)
    while policy.rounds < 200:
        stretch(policy)
        assert policy.law().sum() == pytest.approx(1.0)
    assert policy.trainings >= 2
    lengths = np.einsum("ij,ij->i", source(policy)["first"], source(policy)["first"])
    assert lengths.min() > 0.05  # every arm can be learned


def test_parallel_points_are_told_apart():
    policy = OPNN(ArmSet([[1.0], [2.0], [3.0]]), horizon=100, **SMALL)
    policy.ask()
    assert np.linalg.matrix_rank(source(policy)["first"], tol=1e-3) == 3


# --- trainings that fail ---------------------------------------------------------------------------------------------


def at_a_training():
    """A policy whose next reward ends block 0, one beside it, and the decision it waits for."""
    policy, beside = (OPNN(ARMS, horizon=300, seed=0, constants=QUICK, **SMALL) for _ in range(2))
    for each in (policy, beside):
        batch = each.ask(size=each.steady_rounds())
        each.tell(batch.ids[:-1], reward(batch.arms[:-1]))
    return policy, beside, int(batch.ids[-1])


def goes_on_like(policy, beside):
    for _ in range(3):
        stretch(policy)
        stretch(beside)
    assert_same(policy.state_dict(), beside.state_dict())
    assert policy.trainings >= 3


def test_a_training_that_fails_is_an_error_that_leaves_the_policy_whole(monkeypatch):
    policy, beside, last = at_a_training()
    with monkeypatch.context() as patch:
        patch.setattr(NetworkModel, "train", fail)
        with pytest.raises(ConvergenceError, match="by hand"):
            policy.tell(last, 0.3)
        state = policy.state_dict()
        for call in (policy.law, policy.ask, policy.estimate):
            with pytest.raises(ConvergenceError, match="by hand"):
                call()
        assert_same(policy.state_dict(), state)
    beside.tell(last, 0.3)
    goes_on_like(policy, beside)


def fail(self, seen):
    raise ConvergenceError("by hand", best=self.start)


def test_features_that_fail_leave_the_policy_whole(monkeypatch):
    policy, beside, last = at_a_training()
    with monkeypatch.context() as patch:
        patch.setattr(NetworkModel, "view", lambda self, network: fail(self, None))
        with pytest.raises(ConvergenceError, match="by hand"):
            policy.tell(last, 0.3)
        assert policy.trainings == 0
        AdaOPNN.restore(ARMS, {**policy.state_dict(), "policy": "AdaOPNN"})
    beside.tell(last, 0.3)
    goes_on_like(policy, beside)


def test_weights_that_are_not_numbers_never_reach_a_law(monkeypatch):
    policy, beside, last = at_a_training()
    with monkeypatch.context() as patch:
        patch.setattr(driftbandits.neural.network, "_step", spoil)
        with pytest.warns(ConvergenceWarning, match="half"), pytest.raises(ConvergenceError, match="no step size"):
            policy.tell(last, 0.3)
    beside.tell(last, 0.3)
    goes_on_like(policy, beside)


def spoil(network, *_args, **_settings):
    for w in network.weights:
        w[:] = np.nan


def test_a_network_of_nan_never_reaches_a_law(monkeypatch):
    policy, _, last = at_a_training()

    def nan_network(self, seen):
        network = self.start.copy()
        spoil(network)
        return Training(network, 1.0, 1.0, 1.0)

    monkeypatch.setattr(NetworkModel, "train", nan_network)
    with pytest.raises(KernelError, match="network"):
        policy.tell(last, 0.3)
    assert all(np.isfinite(law).all() for law in policy.state_dict()["engine"]["epoch"]["laws"])


def test_steps_that_are_too_large_are_halved_until_the_loss_falls(monkeypatch):
    policy, _, last = at_a_training()
    real = driftbandits.neural.network.largest_step
    monkeypatch.setattr(driftbandits.neural.network, "largest_step", lambda *a, **k: 64.0 * real(*a, **k))
    with pytest.warns(ConvergenceWarning, match="made the loss rise"):
        policy.tell(last, 0.3)
    assert policy.trainings == 1
    assert np.isfinite(policy.law()).all()
    assert all(np.isfinite(w).all() for w in weights_of(policy.network))
