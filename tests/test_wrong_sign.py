"""The script that shows what the wrong sign does: its regression against the one written out, with and without it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from benchmarks.wrong_sign import LAMBDA, ROWS, SCALE, WindowAsCoded, betas, our_policy, play
from reproduction.catalogue import GPUCB_PUBLISHED_SETTINGS

ARMS = db.ArmSet(np.random.default_rng(0).random((12, 2)), RBF(0.5))
KERNEL = ARMS.features @ ARMS.features.T
WINDOW = 20


def history(rounds):
    rng = np.random.default_rng(1)
    return list(zip(rng.integers(len(ARMS), size=rounds).tolist(), rng.uniform(-1, 1, rounds).tolist(), strict=True))


def taught(rounds, *, wrong_sign):
    policy = WindowAsCoded(KERNEL, window=WINDOW, wrong_sign=wrong_sign)
    for arm, reward in history(rounds):
        policy.learn(arm, reward)
    return policy


def written_out(rounds):
    """Mean and Phi W^-1 Phi' of ridge regression on the window, W with the ridge 1 / lambda."""
    seen = history(rounds)[-WINDOW:]
    played = ARMS.features[[arm for arm, _ in seen]]
    inverse = np.linalg.inv(played.T @ played + np.eye(ARMS.rank) / LAMBDA)
    mean = ARMS.features @ inverse @ played.T @ np.array([reward for _, reward in seen])
    return mean, ARMS.features @ inverse @ ARMS.features.T


@pytest.mark.parametrize("rounds", [1, WINDOW, 3 * WINDOW])
def test_with_the_right_sign_it_is_regression_on_the_window(rounds):
    policy = taught(rounds, wrong_sign=False)
    mean, relation = written_out(rounds)
    np.testing.assert_allclose(policy.relation, relation, atol=1e-8)
    expected = mean + SCALE * 3.0 * np.sqrt(LAMBDA * relation.diagonal())
    np.testing.assert_allclose(policy.index(3.0), expected, atol=1e-8)


def test_with_the_right_sign_it_is_our_policy():
    """lambda 20 and v 0.01 of theirs are ridge 0.05 and scale 0.2 of ours, at the same beta."""
    rounds = 3 * WINDOW
    ours = db.SlidingWindowGPUCB(ARMS, horizon=rounds + 1, window=WINDOW, ridge=1 / LAMBDA, scale=0.2, beta=3.0)
    for arm, reward in history(rounds):
        ours.tell(ours.ask(allowed=[arm]).id, reward)
    np.testing.assert_allclose(taught(rounds, wrong_sign=False).index(3.0), ours._index(), atol=1e-8)


def test_the_wrong_sign_matters_once_the_window_is_full_and_shrinks_all_that_is_believed():
    assert (taught(WINDOW, wrong_sign=True).relation == taught(WINDOW, wrong_sign=False).relation).all()
    wrong, right = taught(3 * WINDOW, wrong_sign=True), taught(3 * WINDOW, wrong_sign=False)
    np.testing.assert_array_equal(wrong.sums, right.sums)
    assert (wrong.relation.diagonal() < right.relation.diagonal()).all()
    assert np.median(wrong.relation.diagonal() / right.relation.diagonal()) < 0.7


def test_taking_away_what_was_just_added_changes_nothing_unless_the_sign_is_wrong():
    """One arm, k = lambda: adding leaves k / (1 + k); the wrong sign then gives back 1.4 of 20."""
    k = LAMBDA
    for wrong_sign, left in ((False, k), (True, k * (1 + 3 * k) / ((1 + k) * (1 + 2 * k)))):
        lone = WindowAsCoded(np.eye(1), window=0, wrong_sign=wrong_sign)
        lone.learn(0, 0.5)
        assert lone.relation.item() == pytest.approx(left)
        assert lone.sums.item() == 0.0


def test_betas_are_their_formula_at_powers_of_two_and_straight_between():
    gains = {rounds: 0.5 * db.information_gain(ARMS, horizon=rounds, sigma=LAMBDA) for rounds in (16, 32)}
    for rounds, gain in ((16, gains[16]), (20, 0.75 * gains[16] + 0.25 * gains[32])):
        expected = 1 + np.sqrt(2 * (gain / 2 + 1 + np.log(1e4)))
        assert betas(ARMS, WINDOW)[rounds - 1] == pytest.approx(expected)


def test_ours_is_played_with_the_settings_of_the_study():
    ours = our_policy(ARMS, 100, seed=0, window=WINDOW)
    assert (ours.ridge, ours.scale) == (GPUCB_PUBLISHED_SETTINGS["ridge"], GPUCB_PUBLISHED_SETTINGS["scale"])
    assert ours.beta == "ridge"


def test_after_two_switches_the_wrong_sign_costs_more_than_anything_else_in_which_they_differ():
    """The page's table on two seeds: the total over both, so that neither the luck of one decides."""
    worlds = [db.environments.create("switching/2", seed=seed) for seed in (0, 1)]
    total = {row: sum(play(row, world, seed=seed) for seed, world in enumerate(worlds)) for row in ROWS}
    assert total["ours"] == pytest.approx(total["sign corrected"], rel=0.25)
    assert total["as coded"] > 1.4 * max(total["ours"], total["sign corrected"])
