"""Linear worlds: means against inner products, switches and drift against their definitions."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest

from driftbandits import environments, simulate
from driftbandits.arms.arm_set import ArmSet
from driftbandits.environments.linear import DriftingLinear, SwitchingLinear
from driftbandits.environments.noise import BernoulliNoise, GaussianNoise
from driftbandits.errors import InputError
from driftbandits.policies import LinUCB

SEEDS = range(20)


def drift(seed: int, **settings) -> DriftingLinear:
    return DriftingLinear.sample(**{"seed": seed, "size": 30, "dimension": 4, "horizon": 400, "speed": 0.03} | settings)


def inner_product(theta, point) -> float:
    return sum(float(a) * float(b) for a, b in zip(theta, point, strict=True))


@pytest.mark.parametrize("kind", ["flip", "redraw"])
def test_switching_means_are_inner_products(kind) -> None:
    world = SwitchingLinear.sample(seed=1, size=8, dimension=3, horizon=60, switches=(10, 40), kind=kind)
    for now in range(60):
        theta = world.thetas[(now >= 10) + (now >= 40)]
        expected = [inner_product(theta, point) for point in world.arms.points]
        np.testing.assert_allclose(world.means(now)[0], expected, rtol=0, atol=1e-15)
        assert world.best(now)[0] == pytest.approx(max(expected), abs=1e-15)


def test_drifting_means_are_inner_products() -> None:
    world = drift(1, horizon=60)
    for now in range(60):
        expected = [inner_product(world.thetas(now)[0], point) for point in world.arms.points]
        np.testing.assert_allclose(world.means(now)[0], expected, rtol=0, atol=1e-15)
        assert world.best(now)[0] == pytest.approx(max(expected), abs=1e-15)


def test_theta_turns_at_the_given_speed_on_the_sphere() -> None:
    for seed in SEEDS:
        thetas = drift(seed, norm=0.6, speed=-0.03).thetas(0, 400)
        np.testing.assert_allclose(np.linalg.norm(thetas, axis=1), 0.6, rtol=1e-14)
        for lag in (1, 7, 50):
            cosines = np.einsum("ij,ij->i", thetas[lag:], thetas[:-lag]) / 0.36
            np.testing.assert_allclose(cosines, math.cos(0.03 * lag), atol=1e-14)
        assert np.linalg.matrix_rank(thetas, tol=1e-10) == 2  # one circle


def test_a_whole_turn_comes_back() -> None:
    world = DriftingLinear.sample(seed=0, horizon=10_001)
    np.testing.assert_allclose(world.means(10_000), world.means(0), atol=1e-12)
    np.testing.assert_allclose(world.means(5_000), -world.means(0), atol=1e-12)


def test_variation_and_segments_of_drift_are_those_of_the_definition() -> None:
    world = drift(2)
    rows = [world.means(now)[0] for now in range(400)]
    steps = [max(abs(after - before)) for before, after in pairwise(rows)]
    assert world.variation == pytest.approx(sum(steps), rel=1e-12)
    assert world.segments == 400
    assert world.change_rounds.tolist() == list(range(1, 400))
    thetas = world.thetas(0, 400)
    assert world.path_length == pytest.approx(np.linalg.norm(np.diff(thetas, axis=0), axis=1).sum(), rel=1e-9)
    assert world.variation <= world.path_length


def test_variation_of_a_full_circle_of_arms_is_the_path_length() -> None:
    angles = np.linspace(0, 2 * math.pi, 2000, endpoint=False)
    arms = ArmSet(np.stack([np.cos(angles), np.sin(angles)], axis=1), kernel={"name": "linear"})
    world = DriftingLinear(arms, horizon=100, speed=0.05, seed=0)
    assert world.variation == pytest.approx(world.path_length, rel=1e-5)


def test_standing_still_is_stationary() -> None:
    world = drift(0, speed=0.0)
    assert (world.segments, world.variation, world.best_arm_changes, world.path_length) == (1, 0.0, 0, 0.0)


@pytest.mark.parametrize(
    "build", [drift, lambda seed: SwitchingLinear.sample(seed=seed, size=9, horizon=400, switches=(7,))]
)
def test_rounds_may_be_asked_for_in_any_order(build) -> None:
    whole = build(3).means(0, 400)
    world = build(3)
    order = np.random.default_rng(0).permutation(400)
    assert all((world.means(int(now))[0] == whole[now]).all() for now in order)
    arms = np.random.default_rng(1).integers(0, len(world.arms), 400)
    assert (world.means_of(0, arms) == whole[np.arange(400), arms]).all()
    assert (world.best(100, 200) == whole[100:300].max(axis=1)).all()


def test_a_longer_world_keeps_the_first_rounds() -> None:
    assert (drift(0, horizon=100).means(0, 100) == drift(0, horizon=900).means(0, 100)).all()
    few = SwitchingLinear.sample(seed=0, horizon=100, switches=(30,), kind="redraw")
    many = SwitchingLinear.sample(seed=0, horizon=900, switches=(30, 100, 800), kind="redraw")
    assert (few.values == many.values[:2]).all()


def test_two_flips_restore_theta() -> None:
    world = SwitchingLinear.sample(seed=1, horizon=100, switches=(30, 60))
    assert (world.thetas[1] == -world.thetas[0]).all()
    assert (world.values[2] == world.values[0]).all()
    assert world.variation == pytest.approx(4 * np.abs(world.values[0]).max())
    assert (world.segments, world.change_rounds.tolist()) == (3, [30, 60])


@pytest.mark.statistical
def test_theta_is_drawn_evenly() -> None:
    # 3,000 draws of theta and of both directions of the circle: the mean of each coordinate has sd 0.8 / sqrt(3 n), and
    # that of products of two has sd below 0.64 sqrt(4 / 45 / n); 3 x (3 + 6) numbers at 4.5 sd: false alarm below 2e-4
    n = 3000
    arms = ArmSet(np.eye(3), kernel={"name": "linear"})
    turning = [DriftingLinear(arms, horizon=2, speed=math.pi / 2, seed=seed) for seed in range(n)]
    jumps = [SwitchingLinear(arms, horizon=1, seed=seed).thetas[0] for seed in range(n)]
    for draws in (
        np.array(jumps),
        np.array([w.thetas(0)[0] for w in turning]),
        np.array([w.thetas(1)[0] for w in turning]),
    ):
        assert np.abs(draws.mean(axis=0)).max() < 4.5 * 0.8 / math.sqrt(3 * n)
        moments = draws.T @ draws / n
        assert np.abs(moments - 0.64 / 3 * np.eye(3)).max() < 4.5 * 0.64 * math.sqrt(4 / 45 / n)


def test_the_kernel_is_linear_and_no_arm_is_longer_than_one() -> None:
    for settings in ({"size": 40}, {"box_error": 1.5}):
        world = SwitchingLinear.sample(seed=0, dimension=3, **settings)
        np.testing.assert_allclose(
            world.arms.features @ world.arms.features.T, world.arms.points @ world.arms.points.T, atol=1e-9
        )
        assert world.arms.rank == 3
        assert world.arms.scale == pytest.approx(1.0)
        assert np.linalg.norm(world.arms.points, axis=1).max() <= 1 + 1e-12


def test_a_box_is_discretised_as_the_paper_does() -> None:
    world = environments.create("linear/drifting", seed=0, dimension=2, box_error=0.5, horizon=50)
    steps = math.ceil(2 * math.sqrt(2) / 0.5)  # side sqrt(2), cubes of side 0.5 / 2
    assert len(world.arms) == steps**2
    best_of_the_box = np.abs(world.thetas(0, 50)).sum(axis=1) / math.sqrt(2)
    lost = best_of_the_box - world.best(0, 50)
    assert (lost > -1e-12).all()
    assert (lost < 0.25).all()


def test_the_names_build_them() -> None:
    one = environments.create("linear/switching", seed=0)
    assert isinstance(one, SwitchingLinear)
    assert (len(one.arms), one.arms.dimension, one.horizon, one.change_rounds.tolist()) == (100, 10, 10_000, [3000])
    assert environments.create("linear/drifting", seed=0, size=7, speed=0.1).name == "linear/drifting"


def test_a_linear_policy_learns_it() -> None:
    world = SwitchingLinear.sample(seed=0, dimension=3, horizon=600, switches=())
    trace = simulate(LinUCB(world.arms, horizon=600, seed=0), world, seed=0)
    assert trace.regret[300:].mean() < 0.02


def test_worlds_show_their_settings_and_travel() -> None:
    for world in (drift(3), SwitchingLinear.sample(seed=3, horizon=50, switches=(7,))):
        assert f"seed={world.seed}, norm=0.8" in repr(world)
        again = pickle.loads(pickle.dumps(world))  # noqa: S301
        assert (again.means(0, 50) == world.means(0, 50)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"norm": 1.5}, "norm must lie in"),
        ({"norm": 0.0}, "norm must lie in"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"noise": BernoulliNoise()}, "cannot serve means"),
        ({"box_error": 0.5, "size": 10}, "leave size out, or box_error"),
        ({"box_error": -1.0}, "error must be a finite positive number"),
        ({"dimension": 0, "box_error": 0.5}, "dimension must be at least 1"),
    ],
)
@pytest.mark.parametrize("name", ["linear/switching", "linear/drifting"])
def test_wrong_settings_are_refused(name, settings, message) -> None:
    with pytest.raises(InputError, match=message):
        environments.create(name, seed=0, **settings)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("linear/switching", {"kind": "hidden"}, "kind must be 'flip' or 'redraw'"),
        ("linear/switching", {"switches": (20_000,)}, "outside the horizon"),
        ("linear/switching", {"speed": 0.1}, "no setting 'speed'"),
        ("linear/drifting", {"speed": math.inf}, "speed must be a finite number"),
        ("linear/drifting", {"dimension": 1}, "at least 2 dimensions"),
    ],
)
def test_wrong_settings_of_one_kind_are_refused(name, settings, message) -> None:
    with pytest.raises(InputError, match=message):
        environments.create(name, seed=0, **settings)


def test_the_full_norm_suits_unbounded_noise() -> None:
    world = SwitchingLinear.sample(seed=0, norm=1.0, noise=GaussianNoise(0.1))
    np.testing.assert_allclose(np.linalg.norm(world.thetas, axis=1), 1.0)
    with pytest.raises(InputError, match="strictly between -1 and 1"):
        DriftingLinear.sample(seed=0, norm=1.0)
