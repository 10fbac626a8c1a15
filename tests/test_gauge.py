"""How arms are measured, and that arms which follow others are measured as they are."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet
from driftbandits import state as states
from driftbandits.arms.scaling import Gauge
from driftbandits.errors import InputError, StateError

POINTS = np.random.default_rng(0).random((7, 2)) * [1.0, 50.0]


def test_a_gauge_says_what_the_points_say():
    gauge = ArmSet(POINTS, RBF(0.3)).gauge
    scaled = POINTS / POINTS.std(axis=0)
    apart = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
    np.testing.assert_allclose(gauge.standardised(POINTS), scaled)
    assert gauge.typical == pytest.approx(np.median(apart[np.triu_indices(7, 1)]))
    assert gauge.nearest == pytest.approx(np.median(np.sort(apart, axis=1)[:, 1]))
    assert (gauge.scale, gauge.length_scale) == (1.0, None)


def test_one_point_and_equal_points_have_a_gauge():
    for points in ([[3.0]], [[3.0], [3.0]]):
        gauge = ArmSet(points).gauge
        assert (gauge.typical, gauge.nearest, gauge.spreads) == (1.0, 0.0, (0.0,))


@pytest.mark.parametrize(
    "kernel", [None, RBF(0.3), {"name": "linear"}, lambda x, y: x @ y.T], ids=["guessed", "rbf", "linear", "function"]
)
def test_arms_that_follow_are_measured_as_the_first(kernel):
    first = ArmSet(POINTS, kernel)
    others = first.with_points(3.0 * POINTS[:5] + 1.0)
    assert (others.gauge, others.scale, others.follows, first.follows) == (first.gauge, first.scale, True, False)
    gram = first.kernel(others.points, others.points) / first.scale
    np.testing.assert_allclose(others.features @ others.features.T, gram, atol=1e-7 * max(1.0, gram.max()))
    assert others.with_points(POINTS).fingerprint() == first.fingerprint()
    assert others.with_points(POINTS).gauge == first.gauge


def test_extended_and_without_undo_each_other():
    arms = ArmSet(POINTS, names=list("abcdefg"))
    more = arms.extended([[0.5, 3.0]], names=["new"])
    assert more.names == (*"abcdefg", "new")
    back = more.without(["new"])
    assert back.fingerprint() == arms.fingerprint()
    assert more.without([7]).names == arms.names
    np.testing.assert_array_equal(back.features, arms.features)


@pytest.mark.parametrize("form", ["matrix", "features"])
def test_arms_without_a_kernel_can_go_but_not_come(form):
    features = np.random.default_rng(1).standard_normal((7, 7))
    arms = ArmSet(POINTS, features @ features.T) if form == "matrix" else ArmSet.from_features(features, points=POINTS)
    fewer = arms.without([0, 3])
    kept = [1, 2, 4, 5, 6]
    np.testing.assert_array_equal(fewer.points, POINTS[kept])
    np.testing.assert_allclose(fewer.features @ fewer.features.T, (arms.features @ arms.features.T)[np.ix_(kept, kept)])
    for wrong in (lambda: arms.with_points(POINTS), lambda: arms.extended(POINTS[:1])):
        with pytest.raises(InputError, match="made from a kernel matrix or from features"):
            wrong()


WRONG = {
    "other dimensions": (lambda arms: arms.with_points([[1.0]]), "1 dimension, the arms so far 2"),
    "no name": (lambda arms: arms.extended([[0.1, 0.2]]), "have names: give the new ones"),
    "a name twice": (lambda arms: arms.extended([[0.1, 0.2]], names=["a"]), "two arms are called 'a'"),
    "an unknown arm": (lambda arms: arms.without(["z"]), "no arm is called 'z'"),
    "a number too large": (lambda arms: arms.without([7]), "no arm has the number 7"),
    "a single name": (lambda arms: arms.without("a"), "wants a list of names or numbers"),
    "all of them": (lambda arms: arms.without(list("abcdefg")), "no arm is left of 7 arms"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_follow_is_refused(case):
    wrong, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        wrong(ArmSet(POINTS, names=list("abcdefg")))
    if case == "no name":
        with pytest.raises(InputError, match="have no names"):
            ArmSet(POINTS).extended([[0.1, 0.2]], names=["z"])


def test_a_gauge_is_saved_and_checked():
    gauge = ArmSet(POINTS).gauge
    state = gauge.export()
    assert Gauge.load(states.Reader(state), dimension=2) == gauge
    wrong = [
        {"scale": 0.0},
        {"typical": -1.0},
        {"nearest": -1.0},
        {"length_scale": 0.0},
        {"spreads": [1.0]},
        {"spreads": [1.0, -1.0]},
        {"spreads": "ab"},
    ]
    for change in wrong:
        with pytest.raises(StateError):
            Gauge.load(states.Reader({**state, **change}), dimension=2)
