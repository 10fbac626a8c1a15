"""What the record of a change says: what was believed before it, what came after, and when it was."""

import numpy as np
import pytest

from driftbandits import CalibratedOPKB, first_detectable_horizon
from driftbandits.errors import InputError
from tests.policies.calibrated.worlds import MEANS, SIZE, belief_of, line


def test_before_is_what_was_believed_before_the_change():
    """A flip in round 40, which may be found in the next block.

    Mean error over 8 runs: 0.39 by all rounds of the epoch, 0.17 by those of earlier blocks, 0.07 by the rounds before
    `interval`.
    """
    wrong = []
    for seed in range(8):
        policy, rng = CalibratedOPKB(line(), seed=seed), np.random.default_rng([seed, 1])
        for t in range(190):
            choice = policy.ask()
            sign = 1 if t < 40 else -1
            policy.tell(choice.id, float(sign * MEANS[choice.arm] + 0.05 * rng.standard_normal()))
            if policy.changes:
                break
        change = policy.changes[0]
        assert change.interval[0] >= 37
        wrong.append(np.abs(np.array(change.before) - MEANS[list(change.arms)]).mean())
    assert np.mean(wrong) < 0.1, wrong


@pytest.mark.parametrize("mode", ["practical", "theory"])
def test_records_are_sound_whenever_the_change_comes(mode):
    for when in (20, 60, 150):
        policy = CalibratedOPKB(line(names=[f"arm {k}" for k in range(SIZE)]), mode=mode, reward_range=(-5, -1))
        rng = np.random.default_rng(when)
        for t in range(when + 100):
            choice = policy.ask()
            sign = 1 if t < when else -1
            policy.tell(choice.id, float(-3 + sign * 2 * MEANS[choice.arm] + 0.1 * rng.standard_normal()))
        assert policy.changes or when == 20  # 20 rounds before it are too few to be sure
        for change in policy.changes:
            assert 0 <= change.interval[0] < change.interval[1] == change.round
            assert len(change.arms) == len(change.before) == len(change.after) == len(change.names) > 0
            assert all(-5 <= value <= -1 for value in change.after)
            assert np.isfinite(change.before).all()
            assert change.statistic >= change.threshold
            assert all(part in str(change) for part in (change.stream, change.names[0][:3], f"round {change.round}"))


def test_a_change_that_is_found_is_not_called_too_small():
    policy, rng = CalibratedOPKB(line()), np.random.default_rng([0, 9])
    for t in range(2000):
        choice = policy.ask()
        policy.tell(choice.id, float(0.6 * MEANS[choice.arm] + 0.04 * (t >= 1000) + 0.1 * rng.standard_normal()))
        if policy.changes:
            break
        if t == 999:
            before = CalibratedOPKB.restore(policy.arms, policy.state_dict())
    assert 1000 < policy.changes[0].round < 1600
    try:
        first_detectable_horizon(before, 0.04)
    except InputError as error:
        pytest.fail(str(error))


@pytest.mark.parametrize(
    "level",
    [0.0, -0.5],
)
def test_whether_the_old_mean_is_kept_does_not_depend_on_the_level(level):
    """The gaps turn over; far from mid-range any mean fits better than 0, so the wrong one is always kept."""
    for seed in range(3):
        policy, rng = CalibratedOPKB(line(), seed=seed), np.random.default_rng([seed, 4])
        for t in range(700):
            choice = policy.ask()
            sign = 1 if t < 500 else -1
            policy.tell(choice.id, float(level + 0.3 * sign * MEANS[choice.arm] + 0.05 * rng.standard_normal()))
            if policy.changes:
                break
        assert policy.changes[0].round > 500
        assert not belief_of(policy).follows
