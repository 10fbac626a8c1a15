"""The sample of delays: which rewards it keeps, Fisher's test by another road, and when it warns.

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

import driftbandits as db
from driftbandits.errors import DelayWarning
from driftbandits.policies.core.delays import SAMPLE_SIZE, DelaySample, Told, fisher, paired

ARMS = db.ArmSet(np.linspace(0, 1, 5)[:, None])


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
    policy = db.Uniform(ARMS, reward_range=(0, 1), seed=0)
    with pytest.warns(DelayWarning) as caught:
        play(policy, lambda success, arm, rng: 20 if success else 500, 1_500)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert "rewards near 1 come 480 rounds sooner than rewards near 0: pass patience=750, missing=0.0 (" in said
    assert caught[0].filename == __file__


def test_rare_successes_warn_too():
    policy = db.Uniform(ARMS, reward_range=(0, 1), seed=0)
    with pytest.warns(DelayWarning, match="pass patience=750, missing=0.0"):
        play(policy, lambda success, arm, rng: 20 if success else 500, 2_700, mean=lambda t, arm: 0.03)


def test_the_warning_is_a_part_of_the_state():
    policy = db.Uniform(ARMS, reward_range=(0, 1), seed=0)
    with pytest.warns(DelayWarning):
        play(policy, lambda success, arm, rng: 30 * (success == 0), 1_200)
    again = db.Uniform.restore(ARMS, policy.state_dict())
    assert again.state_dict()["delays"]["warned"]
    policy = db.Uniform(ARMS, reward_range=(0, 1), seed=0)
    play(policy, lambda success, arm, rng: 30 * (success == 0), 200)
    again = db.Uniform.restore(ARMS, policy.state_dict())
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
        policy = db.Uniform(ARMS, reward_range=(0, 1), seed=1)
        play(policy, INDEPENDENT[delay], 4_400, mean=MEANS[mean])
        assert policy.state_dict()["delays"]["seen"] >= 4_096


@pytest.mark.parametrize("batch", [7, 64])
@pytest.mark.parametrize("mean", MEANS)
def test_batches_in_a_world_that_moves_do_not_warn(batch, mean):
    """The first of a batch waits longest: delays follow the round, and so do the rewards."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(3):
            policy = db.Uniform(ARMS, reward_range=(0, 1), seed=seed)
            play(policy, lambda success, arm, rng: 0, 4_200, mean=MEANS[mean], batch=batch, seed=seed)


def test_what_comes_at_once_is_not_even_looked_at():
    policy = db.Uniform(ARMS, reward_range=(0, 1), seed=0)
    play(policy, lambda success, arm, rng: 0, 300)
    batch = policy.ask(size=50)
    policy.tell(batch, np.zeros(50))
    assert policy.state_dict()["delays"]["seen"] == 0


def test_a_table_of_many_pairs_is_fast_and_exact():
    assert fisher(500, 500, 500, 500) == 1.0
    assert fisher(40, 0, 0, 40) == pytest.approx(2 / math.comb(80, 40))
