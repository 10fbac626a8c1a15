"""Bandit over bandit: its blocks and candidates, and that inside it the base is the base."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits.policies.gp.forgetting import RestartLinUCB, SlidingWindowGPUCB, SlidingWindowLinUCB
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.policies.gp.weighted import DiscountedLinUCB, WeightedGPUCB
from driftbandits.policies.rivals.bob import BanditOverBandit, block_length, size_candidates
from driftbandits.policies.rivals.exp3 import LinearExp3
from driftbandits.testing import POLICY_CHECKS
from tests.policies.rivals.playing import play
from tests.policies.states import engine_of


def restart_linear(arms, **settings):
    return BanditOverBandit(arms, base="RestartLinUCB", learner="exp3p", **settings)


def restart_adversarial(arms, **settings):
    return BanditOverBandit(arms, base=LinearExp3, **settings)


def discounted(arms, **settings):
    return BanditOverBandit(arms, base=WeightedGPUCB, block=20, **settings)


MAKERS = [restart_linear, restart_adversarial, discounted]


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_conforms(make, check):
    check(make)


def wavy(t, a):
    return 0.5 * math.cos(a + 0.05 * t)


# --- blocks and candidates --------------------------------------------------------------------------------------


def test_candidates_follow_the_formula():
    assert size_candidates(1) == (1,)
    assert size_candidates(8) == (1, 2, 4, 8)  # 8^(2/3) is 3.9999999999999996 in floating point
    for block in (2, 3, 10, 27, 729, 1000, 4096, 46_340):
        steps = math.ceil(math.log(block))
        sizes = size_candidates(block)
        assert sizes[0] == 1
        assert sizes[-1] == block
        assert list(sizes) == sorted(set(sizes))
        for size, j in ((int(block ** (j / steps) + 1e-9), j) for j in range(steps + 1)):
            assert size in sizes
            assert size**steps <= block**j < (size + 1) ** steps


def test_block_lengths_follow_the_formulas():
    points = np.random.default_rng(0).standard_normal((50, 3))
    arms = db.ArmSet(points, RBF(0.5))
    assert block_length(horizon=10_000, dimension=10) == 1000
    assert block_length(horizon=100, dimension=1000) == 100
    assert BanditOverBandit(arms, horizon=10_000, base=SlidingWindowLinUCB).block == 300
    adversarial = BanditOverBandit(arms, horizon=10_000, base=LinearExp3)
    assert adversarial.block == math.floor(math.sqrt(10_000 * 3 * math.log(50)))
    kernel = BanditOverBandit(arms, horizon=10_000, base=SlidingWindowGPUCB, base_settings={"ridge": 0.05})
    gain = db.information_gain(arms, horizon=10_000, sigma=0.05)
    assert kernel.block == min(100 * round(gain / math.log1p(10_000 / 0.05)), 10_000)
    assert BanditOverBandit(arms, horizon=50, block=80).block == 50


@pytest.mark.parametrize(
    ("base", "setting"),
    [
        (SlidingWindowLinUCB, "window"),
        (RestartLinUCB, "period"),
        (DiscountedLinUCB, "discount"),
        (LinearExp3, "restart"),
    ],
)
def test_the_setting_is_that_of_the_base(arms, base, setting):
    policy = BanditOverBandit(arms, horizon=100, base=base, block=10)
    assert policy.setting == setting
    sizes = size_candidates(10)
    expected = tuple(1 - 1 / size for size in sizes if size > 1) if setting == "discount" else sizes
    assert policy.candidates == expected
    assert getattr(policy._inner, setting) == policy.candidate
    assert policy.candidate in policy.candidates
    assert policy.probabilities.sum() == pytest.approx(1.0)


def test_the_last_block_is_short(arms):
    policy = BanditOverBandit(arms, horizon=25, block=10, seed=0)
    lengths = set()
    for _ in range(25):
        policy.law()
        engine = engine_of(policy)
        lengths.add((engine["block_start"], engine["length"]))
        play(policy, wavy, 1)
    assert lengths == {(0, 10), (10, 10), (20, 5)}
    assert policy.law().sum() == pytest.approx(1.0)
    assert policy.estimate().shape == (6,)


def test_exp3_is_fed_the_reward_of_the_block(arms):
    policy = BanditOverBandit(arms, horizon=100, block=10, candidates=(2, 5, 9), seed=1)
    first = policy.candidates.index(policy.candidate)
    law = policy.probabilities.copy()
    gamma = math.sqrt(3 * math.log(3) / ((math.e - 1) * 10))
    rewards = [0.1 * k - 0.3 for k in range(10)]
    play(policy, lambda t, a: rewards[t], 10)
    x = 0.5 + sum(rewards) / 20
    weights = np.ones(3)
    weights[first] = math.exp(gamma * x / (3 * law[first]))
    assert np.allclose(policy.probabilities, (1 - gamma) * weights / weights.sum() + gamma / 3)


# --- inside it the base is the base -----------------------------------------------------------------------------


def test_one_block_and_one_candidate_is_the_base(arms):
    inside = BanditOverBandit(
        arms, horizon=200, seed=3, base=SlidingWindowGPUCB, block=200, candidates=[30], base_settings={"beta": 0.8}
    )
    alone = SlidingWindowGPUCB(arms, horizon=200, seed=3, window=30, beta=0.8)
    assert play(inside, wavy, 200) == play(alone, wavy, 200)
    assert np.array_equal(inside.estimate(), alone.estimate())


def test_one_block_of_exp3_is_exp3(arms):
    """With its laws numbered, its late rewards and its masks."""
    inside = BanditOverBandit(arms, horizon=300, seed=3, base=LinearExp3, block=300, candidates=[40])
    alone = LinearExp3(arms, horizon=300, seed=3, restart=40)
    for policy in (inside, alone):
        play(policy, wavy, 35)
        policy.tell(policy.ask(allowed=[1, 2]).id, 0.5)
        batch = policy.ask(size=12)
        policy.forget(batch.ids[:2])
        policy.tell(batch.ids[8:], np.full(4, 0.5))
        policy.tell(policy.ask().id, -0.5)
        policy.tell(batch.ids[2:8], np.full(6, 0.25))
    assert np.array_equal(inside.law(), alone.law())
    assert inside.late == alone.late > 0
    for engine in (engine_of(inside)["base"]["engine"], engine_of(alone)):
        assert len(engine["open"]["laws"]) == 0
    assert play(inside, wavy, 100) == play(alone, wavy, 100)


def test_candidates_come_from_a_stream_of_their_own(arms):
    """Other candidates, same draws: with windows longer than the block the decisions agree."""
    runs = [
        play(BanditOverBandit(arms, horizon=90, seed=5, block=15, candidates=sizes), wavy, 90)
        for sizes in ([20], [20, 30, 40])
    ]
    assert runs[0] == runs[1]


def test_the_base_starts_anew_in_every_block(arms):
    policy = BanditOverBandit(arms, horizon=90, seed=5, block=30, base=SlidingWindowGPUCB)
    play(policy, wavy, 30)
    assert engine_of(policy)["base"]["rounds"] == 0
    assert not policy.estimate().any()
    play(policy, wavy, 5)
    assert engine_of(policy)["base"]["rounds"] == 5


def test_rewards_of_closed_blocks_are_late(arms):
    policy = BanditOverBandit(arms, horizon=90, seed=5, block=10)
    batch = policy.ask(size=11)
    law = policy.probabilities.copy()
    policy.tell(batch.ids[:4], np.full(4, 0.9))
    assert policy.late == 4
    assert np.array_equal(policy.probabilities, law)
    policy.tell(int(batch.ids[10]), 0.9)
    assert policy.late == 4


def test_law_numbers_go_on_through_blocks(arms):
    for make in MAKERS:
        policy = make(arms, horizon=100, seed=0)
        numbers = []
        for _ in range(60):
            choice = policy.ask()
            numbers.append(choice.law)
            policy.tell(choice.id, 0.1)
        assert numbers == sorted(set(numbers))


# --- building ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": GPUCB},
        {"base": "NoSuchPolicy"},
        {"base": 3},
        {"learner": "exp4"},
        {"block": 0},
        {"candidates": []},
        {"candidates": [3, 3]},
        {"candidates": [0]},
        {"candidates": 5},
        {"failure_probability": 0.0},
        {"base_settings": {"window": 3}},
        {"base_settings": {"horizon": 3}},
        {"base_settings": {"depth": 3}},
    ],
)
def test_wrong_settings_are_refused(arms, wrong):
    with pytest.raises(db.errors.InputError):
        BanditOverBandit(arms, horizon=100, **wrong)


@pytest.mark.statistical
def test_it_learns_a_little():
    """On switching/1 with 3,000 rounds it loses less than uniform play; fixed seeds."""
    world = db.environments.create("switching", seed=0, size=20, dimension=2, horizon=3000, switches=(1500,))
    policy = BanditOverBandit(
        world.arms, horizon=3000, seed=0, base=SlidingWindowGPUCB, block=500, candidates=(50, 150, 500)
    )
    trace = db.simulate(policy, world, seed=0)
    uniform = world.best(0, 3000).sum() - world.means(0, 3000).mean(axis=1).sum()
    assert trace.regret.sum() < 0.7 * uniform
