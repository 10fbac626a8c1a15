"""Options in segments: the kernel of pairs is the product, by a second road, and mistakes are named."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.errors import InputError, KernelError

OPTIONS = db.ArmSet(np.linspace(0, 1, 4)[:, None], RBF(0.3))
SEGMENTS = ["mobile", "desktop", "tablet"]


def kernel_of(arms):
    return arms.features @ arms.features.T


MATRIX = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.1], [0.2, 0.1, 1.0]])


@pytest.mark.parametrize(
    ("kernel", "correlation"),
    [
        (None, 0.5 * np.eye(3) + 0.5),
        (0, np.eye(3)),
        (0.25, 0.75 * np.eye(3) + 0.25),
        (1.0, np.ones((3, 3))),
        (MATRIX, MATRIX),
    ],
)
def test_the_kernel_of_pairs_is_the_product(kernel, correlation):
    arms = db.ArmSet.crossed(OPTIONS, SEGMENTS, kernel=kernel)
    assert kernel_of(arms) == pytest.approx(np.kron(correlation, RBF(0.3)(OPTIONS.points)), abs=1e-8)


def test_segments_may_have_points_and_a_kernel():
    segments = db.ArmSet([[0.0], [0.1], [1.0]], RBF(0.5), names=SEGMENTS)
    own = db.ArmSet.crossed(OPTIONS, segments)
    other = db.ArmSet.crossed(OPTIONS, segments, kernel=RBF(2.0))
    number = db.ArmSet.crossed(OPTIONS, segments, kernel=0.3)
    options = RBF(0.3)(OPTIONS.points)
    assert kernel_of(own) == pytest.approx(np.kron(RBF(0.5)(segments.points), options), abs=1e-8)
    assert kernel_of(other) == pytest.approx(np.kron(RBF(2.0)(segments.points), options), abs=1e-8)
    assert kernel_of(number) == pytest.approx(np.kron(0.7 * np.eye(3) + 0.3, options), abs=1e-8)
    assert own.points[5].tolist() == [*OPTIONS.points[1], 0.1]


def test_pairs_have_names_and_can_be_taken_apart():
    named = db.ArmSet.crossed(["red", "blue"], SEGMENTS)
    assert named.names[3] == "blue | desktop"
    assert named.pair(3) == ("blue", "desktop")
    assert db.ArmSet.crossed(OPTIONS, SEGMENTS).pair(9) == ("1", "tablet")
    assert repr(named) == "ArmSet(6 arms: 2 options in 3 segments, rank=6)"
    masks = np.array([named.of(segment) for segment in SEGMENTS])
    assert masks.sum(axis=0).tolist() == [1] * 6
    assert [named.pair(arm)[1] for arm in np.flatnonzero(masks[1])] == ["desktop", "desktop"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: db.ArmSet.crossed(OPTIONS, SEGMENTS).of("mobil"),
            "did you mean 'mobile'.*valid: mobile, desktop, tablet",
        ),
        (lambda: OPTIONS.of("mobile"), "no segments; build them with ArmSet.crossed"),
        (lambda: db.ArmSet.crossed(OPTIONS, SEGMENTS).pair(12), "they run from 0 to 11"),
        (lambda: db.ArmSet.crossed(OPTIONS, SEGMENTS).pair("1 | tablet"), "must be a whole number, got '1 . tablet'"),
        (lambda: db.ArmSet.crossed(OPTIONS, SEGMENTS).pair(None), "must be a whole number, got None"),
        (lambda: db.ArmSet.crossed(OPTIONS, SEGMENTS, kernel=1.5), "from 0 .* to 1 .*got 1.5"),
        (lambda: db.ArmSet.crossed(OPTIONS, SEGMENTS, kernel=RBF()), "needs points of the segments"),
        (lambda: db.ArmSet.crossed(OPTIONS, SEGMENTS, kernel=np.eye(2)), "square of that size"),
        (lambda: db.ArmSet.crossed(OPTIONS, ["a", "a"]), "two arms are called 'a'"),
        (lambda: db.ArmSet.crossed(OPTIONS, "mobile"), "segments must be their names"),
        (lambda: db.ArmSet.crossed(OPTIONS, 3), "segments must be their names"),
        (lambda: db.ArmSet.crossed(db.ArmSet.crossed(OPTIONS, SEGMENTS), SEGMENTS), "crossed with segments already"),
        (lambda: db.ArmSet.crossed(OPTIONS, db.ArmSet.crossed(OPTIONS, SEGMENTS)), "the segments are crossed"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_correlations_that_cannot_be_are_refused():
    with pytest.raises(KernelError, match="not positive semi-definite"):
        db.ArmSet.crossed(OPTIONS, SEGMENTS, kernel=np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1.0]]))


def test_a_fingerprint_knows_options_segments_and_correlation():
    same = [db.ArmSet.crossed(OPTIONS, SEGMENTS, kernel=0.5) for _ in range(2)]
    plain = db.ArmSet.from_features(same[0].features, names=same[0].names, points=same[0].points)
    other = [
        db.ArmSet.crossed(OPTIONS, SEGMENTS, kernel=0.4),
        db.ArmSet.crossed(OPTIONS, ["mobile", "desktop", "watch"], kernel=0.5),
        db.ArmSet.crossed(db.ArmSet(OPTIONS.points, RBF(0.4)), SEGMENTS, kernel=0.5),
        plain,
    ]
    prints = [arms.fingerprint() for arms in (same[0], *other)]
    assert same[0].fingerprint() == same[1].fingerprint()
    assert len(set(prints)) == len(prints)
