"""The scale of rewards is a straight line from the declared range to [-1, 1], and back.

Rewards of 0 and 1 under the default range are noticed, once.

Late, lost, batched and masked rounds, end to end in a world that changes.

The sample of delays: which rewards it keeps, Fisher's test by another road, and when it warns.

Of worlds where delays do not depend on rewards, 40 are played, each with at most 6 looks at p < 1e-6: on seeds drawn
anew, a right test fails here with a probability below 2.4e-4.
"""

import heapq
import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import driftbandits as db
from driftbandits.errors import DelayWarning, RewardError, StateError, ZeroOneRewardsWarning
from driftbandits.policies.rewards import (
    REWARDS_NEEDED,
    SAMPLE_SIZE,
    USUAL_NOISE,
    DelaySample,
    RewardScale,
    Told,
    fisher,
    paired,
    read_range,
)

ENDS = st.floats(-1e6, 1e6)


@given(ENDS, ENDS, st.floats(0.0, 1.0))
def test_ends_go_to_the_ends_and_back(low, high, share):
    if high - low < 1e-3:
        return
    scale = RewardScale(low, high)
    assert scale.inward(low) == pytest.approx(-1.0)
    assert scale.inward(high) == pytest.approx(1.0)
    reward = low + share * (high - low)
    assert scale.outward(scale.inward(reward)) == pytest.approx(reward, abs=1e-9 * (abs(low) + abs(high)))


def test_arrays_and_numbers_give_the_same_bits():
    scale, rewards = RewardScale(-0.3, 1.9), np.linspace(-0.3, 1.9, 101)
    assert scale.inward(rewards).tolist() == [scale.inward(reward) for reward in rewards.tolist()]
    inside = scale.inward(rewards)
    assert scale.outward(inside).tolist() == [scale.outward(value) for value in inside.tolist()]


def test_sizes_do_not_depend_on_where_the_range_lies():
    for low in (-1.0, 0.0, 100.0):
        scale = RewardScale(low, low + 4.0)
        assert scale.inward_size(1.0) == 0.5
        assert scale.outward_size(0.5) == 1.0
        assert scale.noise(1.0) == 0.5
        assert scale.noise(None) == USUAL_NOISE


def test_rewards_outside_are_clipped_or_refused_by_the_first_one():
    scale = read_range((0, 2))
    given_ = np.array([1.0, 2.5, -3.0])
    inside = scale.clip(given_)
    assert inside.tolist() == [1.0, 2.0, 0.0]
    with pytest.raises(RewardError, match=r"reward 2.5 lies outside reward_range=\(0, 2\)"):
        scale.require_inside(given_, inside)
    scale.require_inside(inside, inside)


def test_a_policy_speaks_in_the_units_of_its_range():
    arms = db.ArmSet([[0.0], [1.0]])
    policy = db.GPUCB(arms, seed=0, reward_range=(100.0, 300.0))
    assert policy.estimate().tolist() == [200.0, 200.0]
    assert policy.reward_range == (100.0, 300.0)


ARMS = db.ArmSet(np.linspace(0, 1, 4)[:, None])
CLICKS = (np.arange(3 * REWARDS_NEEDED) % 9 == 5).astype(float)


@pytest.mark.parametrize("together", [1, 7, 300])
def test_they_are_noticed_once_and_the_cure_is_named(together):
    policy = db.Uniform(ARMS, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, len(CLICKS), together):
            told = CLICKS[start : start + together]
            batch = policy.ask(size=len(told))
            policy.tell(batch, told)
            assert bool(caught) == (start + len(told) >= REWARDS_NEEDED)
    assert [item.category for item in caught] == [ZeroOneRewardsWarning]
    assert "pass reward_range=(0, 1)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_single_reward_points_at_who_told():
    policy = db.Uniform(ARMS, seed=0)
    for reward in CLICKS[: REWARDS_NEEDED - 1].tolist():
        policy.tell(policy.ask(), reward)
    choice = policy.ask()
    with pytest.warns(ZeroOneRewardsWarning) as caught:
        policy.tell(choice, 0.0)
    assert [item.filename for item in caught] == [__file__]


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        (CLICKS, {"reward_range": (0.0, 1.0)}),
        (np.zeros(300), {}),
        (np.ones(300), {}),
        (np.r_[CLICKS[:50], 0.5, CLICKS], {}),
        (2.0 * CLICKS - 1.0, {}),
    ],
    ids=["declared", "no success", "no failure", "another reward", "from -1 to 1"],
)
def test_other_rewards_are_no_reason_to_warn(told, settings):
    for together in (True, False):
        policy = db.Uniform(ARMS, seed=0, **settings)
        if together:
            policy.tell(policy.ask(size=len(told)), told)
        else:
            for reward in told.tolist():
                policy.tell(policy.ask(), reward)


def test_what_was_seen_is_part_of_the_state():
    policy = db.Uniform(ARMS, seed=0)
    policy.tell(policy.ask(size=REWARDS_NEEDED - 1), CLICKS[: REWARDS_NEEDED - 1])
    again = db.Uniform.restore(ARMS, policy.state_dict())
    with pytest.warns(ZeroOneRewardsWarning):
        again.tell(again.ask(), 0.0)
    once_more = db.Uniform.restore(ARMS, again.state_dict())
    once_more.tell(once_more.ask(size=50), CLICKS[:50])  # it has been said


def test_a_state_that_cannot_be_is_refused():
    state = db.Uniform(ARMS, seed=0, reward_range=(0.0, 1.0)).state_dict()
    state["zero_one"]["looking"] = True
    with pytest.raises(StateError):
        db.Uniform.restore(ARMS, state)


HORIZON = 6000


@pytest.fixture(scope="module")
def world():
    return db.environments.create("switching", seed=4, size=40, dimension=2, horizon=HORIZON, switches=(2500,))


def regret(world, arms):
    return float((world.best(0, len(arms)) - world.means_of(0, arms)).sum())


def play_late(policy, world, *, delay, loss=0.0, seed=0):
    """Rewards come `delay` rounds after the decision; a share `loss` of them never comes and is forgotten."""
    rng = np.random.default_rng(seed)
    waiting, arms = [], []
    for now in range(world.horizon):
        choice = policy.ask()
        arms.append(choice.arm)
        waiting.append((choice.id, float(world.rewards(now, [choice.arm], seed)[0])))
        if len(waiting) > delay:
            ident, reward = waiting.pop(0)
            if rng.random() < loss:
                policy.forget(ident)
            else:
                policy.tell(ident, reward)
    return arms


def test_late_rewards_still_find_the_change(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    arms = play_late(policy, world, delay=20)
    assert any(change.round > 2500 for change in policy.changes)
    assert policy.pending == 20
    prompt = db.simulate(db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0), world, seed=0)
    assert regret(world, arms) < 1.5 * prompt.regret.sum()


def test_five_per_cent_lost_is_fine(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    play_late(policy, world, delay=3, loss=0.05)
    assert any(change.round > 2500 for change in policy.changes)


def test_half_lost_means_nothing_is_tested(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    play_late(policy, world, delay=3, loss=0.5)
    assert policy.changes == ()
    assert policy.forgotten > 2000


def test_a_restart_makes_rewards_of_the_old_epoch_late(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    play_late(policy, world, delay=15)
    assert policy.changes
    assert policy.late > 0


def test_batches_learn_like_single_rounds(world):
    policy = db.AdaOPKB.published(world.arms, horizon=HORIZON, seed=0)
    arms = []
    for now in range(0, HORIZON, 25):
        batch = policy.ask(size=25)
        policy.tell(batch.ids, world.rewards(now, batch.arms, 0))
        arms.extend(batch.arms.tolist())
    assert any(change.round > 2500 for change in policy.changes)
    assert regret(world, arms) < 0.6 * regret(world, np.random.default_rng(0).integers(40, size=HORIZON))


def test_masked_rounds_do_not_advance_the_block(world):
    policy = db.OPKB(world.arms, horizon=HORIZON, seed=0)
    left = policy.steady_rounds()
    allowed = np.arange(40) % 2 == 0
    estimate = policy.estimate()
    for _ in range(10):
        choice = policy.ask(allowed=allowed)
        assert choice.arm % 2 == 0
        policy.tell(choice.id, 1.0)
    assert policy.steady_rounds() == left
    assert policy.rounds == 10
    assert np.array_equal(policy.estimate(), estimate)
    unmasked = policy.ask(allowed=np.ones(40, dtype=bool))
    policy.tell(unmasked.id, 1.0)
    assert policy.steady_rounds() == left - 1
    assert not np.array_equal(policy.estimate(), estimate)


def test_masked_probability_is_that_of_the_restricted_law(world):
    policy = db.OPKB(world.arms, horizon=HORIZON, seed=0)
    allowed = [1, 5, 7]
    law = policy.law()
    choice = policy.ask(allowed=allowed)
    assert choice.probability == pytest.approx(law[choice.arm] / law[allowed].sum())


def test_names_can_be_used_for_masks_and_show_in_records():
    points = np.linspace(0, 1, 6)[:, None]
    arms = db.ArmSet(points, kernel={"name": "rbf", "length_scale": 0.1}, names=list("abcdef"))
    policy = db.AdaOPKB(arms, horizon=3000, constants=db.Constants(c0=0.3, c3=0.05), seed=0)
    assert policy.ask(allowed=["c"]).arm == 2
    level = np.where(np.arange(6) == 0, 0.9, -0.9)
    while policy.rounds < 3000:
        choice = policy.ask()
        policy.tell(choice.id, float(level[choice.arm] if choice.id < 1500 else -level[choice.arm]))
    assert policy.changes
    change = next(c for c in policy.changes if c.round > 1500)
    assert set(change.names) <= set("abcdef")
    assert "Found at round" in str(change)
    assert change.names[0] in str(change)
    assert change.statistic > change.threshold
    assert len(change.arms) == len(change.before) == len(change.after)


FIVE_ARMS = db.ArmSet(np.linspace(0, 1, 5)[:, None])


@pytest.mark.parametrize("table", list(itertools.product(range(4), repeat=4)))
def test_fisher_is_the_count_of_all_permutations(table):
    """Twice the smaller share of the permutations that agree at least, or at most, as often."""
    a, b, c, d = table
    rows, columns = np.repeat([0, 1], [a + b, c + d]), np.repeat([0, 1], [a + c, b + d])
    if len(rows) > 6:
        wanted = 2 * min(scipy.stats.fisher_exact([[a, b], [c, d]], side)[1] for side in ("less", "greater"))
    else:
        counts = [int(((rows == 0) & (np.array(p) == 0)).sum()) for p in itertools.permutations(columns)]
        wanted = 2 * min(np.mean([k <= a for k in counts]), np.mean([k >= a for k in counts])) if counts else 1.0
    assert fisher(*table) == pytest.approx(min(wanted, 1.0))


def test_fisher_of_large_tables_is_the_sum_of_its_terms():
    """Two roads: every term by itself, to the last bit."""
    for a, b, c, d in np.random.default_rng(0).integers(0, 300, size=(12, 4)).tolist():
        row, column, total = a + b, a + c, a + b + c + d
        terms = {k: math.comb(row, k) * math.comb(total - row, column - k) for k in range(min(row, column) + 1)}
        upper = sum(term for k, term in terms.items() if k >= a)
        lower = sum(term for k, term in terms.items() if k <= a)
        assert fisher(a, b, c, d) == min(1.0, 2.0 * (min(upper, lower) / math.comb(total, column)))


def test_the_sample_is_of_fixed_size_and_depends_on_ids_alone():
    forwards, backwards = DelaySample(), DelaySample()
    for sample, ids in ((forwards, range(10_000)), (backwards, reversed(range(10_000)))):
        for ident in ids:
            sample.see(ident, 0, 3, 0.5)
    kept = [item.id for item in forwards.kept()]
    assert kept == [item.id for item in backwards.kept()]
    assert len(kept) == SAMPLE_SIZE
    parts = np.histogram(kept, bins=10, range=(0, 10_000))[0]
    assert parts.min() > 0.9 * SAMPLE_SIZE / 10  # every part of the rounds alike


def test_many_at_once_are_seen_as_one_by_one():
    rng, single, several = np.random.default_rng(0), DelaySample(), DelaySample()
    first = 0
    for size in (1, 300, 5, 1_500, 400, 3_000, 1, 1, 2_000):
        ids, arms = np.arange(first, first + size), rng.integers(3, size=size)
        delays, rewards = rng.integers(50, size=size), rng.random(size)
        due = [single.see(*row) for row in zip(*(part.tolist() for part in (ids, arms, delays, rewards)), strict=True)]
        assert several.see_many(ids, arms, delays, rewards) == any(due)
        single.calls, several.calls = single.calls + 1, several.calls + 1
        assert single.kept() == several.kept()
        assert single.seen == several.seen
        first += size


def test_pairs_are_disjoint_of_one_arm_and_chosen_without_delays():
    rng = np.random.default_rng(0)
    told = [Told(i, int(rng.integers(3)), int(rng.integers(9)), i, float(rng.integers(3))) for i in range(200)]
    pairs = paired(told)
    ids = [item.id for pair in pairs for item in pair]
    assert len(set(ids)) == len(ids)
    for one, two in pairs:
        assert one.arm == two.arm
        assert one.id < two.id
        assert one.reward != two.reward
        assert one.delay != two.delay
    other = [Told(t.id, t.arm, 9 - t.delay, t.call, t.reward) for t in told]
    assert [(a.id, b.id) for a, b in paired(other)] == [(a.id, b.id) for a, b in pairs]


def play(policy, delay_of, rounds, *, seed=0, mean=lambda t, arm: 0.1 * arm + 0.2, batch=1):
    """0/1 rewards told after `delay_of(success, arm, rng)` rounds."""
    rng, waiting = np.random.default_rng([seed, 3]), []
    for now in range(0, rounds, batch):
        for choice in policy.ask(size=batch):
            success = float(rng.random() < mean(now, choice.arm))
            late = delay_of(success, choice.arm, rng)
            heapq.heappush(waiting, (now + late, choice.id, success))
        while waiting and waiting[0][0] <= now:
            policy.tell(*heapq.heappop(waiting)[1:])
    return policy


def test_success_sooner_than_failure_warns_once_with_what_to_do():
    policy = db.Uniform(FIVE_ARMS, reward_range=(0, 1), seed=0)
    with pytest.warns(DelayWarning) as caught:
        play(policy, lambda success, arm, rng: 20 if success else 500, 1_500)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert "rewards near 1 come 480 rounds sooner than rewards near 0: pass patience=750, missing=0.0 (" in said
    assert caught[0].filename == __file__


def test_rare_successes_warn_too():
    policy = db.Uniform(FIVE_ARMS, reward_range=(0, 1), seed=0)
    with pytest.warns(DelayWarning, match="pass patience=750, missing=0.0"):
        play(policy, lambda success, arm, rng: 20 if success else 500, 2_700, mean=lambda t, arm: 0.03)


def test_the_warning_is_a_part_of_the_state():
    policy = db.Uniform(FIVE_ARMS, reward_range=(0, 1), seed=0)
    with pytest.warns(DelayWarning):
        play(policy, lambda success, arm, rng: 30 * (success == 0), 1_200)
    again = db.Uniform.restore(FIVE_ARMS, policy.state_dict())
    assert again.state_dict()["delays"]["warned"]
    policy = db.Uniform(FIVE_ARMS, reward_range=(0, 1), seed=0)
    play(policy, lambda success, arm, rng: 30 * (success == 0), 200)
    again = db.Uniform.restore(FIVE_ARMS, policy.state_dict())
    assert again.state_dict()["delays"]["seen"] > 0
    for one in (policy, again):
        with pytest.warns(DelayWarning):
            play(one, lambda success, arm, rng: 30 * (success == 0), 1_200)


INDEPENDENT = {
    "all alike": lambda success, arm, rng: 40,
    "at random": lambda success, arm, rng: int(rng.integers(60)),
    "mostly at once": lambda success, arm, rng: 200 * int(rng.random() < 0.02),
    "by the arm": lambda success, arm, rng: 15 * (5 - arm) + int(rng.integers(5)),
}
MEANS = {
    "steady": lambda t, arm: 0.1 * arm + 0.2,
    "rare": lambda t, arm: 0.01 * arm + 0.005,
    "drifting": lambda t, arm: 0.1 + 0.8 * t / 4_400,
    "switching": lambda t, arm: 0.1 if (t // 300) % 2 else 0.9,
}


@pytest.mark.parametrize("delay", INDEPENDENT)
@pytest.mark.parametrize("mean", MEANS)
def test_independent_delays_do_not_warn(delay, mean):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = db.Uniform(FIVE_ARMS, reward_range=(0, 1), seed=1)
        play(policy, INDEPENDENT[delay], 4_400, mean=MEANS[mean])
        assert policy.state_dict()["delays"]["seen"] >= 4_096


@pytest.mark.parametrize("batch", [7, 64])
@pytest.mark.parametrize("mean", MEANS)
def test_batches_in_a_world_that_moves_do_not_warn(batch, mean):
    """The first of a batch waits longest: delays follow the round, and so do the rewards."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(3):
            policy = db.Uniform(FIVE_ARMS, reward_range=(0, 1), seed=seed)
            play(policy, lambda success, arm, rng: 0, 4_200, mean=MEANS[mean], batch=batch, seed=seed)


def test_what_comes_at_once_is_not_even_looked_at():
    policy = db.Uniform(FIVE_ARMS, reward_range=(0, 1), seed=0)
    play(policy, lambda success, arm, rng: 0, 300)
    batch = policy.ask(size=50)
    policy.tell(batch, np.zeros(50))
    assert policy.state_dict()["delays"]["seen"] == 0


def test_a_table_of_many_pairs_is_fast_and_exact():
    assert fisher(500, 500, 500, 500) == 1.0
    assert fisher(40, 0, 0, 40) == pytest.approx(2 / math.comb(80, 40))
