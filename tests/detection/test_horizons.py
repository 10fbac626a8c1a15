"""first_detectable_horizon: how long a run must be before a change can be found."""

import math
from functools import partial

import numpy as np
import pytest

from driftbandits import OPKB, AdaOPKB, ArmSet, AutoBandit, CalibratedOPKB, Constants, first_detectable_horizon
from driftbandits.errors import InputError
from tests.policies.opkb.worlds import MEANS, MODES, as_text, line, play


def test_the_constants_of_the_proofs_find_nothing_within_ten_million_rounds():
    policy = AdaOPKB(line(), constants=Constants.theory(bound=1.0, noise=1.0))
    assert first_detectable_horizon(policy) > 10_000_000


def test_calibrated_needs_few_rounds():
    for mode in MODES:
        policy = CalibratedOPKB(line(), mode=mode)
        play(policy, 200)
        assert first_detectable_horizon(policy, 1.0) < 100


@pytest.mark.parametrize("make", [AdaOPKB, CalibratedOPKB, partial(CalibratedOPKB, mode="theory")])
def test_smaller_changes_need_longer_horizons(make):
    policy = make(line())
    if not isinstance(policy, AdaOPKB):
        play(policy, 200)
    sizes = [0.2, 0.4, 0.8, 1.6]
    needed = [first_detectable_horizon(policy, size) for size in sizes]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[-1]


def test_the_size_is_in_the_units_of_the_rewards_and_by_default_half_the_range():
    narrow, wide = AdaOPKB(line()), AdaOPKB(line(), reward_range=(0.0, 10.0))
    assert first_detectable_horizon(wide, 5.0) == first_detectable_horizon(narrow, 1.0)
    assert first_detectable_horizon(wide) == first_detectable_horizon(narrow) == first_detectable_horizon(narrow, 1.0)


def test_the_policy_is_not_changed_and_its_horizon_does_not_matter():
    policy = AdaOPKB(line(), horizon=500)
    before = as_text(policy)
    assert first_detectable_horizon(policy, 1.0) == first_detectable_horizon(AdaOPKB(line()), 1.0)
    assert as_text(policy) == before


@pytest.mark.parametrize("make", [OPKB, AutoBandit])
def test_policies_without_a_test_are_refused(make):
    with pytest.raises(InputError, match=make.__name__):
        first_detectable_horizon(make(line()))


@pytest.mark.parametrize("size", [0, -1.0, math.nan, "x", True])
def test_sizes_that_are_none_are_refused(size):
    with pytest.raises(InputError) as caught:
        first_detectable_horizon(CalibratedOPKB(line()), size)
    assert repr(size) in str(caught.value)


def test_a_change_too_small_for_any_horizon_is_refused():
    with pytest.raises(InputError, match="too small"):
        first_detectable_horizon(AdaOPKB(line()), 1e-9)


def test_a_change_below_every_threshold_is_never_found():
    """Noiseless rewards of four arms that have nothing to do with each other, all the same until one loses `size`.

    0.2 needs more than ten times the horizon of 3,000, within which no threshold below 0.7 is reached: room for what
    IPS is wrong by. A gap of 2 needs less than the horizon, and is found.
    """
    arms = ArmSet.from_features(np.eye(4))
    constants = Constants(sigma=1.0, c0=0.5, c1=0.5, c2=0.5, c3=1.0, c4=0.1)
    assert first_detectable_horizon(AdaOPKB(arms, constants=constants), 0.2) > 10 * 3000
    assert first_detectable_horizon(AdaOPKB(arms, constants=constants), 0.7) > 3000
    assert first_detectable_horizon(AdaOPKB(arms, constants=constants), 2.0) < 3000
    for seed in range(3):
        for low, high, found in ((-0.1, 0.1, False), (-1.0, 1.0, True)):
            policy = AdaOPKB(arms, horizon=3000, seed=seed, constants=constants)
            play(policy, 1500, means=np.full(4, high), noise=0.0)
            assert policy.changes == ()
            play(policy, 1500, means=np.array([low, high, high, high]), noise=0.0)
            assert bool(policy.changes) == found


@pytest.mark.parametrize("size", [0.4, 0.8])
def test_calibrated_finds_changes_within_the_rounds_it_says(size):
    """All arms move by 2 and 4 standard deviations; found in at least 7 of 8 runs.

    A second look plays one arm alone, and a level that rises may look like its promise: in one run it is found later.
    """
    found = []
    for seed in range(8):
        policy = CalibratedOPKB(line(), seed=seed, reward_range=(-2.0, 2.0))
        play(policy, 500, noise=0.2, seed=seed)
        assert policy.changes == ()
        needed = first_detectable_horizon(policy, size)
        play(policy, needed, means=MEANS + size, noise=0.2, seed=seed)
        found += [change.round - 500 for change in policy.changes[:1]]
    assert len(found) >= 7
    assert min(found) > needed / 10  # nor is it far too careful
