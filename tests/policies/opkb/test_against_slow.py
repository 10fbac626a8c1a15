"""ADA-OPKB and OPKB against the slow second implementation of `slow.py`, restart for restart."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from driftbandits import OPKB, AdaOPKB, ArmSet, Constants, Variant
from tests.policies.opkb.slow import SlowAdaOPKB, side_by_side, world


def play_both(
    *,
    seed,
    horizon,
    constants,
    variant,
    kind=AdaOPKB,
    switches=4,
    size=9,
    reward_range=(-1.0, 1.0),
    late=False,
    masks=False,
):
    """Play the engine and the slow one side by side, round by round, comparing all the way."""
    arms = ArmSet(np.linspace(0, 1, size)[:, None], kernel=RBF(0.25))
    slow = SlowAdaOPKB(arms.features @ arms.features.T, horizon, constants, variant, seed, watches=kind.reports_changes)
    policy = kind(arms, horizon=horizon, seed=seed, constants=constants, variant=variant, reward_range=reward_range)
    rng = np.random.default_rng(seed)
    side_by_side(policy, slow, world(rng, arms, horizon, switches), rng, late=late, masks=masks)
    return policy, slow


QUICK = {"sigma": 1.0, "failure_probability": 1e-2, "c1": 0.5, "c4": 0.5}
PAPER = Constants(**QUICK, c0=1.3, c2=0.3, c3=0.015)  # E = 8


def test_paper_variant_agrees_restart_for_restart():
    runs = [
        play_both(seed=seed, horizon=1200, constants=PAPER, variant=Variant.paper())[1] for seed in (5, 7, 10, 11, 12)
    ]
    found = [f for slow in runs for f in slow.found]
    assert len(found) >= 15  # or the agreement says little
    assert sum(slow.tests for slow in runs) > 5 * len(found)
    assert any(f.index == f.block for f in found)  # a whole block, a shortest replay, and what lies between
    assert any(f.index == 0 < f.block for f in found)
    assert any(0 < f.index < f.block for f in found)
    assert any(f.compared_with < f.block - 1 for f in found)
    assert {f.epoch for f in found} >= {0, 1, 2, 3}


def test_published_variant_agrees_restart_for_restart():
    """Replays and comparisons from index 4 on, mean level, the whole block not tested; E = 1."""
    constants = Constants(**QUICK, c0=2.2, c2=0.5, c3=0.002)
    runs = [
        play_both(seed=seed, horizon=1200, constants=constants, variant=Variant.published())[1] for seed in range(4)
    ]
    found = [f for slow in runs for f in slow.found]
    assert len(found) >= 12
    assert {f.index for f in found} >= {4, 5, 6}
    assert all(4 <= f.index < f.block and f.compared_with >= 4 for f in found)
    assert any(f.index != f.compared_with for f in found)  # where the two threshold rules differ


def test_any_variant_in_any_units_agrees_restart_for_restart():
    """Round by round without masks, so half of the rewards take the path of plain numbers, with range and scale."""
    variant = Variant(share=0.3, lowest_index=1, threshold="mean_level", test_block=True)
    constants = Constants(**QUICK, c0=0.9, c2=0.3, c3=0.015, scale=1.7)
    runs = [
        play_both(seed=seed, horizon=1200, constants=constants, variant=variant, reward_range=(-3.0, 1.0))[1]
        for seed in (1, 2, 3)
    ]
    assert sum(len(slow.found) for slow in runs) >= 6


def test_late_missing_and_masked_rounds_agree_restart_for_restart():
    """Rewards late, out of order or never, masks, a reward range and a scale of the theory, all at once."""
    constants = Constants(**QUICK, c0=0.7, c2=0.3, c3=0.015, scale=1.7)
    runs = [
        play_both(
            seed=seed,
            horizon=1200,
            constants=constants,
            variant=Variant.paper(),
            reward_range=(0.0, 10.0),
            late=True,
            masks=True,
        )[1]
        for seed in (4, 6, 8, 12)
    ]
    assert sum(len(slow.found) for slow in runs) >= 8
    assert min(slow.tests for slow in runs) >= 20
    assert min(slow.untested for slow in runs) >= 20  # below 90 % told
    assert sum(slow.late for slow in runs) >= 20  # from closed epochs


def test_opkb_is_the_same_without_replays_and_tests():
    for seed in (0, 1):
        policy, slow = play_both(seed=seed, horizon=800, constants=PAPER, variant=Variant(share=0.7), kind=OPKB)
        assert policy.changes == ()
        assert len(slow.laws) >= 6
