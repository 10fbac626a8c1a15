"""Names of worlds and noises in configuration files, and the paper's settings behind the ids."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest

from driftbandits import environments
from driftbandits.environments import Environment
from driftbandits.environments.noise import GaussianNoise, TruncatedGaussianNoise
from driftbandits.environments.registry import ENVIRONMENTS, NOISES, WorldName, create, names, noise_from_config
from driftbandits.errors import InputError


@pytest.mark.parametrize("name", [name for name in names() if not name.startswith("smpybandits/")])
def test_every_name_builds_the_same_world_twice(name: str) -> None:
    first, second = create(name, seed=3, size=10, dimension=2), create(name, seed=3, size=10, dimension=2)
    assert isinstance(first, Environment)
    assert first.name == name
    assert (first.means(0, 20) == second.means(0, 20)).all()
    assert (first.means(9_999) == second.means(9_999)).all()
    assert (first.means(0) != create(name, seed=4, size=10, dimension=2).means(0)).any()


@pytest.mark.parametrize(
    ("name", "arms", "dimension", "changes"),
    [
        ("switching/1", 100, 10, [3000]),
        ("switching/2", 100, 10, [1500, 5000]),
        ("cosine/stationary", 256, 8, []),
        ("cosine/slow", 100, 10, [*range(1001, 3001), *range(4001, 6001)]),
    ],
)
def test_the_papers_worlds(name: str, arms: int, dimension: int, changes: list[int]) -> None:
    world = create(name, seed=0)
    assert (len(world.arms), world.arms.dimension, world.horizon) == (arms, dimension, 10_000)
    assert world.noise == TruncatedGaussianNoise(0.1)
    assert world.change_rounds.tolist() == changes
    np.testing.assert_allclose(np.linalg.norm(world.arms.points, axis=1), 1.0)
    if name.startswith("switching"):
        assert np.abs(world.means(0)).max() == pytest.approx(0.8)
        assert repr(world.arms.kernel) == "RBF(length_scale=0.2)"
    else:
        assert np.abs(world.means(0)).max() <= 0.8


def test_slow_drift_comes_back_after_a_whole_turn() -> None:
    world = create("cosine/slow", seed=1)
    np.testing.assert_allclose(world.means(9_999), world.means(0), atol=1e-14)
    np.testing.assert_allclose(world.means(3_500), -world.means(0), atol=1e-14)


def test_environments_1_and_2_start_from_the_same_function() -> None:
    assert (create("switching/1", seed=5).means(0) == create("switching/2", seed=5).means(0)).all()


def test_settings_go_over_the_names_own() -> None:
    world = create("switching/1", seed=0, dimension=3, kind="redraw", noise={"name": "uniform", "half_width": 0.2})
    assert world.arms.dimension == 3
    assert "kind='redraw'" in repr(world)
    assert world.reward_range[1] <= 1.0


def test_more_arms_keep_the_first_ones() -> None:
    few, many = create("switching", seed=0, size=5), create("switching", seed=0, size=9)
    assert (few.arms.points == many.arms.points[:5]).all()


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'switching/1'"):
        create("switchin/1")
    with pytest.raises(InputError, match="no setting 'dimensions'; did you mean 'dimension'"):
        create("switching/1", dimensions=3)
    with pytest.raises(InputError, match="unknown noise 'gausian'; did you mean 'gaussian'"):
        noise_from_config({"name": "gausian", "sd": 0.1})
    with pytest.raises(InputError, match="no setting 'std'"):
        noise_from_config({"name": "gaussian", "std": 0.1})
    with pytest.raises(InputError, match="needs 'sd'"):
        noise_from_config({"name": "gaussian"})
    with pytest.raises(InputError, match="unknown noise None"):
        noise_from_config({})


def test_noises_by_name() -> None:
    assert noise_from_config({"name": "gaussian", "sd": 0.1}) == GaussianNoise(0.1)
    values = {
        "gaussian": {"sd": 1},
        "truncated_gaussian": {"sd": 1},
        "uniform": {"half_width": 1},
        "student_t": {"scale": 1},
    }
    for name, kind in NOISES.items():
        assert isinstance(noise_from_config({"name": name, **values.get(name, {})}), kind)


def test_the_public_list_is_complete() -> None:
    for name in environments.__all__:
        assert hasattr(environments, name)
    for kind, _ in ENVIRONMENTS.values():
        assert kind.__name__ in environments.__all__
    for kind in NOISES.values():
        assert kind.__name__ in environments.__all__


@pytest.mark.statistical
def test_sphere_arms_are_even() -> None:
    # mean of 3,000 points in each of 3 coordinates has sd 1/sqrt(3 n); 4.5 sd: false alarm below 3e-5
    points = environments.CosineBandit.sample(seed=0, size=3000, dimension=3, kernel={"name": "linear"}).arms.points
    assert np.abs(points.mean(axis=0)).max() < 4.5 / math.sqrt(3 * len(points))


def test_editors_complete_the_names_there_are() -> None:
    assert get_args(WorldName) == names()
