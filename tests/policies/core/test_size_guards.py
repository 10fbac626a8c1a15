"""Work that cannot be held in memory or cannot end is refused before it begins."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits import memory
from driftbandits.errors import InputError
from driftbandits.policies.core.inputs import check_size

FEW = db.ArmSet([[0.0], [0.5], [1.0]])


@pytest.fixture(scope="module")
def many():
    """Two million arms with one feature: an N x N matrix would be 30 TB."""
    return db.ArmSet.from_features(np.linspace(0.1, 1.0, 2_000_000)[:, None])


@pytest.fixture(scope="module")
def many_with_points():
    return db.ArmSet(np.linspace(0.1, 1.0, 200_000)[:, None], RBF(10.0), tolerance=1e-3)


@pytest.mark.parametrize("size", [10**12, 10**18])
def test_a_batch_that_memory_cannot_hold(size):
    with pytest.raises(InputError, match=rf"ask\(size={size}\) would need .* smaller batches"):
        check_size(size)
    assert check_size(1_000_000) == 1_000_000
    with pytest.raises(InputError, match=r"size must be at most 2\^62"):
        check_size(10**400)


@pytest.mark.parametrize("kind", [db.NeuralUCB, db.OPNN, db.AdaOPNN, db.SlidingWindowNeuralUCB])
@pytest.mark.parametrize("width", [8, "infinite"])
def test_a_tangent_kernel_that_memory_cannot_hold(many, kind, width):
    with pytest.raises(InputError, match="tangent kernel of a network on 2,000,000 arms would need"):
        kind(many, horizon=1000, width=width)


@pytest.mark.parametrize("kind", [db.NeuralUCB, db.OPNN])
def test_a_network_that_memory_cannot_hold(kind):
    with pytest.raises(InputError, match=r"width 65,536 and depth 1,000 on 3 arms would need .* smaller width"):
        kind(FEW, horizon=1000, width=65_536, depth=1000)
    with pytest.raises(InputError, match=r"depth, .* at most 10,000, got 10001"):
        kind(FEW, horizon=1000, width=2, depth=10_001)


@pytest.mark.parametrize("kind", [db.NeuralUCB, db.OPNN])
def test_a_training_that_would_not_end(kind):
    with pytest.raises(InputError, match="steps must be at most 1,000,000, got 1000000000000"):
        kind(FEW, horizon=1000, width=8, steps=10**12)


def test_a_rank_that_memory_cannot_hold(many, many_with_points):
    with pytest.raises(InputError, match=r"rank=1000000 with 2,000,000 arms would need .* smaller rank"):
        db.AutoBandit(many, rank=1_000_000)
    with pytest.raises(InputError, match=r"rank=90000 with 200,000 arms would need .* smaller rank"):
        db.AutoBandit(many_with_points, rank=90_000)
    db.AutoBandit(many_with_points)
    db.AutoBandit(many, kernel="given", rank=1_000_000)


@pytest.mark.parametrize("kind", [db.GPUCB, db.LinUCB, db.TimeVaryingGPUCB, db.WeightedGPUCB])
def test_a_posterior_that_memory_cannot_hold(kind, monkeypatch):
    arms = db.ArmSet(np.eye(300), RBF(0.1))
    monkeypatch.setattr(memory, "NEVER_REFUSED_BYTES", 0)
    monkeypatch.setattr(memory, "memory_limit", lambda: 1e6)
    with pytest.raises(InputError, match="a posterior over 300 arms and 300 features would need"):
        kind(arms, horizon=1000)
    monkeypatch.setattr(memory, "memory_limit", lambda: 2e6)
    kind(arms, horizon=1000)


def test_priors_that_memory_cannot_hold(monkeypatch):
    policy = db.AutoBandit(db.ArmSet(np.eye(100), RBF(0.1)), kernel="given")
    monkeypatch.setattr(memory, "NEVER_REFUSED_BYTES", 0)
    monkeypatch.setattr(memory, "memory_limit", lambda: 1e5)
    with pytest.raises(InputError, match=r"2 priors of 100 arms would need .* smaller rank"):
        policy.ask()


def test_more_candidates_than_can_be_tried():
    with pytest.raises(InputError, match="at most 10,000 values, got 100,000"):
        db.BanditOverBandit(FEW, candidates=list(range(1, 100_001)))
