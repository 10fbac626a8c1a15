"""Designs of many arms: solved loosely and from one another, near the best all the same, and part of the state."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.design import effective_dimension, solve_design
from driftbandits.errors import StateError
from driftbandits.policies.blocks.design import MANY_ARMS, best_design
from driftbandits.policies.calibrated.designs import MOST_DESIGNS, Designs
from driftbandits.state import Reader
from driftbandits.testing.helpers import play, require_equal


@pytest.fixture(scope="module")
def many():
    return db.ArmSet(np.random.default_rng(0).random((MANY_ARMS + 200, 1)), RBF(0.2))


def objective(features, law, regulariser, costs):
    return (
        float(costs @ law)
        - np.linalg.slogdet(features.T @ (law[:, None] * features) + regulariser * np.eye(features.shape[1]))[1]
    )


def test_loose_designs_of_many_arms_are_near_the_exact_ones(many):
    """Two roads: the tight solve from nothing; a chain of loose ones, each from the one before."""
    features, near = many.features, None
    costs = 20.0 * np.square(many.points[:, 0] - 0.3)
    for regulariser in (0.1, 0.03, 0.01, 0.001):
        for given in (np.zeros(len(many)), costs):
            found = best_design(features, regulariser, costs=given, near=near).probabilities
            exact = solve_design(features, given, regulariser=regulariser).probabilities
            off = objective(features, found, regulariser, given) - objective(features, exact, regulariser, given)
            assert -1e-5 < off <= 0.05
            near = found


def test_designs_of_few_arms_do_not_depend_on_what_was_found_before():
    features = np.random.default_rng(1).standard_normal((30, 4))
    once, often = Designs(30), Designs(30)
    for regulariser in 0.9 ** np.arange(MOST_DESIGNS + 5.0):
        often.at(0, features, regulariser)
    for regulariser in (1.0, 0.9**30):
        law, dimension = once.at(0, features, regulariser)
        assert (often.at(0, features, regulariser)[0] == law).all()
        assert dimension == effective_dimension(features, regulariser=regulariser, probabilities=law)
    assert once.export() == []


def test_a_dimension_of_many_arms_is_that_of_a_design_nearby(many):
    """Within a factor of 2, to 1 % of the exact one; where none is near, and of few arms, a design is solved."""
    designs = Designs(len(many))
    designs.at(0, many.features, 0.01)
    for regulariser in (0.005, 0.01 / np.sqrt(2.0), 0.01, 0.02):
        exact = solve_design(many.features, regulariser=regulariser).probabilities
        dimension = effective_dimension(many.features, regulariser=regulariser, probabilities=exact)
        assert designs.dimension(0, many.features, regulariser) == pytest.approx(dimension, rel=0.01)
    assert len(designs.export()) == 1
    designs.dimension(0, many.features, 0.05)
    designs.dimension(1, many.features, 0.01)
    assert [(item["kernel"], item["regulariser"]) for item in designs.export()] == [(0, 0.01), (0, 0.05), (1, 0.01)]


def test_designs_of_many_arms_are_saved(many):
    designs, again = Designs(len(many)), Designs(len(many))
    designs.at(0, many.features, 0.1)
    again.load([Reader(item) for item in designs.export()], [many.features])
    require_equal(again.export(), designs.export())
    assert (again.at(0, many.features, 0.05)[0] == designs.at(0, many.features, 0.05)[0]).all()
    assert again.at(0, many.features, 0.1)[1] == designs.at(0, many.features, 0.1)[1]
    item = designs.export()[0]
    for wrong in (
        {"kernel": 1},
        {"regulariser": 0.0},
        {"support": item["support"][::-1].copy()},
        {"masses": 2.0 * item["masses"]},
        {"masses": -item["masses"]},
    ):
        with pytest.raises(StateError):
            Designs(len(many)).load([Reader({**item, **wrong})], [many.features])
    with pytest.raises(StateError):
        Designs(30).load([Reader(item)], [many.features])


@pytest.mark.parametrize("kind", [db.CalibratedOPKB, db.AdaOPKB])
def test_a_policy_of_many_arms_goes_on_bit_for_bit(kind, many):
    policy = kind(many, seed=3)
    play(policy, 150)
    again = kind.restore(many, policy.state_dict())
    assert play(policy, 400) == play(again, 400)
    require_equal(policy.state_dict(), again.state_dict())
