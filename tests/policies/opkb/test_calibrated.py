"""CalibratedOPKB as users meet it: settings, laws, blocks, changes.

What the record of a change says: what was believed before it, what came after, and when it was.

A saved CalibratedOPKB goes on bit for bit, wherever it stood.
"""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, CalibratedOPKB, first_detectable_horizon, solve_design
from driftbandits.errors import InputError, StateError
from driftbandits.policies.opkb.closed_forms import PracticalConstants
from driftbandits.testing import POLICY_CHECKS
from tests.policies.opkb.worlds import (
    MEANS,
    MODES,
    SIZE,
    as_text,
    belief_of,
    detector_of,
    epoch_of,
    levels_of,
    line,
    play,
    reward_of,
    to_look,
)


def conformance():
    for settings in ({"mode": "theory"}, {"kernel": "given"}):
        for check in POLICY_CHECKS:
            yield pytest.param(check, settings, id=f"{check.__name__}-{settings}")


@pytest.mark.parametrize(("check", "settings"), list(conformance()))
def test_conforms(check, settings):
    check(partial(CalibratedOPKB, **settings))


# --- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 0.0, 1, 1.5, -1, math.nan, math.inf, "x", "0.1", True, None])
def test_a_false_alarm_that_is_no_probability_is_refused(value):
    with pytest.raises(InputError) as caught:
        CalibratedOPKB(line(), false_alarm=value)
    assert "false_alarm" in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("name", ["mode", "kernel"])
@pytest.mark.parametrize("value", ["fast", "", None, 3, RBF(0.1), ["auto"]])
def test_unknown_modes_and_kernels_are_refused(name, value):
    with pytest.raises(InputError) as caught:
        CalibratedOPKB(line(), **{name: value})
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)


def test_settings_are_shown():
    shown = repr(CalibratedOPKB(line(), false_alarm=0.02, mode="theory", kernel="given"))
    assert "false_alarm=0.02, mode='theory', kernel='given'" in shown


@pytest.mark.parametrize("mode", MODES)
def test_no_horizon_is_needed_and_nothing_starts_anew_without_one(mode):
    """Beyond 1,024 rounds, where policies that need one would."""
    policy = CalibratedOPKB(line(), mode=mode)
    assert policy.horizon is None
    play(policy, 1100, noise=0.0)
    assert policy.changes == ()
    assert epoch_of(policy).number == 0
    assert sum(block.told for block in epoch_of(policy).blocks) == 1100
    assert np.abs(policy.estimate() - MEANS).max() < 0.15


@pytest.mark.parametrize("mode", MODES)
def test_a_horizon_only_ends_the_run(mode):
    free, bound = CalibratedOPKB(line(), mode=mode), CalibratedOPKB(line(), mode=mode, horizon=150)
    assert play(free, 150) == play(bound, 150)


ODD = {
    "matrix": ArmSet(np.zeros((8, 1)), np.exp(-np.abs(np.subtract.outer(np.arange(8), np.arange(8))))),
    "features": ArmSet.from_features(np.eye(8)[:, ::-1]),
    "one without features": ArmSet.from_features(np.vstack([np.eye(7), np.zeros(7)])),
    "all columns constant": ArmSet(np.ones((8, 2)), RBF(1.0)),
    "identical points": ArmSet(np.repeat([[0.0], [1.0], [2.0], [3.0]], 2, axis=0), RBF(0.5)),
    "one": ArmSet([[0.5]]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", ["auto", "given"])
@pytest.mark.parametrize("arms", ODD.values(), ids=ODD)
def test_odd_arms_are_played(arms, kernel, mode):
    policy = CalibratedOPKB(arms, kernel=kernel, mode=mode)
    play(policy, 100)
    assert policy.law().sum() == pytest.approx(1.0)
    assert np.isfinite(policy.estimate()).all()


# --- laws and blocks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_law_adds_up_and_is_the_one_recorded(mode):
    policy = CalibratedOPKB(line(), mode=mode, seed=4)
    for t in range(400):
        law = policy.law()
        assert law.sum() == pytest.approx(1.0, abs=1e-12)
        assert (law >= 0).all()
        choice = policy.ask()
        assert choice.probability == law[choice.arm]
        sign = 1 if t < 200 else -1
        policy.tell(choice.id, reward_of(policy, choice, sign * MEANS, 0.1, 0))
    assert policy.changes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", ["auto", "given"])
def test_blocks_double_where_nothing_surprises(mode, kernel):
    policy = CalibratedOPKB(line(), mode=mode, kernel=kernel)
    policy.law()
    size, begun = levels_of(policy).block_size, []
    for t in range(16 * size):
        blocks = len(epoch_of(policy).laws)
        choice = policy.ask()
        assert choice.law >= 0  # no look
        if len(epoch_of(policy).laws) > max(blocks, len(begun)) or not begun:
            begun.append(t)
        policy.tell(choice.id, 0.0)
        if len(epoch_of(policy).laws) > len(begun):
            begun.append(t + 1)
    assert policy.changes == ()
    assert begun == [size * (2**j - 1) for j in range(len(begun))]
    assert len(begun) == 5


def residual_ips(features, regulariser, laws, baselines, log):
    """By its definition, round by round: log has (law, arm, reward)."""
    estimates = []
    for law, arm, reward in log:
        S = features.T @ (laws[law][:, None] * features) + regulariser * np.eye(features.shape[1])
        weights = features @ np.linalg.solve(S, features[arm])
        estimates.append(baselines[law] + weights * (reward - baselines[law][arm]))
    return np.mean(estimates, axis=0)


def test_the_laws_of_theory_mode_are_op_on_residual_ips_mixed_with_the_design():
    """Blocks 1 to 3, each from what was told before it; the mixing share by the bound that it must keep."""
    arms = line()
    policy = CalibratedOPKB(arms, mode="theory", kernel="given", seed=5)
    features, log, checked = arms.features, [], 0
    policy.law()
    while len(epoch_of(policy).laws) < 4:
        blocks = len(epoch_of(policy).laws)
        choice = policy.ask()
        reward = reward_of(policy, choice, MEANS, 0.1, 3)
        log.append((choice.law, choice.arm, reward))
        policy.tell(choice.id, reward)
        assert policy.changes == ()
        if len(epoch_of(policy).laws) == blocks:
            continue
        levels, epoch = levels_of(policy), epoch_of(policy)
        estimate = residual_ips(features, levels.regulariser, epoch.laws, epoch.baselines, log)
        np.testing.assert_allclose(policy.estimate(), estimate, atol=1e-8)
        gap = estimate.max() - estimate
        design = solve_design(features, regulariser=levels.regulariser).probabilities
        beta = levels.dimension / levels.width
        # OP's objective is gap'P - (2 / beta) log det S(P); the solver's is costs'P - log det S(P)
        best = solve_design(features, costs=gap * beta / 2, regulariser=levels.regulariser).probabilities
        good = gap <= 2 * levels.width
        spread = solve_design(features, candidates=good, regulariser=levels.regulariser).probabilities
        answer = (best + spread) / 2
        length = levels.block_size * 2**blocks

        def heaviest(share, answer=answer, design=design, regulariser=levels.regulariser):
            mixed = (1 - share) * answer + share * design
            S = features.T @ (mixed[:, None] * features) + regulariser * np.eye(features.shape[1])
            return np.abs(features @ np.linalg.solve(S, features.T)).max()

        allowed = math.sqrt(length * levels.dimension)
        shares = np.linspace(0, 1, 1001)
        share = next(share for share in shares if heaviest(share) <= allowed)
        np.testing.assert_allclose(epoch.laws[-1], (1 - share) * answer + share * design, atol=2e-3 if share else 1e-4)
        checked += 1
    assert checked == 3


def test_block_0_plays_the_optimal_design_of_the_finest_kernel():
    policy = CalibratedOPKB(line(), mode="theory")
    law = policy.law()
    design = solve_design(belief_of(policy).first, regulariser=levels_of(policy).regulariser).probabilities
    np.testing.assert_allclose(law, design, atol=1e-6)


# --- changes ----------------------------------------------------------------------------------------------------


CHANGES = {"flip": -MEANS, "level": MEANS + 0.4}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["flip", "level"])
def test_a_change_is_found_and_recorded(kind, mode):
    """5 runs, change in round 500: all found within 60 rounds, with the beginning within 40 in all but one at most.

    Of 160 runs on other seeds, 40 per case, 4 fell short: 2 alarms before the change (theory mode; 10 % are allowed),
    one beginning 107 rounds off (it is a round in which the arm that fired was played), one estimate whose best arm is
    another. So a case fails for 10 % of fresh seeds.
    """
    off = 0
    for seed in range(5):
        policy = CalibratedOPKB(line(names=[f"a{k}" for k in range(SIZE)]), mode=mode, seed=seed)
        play(policy, 500, seed=seed)
        assert policy.changes == (), f"seed {seed}"
        block = len(epoch_of(policy).laws) - 1
        play(policy, 60, means=CHANGES[kind], seed=seed)
        assert policy.changes, f"seed {seed}"
        change = policy.changes[0]
        assert change.round <= 560
        off += abs(change.interval[0] - 500) > 40
        assert change.interval[1] == change.round
        assert change.epoch == 0
        assert change.block >= block
        assert change.statistic >= change.threshold > 10
        assert "of law" in change.stream or "of arm" in change.stream
        assert change.stream in str(change)
        assert change.names == tuple(f"a{k}" for k in change.arms)
        assert len(change.before) == len(change.after) == len(change.arms)
        play(policy, 300, means=CHANGES[kind], seed=seed)
        best = CHANGES[kind][int(policy.estimate().argmax())]
        assert best > CHANGES[kind].max() - 0.15
    assert off <= 1


def test_what_was_and_what_came_are_in_the_units_of_the_rewards():
    """(0, 10): 2 MEANS + 5 turned over. Before is the mean of the epoch, which a few new rounds have moved a little."""
    policy = CalibratedOPKB(line(), reward_range=(0.0, 10.0), seed=1)
    play(policy, 600, means=5 + 5 * MEANS, noise=0.3)
    play(policy, 60, means=5 - 5 * MEANS, noise=0.3)
    change = policy.changes[0]
    arms = np.array(change.arms)
    assert len(arms)
    far = np.abs(MEANS[arms]) > 0.2
    assert far.any()
    np.testing.assert_allclose(np.array(change.after)[far], (5 - 5 * MEANS[arms])[far], atol=1.0)
    moved = np.array(change.before) - np.array(change.after)
    assert (np.sign(moved[far]) == np.sign(MEANS[arms][far])).all()
    assert policy.noise_variance == pytest.approx((0.3 / 5) ** 2, rel=0.6)


@pytest.mark.parametrize("mode", MODES)
def test_rewards_of_a_closed_epoch_are_late(mode):
    policy = CalibratedOPKB(line(), mode=mode)
    play(policy, 300)
    old = [policy.ask() for _ in range(3)]
    play(policy, 60, means=-MEANS)
    assert policy.changes
    state = epoch_of(policy).number, policy.estimate()
    for choice in old:
        policy.tell(choice.id, 1.0)
    assert policy.late == 3
    assert epoch_of(policy).number == state[0]
    np.testing.assert_array_equal(policy.estimate(), state[1])


@pytest.mark.parametrize("mode", MODES)
def test_rewards_a_block_late_are_taken_in(mode):
    """Some of block 0 come in block 1; more come in time, so that the gaps of theory mode have something to compare."""
    policy = CalibratedOPKB(line(), mode=mode, kernel="given")
    first = [policy.ask() for _ in range(16)]
    for choice in first[:12]:
        policy.tell(choice.id, reward_of(policy, choice, MEANS, 0.1, 0))
    policy.ask()
    assert len(epoch_of(policy).laws) == 2
    for choice in first[12:]:
        policy.tell(choice.id, reward_of(policy, choice, MEANS, 0.1, 0))
    assert policy.late == 0
    assert epoch_of(policy).blocks[0].told == 16
    play(policy, 100)
    assert policy.changes == ()


def test_theory_mode_survives_a_first_block_told_late():
    policy = CalibratedOPKB(line(), mode="theory", kernel="given")
    first = policy.ask(size=16)
    policy.ask()
    policy.tell(first.ids, MEANS[first.arms])
    play(policy, 100)
    assert policy.law().sum() == pytest.approx(1.0)
    assert epoch_of(policy).blocks[0].told == 16


def test_features_are_whitened_once_per_block(monkeypatch):
    """Both laws of a block are sought by the same features, which are then given up: they may be very large."""
    blocks, solved = [], []
    whiten, solve = PracticalConstants._whiten, PracticalConstants.solve

    def counted(self, epoch):
        blocks.append((epoch.number, len(epoch.laws)))
        return whiten(self, epoch)

    def followed(self, epoch, **given):
        solved.append((epoch.number, len(epoch.laws)))
        return solve(self, epoch, **given)

    monkeypatch.setattr(PracticalConstants, "_whiten", counted)
    monkeypatch.setattr(PracticalConstants, "solve", followed)
    policy, rng = CalibratedOPKB(line(), seed=2), np.random.default_rng(0)
    for _ in range(300):
        choice = policy.ask()
        policy.tell(choice, 0.5 - 0.02 * abs(choice.arm - 7) + 0.1 * rng.standard_normal())
    assert len(blocks) == len(set(blocks)) > 1
    assert len(solved) > len(blocks)
    assert policy._constants._whitened is None


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
