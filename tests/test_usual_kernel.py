"""The kernel of arms that come without one."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits import ArmSet
from driftbandits.arms.kernels import USUAL_LENGTH, typical_distance, usual_kernel
from driftbandits.environments.switching import SwitchingKernel

SQUARE = np.random.default_rng(0).random((100, 2))


def median_by_hand(points):
    pairs = [np.linalg.norm(x - y) for n, x in enumerate(points) for y in points[:n]]
    return float(np.median([distance for distance in pairs if distance > 0]))


def test_its_length_is_a_share_of_the_median_distance():
    assert typical_distance(SQUARE) == pytest.approx(median_by_hand(SQUARE))
    assert usual_kernel(SQUARE).length_scale == pytest.approx(USUAL_LENGTH * median_by_hand(SQUARE), rel=5e-3)


def test_what_the_repr_shows_is_the_kernel():
    arms = ArmSet(SQUARE)
    shown = eval(repr(arms.kernel), {"RBF": RBF})
    for other in (SQUARE[:30], SQUARE[:, :1]):  # our own class, and to the last bit what it is called
        assert np.array_equal(shown(other, other), arms.kernel(other, other))
        assert np.array_equal(shown(other), arms.kernel(other))
    assert repr(arms.kernel) in repr(arms)
    assert ArmSet(SQUARE, kernel=shown).fingerprint() == arms.fingerprint()


@pytest.mark.parametrize("unit", [1e-300, 1e-3, 1e5, 1e200])
def test_it_follows_the_unit_of_the_points(unit):
    plain, scaled = ArmSet(SQUARE), ArmSet(SQUARE * unit)
    assert scaled.kernel.length_scale == pytest.approx(plain.kernel.length_scale * unit, rel=5e-3)
    np.testing.assert_allclose(scaled.features @ scaled.features.T, plain.features @ plain.features.T, atol=0.02)


@pytest.mark.parametrize("points", [[[3.0]], [[2.0, 1.0]] * 5, np.zeros((2_000, 3)), [[5e-324], [0.0]]])
def test_points_that_do_not_differ_have_some_kernel_all_the_same(points):
    assert ArmSet(points).kernel.length_scale > 0


def test_duplicates_do_not_count():
    """Nine in ten pairs are at distance 0, so the median of all would be 0."""
    points = np.repeat([[0.0], [1.0]], [95, 5], axis=0)
    assert usual_kernel(points).length_scale == USUAL_LENGTH


def test_of_many_points_some_are_compared_always_the_same():
    many = np.random.default_rng(1).random((20_000, 2))
    assert usual_kernel(many) == usual_kernel(many)
    assert typical_distance(many) == pytest.approx(typical_distance(SQUARE), rel=0.1)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 400), np.linspace(0, 1, 400)), axis=-1).reshape(-1, 2)
    assert typical_distance(grid) == pytest.approx(typical_distance(SQUARE), rel=0.1)


def test_a_saved_policy_goes_on_with_arms_built_again():
    policy = db.TimeVaryingGPUCB(ArmSet(SQUARE))
    policy.tell(policy.ask(), 0.5)
    again = db.TimeVaryingGPUCB.restore(ArmSet(SQUARE.copy()), policy.state_dict())
    assert again.law().tolist() == policy.law().tolist()


@pytest.mark.statistical
def test_it_learns_where_a_length_of_one_does_not():
    """Regret over that of RBF(1) on the unit square, where the truth has length 0.2."""
    told = {"guess": ArmSet(SQUARE), "one": ArmSet(SQUARE, kernel=RBF(1.0))}
    regret = dict.fromkeys(told, 0.0)
    for seed in (0, 1):
        world = SwitchingKernel(
            ArmSet(SQUARE, kernel=RBF(0.2)), horizon=2_000, switches=(1_000,), kind="redraw", seed=seed
        )
        for name, arms in told.items():
            regret[name] += float(db.simulate(db.TimeVaryingGPUCB(arms, seed=seed), world, seed=seed).regret.sum())
    assert regret["guess"] < 0.5 * regret["one"]
