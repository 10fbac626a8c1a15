"""The block engine: the laws it plays, feature maps, late rewards, masks and horizons."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

import driftbandits as db
from driftbandits import OPKB, AdaOPKB, ArmSet, Constants, Variant, information_gain, simulate, solve_design
from driftbandits._util.seeding import stream
from driftbandits.design.blocks import Replay, draw_schedule, law_factor
from driftbandits.environments import Piecewise
from driftbandits.environments.noise import GaussianNoise, UniformNoise

QUICK = Constants(sigma=1.0, failure_probability=1e-2, c0=1.3, c1=0.5, c2=0.3, c3=0.015, c4=0.5)


def line(size=9, kernel=None):
    return ArmSet(np.linspace(0, 1, size)[:, None], kernel=RBF(0.25) if kernel is None else kernel)


def with_block_size(arms, horizon, size, **settings):
    """Constants whose E is `size` on these arms."""
    constants = dataclasses.replace(QUICK, **settings)
    gamma = information_gain(arms, horizon=horizon, sigma=constants.sigma)
    unit = dataclasses.replace(constants, c3=1e6).levels(gamma=gamma, horizon=horizon, arms=len(arms)).block_size / 1e6
    found = dataclasses.replace(constants, c3=(size - 0.5) / unit)
    assert found.levels(gamma=gamma, horizon=horizon, arms=len(arms)).block_size == size
    return found


def seed_without_replays(block=1):
    """First seed whose schedule up to `block` has no replay but the blocks themselves."""
    for seed in range(10_000):
        coins = stream(seed, "schedule")
        if all(draw_schedule(j, coins).replays == (Replay(0, 2**j, j),) for j in range(block + 1)):
            return seed
    raise AssertionError("no such seed")


def leverage(arms, law, regulariser):
    solved = law_factor(arms.features, law, regulariser).solve(arms.features.T)
    return np.einsum("xr,rx->x", arms.features, solved)


def estimate_of(arms, law, regulariser, played, rewards):
    """The definition's mean over rounds drawn from one law, by kernel matrices."""
    kernel = arms.features @ arms.features.T
    columns = np.linalg.solve(kernel * law + regulariser * np.eye(len(arms)), kernel).T  # K (D K + lambda I)^-1
    return columns[:, played] @ np.asarray(rewards) / len(rewards)


# --- the laws --------------------------------------------------------------------------------------------------------


class Spy(AdaOPKB):
    """Keeps, for every law it makes, the estimate it was made from."""

    def _next_law(self, block, moved):
        law = super()._next_law(block, moved)
        if block:
            self.__dict__.setdefault("made", []).append((block, np.array(self._estimate()), law))
        return law


KERNELS = {"rbf": RBF(0.25), "identity": RBF(0.01), "rough": Matern(0.3, nu=0.5), "linear": DotProduct(0.5)}


@settings(
    max_examples=25, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)  # shrinking is slow
@given(
    seed=st.integers(0, 2**20),
    size=st.integers(1, 14),
    kernel=st.sampled_from(sorted(KERNELS)),
    share=st.one_of(st.just(0.5), st.floats(0.05, 0.95)),
    c1=st.floats(0.05, 3.0),
    c2=st.floats(0.05, 2.0),
    peak=st.floats(0.0, 1.0),
)
def test_laws_played_are_op_mixed_with_the_design_and_keep_the_bounds_of_lemma_2(
    seed, size, kernel, share, c1, c2, peak
):
    """P^(j) = (1 - mu_j) ((1 - s) P* + s pi(A)) + mu_j pi(X), and Lemma 2 through S(P) >= (1 - mu_j) S(Q)."""
    arms, horizon = line(size, KERNELS[kernel]), 400
    constants = dataclasses.replace(QUICK, c0=1e6, c1=c1, c2=c2)
    policy = Spy(arms, horizon=horizon, seed=seed, constants=constants, variant=Variant(share=share))
    means = np.random.default_rng(seed).uniform(-peak, peak, (1, size))
    simulate(policy, Piecewise(arms, means, horizon=horizon, noise=UniformNoise(0.0)), seed=0)
    design = solve_design(arms, regulariser=1.0 / horizon)
    gamma = design.log_det - arms.rank * np.log(1.0 / horizon)
    levels = constants.levels(gamma=gamma, horizon=horizon, arms=size)
    upper = gamma + 2 * design.gap
    assert len(policy.made) >= 3
    assert (leverage(arms, design.probabilities, levels.regulariser) <= upper * (1 + 1e-8)).all()
    for block, estimate, law in policy.made:
        gaps, beta, mu = estimate.max() - estimate, levels.beta(block), min(1.0, c1 * 2 ** (-block / 2))
        best = solve_design(arms, costs=0.5 * beta * gaps, regulariser=levels.regulariser)
        good = np.flatnonzero(gaps <= 2 * levels.alpha * gamma / beta)
        spread = solve_design(arms, candidates=good, regulariser=levels.regulariser)
        pieces = (1 - share) * best.probabilities + share * spread.probabilities
        np.testing.assert_allclose(law, (1 - mu) * pieces + mu * design.probabilities, atol=1e-6)

        found = leverage(arms, law, levels.regulariser)
        slack = 1e-5 + 1e-8 * (upper + beta * gaps)
        assert (mu * found <= upper + slack).all()  # the range of the estimate
        assert ((1 - mu) * (1 - share) * found <= beta * gaps / 2 + upper + slack).all()
        assert ((1 - mu) * share * found[good] <= upper + slack[good]).all()
        exploiting = 2 * ((1 - share) * upper + share * levels.alpha * gamma) / beta
        assert law @ gaps <= (1 - mu) * exploiting + mu * design.probabilities @ gaps + 1e-5


def test_block_0_plays_the_optimal_design_and_blocks_double():
    arms = line()
    policy = OPKB(arms, horizon=1000, constants=with_block_size(arms, 1000, 10))
    np.testing.assert_array_equal(policy.law(), solve_design(arms, regulariser=1e-3).probabilities)
    lengths = []
    while policy.rounds < 10 + 20 + 40 + 80:
        lengths.append(policy.steady_rounds())
        batch = policy.ask(size=lengths[-1])
        policy.tell(batch.ids, np.zeros(len(batch)))
    assert lengths == [10, 20, 40, 80]


def test_replays_follow_earlier_laws_by_the_schedule():
    """Law numbers of a watching policy are those of the schedule its stream draws."""
    arms, size, seed = line(), 5, 3
    policy = AdaOPKB(arms, horizon=2000, seed=seed, constants=with_block_size(arms, 2000, size, c0=1e6))
    trace = simulate(
        policy, Piecewise(arms, np.zeros((1, 9)), horizon=2000, noise=GaussianNoise(0.0)), rounds=31 * size
    )
    coins = stream(seed, "schedule")
    expected = []
    for block in range(5):
        schedule = draw_schedule(block, coins)
        expected += np.repeat(schedule.indices, np.diff(schedule.edges) * size).tolist()
    assert trace.law.tolist() == expected
    assert len(set(expected)) >= 4


# --- feature maps ----------------------------------------------------------------------------------------------------


def feature_maps(points, kernel):
    """The same Gram matrix by pivoted Cholesky, by eigenvectors, and rotated with three columns of zeros added."""
    gram = kernel(points)
    values, vectors = np.linalg.eigh(gram)
    eigen = vectors * np.sqrt(np.maximum(values, 0.0))
    padded = np.hstack([eigen, np.zeros((len(points), 3))])
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((padded.shape[1],) * 2))[0]
    return [
        ArmSet(points, kernel),
        ArmSet.from_features(eigen, points=points),
        ArmSet.from_features(padded @ rotation, points=points),
    ]


def test_feature_maps_with_the_same_gram_matrix_decide_alike_for_a_whole_run():
    """Appendix I: 2,000 rounds with changes, decision for decision; laws and estimates to 1e-6."""
    points = np.random.default_rng(1).uniform(0, 1, (15, 2))
    maps = feature_maps(points, RBF(0.3))
    assert [arms.rank for arms in maps] == [15, 15, 18]
    means = maps[0].features @ np.random.default_rng(2).standard_normal(15)
    means *= 0.8 / np.abs(means).max()
    traces, policies = [], []
    for arms in maps:
        world = Piecewise(arms, [means, -means, means], horizon=2000, switches=(700, 1400), noise=UniformNoise(0.1))
        policies.append(AdaOPKB(arms, horizon=2000, seed=5, constants=QUICK))
        traces.append(simulate(policies[-1], world, seed=5))
    first = traces[0]
    assert len(first.changes) >= 2
    for trace, policy in zip(traces[1:], policies[1:], strict=True):
        assert (trace.arm == first.arm).all()
        assert (trace.law == first.law).all()
        np.testing.assert_allclose(trace.probability, first.probability, atol=1e-6)
        np.testing.assert_allclose(policy.law(), policies[0].law(), atol=1e-6)
        np.testing.assert_allclose(policy.estimate(), policies[0].estimate(), atol=1e-6)
        assert [dataclasses.replace(c, statistic=0, before=(), after=()) for c in trace.changes] == [
            dataclasses.replace(c, statistic=0, before=(), after=(), threshold=t.threshold)
            for c, t in zip(first.changes, trace.changes, strict=True)
        ]
        assert [c.statistic for c in trace.changes] == pytest.approx([c.statistic for c in first.changes], rel=1e-5)


# --- late rewards ----------------------------------------------------------------------------------------------------


def fire_at_once(arms, horizon, size):
    """Constants that call any tested difference a change."""
    return with_block_size(arms, horizon, size, c0=1e-9)


def reward(arm):
    return np.cos(3.0 * np.asarray(arm))


@pytest.mark.parametrize(("missing", "found"), [(2, True), (3, False)])
def test_an_interval_is_tested_only_if_nine_tenths_are_told(missing, found):
    """Block 1 has 20 rounds; 18 told are enough, 17 are not."""
    arms = line()
    policy = AdaOPKB(arms, horizon=500, seed=seed_without_replays(), constants=fire_at_once(arms, 500, 10))
    batch = policy.ask(size=10)
    policy.tell(batch.ids, reward(batch.arms))
    batch = policy.ask(size=20)
    policy.tell(batch.ids[missing:], -reward(batch.arms[missing:]))
    policy.ask()
    assert bool(policy.changes) == found
    if found:
        assert policy.changes[0].round == 30
        assert policy.changes[0].interval == (10, 30)


def test_a_late_reward_joins_its_block_and_the_later_comparison():
    """Three rewards of block 0 come in block 1: C(0) as the test uses it, and the estimate, are from all ten."""
    arms = line()
    policy = AdaOPKB(arms, horizon=500, seed=seed_without_replays(), constants=fire_at_once(arms, 500, 10))
    law = np.array(policy.law())
    old = policy.ask(size=10)
    rewards = reward(old.arms)
    policy.tell(old.ids[3:], rewards[3:])
    new = policy.ask(size=20)
    np.testing.assert_allclose(policy.estimate(), estimate_of(arms, law, 1 / 500, old.arms[3:], rewards[3:]))
    policy.tell(old.ids[:3], rewards[:3])
    whole = estimate_of(arms, law, 1 / 500, old.arms, rewards)
    np.testing.assert_allclose(policy.estimate(), whole)
    policy.tell(new.ids, -reward(new.arms))
    (change,) = policy.changes
    np.testing.assert_allclose(change.before, whole[list(change.arms)])
    assert policy.late == 0


def test_a_late_reward_takes_back_a_comparison_already_made():
    """C(0) was evaluated, as zeros, when block 1 ended; a reward of block 0 told in block 2 shows when block 2 ends."""
    arms = line()
    constants = fire_at_once(arms, 500, 10)
    policy = AdaOPKB(arms, horizon=500, seed=seed_without_replays(2), constants=constants)
    law = np.array(policy.law())
    old = policy.ask(size=10)
    policy.tell(old.ids[1:], np.zeros(9))
    middle = policy.ask(size=20)
    policy.tell(middle.ids, np.zeros(20))
    last = policy.ask(size=40)
    assert policy.changes == ()  # all estimates are 0
    policy.tell(old.ids[0], 1.0)
    policy.tell(last.ids, np.zeros(40))
    (change,) = policy.changes
    # C(0) moved by a tenth of the reward's estimate, C(1) by a thirtieth.
    assert (change.round, change.compared_with) == (70, 0)
    whole = estimate_of(arms, law, 1 / 500, old.arms, [1.0, *np.zeros(9)])
    np.testing.assert_allclose(change.before, whole[list(change.arms)])


def test_a_reward_from_a_closed_epoch_is_counted_and_changes_nothing():
    arms = line()
    policy = AdaOPKB(arms, horizon=500, seed=seed_without_replays(), constants=fire_at_once(arms, 500, 10))
    held = policy.ask()
    batch = policy.ask(size=9)
    policy.tell(batch.ids, reward(batch.arms))
    batch = policy.ask(size=20)
    policy.tell(batch.ids, -reward(batch.arms))
    batch = policy.ask(size=4)  # moves on: the test fires
    assert [change.round for change in policy.changes] == [30]
    policy.tell(batch.ids, reward(batch.arms))
    before = policy.state_dict()
    policy.tell(held.id, 1.0)
    after = policy.state_dict()
    assert policy.late == 1
    assert policy.pending == 0
    assert_same(before["engine"], after["engine"])
    assert before["changes"] == after["changes"]
    assert before["draws"] == after["draws"]


def assert_same(one, other):
    """Equality of nested states with arrays."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    else:
        np.testing.assert_array_equal(one, other)


def test_nothing_told_at_all_gives_no_change_and_goes_on():
    arms = line()
    policy = AdaOPKB(arms, horizon=500, constants=fire_at_once(arms, 500, 10))
    batch = policy.ask(size=500)
    assert policy.changes == ()
    assert len(batch) == 500
    policy.forget(batch.ids)
    assert (policy.estimate() == 0).all()


# --- masks -----------------------------------------------------------------------------------------------------------


def test_a_mask_that_removes_mass_neither_advances_the_block_nor_teaches():
    arms = line()
    policy = AdaOPKB(arms, horizon=500, constants=with_block_size(arms, 500, 10))
    first = policy.ask(size=4)
    policy.tell(first.ids, reward(first.arms))
    left, law, known = policy.steady_rounds(), np.array(policy.law()), policy.estimate()
    assert left == 6
    mask = np.arange(9) != law.argmax()
    masked = policy.ask(size=25, allowed=mask)  # more than is left of the block
    assert policy.rounds == 29
    assert mask[masked.arms].all()
    np.testing.assert_allclose(masked.probabilities, law[masked.arms] / law[mask].sum())
    policy.tell(masked.ids, np.ones(25))
    assert policy.steady_rounds() == left
    np.testing.assert_array_equal(policy.law(), law)
    np.testing.assert_array_equal(policy.estimate(), known)
    assert policy.late == 0


def test_a_mask_that_removes_no_mass_counts_as_usual():
    arms = line(41)  # the optimal design on 41 points of a line plays a few of them
    constants = with_block_size(arms, 500, 10)
    free, masked = (OPKB(arms, horizon=500, seed=1, constants=constants) for _ in range(2))
    for _ in range(70):
        allowed = np.asarray(masked.law()) > 0
        assert not allowed.all()
        one, other = free.ask(), masked.ask(allowed=allowed)
        assert one == other
        for policy, choice in ((free, one), (masked, other)):
            policy.tell(choice.id, reward(choice.arm))
    assert_same(free.state_dict()["engine"], masked.state_dict()["engine"])


def test_masked_rounds_inside_an_interval_do_not_count_towards_its_test():
    arms = line()
    policy = AdaOPKB(arms, horizon=500, seed=seed_without_replays(), constants=fire_at_once(arms, 500, 10))
    told = {False: 0, True: 0}
    for t in range(45):
        masked = t % 3 == 2
        law = np.array(policy.law())
        choice = policy.ask(allowed=np.arange(9) != law.argmax() if masked else None)
        told[masked] += 1
        policy.tell(choice.id, 1.0 if masked else (-1) ** (told[False] > 10) * reward(choice.arm))
        if policy.changes:
            break
    assert told[False] == 30  # block 0 and block 1 in counted rounds
    assert policy.changes[0].round == policy.rounds == 44


# --- horizons --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("horizon", "found"), [(30, [30]), (29, []), (31, [30])])
def test_an_interval_that_ends_at_the_horizon_is_tested_and_a_cut_one_is_not(horizon, found):
    """E = 10: block 1 ends with round 30."""
    arms = line()
    policy = AdaOPKB(arms, horizon=horizon, seed=seed_without_replays(), constants=fire_at_once(arms, horizon, 10))
    for t in range(horizon):
        choice = policy.ask()
        policy.tell(choice.id, (-1) ** (t >= 10) * reward(choice.arm))
    assert [change.round for change in policy.changes] == found


def test_unknown_horizon_doubles_from_1024():
    """Ids, round counter and records go on; every phase is a fresh policy for its length, and no change."""
    arms = line()
    means = arms.features @ np.random.default_rng(3).standard_normal(arms.rank)
    means *= 0.8 / np.abs(means).max()
    world = Piecewise(arms, [means, -means, means], horizon=4000, switches=(500, 2000), noise=UniformNoise(0.1))
    policy = AdaOPKB(arms, seed=2, constants=QUICK)
    trace = simulate(policy, world, seed=0)
    known = AdaOPKB(arms, horizon=1024, seed=2, constants=QUICK)
    first = simulate(known, world, seed=0, rounds=1024)
    assert (trace.arm[:1024] == first.arm).all()
    early = [change for change in policy.changes if change.round <= 1024]
    assert tuple(early) == known.changes
    assert len(early) >= 1
    assert len(policy.changes) > len(early)
    assert policy.rounds == 4000
    assert not {1024, 3072} & {change.round for change in policy.changes}
    epochs = [change.epoch for change in policy.changes]
    assert epochs == sorted(epochs)


def test_unknown_horizon_starts_anew_with_the_longer_design_and_no_change():
    arms = line()
    policy = AdaOPKB(arms, constants=dataclasses.replace(QUICK, c0=1e6))
    for length, start in ((1024, 0), (2048, 1024), (4096, 3072)):
        assert policy.rounds == start
        fresh = AdaOPKB(arms, horizon=length, constants=dataclasses.replace(QUICK, c0=1e6))
        np.testing.assert_array_equal(policy.law(), fresh.law())
        assert policy.steady_rounds() == fresh.steady_rounds()
        batch = policy.ask(size=length)
        assert batch.ids.tolist() == list(range(start, start + length))
        policy.tell(batch.ids, reward(batch.arms))
    assert policy.changes == ()


def test_a_reward_from_before_a_doubling_is_late():
    arms = line()
    policy = AdaOPKB(arms, constants=QUICK)
    batch = policy.ask(size=1030)
    policy.tell(batch.ids[1020:], reward(batch.arms[1020:]))
    assert policy.late == 4
    known = policy.estimate()
    policy.tell(batch.ids[:3], np.ones(3))
    assert policy.late == 7
    np.testing.assert_array_equal(policy.estimate(), known)
    assert len({c.id for c in batch}) == 1030


def test_scale_of_the_theory_and_units_of_the_user_leave_estimates_in_place():
    """Rewards divided by S + B inside, mapped from (0, 10): the estimate is in the user's units all the same."""
    arms = line()
    plain = OPKB(arms, horizon=500, constants=with_block_size(arms, 500, 200))
    scaled = OPKB(arms, horizon=500, constants=with_block_size(arms, 500, 200, scale=3.5), reward_range=(0.0, 10.0))
    for policy, values in ((plain, lambda y: y), (scaled, lambda y: 5 + 5 * y)):
        batch = policy.ask(size=100)
        policy.tell(batch.ids, values(reward(batch.arms)))
    np.testing.assert_allclose(scaled.estimate(), 5 + 5 * plain.estimate(), rtol=1e-9, atol=1e-9)


def test_public_names_are_the_engine():
    assert db.AdaOPKB is AdaOPKB
    assert AdaOPKB.reports_changes
    assert not OPKB.reports_changes
