"""A saved CalibratedOPKB goes on bit for bit, wherever it stood."""

import math

import numpy as np
import pytest

from driftbandits import CalibratedOPKB
from driftbandits.errors import StateError
from tests.policies.calibrated.worlds import MEANS, MODES, as_text, detector_of, line, play, reward_of, to_look

TOLD_APART = ("version", "delays", "history")  # which say how rewards were told


def to_block_0(policy):
    play(policy, 7)


def to_replay(policy):
    for _ in range(3000):
        play(policy, 1, means=0.1 * MEANS)
        if policy._index() < policy._schedule.block and policy._position > 2:
            return
    pytest.fail("no replay")


def to_pending(policy):
    play(policy, 100)
    waiting = [policy.ask() for _ in range(45)]
    for choice in waiting[::3]:
        policy.tell(choice.id, reward_of(policy, choice, MEANS, 0.1, 0))
    assert policy.pending == 30


def to_alarm_with_pending(policy):
    play(policy, 400)
    waiting = [policy.ask() for _ in range(60)]
    for choice in waiting:
        policy.tell(choice.id, reward_of(policy, choice, -MEANS, 0.05, 0))
        if detector_of(policy).fired:
            break
    assert detector_of(policy).fired
    assert policy.pending > 0
    assert policy.changes == ()  # it is for the next ask


MOMENTS = {f.__name__: f for f in (to_block_0, to_replay, to_look, to_pending, to_alarm_with_pending)}
CASES = [(moment, mode) for moment in MOMENTS for mode in MODES if (moment, mode) != ("to_look", "theory")]


@pytest.mark.parametrize(("moment", "mode"), CASES)
@pytest.mark.parametrize("kernel", ["auto", "given"])
def test_a_restored_policy_goes_on_bit_for_bit(moment, mode, kernel, tmp_path):
    arms = line()
    policy = CalibratedOPKB(arms, mode=mode, kernel=kernel, seed=2)
    MOMENTS[moment](policy)
    policy.save(tmp_path / "state")
    copies = [policy, CalibratedOPKB.restore(arms, policy.state_dict()), CalibratedOPKB.load(arms, tmp_path / "state")]
    assert len({as_text(copy) for copy in copies}) == 1
    open_rounds = policy.state_dict()["pending"]["id"].tolist()
    played = []
    for copy in copies:
        choices = play(copy, 40, seed=5)
        for ident in open_rounds[::2]:
            copy.tell(ident, 0.3 * math.cos(ident))
        choices += play(copy, 150, seed=5)
        choices += play(copy, 60, means=-MEANS, seed=5)
        played.append((choices, copy.changes, copy.law().tolist(), as_text(copy)))
    assert played[0] == played[1]
    assert played[0] == played[2]
    assert policy.changes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("changed", [False, True])
def test_one_by_one_is_the_same_as_together(mode, changed):
    arms = line()
    policy = CalibratedOPKB(arms, mode=mode, seed=6)
    play(policy, 250)
    batch = policy.ask(size=60)
    draws = np.random.default_rng(1).standard_normal(60)
    rewards = np.clip((-MEANS if changed else MEANS)[batch.arms] + 0.1 * draws, -1, 1)
    copies = [CalibratedOPKB.restore(arms, policy.state_dict()) for _ in range(2)]
    copies[0].tell(batch.ids, rewards)
    for ident, reward in zip(batch.ids.tolist(), rewards.tolist(), strict=True):
        copies[1].tell(ident, reward)
    assert as_text(copies[0], *TOLD_APART) == as_text(copies[1], *TOLD_APART)
    assert bool(copies[0].changes) == changed
    assert play(copies[0], 100) == play(copies[1], 100)


@pytest.mark.parametrize("value", [None, 5, 1.5])
def test_a_replay_that_is_no_list_is_refused(value):
    policy = CalibratedOPKB(line())
    policy.ask()
    state = policy.state_dict()
    state["engine"]["open"][0]["replay"] = value
    with pytest.raises(StateError):
        CalibratedOPKB.restore(policy.arms, state)


def test_one_state_can_be_restored_twice():
    """Copies share nothing: wealth is multiplied in place."""
    policy, rng = CalibratedOPKB(line()), np.random.default_rng(1)
    for _ in range(80):
        choice = policy.ask()
        policy.tell(choice.id, float(MEANS[choice.arm] + 0.1 * rng.standard_normal()))
    state, played = policy.state_dict(), []
    for _ in range(2):
        copy, noise = CalibratedOPKB.restore(policy.arms, state), np.random.default_rng(9)
        for _ in range(40):
            choice = copy.ask()
            copy.tell(choice.id, float(0.1 * noise.standard_normal()))
        played.append([(arm, m.evidence) for arm, m in detector_of(copy)._arms.items()])
    assert played[0] == played[1]
