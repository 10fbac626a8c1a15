"""The lemmas on ADA-OPKB's test: what replays see, no false alarm, and that a change that costs much is found.

With the constants of the theory, which need billions of rounds for this (`SampledEpoch`). Event 1 is checked in each
epoch, and all lemmas are certain where it holds: no error rates.
"""

from __future__ import annotations

import numpy as np
import pytest

from driftbandits.detection.gaps import gaps
from tests.lemmas.sampled_epoch import FEATURES, FIRST, SampledEpoch, new_epoch

LAST = 18  # the block in which a flip can be found by theory: D1 mu_18 = 1.0 is below the largest gap of 1.9


def event_1(epoch, blocks):
    return all(epoch.holds(one) for one in (*epoch.so_far, *(one for block in blocks for one in block)))


def flip():
    """Steady through 18 blocks; then all rewards change their sign."""
    epoch = new_epoch(0)
    return epoch, [epoch.play_block({0: -FIRST} if block == LAST else None) for block in range(LAST + 1)]


def turn():
    """The reward function turns in the middle of block 12, and four more blocks follow."""
    epoch = new_epoch(10)
    turned = {2**11: FEATURES @ np.array([-0.4, 0.9])}
    return epoch, [epoch.play_block(turned if block == 12 else None) for block in range(17)]


@pytest.fixture(scope="module")
def runs():
    """Epochs under Event 1 with their replays by block."""
    played = {"flip": flip(), "turn": turn()}
    assert all(event_1(*run) for run in played.values())
    return played


@pytest.mark.parametrize("name", ["flip", "turn"])
def test_gaps_of_replays_under_event_1(runs, name):
    """Lemma "for any x and replay interval (m, I)": gap and estimate <= 2 (the other) + c0 mu_m + 4 V_[tau, t]."""
    epoch, blocks = runs[name]
    for replay in (one for block in blocks for one in block):
        slack = epoch.levels.c0 * epoch.levels.level(replay.index) + 4 * replay.variation
        assert (replay.gaps <= 2 * replay.estimated_gaps + slack).all()
        assert (replay.estimated_gaps <= 2 * replay.gaps + slack).all()


@pytest.mark.parametrize("name", ["flip", "turn"])
def test_gaps_of_replays_that_trigger_no_restart(runs, name):
    """Lemma "if no restart is triggered by this replay": each is <= 2 (the other) + 4 c0 mu_m, whatever V is."""
    epoch, blocks = runs[name]
    informative = 0
    for block, replays in enumerate(blocks):
        for replay in replays:
            slack = epoch.threshold(replay.index)  # 4 c0 mu_m
            if slack < 2.0 and not epoch.fires(replay, block):
                informative += 1
                assert (replay.estimated_gaps <= 2 * replay.gaps + slack).all()
                assert (replay.gaps <= 2 * replay.estimated_gaps + slack).all()
    assert informative >= 20  # with larger slack there is nothing to show: gaps are at most 2


@pytest.mark.parametrize("seed", range(2))
def test_no_restart_while_the_variation_is_below_mu(seed):
    """Lemma "If V_[tau, t] <= mu_[tau, t], then no restart is triggered in [tau, t]": a drift that uses up nearly all.

    17 blocks, 2^17 - 1 first blocks long: V = 0.99 mu, spread over all blocks. The thresholds of the last replays are
    far below the largest gap, so that silence says something (the next test has an alarm).
    """
    epoch, count = new_epoch(20 + seed), 17
    mu = epoch.level_of(2**count - 1)
    direction = FEATURES @ np.array([-0.6, 0.8])
    whole = 0.99 * mu * direction / np.abs(direction).max()
    blocks = [epoch.play_block({0: FIRST + whole * block / count}) for block in range(1, count + 1)]
    assert 0.98 * mu < epoch.variation <= mu
    assert event_1(epoch, blocks)
    assert not any(epoch.fires(replay, block) for block, replays in enumerate(blocks) for replay in replays)
    assert epoch.threshold(count - 1) < 0.25 * blocks[-1][-1].gaps.max()


def test_a_costly_change_is_found_by_every_replay_of_the_right_index(runs):
    """Lemma "there exists an index m* ... any replay interval of index m* with I in J triggers a restart", J = B(18).

    V_J <= mu_J (nothing changes inside) and the excess regret zeta_J exceeds D1 mu_J, D1 = 25 c0.
    """
    epoch, (*before, replays) = runs["flip"]
    whole, D1 = replays[-1], 25 * epoch.levels.c0
    zeta = float((whole.gaps - 8 * gaps(epoch.so_far[LAST - 1].estimate)).max())
    assert zeta > D1 * epoch.levels.level(LAST)
    indices = [m for m in range(LAST + 1) if D1 * epoch.levels.level(m + 1) < zeta <= D1 * epoch.levels.level(m)]
    assert len(indices) == 1
    right = indices[0]
    assert 2**right < 2**LAST
    found = [replay for replay in replays if replay.index == right]
    assert found  # the coins of these seeds replay it
    assert all(epoch.fires(replay, LAST) for replay in found)
    # longer replays see smaller changes, so they find it too; short ones cannot, and nothing fired before the change
    assert all(epoch.fires(replay, LAST) for replay in replays if replay.index >= right)
    assert not any(epoch.fires(replay, LAST) for replay in replays if epoch.threshold(replay.index) > 2.0)
    assert not any(epoch.fires(replay, block) for block, ones in enumerate(before) for replay in ones)


def epochs_of(means_at, slots, *, strictness=1.0):
    """How many epochs ADA-OPKB has in so many slots of E rounds of means `means_at(slot)`, thresholds divided."""
    clock = number = 0
    while clock < slots:
        epoch, number, block = new_epoch(30 + number, means=means_at(clock)), number + 1, 0
        while clock < slots:
            here = range(clock, clock + 2**block)
            moves = {slot - clock: means_at(slot) for slot in here if (means_at(slot) != means_at(slot - 1)).any()}
            replays = epoch.play_block(moves)
            fired = [replay.slots[1] for replay in replays if epoch.fires(replay, block, strictness=strictness)]
            clock += min(fired, default=2**block)
            block += 1
            if fired:
                break
    return number


def flip_at(flip):
    return lambda slot: FIRST if slot < flip else -FIRST


def slide(first, last, origin, target):
    """From `origin` to `target` in equal steps, one in each of the slots `first` to `last` - 1."""
    return lambda slot: origin + (target - origin) * np.clip((slot + 1 - first) / (last - first), 0.0, 1.0)


def test_number_of_epochs_is_at_most_that_of_segments():
    """Lemma "The number of epochs H ... is bounded by min {L_T, ...}": one flip, two segments, two epochs."""
    assert epochs_of(flip_at(2**15), slots=2**16) == 2
    assert epochs_of(flip_at(2**16), slots=2**15) == 1


def most_epochs(variation, slots):
    """The lemma's (gamma log(C0 N / delta) / 2)^(-1/3) V^(2/3) T^(1/3) + 1: with T = slots E, E = 4 gamma log(...)."""
    epoch = new_epoch(0)
    rounds = slots * epoch.levels.block_size
    return (epoch.gamma * epoch.log_term / 2) ** (-1 / 3) * variation ** (2 / 3) * rounds ** (1 / 3) + 1


def test_number_of_epochs_where_rewards_drift():
    """The other half of the bound, V^(2/3) T^(1/3): thousands of segments, of which one epoch or two are made.

    A turn to the opposite over 1,024 slots is found and costs a restart; a thousandth of it is not, though no arm is
    better than another at first. With thresholds a thousandth as high there are more epochs than the lemma allows.
    """
    slots, segments = 2**16, 2**10
    variation = 2 * np.abs(FIRST).max()
    turning = epochs_of(slide(2**15, 2**15 + segments, FIRST, -FIRST), slots=slots)
    assert 2 <= turning <= most_epochs(variation, slots) < segments
    creeping = slide(0, segments, 0 * FIRST, 1e-3 * FIRST)
    allowed = most_epochs(1e-3 * variation / 2, segments)
    assert epochs_of(creeping, slots=segments) <= allowed < 2
    assert epochs_of(creeping, slots=segments, strictness=1000.0) > 4 * allowed


@pytest.mark.parametrize(("horizon", "found"), [(40_000_000, 27_670_887), (4_000_000, None)])
def test_when_the_theory_finds_a_flip_of_two_opposite_arms(horizon, found):
    """The run of `examples/theory_finds_a_change.py`, and one a tenth as long in which no threshold is below 2.

    All rewards change their sign after 45 % of the rounds: found when block 13 ends, which no coin and no noise moves.
    """
    means = np.array([0.9, -0.9])
    for seed in range(3):
        epoch = SampledEpoch(
            np.array([[1.0], [-1.0]]), means, horizon=horizon, seed=seed, sigma=100.0, failure_probability=1e-4
        )
        size, block, clock, fired = epoch.levels.block_size, 0, 0, []
        while (2 ** (block + 1) - 1) * size <= horizon and not fired:
            here = round(0.45 * horizon / size) - clock
            replays = epoch.play_block({here: -means} if 0 <= here < 2**block else None)
            fired = [(clock + replay.slots[1]) * size for replay in replays if epoch.fires(replay, block)]
            clock, block = clock + 2**block, block + 1
        assert min(fired, default=None) == found


def test_with_theory_constants_nothing_is_found_at_usual_horizons():
    """Why all this takes billions of rounds: at 10,000 the thresholds are above any gap."""
    epoch = new_epoch(0, horizon=10_000)
    last = int(np.log2(10_000 / epoch.levels.block_size + 1))
    assert epoch.threshold(last) > 2.0
