"""Points brought to the sphere keep what tells them apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.neural import on_sphere
from tests.neural.oracles import sphere_points


@st.composite
def grids(draw):
    """Points on a coarse grid, so that two of them are equal or well apart."""
    dimension = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(*[st.integers(-5, 5)] * dimension), min_size=1, max_size=8))
    return np.array(rows, dtype=float) * draw(st.sampled_from([1.0, 1e-6, 0.3, 1e6]))


@given(points=grids(), shift=st.sampled_from([0.0, 0.5]))
@settings(max_examples=200, deadline=None)
def test_points_are_of_length_one_and_as_different_as_before(points, shift):
    lifted = on_sphere(points + shift * np.abs(points).max())
    assert lifted.shape[1] - points.shape[1] in (0, 1)
    np.testing.assert_allclose(np.linalg.norm(lifted, axis=1), 1.0, rtol=1e-12)
    same = (points[:, None] == points).all(axis=2)
    cosines = lifted @ lifted.T
    np.testing.assert_array_equal((lifted[:, None] == lifted).all(axis=2), same)
    assert (cosines[same] > 1 - 1e-12).all()
    assert (cosines[~same] < 1 - 1e-3).all()


@given(points=grids())
@settings(max_examples=100, deadline=None)
def test_lifted_points_are_a_scaled_copy_with_one_more_coordinate(points):
    lifted = on_sphere(points)
    if lifted.shape[1] == points.shape[1]:
        np.testing.assert_allclose(lifted * np.linalg.norm(points[0]), points, rtol=1e-12)
        return
    centred = points - points.mean(axis=0)
    radius = np.linalg.norm(centred, axis=1).max()
    np.testing.assert_allclose(lifted[:, :-1] * radius, centred, atol=1e-12 * radius)
    assert (lifted[:, -1] >= 0).all()
    farthest = np.argmax(np.linalg.norm(centred, axis=1))
    assert lifted[farthest, -1] == pytest.approx(0.0 if radius > 0 else 1.0, abs=1e-6)


@pytest.mark.parametrize("length", [1.0, 0.2, 30.0])
def test_points_of_equal_length_are_only_divided_by_it(length):
    points = sphere_points(20, dimension=4)
    np.testing.assert_allclose(on_sphere(length * points), points, rtol=1e-13)
    np.testing.assert_allclose(on_sphere(np.array([[length], [-length]])), [[1.0], [-1.0]])


def test_a_length_that_differs_by_a_millionth_is_lifted():
    points = sphere_points(5)
    points[0] *= 1 - 1e-6
    assert on_sphere(points).shape == (5, 4)
    points[0] *= 1 + 1e-6
    assert on_sphere(points).shape == (5, 3)


def test_prices_are_spread_over_half_a_circle():
    prices = on_sphere(np.linspace(10.0, 20.0, 11)[:, None])
    np.testing.assert_allclose(prices[:, 0], np.linspace(-1, 1, 11), atol=1e-15)
    np.testing.assert_allclose(prices[:, 1], np.sqrt(1 - np.linspace(-1, 1, 11) ** 2), atol=1e-7)


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        ([[3.0, 4.0]], [[0.6, 0.8]]),
        ([[-2.0]], [[-1.0]]),
        ([[0.0, 0.0]], [[0.0, 0.0, 1.0]]),
        ([[3.0, 4.0], [3.0, 4.0]], [[0.6, 0.8], [0.6, 0.8]]),
        ([[0.1, 0.1]] * 3, [[np.sqrt(0.5), np.sqrt(0.5)]] * 3),
        ([[0.0], [0.0]], [[0.0, 1.0], [0.0, 1.0]]),
        ([[0.0], [4.0], [4.0], [0.0]], [[-1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]),
    ],
)
def test_one_arm_and_equal_arms(points, wanted):
    np.testing.assert_allclose(on_sphere(np.array(points)), wanted, atol=1e-15)


def test_the_points_given_are_left_alone():
    for points in (sphere_points(4), np.arange(8.0).reshape(4, 2)):
        before = points.copy()
        points.flags.writeable = False
        on_sphere(points)
        np.testing.assert_array_equal(points, before)


def test_points_far_from_the_origin_stay_different():
    lifted = on_sphere(np.array([[1e10], [1e10 + 1.0], [1e10 + 2.0]]))
    assert (lifted @ lifted.T)[0, 1] < 0.9
