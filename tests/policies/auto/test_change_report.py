"""When a change is said to be found, and what is said of it: on made-up hypotheses, and planted in rewards.

How often AutoBandit finds changes that are none, and that it finds those that are. All seeds are fixed.
"""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from driftbandits import ArmSet, AutoBandit
from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.policies.auto.change_report import ChangeReport
from driftbandits.policies.auto.mixture import LEVEL_SHIFT, LOCAL, PARTIAL, RESET, START
from driftbandits.policies.auto.successes import RateUnits
from tests.policies.auto.reference import given, line, take_in

SIZE = 8
BASE = np.array([0.1, -0.3, 0.6, 0.2, -0.1, 0.3, -0.4, 0.0])


def after_a_change(means, *, origin=RESET, rate=0.0):
    """A hypothesis that was told BASE, and one born at round 100 that was then told `means` too, of all arms."""
    beliefs = Beliefs(given(line(SIZE, scale=0.05)), 2, known_noise=0.001)
    beliefs.write(0, kind=0, birth=0, noise=0.001, origin=START)
    for arm in range(SIZE):
        take_in(beliefs, arm, BASE[arm])
    watch = ChangeReport(beliefs, SIZE)
    watch.settle(np.ones(1), beliefs.reading(0)[0])
    if origin == RESET:
        beliefs.write(1, kind=0, birth=100, rate=rate, noise=0.001, origin=origin)
    else:
        widening = {"breadth": 0.0, "level": 1.0} if origin == LEVEL_SHIFT else {"breadth": 1.0, "level": 0.0}
        beliefs.copy(0, 1, birth=100, origin=origin, **widening)
    for arm in range(SIZE):
        take_in(beliefs, arm, means[arm])
    return watch


def test_a_change_is_found_where_the_weight_has_left_the_old():
    found = after_a_change(-BASE).find_change(np.array([1e-9, 1.0]), 130)
    assert found.birth == 100
    assert found.odds == pytest.approx(1e9)


def test_arms_that_moved_are_named_with_both_rewards():
    means = np.where(np.arange(SIZE) < 3, -BASE, BASE)
    found = after_a_change(means).find_change(np.array([1e-9, 1.0]), 130)
    assert found.moved.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.before, BASE[:3], atol=0.02)
    np.testing.assert_allclose(found.after, -BASE[:3], atol=0.02)


@pytest.mark.parametrize("weights", [[0.2, 0.8], [1.0, 1e-9]], ids=["not sure", "no"])
def test_nothing_is_found_while_the_old_has_weight(weights):
    watch = after_a_change(-BASE)
    assert watch.find_change(np.array(weights), 130) is None
    assert watch.epoch == 0


def test_what_drifts_is_no_change():
    assert after_a_change(-BASE, rate=0.1).find_change(np.array([0.3, 0.7]), 130) is None


def test_a_change_is_found_once():
    watch = after_a_change(-BASE)
    assert watch.find_change(np.array([1e-9, 1.0]), 130) is not None
    assert watch.find_change(np.array([1e-9, 1.0]), 131) is None
    assert (watch.regime, watch.epoch) == (130, 1)


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (RESET, "all rewards before round 100"),
        (PARTIAL, "part of the information from before round 100"),
        (LEVEL_SHIFT, "the level of all rewards"),
        (LOCAL, "all rewards of the arms that moved"),
    ],
)
def test_it_says_what_was_forgotten(origin, words):
    assert words in after_a_change(BASE - 0.5, origin=origin).find_change(np.array([1e-9, 1.0]), 130).forgot


def test_a_level_shift_moves_all_arms():
    found = after_a_change(BASE - 0.5, origin=LEVEL_SHIFT).find_change(np.array([1e-9, 1.0]), 130)
    assert found.moved.tolist() == list(range(SIZE))
    np.testing.assert_allclose(found.after, BASE - 0.5, atol=0.05)


def test_beliefs_of_a_change_not_yet_found_are_not_kept_for_comparison():
    watch = after_a_change(-BASE)
    before = watch.before
    watch.settle(np.array([0.5, 0.5]), np.zeros(SIZE))
    assert watch.before is before
    few = np.array([1.0 - 1e-3, 1e-3])
    watch.settle(few, np.zeros(SIZE))
    assert watch.before is before or (watch.before == before).all()  # a change may have begun since the last call
    watch.settle(few, np.ones(SIZE))
    assert (watch.before == 0).all()


def test_rewards_never_settled_are_not_said_to_have_been_zero():
    """What the rewards before the change say takes the place of settled estimates."""
    watch = after_a_change(-BASE)
    fresh = ChangeReport(watch._beliefs, SIZE)
    found = fresh.find_change(np.array([1e-9, 1.0]), 130)
    np.testing.assert_allclose(found.before, BASE[found.moved], atol=0.1)


def test_reading_in_features_is_reading_in_arms():
    points = np.tile([[0.0], [0.3], [1.0]], (3, 1))
    priors = given(ArmSet(points, {"name": "rbf", "length_scale": 0.3}))
    beliefs = Beliefs(priors, 1, known_noise=0.01)
    beliefs.write(0, kind=0, birth=0, noise=0.01)
    take_in(beliefs, 4, 0.7)
    covariance = priors.rows.of(0) @ beliefs.covariance(0) @ priors.rows.of(0).T
    mean, variance = beliefs.reading(0)
    np.testing.assert_allclose(variance, covariance.diagonal(), atol=1e-12)
    np.testing.assert_allclose(mean, priors.rows.of(0) @ beliefs.mean[0])


# --- planted in rewards -----------------------------------------------------------------------------------------

CHANGE = 240


def changes_found(after, seed, *, rounds=400):
    """Records of a run in which arms are played at random and their rewards become `after` in round 240."""
    arms = ArmSet(np.linspace(0, 1, SIZE)[:, None], {"name": "rbf", "length_scale": 0.05}, names=list("abcdefgh"))
    policy, rng = AutoBandit(arms, seed=seed), np.random.default_rng(seed)
    for now in range(rounds):
        choice = policy.ask(allowed=[int(rng.integers(SIZE))])
        mean = (BASE if now < CHANGE else after)[choice.arm]
        policy.tell(choice.id, float(np.clip(mean + 0.05 * rng.standard_normal(), -1, 1)))
    return policy.changes


@pytest.mark.parametrize("seed", range(3))
def test_a_flip_is_found_with_its_round_and_rewards(seed):
    (change,) = changes_found(-BASE, seed, rounds=300)
    assert CHANGE < change.round <= CHANGE + 40
    assert CHANGE - 3 <= change.interval[0] <= CHANGE + 15
    assert change.arms
    arms = list(change.arms)
    np.testing.assert_allclose(change.before, BASE[arms], atol=0.1)
    assert np.abs(np.array(change.after) + BASE[arms]).mean() < 0.2
    assert change.names == tuple("abcdefgh"[arm] for arm in arms)
    assert change.statistic > change.threshold


def test_the_arms_that_moved_are_named():
    """Exactly, in at least 3 of 4 runs (measured: 6 of 6)."""
    means = np.where(np.isin(np.arange(SIZE), [2, 6]), -BASE, BASE)
    records = [changes_found(means, seed, rounds=340) for seed in range(4)]
    assert sum(len(found) == 1 and found[0].arms == (2, 6) for found in records) >= 3


def test_a_shift_of_all_rewards_is_recorded_as_one_of_the_level():
    """In at least 3 of 10 runs; others may call it a partial change (measured: 7 of 16)."""
    records = [changes_found(BASE - 0.5, seed, rounds=270) for seed in range(10)]
    assert all(records)
    assert sum("level" in found[0].forgot for found in records) >= 3


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found_where_nothing_changes(seed):
    assert changes_found(BASE, seed) == ()


# --- arms that have nothing in common, and rewards of two values: a change shows slowly -------------------------

RATES = np.array([0.12, 0.04, 0.06, 0.02, 0.05])
LATER = np.array([0.03, 0.15, 0.06, 0.02, 0.05])


def slow_change():
    """Five rates learned by one hypothesis of all rewards and one of those since round 4,000; 1,200 came since.

    What was settled on last is what those who drift believe by then: the new world.
    """
    arms = ArmSet.separate(["storm", "derby", "recipe", "horoscope", "traffic"])
    beliefs = Beliefs(given(arms), 2)
    beliefs.units = RateUnits(0.06, np.full(5, 2.0))
    noise = beliefs.units.noise
    beliefs.write(0, kind=0, birth=0, noise=noise, origin=START)
    for arm, plays in enumerate([3_200, 200, 200, 200, 200]):
        beliefs.absorb(arm, beliefs.units.coordinate(RATES[arm]), noise / plays)
    beliefs.write(1, kind=0, birth=4_000, noise=noise, origin=RESET)
    for arm, plays in enumerate([500, 500, 60, 60, 60]):
        beliefs.absorb(arm, beliefs.units.coordinate(LATER[arm]), noise / plays)
    watch = ChangeReport(beliefs, 5)
    watch.settle(np.array([1.0, 0.0]), beliefs.units.rewards(beliefs.mean[1, :-1]))
    return watch


def test_arms_are_named_by_what_was_forgotten_of_them_though_those_who_drift_followed_the_change():
    found = slow_change().find_change(np.array([1e-5, 1.0]), 5_200)
    assert found.moved.tolist() == []  # what decisions rest on
    assert found.named.tolist() == [0, 1]
    np.testing.assert_allclose((found.named_before + 1.0) / 2.0, RATES[:2], atol=0.015)
    np.testing.assert_allclose((found.named_after + 1.0) / 2.0, LATER[:2], atol=0.015)


def test_arms_that_moved_are_named_whoever_was_forgotten():
    means = np.where(np.arange(SIZE) < 3, -BASE, BASE)
    found = after_a_change(means).find_change(np.array([1e-9, 1.0]), 130)
    assert found.named.tolist() == found.moved.tolist()
    np.testing.assert_array_equal(found.named_before, found.before)
    np.testing.assert_array_equal(found.named_after, found.after)


def test_where_the_old_hypothesis_is_gone_those_that_moved_are_named():
    found = after_a_change(-BASE).find_change(np.array([0.0, 1.0]), 130)
    assert found.named.tolist() == found.moved.tolist() != []


@pytest.mark.parametrize("seed", [15, 19])
def test_a_change_of_rates_is_recorded_with_the_arms_it_came_from(seed):
    names = ["storm", "derby", "recipe", "horoscope", "traffic"]
    policy = AutoBandit(ArmSet.separate(names), reward_range=(0, 1), seed=seed)
    rng = np.random.default_rng(seed)
    policy.ask()
    while not policy.changes and policy.rounds < 5_500:
        choice = policy.ask()
        policy.tell(choice, float(rng.random() < (RATES if policy.rounds <= 4_001 else LATER)[choice.arm]))
    (change,) = policy.changes
    assert set(change.names) == {"storm", "derby"}
    arms = list(change.arms)
    np.testing.assert_allclose(change.before, RATES[arms], atol=0.03)
    np.testing.assert_allclose(change.after, LATER[arms], atol=0.04)


pytestmark = pytest.mark.statistical


def smooth_world(seed, size=20):
    """Arms of the unit square and a reward function that their kernel may have, largest 0.8."""
    rng = np.random.default_rng(seed)
    arms = ArmSet(rng.random((size, 2)), RBF(0.3))
    means = arms.features @ rng.standard_normal(arms.rank)
    return arms, means * 0.8 / np.abs(means).max(), rng


def play(policy, means, rng, rounds):
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice.id, float(np.clip(means[choice.arm] + 0.1 * rng.standard_normal(), -1, 1)))


def test_few_false_alarms():
    """At most one record in 12 stationary runs of 1,500 rounds.

    Measured on other seeds: none in 30 runs, so below 0.1 per run with 95 % confidence; at 0.02 per run a correct
    program would fail with probability 0.02 on seeds drawn anew.
    """
    records = 0
    for seed in range(12):
        arms, means, rng = smooth_world(seed)
        policy = AutoBandit(arms, seed=seed)
        play(policy, means, rng, 1500)
        records += len(policy.changes)
    assert records <= 1


def test_a_flip_is_found_soon():
    """In all of 10 runs within 150 rounds, in at least 8 within 80.

    Measured on other seeds: all of 30 within 78, half of them within 13; so a later one has a rate below 0.1 with 95 %
    confidence, at which a correct program would fail with probability 0.07 on seeds drawn anew.
    """
    delays = []
    for seed in range(10):
        arms, means, rng = smooth_world(100 + seed)
        policy = AutoBandit(arms, seed=seed)
        play(policy, means, rng, 300)
        while not policy.changes or policy.changes[-1].round <= 300:
            play(policy, -means, rng, 1)
            assert policy.rounds <= 450
        delays.append(policy.rounds - 300)
    assert sum(delay <= 80 for delay in delays) >= 8
