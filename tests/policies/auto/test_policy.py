"""AutoBandit as users meet it: laws, units, late rewards, saved state, odd arms, odd rewards, explanations."""

import json
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, AutoBandit
from driftbandits.errors import InputError, RewardError
from driftbandits.policies.auto import learning
from driftbandits.policies.auto import policy as module
from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.probing import MOST_PROBES_IN_A_ROW
from driftbandits.policies.auto.samples import MOST_SAMPLED
from driftbandits.policies.gp.timevarying import TimeVaryingGPUCB
from driftbandits.testing import POLICY_CHECKS
from tests.policies.auto import reference
from tests.policies.auto.reference import given

MEANS = np.array([0.1, -0.3, 0.6, 0.2, -0.1, 0.3, -0.4, 0.0])
MAKERS = {"given": partial(AutoBandit, kernel="given", floor=0.0)}


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_conforms(make, check):
    check(make)


def line(size=8, **settings):
    return ArmSet(np.linspace(0, 1, size)[:, None], RBF(0.1), **settings)


def play(policy, rounds, *, means=MEANS, noise=0.1, seed=0):
    """Rewards are normal about `means`, clipped; gives the arms."""
    rng, (low, high) = np.random.default_rng([seed, policy.rounds]), policy.reward_range
    arms = []
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, float(np.clip(means[choice.arm] + noise * rng.standard_normal(), low, high)))
        arms.append(choice.arm)
    return np.array(arms)


def late_and_lost(policy, rounds, *, flip, seed=0):
    """Rewards about 5 rounds late, in any order; one in ten never comes; all signs change in round `flip`."""
    rng, waiting = np.random.default_rng([seed, policy.rounds]), []
    for _ in range(rounds):
        choice = policy.ask()
        sign = 1.0 if choice.id < flip else -1.0
        waiting.append((choice.id, float(np.clip(sign * MEANS[choice.arm] + 0.05 * rng.standard_normal(), -1, 1))))
        if len(waiting) > 5:
            ident, reward = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.1:
                policy.forget(ident)
            else:
                policy.tell(ident, reward)


# --- the law ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [0.0, 0.001, 0.3])
def test_the_law_adds_up_and_keeps_its_floor(floor):
    policy = AutoBandit(line(), floor=floor)
    for _ in range(12):
        law = policy.law()
        assert law.sum() == pytest.approx(1.0)
        assert law.min() >= floor / 8 - 1e-15
        play(policy, 20)


def p_value(arms, law):
    """That `arms` were drawn from `law`, by chi-square; arms expected less than 5 times are taken together."""
    counts, expected = np.bincount(arms, minlength=len(law)), law * len(arms)
    assert (counts[law == 0] == 0).all()
    rare = expected < 5
    cells = [(counts[~rare], expected[~rare]), ([counts[rare].sum()], [expected[rare].sum()])]
    kept = cells if expected[rare].sum() >= 5 else cells[:1]
    observed, wanted = (np.concatenate(column) for column in zip(*kept, strict=True))
    return stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue if len(observed) > 1 else 1.0


@pytest.mark.parametrize("rounds", [0, 5, 60])
def test_arms_are_drawn_from_the_law(rounds):
    """20,000 draws each; with other seeds a correct program fails with probability 1e-4 per case."""
    policy = AutoBandit(line(), seed=3, floor=0.05)
    play(policy, rounds)
    law = policy.law().copy()
    assert p_value(policy.ask(size=20_000).arms, law) > 1e-4


@pytest.mark.parametrize("rounds", [5, 60])
def test_arms_allowed_are_drawn_with_the_probability_recorded(rounds):
    """10,000 draws each; with other seeds a correct program fails with probability 1e-4 per case."""
    policy, allowed = AutoBandit(line(), seed=3, floor=0.05), [1, 3, 4, 7]
    play(policy, rounds)
    drawn = policy.ask(size=10_000, allowed=allowed)
    assert set(drawn.arms) <= set(allowed)
    law = np.zeros(8)
    law[drawn.arms] = drawn.probabilities
    assert law.sum() == pytest.approx(1.0)
    assert law[allowed].min() >= 0.05 / 4 - 1e-15
    assert p_value(drawn.arms, law) > 1e-4


def test_the_mask_asks_for_the_best_allowed_arm():
    """Where the law itself has next to no mass, samples still know which is better."""
    policy = AutoBandit(line(), seed=0)
    play(policy, 200)
    drawn = policy.ask(size=500, allowed=[1, 5])
    assert np.mean(drawn.arms == 5) > 0.9


# --- what it computes -------------------------------------------------------------------------------------------


class OneRate(Mixture):
    """A single hypothesis per prior, which drifts."""

    rate = 0.02

    def __init__(self, beliefs):
        super().__init__(beliefs, rates=(self.rate,), slots=0, models=reference.WHITE_ALONE)


def test_with_one_rate_alone_it_believes_what_time_varying_gpucb_does(monkeypatch):
    """Known noise, one prior, no births: the means after every reward, over rounds without one."""
    ridge = 0.02
    monkeypatch.setattr(reference.priors_module, "SIGNAL_VARIANCES", (0.1,))
    monkeypatch.setattr(learning, "BIRTH_DEVIATIONS", math.inf)
    monkeypatch.setattr(module, "Beliefs", partial(Beliefs, known_noise=ridge))
    monkeypatch.setattr(module, "Mixture", OneRate)
    policy = AutoBandit(line(), kernel="given")
    features = reference.root_of(reference.covariance_of(given(line()), 0))
    other = TimeVaryingGPUCB(ArmSet.from_features(features), rate=OneRate.rate, ridge=ridge)
    rng = np.random.default_rng(0)
    for _ in range(80):
        allowed = [int(rng.integers(8))]
        choice, twin = policy.ask(allowed=allowed), other.ask(allowed=allowed)
        if rng.random() < 0.3:
            continue
        reward = float(rng.uniform(-1, 1))
        policy.tell(choice.id, reward)
        other.tell(twin.id, reward)
        np.testing.assert_allclose(policy.estimate(), other._posterior.mean(), atol=1e-8)


def test_it_finds_the_best_arm():
    policy = AutoBandit(line())
    assert np.mean(play(policy, 300)[150:] == 2) > 0.9
    assert policy.estimate()[2] == pytest.approx(0.6, abs=0.05)


def test_it_follows_a_change():
    policy = AutoBandit(line())
    play(policy, 300)
    arms = play(policy, 400, means=-MEANS)
    assert -MEANS[arms[300:]].mean() > 0.3  # 0.4 is the best, and what was best before has -0.6


@pytest.mark.parametrize("horizon", [None, 300])
def test_a_horizon_changes_nothing(horizon):
    policy, other = AutoBandit(line(), horizon=horizon), AutoBandit(line(), horizon=1000)
    assert (play(policy, 300) == play(other, 300)).all()


def test_batches_may_be_told_in_any_order():
    policy, rng = AutoBandit(line()), np.random.default_rng(0)
    for _ in range(10):
        batch = policy.ask(size=50)
        rewards = np.clip(MEANS[batch.arms] + 0.1 * rng.standard_normal(50), -1, 1)
        order = rng.permutation(50)
        for part in (order[:30], order[30:]):
            policy.tell(batch.ids[part], rewards[part])
        assert policy.pending == 0
    assert np.mean(batch.arms == 2) > 0.9


def test_an_arm_is_doubted_for_a_few_of_its_rewards_only():
    """Five changes."""
    longest = row = 0
    policy, doubted = AutoBandit(line()), -1
    for part in range(5):
        for _ in range(300):
            arm = int(play(policy, 1, means=MEANS * (-1) ** part)[0])
            row = row + 1 if arm == doubted == policy._probing.doubted >= 0 else 0
            longest, doubted = max(longest, row), policy._probing.doubted
    assert longest <= MOST_PROBES_IN_A_ROW


# --- units ------------------------------------------------------------------------------------------------------


def in_units(low, high, *, rounds=200):
    """Arms, probabilities and estimates in [-1, 1], with rewards mapped to [low, high]."""
    policy, rng = AutoBandit(line(), reward_range=(low, high)), np.random.default_rng(0)
    middle, half = (low + high) / 2, (high - low) / 2
    arms, probabilities = [], []
    for now in range(rounds):
        choice = policy.ask()
        mean = MEANS[choice.arm] * (1 if now < 120 else -1)
        reward = round(float(np.clip(mean + 0.1 * rng.standard_normal(), -1, 1)) * 2**20) / 2**20
        policy.tell(choice.id, middle + half * reward)
        arms.append(choice.arm)
        probabilities.append(choice.probability)
    return arms, probabilities, (policy.estimate() - middle) / half, policy


@pytest.mark.parametrize(("low", "high"), [(-4.0, 4.0), (0.0, 128.0), (-1.25, -0.75)])
def test_units_that_are_powers_of_two_change_no_bit(low, high):
    arms, probabilities, _, _ = in_units(-1.0, 1.0)
    others = in_units(low, high)
    assert others[0] == arms
    assert others[1] == probabilities


def test_other_units_change_next_to_nothing():
    arms, probabilities, estimate, policy = in_units(-1.0, 1.0, rounds=100)
    others = in_units(0.0, 100.0, rounds=100)
    assert others[0] == arms
    np.testing.assert_allclose(others[1], probabilities, atol=1e-6)
    np.testing.assert_allclose(others[2], estimate, atol=1e-6)
    np.testing.assert_allclose(others[3].law(), policy.law(), atol=1e-6)


# --- state ------------------------------------------------------------------------------------------------------


def as_text(policy):
    return json.dumps(policy.state_dict(), default=lambda array: array.tolist())


@pytest.mark.parametrize("kernel", ["auto", "given"])
def test_restored_amid_a_change_it_goes_on_bit_for_bit(kernel, tmp_path):
    """With late and missing rewards, and pending ones in the state."""
    policy = AutoBandit(line(), seed=5, kernel=kernel)
    late_and_lost(policy, 163, flip=150)
    assert policy.pending
    policy.save(tmp_path / "state")
    others = [
        AutoBandit.restore(line(), policy.state_dict()),
        AutoBandit.load(line(), tmp_path / "state"),
    ]
    late_and_lost(policy, 120, flip=150)
    for other in others:
        late_and_lost(other, 120, flip=150)
        np.testing.assert_array_equal(other.law(), policy.law())
        assert as_text(other) == as_text(policy)


def arrays_in(state):
    values = state.values() if isinstance(state, dict) else state if isinstance(state, list) else []
    return [state] if isinstance(state, np.ndarray) else [array for value in values for array in arrays_in(value)]


def test_no_state_grows_with_time():
    """Bytes of all arrays, after 500 and 3,000 rounds with changes every 250: at most those of a full stack."""
    policy, sizes = AutoBandit(line(4), kernel="given"), []
    for part in range(12):
        play(policy, 250, means=MEANS[:4] * (-1) ** part)
        sizes.append(sum(array.nbytes for array in arrays_in(policy.state_dict())))
    rows = len(policy._beliefs.mean) / policy._beliefs.count
    assert sizes[-1] <= rows * MOST_SAMPLED * sizes[1]
    assert max(sizes[6:]) <= 1.5 * max(sizes[:6])
    assert policy._beliefs.count <= len(policy._beliefs.mean)
    assert len(policy.changes) <= 40


# --- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"kernel": "rbf"}, {"kernel": None}, {"floor": -1}, {"floor": 1}, {"floor": math.nan}, {"rank": 0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError):
        AutoBandit(line(), **wrong)


@pytest.mark.parametrize("reward", [math.nan, math.inf, 1.5, -1.0001])
def test_a_wrong_reward_changes_nothing(reward):
    policy = AutoBandit(line())
    play(policy, 30)
    choice = policy.ask()
    before = as_text(policy)
    with pytest.raises(RewardError):
        policy.tell(choice.id, reward)
    assert as_text(policy) == before
    policy.tell(choice.id, 0.1)


# --- odd rewards and arms ---------------------------------------------------------------------------------------


def test_rewards_of_zero_or_one_are_fine():
    policy, rng = AutoBandit(line(), reward_range=(0, 1)), np.random.default_rng(0)
    chances, arms = 0.5 + 0.6 * MEANS, []
    for _ in range(1200):
        choice = policy.ask()
        policy.tell(choice.id, float(rng.random() < chances[choice.arm]))
        arms.append(choice.arm)
    assert np.mean(np.array(arms[600:]) == 2) > 0.6
    assert policy.explain().noise == pytest.approx(math.sqrt(chances[2] * (1 - chances[2])), rel=0.35)


@pytest.mark.filterwarnings("ignore::driftbandits.errors.RewardRangeWarning")  # some are cut
def test_heavy_tails_are_fine():
    """Student's t with 1.5 degrees of freedom, clipped."""
    policy, rng = AutoBandit(line(), out_of_range="clip"), np.random.default_rng(0)
    arms = []
    for _ in range(1000):
        choice = policy.ask()
        policy.tell(choice.id, float(MEANS[choice.arm] + 0.05 * rng.standard_t(1.5)))
        arms.append(choice.arm)
    assert policy.clipped > 0
    assert np.mean(np.array(arms[500:]) == 2) > 0.7


def test_rewards_without_noise_are_fine():
    policy = AutoBandit(line())
    assert np.mean(play(policy, 600, noise=0.0)[300:] == 2) > 0.95
    assert np.isfinite(policy.law()).all()


@pytest.mark.parametrize("reward", [0.0, 1.0, -1.0])
def test_the_same_reward_for_ever_is_fine(reward):
    policy = AutoBandit(line(3))
    play(policy, 500, means=np.full(3, reward), noise=0.0)
    np.testing.assert_allclose(policy.estimate(), reward, atol=0.2)


ODD = {
    "matrix": ArmSet(np.zeros((8, 1)), np.exp(-np.abs(np.subtract.outer(np.arange(8), np.arange(8))))),
    "features": ArmSet.from_features(np.eye(8)[:, ::-1]),
    "one without features": ArmSet.from_features(np.vstack([np.eye(7), np.zeros(7)])),
    "one column constant": ArmSet(np.column_stack([np.arange(8.0), np.ones(8)]), RBF(1.0)),
    "all columns constant": ArmSet(np.ones((8, 2)), RBF(1.0)),
    "identical points": ArmSet(np.repeat([[0.0], [1.0], [2.0], [3.0]], 2, axis=0), RBF(0.5)),
    "units far apart": ArmSet(np.column_stack([np.arange(8.0), 1e9 * np.arange(8.0) % 3]), RBF(1.0)),
}


@pytest.mark.parametrize("kernel", ["auto", "given"])
@pytest.mark.parametrize("arms", ODD.values(), ids=ODD)
def test_odd_arms_are_played(arms, kernel):
    policy = AutoBandit(arms, kernel=kernel)
    play(policy, 60)
    assert policy.law().sum() == pytest.approx(1.0)
    assert np.isfinite(policy.estimate()).all()
    assert str(policy.explain())


@pytest.mark.parametrize("arms", [ODD["matrix"], ODD["features"], ODD["all columns constant"]], ids=str)
def test_arms_without_points_to_try_find_their_best(arms):
    assert np.mean(play(AutoBandit(arms), 300)[150:] == 2) > 0.85


@pytest.mark.parametrize("kernel", ["auto", "given"])
def test_a_single_arm_is_played(kernel):
    policy = AutoBandit(ArmSet([[0.5]]), kernel=kernel)
    assert (play(policy, 60, means=np.array([0.3])) == 0).all()
    assert policy.law().tolist() == pytest.approx([1.0])
    assert policy.estimate()[0] == pytest.approx(0.3, abs=0.1)


def test_thousands_of_arms_are_few_features():
    """A smooth function of two coordinates: an arm in the best twentieth within 250 rounds."""
    points = np.random.default_rng(0).random((3000, 2))
    means = np.cos(3 * points[:, 0]) * np.sin(3 * points[:, 1]) * 0.8
    policy = AutoBandit(ArmSet(points, RBF(0.3)), rank=50)
    arms = play(policy, 250, means=means)
    assert policy._beliefs.priors.width <= 51
    assert np.median(means[arms[200:]]) > np.quantile(means, 0.95)


# --- explaining -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told():
    policy = AutoBandit(line(names=list("abcdefgh")), reward_range=(-2.0, 2.0))
    play(policy, 800, noise=0.2)
    return policy


def test_an_explanation_has_eight_lines(told):
    lines = str(told.explain()).splitlines()
    sentences = ["After 800 rounds", "The best arm is c", "Inferior arms are re-tested"]
    heads = [*sentences, "dynamics ", "noise ", "length scale ", "best arms ", "probing "]
    assert len(lines) == len(heads)
    assert all(text.startswith(head) for text, head in zip(lines, heads, strict=True))


def test_explained_weights_add_up(told):
    explained = told.explain()
    assert sum(explained.memory.values()) == pytest.approx(1.0)
    assert sum(explained.length_scales.values()) == pytest.approx(1.0)


def test_explained_arms_are_in_order_and_inside_their_intervals(told):
    best = told.explain().best
    assert best[0].name == "c"
    assert [arm.mean for arm in best] == sorted((arm.mean for arm in best), reverse=True)
    assert all(arm.low < arm.mean < arm.high for arm in best)
    assert best[0].low < MEANS[2] < best[0].high
    assert best[0].mean == pytest.approx(told.estimate()[2], abs=0.02)


def test_explained_noise_is_in_the_units_of_the_rewards(told):
    assert told.explain().noise == pytest.approx(0.2, rel=0.2)


def test_explaining_changes_nothing(told):
    before = as_text(told)
    told.explain()
    assert as_text(told) == before


def test_nothing_told_can_be_explained():
    assert "After 0 rounds" in str(AutoBandit(line()).explain())


def test_explained_changes_are_those_recorded():
    policy = AutoBandit(line())
    play(policy, 300, noise=0.05)
    play(policy, 100, means=-MEANS, noise=0.05)
    explained = policy.explain()
    assert explained.changes == len(policy.changes) >= 1
    assert f"{len(policy.changes)} change found" in str(explained)
