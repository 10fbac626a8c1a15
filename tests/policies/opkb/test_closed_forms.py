"""The constants in closed form, each against the definition it is a shortcut for.

Designs of many arms: solved loosely and from one another, near the best all the same, and part of the state.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits import ArmSet, CalibratedOPKB
from driftbandits.design import effective_dimension, solve_design
from driftbandits.design.blocks import draw_schedule, replay_probability
from driftbandits.errors import StateError
from driftbandits.policies.opkb.closed_forms import (
    MOST_DESIGNS,
    REGRET_SHARE,
    SHORTEST_BLOCK,
    Designs,
    block_size,
    least_mixing,
    replay_scale,
    ridge,
)
from driftbandits.policies.opkb.parts import MANY_ARMS, best_design
from driftbandits.state import Reader
from driftbandits.testing.helpers import play, require_equal
from tests.policies.opkb.worlds import belief_of, epoch_of, levels_of

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True)
noises, signals = st.floats(1e-4, 1.0), st.floats(1 / 256, 1.0)


def random_law(rng, size, *, share=0.5):
    weights = rng.exponential(size=size) * (rng.random(size) < share)
    weights[rng.integers(size)] += 0.1
    return weights / weights.sum()


# --- ridge and block size ---------------------------------------------------------------------------------------


@PROPERTY
@given(noise=noises, signal=signals, rounds=st.floats(1, 1e8))
def test_the_ridge_is_the_nearest_power_of_the_root_of_2(noise, signal, rounds):
    exact = noise / (signal * rounds)
    rounded = ridge(noise, signal, rounds)
    steps = 2 * math.log2(rounded)
    assert steps == pytest.approx(round(steps), abs=1e-9)
    if exact > 2.0**-22:
        assert 2**-0.25 * (1 - 1e-9) <= rounded / exact <= 2**0.25 * (1 + 1e-9)
    assert rounded >= 2.0**-23


@PROPERTY
@given(noise=noises, signal=signals, seed=st.integers(0, 2**32 - 1))
def test_the_block_size_is_the_least_fixed_point(noise, signal, seed):
    """Any g that grows as the ridge falls, here sums of c / (c + lambda): against a scan from below."""
    rng = np.random.default_rng(seed)
    values = 10.0 ** rng.uniform(-6, 0, rng.integers(1, 300))

    def dimension(regulariser):
        return float((values / (values + regulariser)).sum())

    size = block_size(dimension, noise, signal)
    scanned = next(n for n in range(SHORTEST_BLOCK, 10_000) if n >= dimension(ridge(noise, signal, n)) - 1e-6)
    assert size == scanned


def test_the_block_size_of_a_design():
    """As the policy calls it: g of the optimal design. 60 arms hardly alike, a short first block."""
    features = ArmSet(np.linspace(0, 1, 60)[:, None], RBF(0.01)).features
    calls = []

    def dimension(regulariser):
        calls.append(regulariser)
        return effective_dimension(features, regulariser=regulariser)

    size = block_size(dimension, 0.01, 0.1)
    assert size > SHORTEST_BLOCK
    assert size >= dimension(ridge(0.01, 0.1, size)) - 1e-6
    assert size - 1 < dimension(ridge(0.01, 0.1, size - 1))
    assert len(calls) < 20


@pytest.mark.parametrize("regulariser", [1.0, 1e-2, 1e-4])
def test_the_effective_dimension_is_the_trace(regulariser):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((25, 8)) / 3
    design = solve_design(features, regulariser=regulariser).probabilities
    for law in (design, random_law(rng, 25)):
        S = features.T @ (law[:, None] * features) + regulariser * np.eye(8)
        trace = np.trace(np.linalg.solve(S, S - regulariser * np.eye(8)))
        known = effective_dimension(features, regulariser=regulariser, probabilities=law)
        assert known == pytest.approx(trace, rel=1e-8)
    assert effective_dimension(features, regulariser=regulariser, probabilities=design) == pytest.approx(
        effective_dimension(features, regulariser=regulariser), rel=1e-5
    )


@pytest.mark.parametrize("mode", ["practical", "theory"])
def test_the_constants_a_policy_has_are_those_of_the_table(mode):
    """Noise, signal and kernel as believed when the block began; E of block 0 stays for the epoch."""
    arms = ArmSet(np.linspace(0, 1, 12)[:, None], RBF(0.2))
    policy = CalibratedOPKB(arms, mode=mode, kernel="given", seed=3)
    rng = np.random.default_rng(0)
    policy.law()
    first = levels_of(policy)
    while len(epoch_of(policy).laws) < 3:
        choice = policy.ask()
        policy.tell(choice.id, float(0.3 * np.sin(choice.arm) + rng.uniform(-0.2, 0.2)))
    assert not policy.changes
    levels, belief, told = levels_of(policy), belief_of(policy), policy.rounds
    noise, signal = belief.noise_variance, belief.signal

    def dimension(regulariser):
        return effective_dimension(arms.features, regulariser=regulariser)

    assert levels.block_size == first.block_size == SHORTEST_BLOCK
    assert levels.regulariser == ridge(noise, signal, SHORTEST_BLOCK * 4)
    assert levels.dimension == pytest.approx(dimension(levels.regulariser), rel=1e-5)
    error = math.sqrt(noise * dimension(ridge(noise, signal, told)) / told)
    factor = math.sqrt(2 * math.log(2 * 12)) if mode == "theory" else 1.0
    assert levels.width == pytest.approx(factor * error, rel=1e-5)
    assert levels.beta(2) == pytest.approx(levels.dimension / levels.width)
    assert levels.largest_good_gap == pytest.approx((2.0 if mode == "theory" else 1.0) * levels.width)


# --- mixing -----------------------------------------------------------------------------------------------------


def largest_weight(features, law, regulariser):
    """max |phi(x)' S^-1 phi(a)| over all pairs."""
    S = features.T @ (law[:, None] * features) + regulariser * np.eye(features.shape[1])
    return np.abs(features @ np.linalg.solve(S, features.T)).max()


@PROPERTY
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 20), factor=st.floats(1.05, 5), power=st.floats(-4, -1))
def test_the_least_mixing_bounds_weights_and_no_smaller_does(seed, size, factor, power):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((size, 5))
    features /= np.linalg.norm(features, axis=1).max()
    regulariser = 10.0**power
    design = solve_design(features, regulariser=regulariser).probabilities
    law = random_law(rng, size, share=0.2)
    largest = factor * largest_weight(features, design, regulariser)
    share = least_mixing(features, law, design, regulariser, largest)
    assert 0 <= share <= 1
    mixed = (1 - share) * law + share * design
    assert largest_weight(features, mixed, regulariser) <= largest * (1 + 1e-6)
    if share == 0:
        assert largest_weight(features, law, regulariser) <= largest * (1 + 1e-6)
    else:
        less = max(share - 0.001, 0.0)
        assert largest_weight(features, (1 - less) * law + less * design, regulariser) > largest * (1 - 1e-6)


def test_mixing_is_needed_and_not_needed():
    """Three arms that have nothing to do with each other: leverages 1 / (P + lambda)."""
    features, design = np.eye(3), np.full(3, 1 / 3)
    law = np.array([0.98, 0.01, 0.01])
    # share m gives 0.01 + m (1/3 - 0.01): at most 10 as soon as that is 0.1 - 0.001
    share = least_mixing(features, law, design, 0.001, 10.0)
    assert share == pytest.approx((0.099 - 0.01) / (1 / 3 - 0.01), abs=1e-3)
    assert least_mixing(features, law, design, 0.001, 100.0) == 0.0
    assert least_mixing(features, law, design, 0.001, 1.0) == 1.0  # not even the design does


# --- replays ----------------------------------------------------------------------------------------------------


def planned_regret(laws, gaps, scale):
    """Of the last block, and of its replays by the chances of the schedule, both in units of E."""
    block = len(laws) - 1
    replays = sum(
        2 ** (block - m) * scale * replay_probability(m, block) * 2**m * float(law @ gaps)
        for m, law in enumerate(laws[:-1])
    )
    return 2**block * float(laws[-1] @ gaps), replays


@PROPERTY
@given(seed=st.integers(0, 2**32 - 1), blocks=st.integers(1, 8), decay=st.floats(0.3, 1.5))
def test_replays_cost_their_budget(seed, blocks, decay):
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(size=6)
    gaps[rng.integers(6)] = 0.0
    best = np.eye(6)[int(gaps.argmin())]
    # later laws play the best arm more often
    laws = (
        [(1 - decay**m / 2) * best + decay**m / 2 * random_law(rng, 6) for m in range(blocks)]
        if decay < 1
        else [random_law(rng, 6) for _ in range(blocks)]
    )
    scale = replay_scale(laws, gaps)
    assert 0 < scale <= 1 or laws[-1] @ gaps == 0
    planned, replays = planned_regret(laws, gaps, scale)
    if scale < 1:
        assert replays == pytest.approx(REGRET_SHARE * planned, rel=1e-9)
    else:
        assert replays <= REGRET_SHARE * planned * (1 + 1e-9)


def test_replays_are_free_where_nothing_is_lost():
    assert replay_scale([np.array([0.5, 0.5])] * 3, np.zeros(2)) == 1.0
    assert replay_scale([np.array([0.5, 0.5]), np.array([1.0, 0.0])], np.array([0.0, 1.0])) == 0.0


@pytest.mark.parametrize("scale", [0.0, 0.25, 1.0])
def test_a_scale_multiplies_the_chances_of_the_schedule(scale):
    """2,000 schedules of block 4: frequencies within 5 standard errors, so 1 in 10^5 seeds fails."""
    generator = np.random.default_rng(11)
    counts = np.zeros(4)
    for _ in range(2000):
        drawn = draw_schedule(4, generator, scale=scale)
        assert sum(replay.index == 4 for replay in drawn.replays) == 1
        for replay in drawn.replays:
            if replay.index < 4:
                counts[replay.index] += 1
    for index in range(4):
        slots, chance = 2000 * 2 ** (4 - index), scale * replay_probability(index, 4)
        assert abs(counts[index] - slots * chance) <= 5 * math.sqrt(slots * chance * (1 - chance))


@pytest.fixture(scope="module")
def many():
    return db.ArmSet(np.random.default_rng(0).random((MANY_ARMS + 200, 1)), RBF(0.2))


def objective(features, law, regulariser, costs):
    return (
        float(costs @ law)
        - np.linalg.slogdet(features.T @ (law[:, None] * features) + regulariser * np.eye(features.shape[1]))[1]
    )


def test_loose_designs_of_many_arms_are_near_the_exact_ones(many):
    """Two roads: the tight solve from nothing; a chain of loose ones, each from the one before."""
    features, near = many.features, None
    costs = 20.0 * np.square(many.points[:, 0] - 0.3)
    for regulariser in (0.1, 0.03, 0.01, 0.001):
        for asked in (np.zeros(len(many)), costs):
            found = best_design(features, regulariser, costs=asked, near=near).probabilities
            exact = solve_design(features, asked, regulariser=regulariser).probabilities
            off = objective(features, found, regulariser, asked) - objective(features, exact, regulariser, asked)
            assert -1e-5 < off <= 0.05
            near = found


def test_designs_of_few_arms_do_not_depend_on_what_was_found_before():
    features = np.random.default_rng(1).standard_normal((30, 4))
    once, often = Designs(30), Designs(30)
    for regulariser in 0.9 ** np.arange(MOST_DESIGNS + 5.0):
        often.at(0, features, regulariser)
    for regulariser in (1.0, 0.9**30):
        law, dimension = once.at(0, features, regulariser)
        assert (often.at(0, features, regulariser)[0] == law).all()
        assert dimension == effective_dimension(features, regulariser=regulariser, probabilities=law)
    assert once.export() == []


def test_a_dimension_of_many_arms_is_that_of_a_design_nearby(many):
    """Within a factor of 2, to 1 % of the exact one; where none is near, and of few arms, a design is solved."""
    designs = Designs(len(many))
    designs.at(0, many.features, 0.01)
    for regulariser in (0.005, 0.01 / np.sqrt(2.0), 0.01, 0.02):
        exact = solve_design(many.features, regulariser=regulariser).probabilities
        dimension = effective_dimension(many.features, regulariser=regulariser, probabilities=exact)
        assert designs.dimension(0, many.features, regulariser) == pytest.approx(dimension, rel=0.01)
    assert len(designs.export()) == 1
    designs.dimension(0, many.features, 0.05)
    designs.dimension(1, many.features, 0.01)
    assert [(item["kernel"], item["regulariser"]) for item in designs.export()] == [(0, 0.01), (0, 0.05), (1, 0.01)]


def test_designs_of_many_arms_are_saved(many):
    designs, again = Designs(len(many)), Designs(len(many))
    designs.at(0, many.features, 0.1)
    again.load([Reader(item) for item in designs.export()], [many.features])
    require_equal(again.export(), designs.export())
    assert (again.at(0, many.features, 0.05)[0] == designs.at(0, many.features, 0.05)[0]).all()
    assert again.at(0, many.features, 0.1)[1] == designs.at(0, many.features, 0.1)[1]
    item = designs.export()[0]
    for wrong in (
        {"kernel": 1},
        {"regulariser": 0.0},
        {"support": item["support"][::-1].copy()},
        {"masses": 2.0 * item["masses"]},
        {"masses": -item["masses"]},
    ):
        with pytest.raises(StateError):
            Designs(len(many)).load([Reader({**item, **wrong})], [many.features])
    with pytest.raises(StateError):
        Designs(30).load([Reader(item)], [many.features])


@pytest.mark.parametrize("kind", [db.CalibratedOPKB, db.AdaOPKB])
def test_a_policy_of_many_arms_goes_on_bit_for_bit(kind, many):
    policy = kind(many, seed=3)
    play(policy, 150)
    again = kind.restore(many, policy.state_dict())
    assert play(policy, 400) == play(again, 400)
    require_equal(policy.state_dict(), again.state_dict())
