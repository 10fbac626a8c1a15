"""The cover of the arms: against Schur complements by hand, and what it promises of changes it does not see."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct

from driftbandits.arms.arm_set import ArmSet
from driftbandits.detection import Detection, detections
from driftbandits.detection.detector import Verdict, kernel_cover


def test_verdict():
    assert Verdict(statistic=2.0, threshold=1.0, arms=(3,)).changed
    assert Verdict(statistic=2.0, threshold=4.0, arms=()).excess == 0.5
    assert not Verdict(statistic=2.0, threshold=4.0, arms=()).changed
    assert Verdict(statistic=2.0, threshold=0.0, arms=(1,)).excess == float("inf")


def test_verdicts_pickle():
    verdict = Verdict(1.0, 0.5, (1,))
    assert pickle.loads(pickle.dumps(verdict)) == verdict  # noqa: S301


def rest_by_hand(kernel, cover):
    """k(x, x) - k(x, C) K_CC^-1 k(C, x)."""
    if not len(cover):
        return kernel.diagonal()
    across = kernel[np.ix_(cover, range(len(kernel)))]
    return kernel.diagonal() - np.einsum("ij,ij->j", across, np.linalg.solve(kernel[np.ix_(cover, cover)], across))


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_every_arm_of_it_is_the_one_of_which_the_others_tell_least(seed, size, wanted):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((size, rng.integers(1, 8)))
    kernel = features @ features.T
    cover = kernel_cover(features, wanted)
    assert len(set(cover.tolist())) == len(cover)
    assert len(cover) == min(wanted, size, features.shape[1])
    for place, arm in enumerate(cover):
        rest = rest_by_hand(kernel, cover[:place])
        assert rest[arm] >= rest.max() - 1e-7 * kernel.diagonal().max()


def test_a_linear_kernel_needs_as_many_arms_as_dimensions():
    points = np.random.default_rng(0).standard_normal((50, 3))
    assert len(kernel_cover(ArmSet(points, DotProduct(0.0)).features, 10)) == 3


def test_duplicates_are_covered_by_one():
    arms = ArmSet([[0.0], [0.0], [1.0], [1.0], [0.0]], RBF(0.1))
    assert kernel_cover(arms.features, 5).tolist() == [0, 2]


def test_ties_go_to_the_first_whatever_rounding_says():
    features = np.eye(6)
    for seed in range(5):
        noisy = features + 1e-13 * np.random.default_rng(seed).standard_normal((6, 6))
        assert kernel_cover(noisy, 4).tolist() == [0, 1, 2, 3]


def test_on_a_line_it_spreads_out():
    arms = ArmSet(np.linspace(0, 1, 101)[:, None], RBF(0.2))
    assert np.abs(arms.points - arms.points[kernel_cover(arms.features, 6)].T).min(axis=1).max() < 0.2


@pytest.mark.parametrize("wanted", [1, 4, 9])
def test_a_change_it_does_not_see_is_small(wanted):
    """|g(x)| <= ||g||_H sqrt(rest(x)) for every g that is 0 on the cover; some g reaches the bound at each arm."""
    arms = ArmSet(np.linspace(0, 1, 40)[:, None], RBF(0.15), tolerance=1e-12)
    cover = kernel_cover(arms.features, wanted)
    rest = rest_by_hand(arms.features @ arms.features.T, cover)
    _, _, directions = np.linalg.svd(arms.features[cover])
    unseen = directions[len(cover) :]  # coefficients of functions that are 0 on the cover
    for coefficients in np.random.default_rng(0).standard_normal((200, len(unseen))) @ unseen:
        change = arms.features @ coefficients
        assert np.abs(change[cover]).max() < 1e-9
        assert (np.abs(change) <= np.linalg.norm(coefficients) * np.sqrt(np.maximum(rest, 0)) + 1e-7).all()
    np.testing.assert_allclose(np.linalg.norm(arms.features @ unseen.T, axis=1) ** 2, rest, atol=1e-8)


def test_every_alarm_is_a_detection_or_false():
    assert detections([], []) == Detection((), 0, 0)
    assert detections([], [10, 20]) == Detection((), 0, 2)
    assert detections([100], []) == Detection((), 1, 0)
    assert detections([100], [90, 130, 150]) == Detection((30,), 0, 2)
    assert detections([100, 200], [250]) == Detection((50,), 1, 0)
    assert detections([100, 200], [200, 201]) == Detection((100, 1), 0, 0)
