"""CalibratedOPKB as users meet it: settings, laws, blocks, changes, second looks, saved state, horizons."""

import json
import math
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import (
    OPKB,
    AdaOPKB,
    ArmSet,
    AutoBandit,
    CalibratedOPKB,
    Constants,
    first_detectable_horizon,
    solve_design,
)
from driftbandits.errors import InputError
from driftbandits.estimation import Sums, expected_estimate, ips_estimate, law_factor
from driftbandits.policies.calibrated.closed_forms import ridge
from driftbandits.policies.calibrated.looks import AGE, LOOKS, promises
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.testing import POLICY_CHECKS

SIZE = 12
MEANS = 0.5 * np.sin(np.linspace(0, 5, SIZE))
MODES = ("practice", "theory")


def hidden_best(arm):
    means = MEANS.copy()
    means[arm] = 0.9
    return means


def line(size=SIZE, length_scale=0.2, **settings):
    return ArmSet(np.linspace(0, 1, size)[:, None], RBF(length_scale), **settings)


def reward_of(policy, choice, means, noise, seed):
    """A reward that depends on the round alone, so that copies of a policy meet the same world."""
    low, high = policy.reward_range
    draw = np.random.default_rng([seed, choice.id]).standard_normal()
    return float(np.clip(means[choice.arm] + noise * draw, low, high))


def play(policy, rounds, *, means=MEANS, noise=0.1, seed=0):
    """Ask and tell; gives the decisions."""
    choices = []
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, reward_of(policy, choice, means, noise, seed))
        choices.append(choice)
    return choices


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
    assert policy._epoch.number == 0
    assert sum(block.told for block in policy._epoch.blocks) == 1100
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
    size, begun = policy._levels.block_size, []
    for t in range(16 * size):
        blocks = len(policy._epoch.laws)
        choice = policy.ask()
        assert choice.law >= 0  # no look
        if len(policy._epoch.laws) > max(blocks, len(begun)) or not begun:
            begun.append(t)
        policy.tell(choice.id, 0.0)
        if len(policy._epoch.laws) > len(begun):
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
    while len(policy._epoch.laws) < 4:
        blocks = len(policy._epoch.laws)
        choice = policy.ask()
        reward = reward_of(policy, choice, MEANS, 0.1, 3)
        log.append((choice.law, choice.arm, reward))
        policy.tell(choice.id, reward)
        assert policy.changes == ()
        if len(policy._epoch.laws) == blocks:
            continue
        levels, epoch = policy._levels, policy._epoch
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
    design = solve_design(policy._source.first, regulariser=policy._levels.regulariser).probabilities
    np.testing.assert_allclose(law, design, atol=1e-6)


# --- residual IPS -----------------------------------------------------------------------------------------------


def some_problem(seed, size=10, rank=4):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((size, rank)) / 2
    law = rng.exponential(size=size)
    return rng, features, law / law.sum()


def test_baselines_of_zero_are_no_baselines():
    rng, features, law = some_problem(0)
    sums = Sums.empty(2, 10)
    sums.add(rng.integers(2, size=30), rng.integers(10, size=30), rng.uniform(-1, 1, 30))
    factors = [law_factor(features, law, 0.1)] * 2
    plain = ips_estimate(features, factors, sums)
    np.testing.assert_array_equal(ips_estimate(features, factors, sums, [np.zeros(10)] * 2), plain)
    np.testing.assert_array_equal(ips_estimate(features, factors, sums, [None, None]), plain)


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_of_residual_ips_is_that_of_the_residuals(seed):
    """Over all arms exactly: sum_a P(a) (estimate of one round of arm a) = b + M diag(P) (r - b)."""
    rng, features, law = some_problem(seed)
    means, baseline = rng.uniform(-1, 1, 10), rng.uniform(-1, 1, 10)
    factor, mean = law_factor(features, law, 0.05), np.zeros(10)
    for arm in range(10):
        sums = Sums.empty(1, 10)
        sums.add(np.array([0]), np.array([arm]), np.array([means[arm] - baseline[arm]]))
        mean += law[arm] * ips_estimate(features, [factor], sums, [baseline])
    np.testing.assert_allclose(mean, baseline + expected_estimate(features, law, 0.05, means - baseline), atol=1e-9)


def test_baselines_are_weighted_by_the_rewards_of_their_laws():
    """Two laws, rewards equal to the baselines: nothing is left to weight."""
    rng, features, law = some_problem(1)
    one, two = rng.uniform(-1, 1, (2, 10))
    sums = Sums.empty(2, 10)
    sums.add(np.array([0, 0, 0, 1]), np.array([1, 2, 3, 4]), np.zeros(4))
    estimate = ips_estimate(features, [law_factor(features, law, 0.1)] * 2, sums, [one, two])
    np.testing.assert_allclose(estimate, 0.75 * one + 0.25 * two, rtol=1e-12)


@pytest.mark.statistical
def test_a_baseline_from_earlier_rounds_makes_ips_3_times_as_exact():
    """Two dimensions, 100 arms, 2,000 rounds of the design after 500: worst arm, mean over 10 functions.

    On 6 other sets of 10 functions it was 3.2 to 4.3 times (mean 3.7, standard deviation 0.4): with fresh seeds this
    fails with probability of about 0.05.
    """
    points = np.random.default_rng(0).random((100, 2))
    arms = ArmSet(points, RBF(0.2))
    regulariser = ridge(0.01, 0.1, 2000)
    law = solve_design(arms, regulariser=regulariser).probabilities
    factor, errors = law_factor(arms.features, law, regulariser), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        function = math.sqrt(0.1) * arms.features @ rng.standard_normal(arms.rank)
        played = rng.choice(100, size=2500, p=law)
        rewards = function[played] + 0.1 * rng.standard_normal(2500)
        surrogate = Surrogate(arms, auto=False, keeps=True)
        surrogate.begin()
        surrogate.observe(played[:500], rewards[:500], np.arange(500))
        surrogate.advance()
        pair = []
        for baseline in (np.zeros(100), surrogate.mean()):
            sums = Sums.empty(1, 100)
            sums.add(np.zeros(2000, dtype=int), played[500:], rewards[500:] - baseline[played[500:]])
            pair.append(np.abs(ips_estimate(arms.features, [factor], sums, [baseline]) - function).max())
        errors.append(pair)
    plain, residual = np.mean(errors, axis=0)
    assert residual < plain / 3, (plain, residual)


# --- changes ----------------------------------------------------------------------------------------------------

CHANGES = {"flip": -MEANS, "level": MEANS + 0.4}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["flip", "level"])
def test_a_change_is_found_and_recorded(kind, mode):
    """5 runs, change in round 500: all found within 60 rounds, with the beginning within 40 in all but one at most.

    Of 160 runs on other seeds, 40 a case, 4 fell short: 2 alarms before the change (theory mode; 10 % are allowed), one
    beginning 107 rounds off (it is a round in which the arm that fired was played), one estimate whose best arm is
    another. So a case fails for 10 % of fresh seeds.
    """
    off = 0
    for seed in range(5):
        policy = CalibratedOPKB(line(names=[f"a{k}" for k in range(SIZE)]), mode=mode, seed=seed)
        play(policy, 500, seed=seed)
        assert policy.changes == (), f"seed {seed}"
        block = len(policy._epoch.laws) - 1
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
    state = policy._epoch.number, policy.estimate()
    for choice in old:
        policy.tell(choice.id, 1.0)
    assert policy.late == 3
    assert policy._epoch.number == state[0]
    np.testing.assert_array_equal(policy.estimate(), state[1])


@pytest.mark.parametrize("mode", MODES)
def test_rewards_a_block_late_are_taken_in(mode):
    """Some of block 0 come in block 1; more come in time, so that the gaps of theory mode have something to compare."""
    policy = CalibratedOPKB(line(), mode=mode, kernel="given")
    first = [policy.ask() for _ in range(16)]
    for choice in first[:12]:
        policy.tell(choice.id, reward_of(policy, choice, MEANS, 0.1, 0))
    policy.ask()
    assert len(policy._epoch.laws) == 2
    for choice in first[12:]:
        policy.tell(choice.id, reward_of(policy, choice, MEANS, 0.1, 0))
    assert policy.late == 0
    assert policy._epoch.blocks[0].told == 16
    play(policy, 100)
    assert policy.changes == ()


def test_theory_mode_survives_a_first_block_told_late():
    policy = CalibratedOPKB(line(), mode="theory", kernel="given")
    first = policy.ask(size=16)
    policy.ask()
    policy.tell(first.ids, MEANS[first.arms])
    play(policy, 100)


# --- state ------------------------------------------------------------------------------------------------------


def as_text(policy, *without):
    def plain(value):
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in without}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value

    return json.dumps(plain(policy.state_dict()), sort_keys=True)


def to_block_0(policy):
    play(policy, 7)


def to_replay(policy):
    for _ in range(3000):
        play(policy, 1, means=0.1 * MEANS)
        if policy._index() < policy._schedule.block and policy._position > 2:
            return
    pytest.fail("no replay")


def to_look(policy):
    """Until a bad arm was played, pays 0.9 from then on, and has been played alone once; gives the arm."""
    play(policy, 300)
    for _ in range(3000):
        choice = policy.ask()
        surprises = choice.law >= 0 and MEANS[choice.arm] < 0
        policy.tell(choice.id, 0.9 if surprises else float(MEANS[choice.arm]))
        if surprises:
            play(policy, 1, means=hidden_best(choice.arm), seed=1)
            return choice.arm
    pytest.fail("no bad arm was played")


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
        if policy._detector.fired:
            break
    assert policy._detector.fired
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
    assert as_text(copies[0], "version") == as_text(copies[1], "version")
    assert bool(copies[0].changes) == changed
    assert play(copies[0], 100) == play(copies[1], 100)


# --- second looks -----------------------------------------------------------------------------------------------


def test_an_arm_that_becomes_best_is_played_alone_for_a_while():
    policy = CalibratedOPKB(line(), seed=2)
    arm = to_look(policy)
    choices = play(policy, 20, means=hidden_best(arm), seed=1)
    assert {choice.arm for choice in choices} == {arm}
    assert {choice.probability for choice in choices} == {1.0} or policy.changes
    looked = [choice for choice in choices if choice.law < 0]
    assert looked
    assert all(choice.probability == 1.0 and choice.law == -1 - arm for choice in looked)


def test_a_look_that_keeps_its_promise_ends_its_block():
    """Without alarms (false_alarm next to 0): `wanted` rounds of the arm alone, then a new block that plays it."""
    policy = CalibratedOPKB(line(), seed=2, false_alarm=1e-200)
    arm = to_look(policy)
    blocks, wanted = len(policy._epoch.laws), policy._look.wanted
    assert wanted >= LOOKS
    choices = play(policy, wanted - 1, means=hidden_best(arm), seed=1)
    assert all(choice.law == -1 - arm for choice in choices)
    choice = play(policy, 1, means=hidden_best(arm), seed=1)[0]
    assert choice.law >= 0
    assert len(policy._epoch.laws) == blocks + 1
    assert policy.law()[arm] > 0.3
    assert policy.changes == ()


def test_a_disappointing_look_ends_early():
    policy = CalibratedOPKB(line(), seed=2)
    to_look(policy)
    blocks = len(policy._epoch.laws)
    choices = play(policy, 15)  # as bad as ever
    looked = [choice for choice in choices if choice.law < 0]
    assert len(looked) < 10
    assert all(choice.law >= 0 for choice in choices[len(looked) :])
    assert len(policy._epoch.laws) == blocks


def test_a_mask_without_the_arm_ends_the_look():
    policy = CalibratedOPKB(line(), seed=2)
    arm = to_look(policy)
    assert policy.law()[arm] == 1.0
    others = np.arange(SIZE) != arm
    within = policy.ask(allowed=~others)
    assert (within.arm, within.probability) == (arm, 1.0)
    assert policy.law()[arm] == 1.0
    choice = policy.ask(allowed=others)
    assert choice.arm != arm
    assert policy.law()[arm] < 1.0
    assert policy.ask().law >= 0
    policy.tell(within.id, 0.9)
    policy.tell(choice.id, 0.1)


def test_a_look_needs_a_reward_beyond_the_best_and_beyond_the_noise():
    """Noise of 0.1: three standard deviations are 0.3."""
    assert promises(0.85, 0.5, 0.8, 0.01)
    assert not promises(0.75, 0.1, 0.8, 0.01)  # a surprise, but no better than the best
    assert not promises(0.85, 0.6, 0.8, 0.01)  # better, but no surprise


def test_theory_mode_never_looks():
    policy = CalibratedOPKB(line(), mode="theory", seed=2)
    play(policy, 400)
    choices = play(policy, 300, means=hidden_best(int(MEANS.argmin())), seed=1)
    assert all(choice.law >= 0 for choice in choices)


@pytest.mark.statistical
def test_blocks_stay_few_under_heavy_tails():
    """Student-t noise with 2.5 degrees of freedom, 10,000 rounds: many looks, but a block lasts E 2^j / 8 at least.

    So after J blocks E (2^J - 1) / 8 rounds have passed: cannot fail by chance. That there are looks at all can, but
    there are thousands of rounds of them.
    """
    policy = CalibratedOPKB(line(), reward_range=(-5.0, 5.0), out_of_range="clip", seed=3)
    rng, looked = np.random.default_rng(0), 0
    blocks, begun = 0, 0
    for t in range(10_000):
        choice = policy.ask()
        looked += choice.law < 0
        if (policy._epoch.number, len(policy._epoch.laws)) != blocks:
            blocks, begun = (policy._epoch.number, len(policy._epoch.laws)), t
        policy.tell(choice.id, float(MEANS[choice.arm] + 0.15 * rng.standard_t(2.5)))
        if len(policy._epoch.laws) == blocks[1] + 1 and policy._epoch.number == blocks[0]:
            assert t + 1 - begun >= policy._levels.block_size * 2 ** (blocks[1] - 1) // AGE
    assert looked > 0
    size = policy._levels.block_size
    assert size * (2 ** (len(policy._epoch.laws) - 1) - 1) / AGE <= 10_000
    assert len(policy._epoch.laws) <= math.log2(10_000 * AGE / size) + 2


# --- first_detectable_horizon -----------------------------------------------------------------------------------


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
