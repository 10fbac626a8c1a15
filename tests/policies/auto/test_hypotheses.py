"""Chances of success as coordinates: against Beta posteriors, one reward at a time, and another centre.

Rewards of two values: when they are taken for successes and failures, and what AutoBandit then does.
"""

import copy
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given as using

from driftbandits import ArmSet, AutoBandit
from driftbandits.errors import StateError
from driftbandits.policies.auto.beliefs import TERMS_GATHERED, Beliefs
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.successes import (
    COUNTED,
    LOW,
    RARER_FOR_A_FIRM_CENTRE,
    REWARDS_FOR_A_SHARE,
    News,
    RateUnits,
    Tally,
    TwoValued,
)
from tests.policies.auto.reference import given, line, plane

ARMS = {"arms": line(), "features": plane()}


def believing(arms, units, rows=2):
    """Hypotheses about the chances of these arms, none of which forgets."""
    beliefs = Beliefs(given(arms), rows)
    beliefs.units = units
    for row in range(rows):
        beliefs.write(row, kind=row % beliefs.priors.count, birth=0, noise=units.noise)
    return beliefs


def see(beliefs, arm, *, success):
    step = beliefs.observe(beliefs.forecast(arm), beliefs.units.coordinate(float(success)))
    if beliefs.gathered == TERMS_GATHERED:
        beliefs.flush()
    return step


@pytest.mark.parametrize("centre", [0.002, 0.024, 0.2, 0.8, 0.999])
def test_no_prior_deviates_by_more_than_the_rarer_chance(centre):
    units = RateUnits(centre, np.array([2.0]))
    deviation = units.spread * math.sqrt(given(ArmSet([[0.0]])).prior.max())
    assert deviation <= min(centre, 1 - centre) * (1 + 1e-12)


def test_between_the_ends_the_prior_is_the_usual_one():
    assert RateUnits(0.5, np.array([2.0])).sizes.tolist() == [1.0]


@pytest.mark.parametrize(("plays", "successes"), [(1, 0), (60, 0), (60, 5), (400, 11)])
def test_the_mean_of_a_single_arm_is_that_of_a_beta_posterior(plays, successes):
    """With deviation p, the prior is worth (1 - p) / p rewards of mean p."""
    p = 0.024
    beliefs = believing(ArmSet([[0.0]]), RateUnits(p, np.array([2.0])), rows=1)
    for number in range(plays):
        see(beliefs, 0, success=number < successes)
    mean = p + beliefs.units.spread * float(beliefs.mean[0, 0])
    assert mean == pytest.approx((successes + 1 - p) / (plays + (1 - p) / p), rel=1e-9)


@pytest.mark.parametrize(("plays", "successes"), [(0, 0), (60, 0), (60, 3), (1000, 44)])
@pytest.mark.parametrize("mirrored", [False, True])
def test_samples_are_those_of_a_beta_posterior(plays, successes, mirrored):
    """Mean, deviation, quantiles of 40,000 samples: within a tenth of the deviation of Beta(1 + k, 1 / p + n - k)."""
    p, generator = 0.024, np.random.default_rng(0)
    units = RateUnits(1 - p if mirrored else p, np.array([2.0]))
    variance = 1.0 / (plays / units.noise + 1.0 / 0.3)
    share = (successes / plays if plays else p) - p
    mean = variance * plays / units.noise * share / units.spread * (-1 if mirrored else 1)
    samples = mean + math.sqrt(variance) * generator.standard_normal((40_000, 1))
    drawn = (units.sampled_rewards(np.vstack([[[mean]], samples])[None])[0, :, 0] - LOW) / 2.0
    rare = 1.0 - drawn if mirrored else drawn
    exact = generator.beta(1 + successes, 1 / p + plays - successes, 40_000)
    tenth = 0.1 * exact.std()
    assert rare.mean() == pytest.approx(exact.mean(), abs=tenth)
    assert rare.std() == pytest.approx(exact.std(), abs=tenth)
    for level in (0.05, 0.5, 0.95):
        assert np.quantile(rare, level) == pytest.approx(np.quantile(exact, level), abs=2 * tenth)


def test_success_and_failure_have_probability_one_together():
    units, coordinates = RateUnits(0.03, np.ones(3)), np.array([-5.0, -0.6, 0.0, 2.0, 50.0])
    both = np.exp(units.likelihood(coordinates, success=True)) + np.exp(units.likelihood(coordinates, success=False))
    np.testing.assert_allclose(both, 1.0, rtol=1e-12)


def test_nothing_is_ruled_out_and_what_is_expected_of_the_unknown_is_the_centre():
    units = RateUnits(0.03, np.ones(1))
    rates = units.rates(np.array([-1e6, 0.0, 1e6]))
    assert 1e-4 < rates[0] < 1e-3
    assert rates[1] == pytest.approx(0.03, rel=1e-12)
    assert 0.9 < rates[2] < 1.0 - 1e-4
    assert units.surprise(0.0, success=True) == 0.0


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_what_is_learned_at_once_is_what_is_learned_one_by_one(arms):
    """Means and variances of two priors; the density of all tallies is that of a normal law over the arms."""
    units, generator = RateUnits(0.1, np.full(len(arms), 2.0)), np.random.default_rng(1)
    plays = generator.integers(0, 30, len(arms))
    one_by_one, at_once = believing(arms, units), believing(arms, units)
    successes = generator.binomial(plays, 0.1)
    density = np.zeros(2)
    for arm in np.flatnonzero(plays).tolist():
        for number in range(plays[arm]):
            see(one_by_one, arm, success=number < successes[arm])
        density += at_once.absorb(arm, units.coordinate(successes[arm] / plays[arm]), units.noise / plays[arm])
    for row in range(2):
        for mine, other in zip(at_once.reading(row), one_by_one.reading(row), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-12)
    told = plays > 0
    prior = believing(arms, units).covariance(0)
    read = np.eye(len(arms), len(arms) + 1) if at_once.priors.rows is None else at_once.priors.rows.of(0)
    covariance = (read @ prior @ read.T)[np.ix_(told, told)] + np.diag(units.noise / plays[told])
    seen = (successes[told] / plays[told] - units.centre) / units.spread
    exact = -0.5 * (np.linalg.slogdet(covariance)[1] + seen @ np.linalg.solve(covariance, seen))
    assert density[0] == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_another_centre_changes_nothing_of_what_is_believed(arms):
    """Chances and their deviations stay; what is new afterwards begins at the new centre."""
    reach = np.linspace(0.5, 2.0, len(arms))
    before, after = RateUnits(0.1, reach), RateUnits(0.03, reach)
    beliefs = believing(arms, before)
    for number in range(40):
        see(beliefs, number % len(arms), success=number % 7 == 0)
    chances = [before.centre + before.spread * beliefs.at(beliefs.mean[:2], arm) for arm in range(len(arms))]
    deviations = [before.spread * np.sqrt(beliefs.forecast(arm).variance) for arm in range(len(arms))]
    beliefs.units = after
    beliefs.change_units(before, after)
    for arm in range(len(arms)):
        now = after.centre + after.spread * beliefs.at(beliefs.mean[:2], arm)
        np.testing.assert_allclose(now, chances[arm], rtol=1e-9)
        np.testing.assert_allclose(after.spread * np.sqrt(beliefs.forecast(arm).variance), deviations[arm], rtol=1e-7)
    beliefs.write(1, kind=0, birth=3, noise=after.noise)
    np.testing.assert_allclose(beliefs.reading(1)[0], LOW + reach * after.centre, rtol=1e-12)


def test_learning_anew_weighs_the_priors_by_what_was_counted():
    """Ten arms whose chances go up and down from one to the next: independent arms are likelier than smooth ones."""
    arms = line()
    priors = given(arms)
    beliefs = Beliefs(priors, Mixture.capacity(priors.count))
    beliefs.units = RateUnits(0.2, np.full(10, 2.0))
    mixture = Mixture(beliefs)
    alternating = [Tally(arm, beliefs.units.coordinate(0.05 if arm % 2 else 0.35), 1e-3) for arm in range(10)]
    mixture.learn_anew(0, alternating)
    rough = mixture.kinds()
    mixture.learn_anew(0, [Tally(arm, beliefs.units.coordinate(0.2), 1e-3) for arm in range(10)])
    assert rough[0] > 0.9  # the prior of the larger signal
    assert mixture.kinds()[0] < 0.1


SIX_ARMS = ArmSet(np.linspace(0, 1, 6)[:, None])
CHANCES = np.array([0.02, 0.1, 0.04, 0.06, 0.03, 0.05])


def play(policy, rounds, *, rng, chances=CHANCES, values=None):
    """Bernoulli rewards; a success pays `values`, 1 by default."""
    paid = np.ones(len(chances)) if values is None else values
    for _ in range(rounds):
        choice = policy.ask()
        policy.tell(choice, float(paid[choice.arm] * (rng.random() < chances[choice.arm])))


def shop(seed=0, **settings):
    return AutoBandit(SIX_ARMS, seed=seed, **{"reward_range": (0.0, 1.0), **settings})


# --- which rewards have two values ------------------------------------------------------------------------------------


def test_it_begins_with_both_kinds_and_ends_for_good_where_most_rewards_are_successes_that_vary():
    rewards = TwoValued(2)
    assert [rewards.take(0, -1.0) for _ in range(5)] == [News.NONE] * 5
    assert not rewards.active
    assert rewards.take(1, 0.25) is News.LEARN_ANEW
    assert rewards.active
    assert rewards.take(1, 0.5) is News.LEARN_ANEW
    assert rewards.varying
    taken = [rewards.take(1, 0.01 * number) for number in range(30)]
    assert taken.index(News.END) + 7 == REWARDS_FOR_A_SHARE
    assert not rewards.active
    assert rewards.take(1, -1.0) is News.NONE
    assert rewards.told == REWARDS_FOR_A_SHARE + 5  # all but the one that ended it, which is learned by itself
    for _ in range(2 * COUNTED):
        rewards.take(1, 0.3)
    assert rewards.told == COUNTED + 1


def test_rewards_that_never_were_two_valued_are_no_news():
    rewards = TwoValued(2)
    assert {rewards.take(0, 0.01 * number) for number in range(REWARDS_FOR_A_SHARE)} == {News.NONE}
    assert rewards.take(0, -1.0) is News.NONE
    assert rewards.over
    assert rewards.units is None


def test_every_arm_has_a_value_of_its_own_and_one_without_success_that_of_the_others():
    rewards = TwoValued(3)
    for arm, reward in ((0, 0.0), (1, 1.0), (2, -1.0)):
        rewards.take(arm, reward)
    np.testing.assert_array_equal(rewards.units.reach, [1.0, 2.0, 1.5])
    rewards.take(2, -0.5)
    np.testing.assert_array_equal(rewards.units.reach, [1.0, 2.0, 0.5])


@using(
    st.lists(
        st.tuples(st.integers(0, 2), st.one_of(st.just(-1.0), st.just(-1.0), st.floats(-0.9, 1.0))),
        min_size=1,
        max_size=60,
    )
)
def test_what_was_counted_of_an_arm_has_the_mean_of_its_rewards(told):
    """Whatever the rewards, as long as they are counted: in the coordinates learned in, and as rewards."""
    rewards = TwoValued(3)
    for arm, reward in told:
        rewards.take(arm, reward)
    if rewards.over or not rewards.begun:
        return
    units = rewards.units
    for tally in rewards.tallies(rewards.noise()):
        mean = np.mean([reward for arm, reward in told if arm == tally.arm])
        assert LOW + units.reach[tally.arm] * (units.centre + units.spread * tally.mean) == pytest.approx(
            mean, abs=1e-9
        )
        assert tally.noise > 0.0


def test_the_centre_is_a_mean_over_arms_not_over_plays():
    """One arm at 40 % with 9,000 plays, nine at 10 % with 100 each: 13 %, and not 37."""
    rewards = TwoValued(10)
    rng = np.random.default_rng(0)
    for arm in [0] * 9000 + list(range(1, 10)) * 100:
        rewards.take(arm, 1.0 if rng.random() < (0.4 if arm == 0 else 0.1) else -1.0)
    assert rewards._mean_rate() == pytest.approx(0.13, abs=0.02)


def test_the_centre_is_looked_at_whenever_the_rarer_kind_has_doubled():
    rewards, news = TwoValued(1), []
    for number in range(20 * 200):
        news.append(rewards.take(0, 1.0 if number % 20 == 19 - (number >= 2000) * (number % 40 < 20) * 10 else -1.0))
    anew = [number for number, item in enumerate(news) if item is News.LEARN_ANEW]
    assert anew[0] == 19
    assert len(anew) <= 6
    assert all((number + 1) // 20 <= RARER_FOR_A_FIRM_CENTRE for number in anew)


# --- the policy -------------------------------------------------------------------------------------------------------


def test_chances_are_learned():
    policy = shop()
    play(policy, 3000, rng=np.random.default_rng(0))
    assert policy._beliefs.units is not None
    assert policy.estimate()[1] == pytest.approx(0.1, abs=0.02)
    assert policy.law().argmax() == 1
    assert policy.explain().noise == pytest.approx(0.3, abs=0.04)
    assert policy.changes == ()


def test_chances_near_one_are_learned_as_those_near_zero():
    policy = shop()
    play(policy, 2000, rng=np.random.default_rng(0), chances=np.array([0.9, 0.91, 0.92, 0.99, 0.9, 0.93]))
    assert policy.law().argmax() == 3
    assert policy.estimate()[3] == pytest.approx(0.99, abs=0.02)


def test_prices_are_what_a_success_pays():
    """The arm bought most often is not the one that earns most."""
    values = np.array([20.0, 5.0, 4.0, 14.0, 6.0, 3.0])
    policy = shop(reward_range=(0.0, 20.0))
    play(policy, 3000, rng=np.random.default_rng(1), values=values)
    assert policy.law().argmax() == int((values * CHANCES).argmax()) == 3
    assert policy.estimate()[3] == pytest.approx(0.84, abs=0.25)
    assert policy.changes == ()


def test_one_success_is_no_new_world():
    policy = shop()
    for _ in range(200):
        policy.tell(policy.ask(), 0.0)
    policy.tell(policy.ask(), 1.0)
    assert policy.changes == ()
    assert policy.estimate().max() < 0.05


def test_after_a_third_value_the_usual_model_goes_on():
    """From what was counted: estimates stay where they are, the noise is that of the rewards, learning goes on."""
    policy, rng = shop(), np.random.default_rng(0)
    play(policy, 1500, rng=rng)
    before = policy.estimate()
    policy.tell(policy.ask(), 0.5)
    np.testing.assert_allclose(policy.estimate(), before, atol=0.04)
    assert policy.explain().noise == pytest.approx(0.27, abs=0.08)
    policy._two_valued.over = True
    policy._beliefs.units = None
    policy._learn_anew(policy._two_valued.noise())
    np.testing.assert_allclose(policy.estimate(), before, atol=0.04)
    means = np.array([0.1, 0.1, 0.1, 0.1, 0.8, 0.1])
    for _ in range(300):
        choice = policy.ask()
        policy.tell(choice, float(np.clip(means[choice.arm] + 0.1 * rng.standard_normal(), 0, 1)))
    assert policy.law().argmax() == 4


def offers(policy, rounds, rng, *, chances=(0.04, 0.02, 0.03), amounts=(50.0, 150.0, 60.0)):
    """Sales of varying amounts; sums of rewards and plays of every arm."""
    sums, plays = np.zeros(3), np.zeros(3)
    for _ in range(rounds):
        choice = policy.ask()
        amount = (
            amounts[choice.arm] * (1.0 + 0.3 * rng.standard_normal()) if rng.random() < chances[choice.arm] else 0.0
        )
        reward = float(np.clip(amount, 0.0, 500.0))
        policy.tell(choice, reward)
        sums[choice.arm] += reward
        plays[choice.arm] += 1
    return sums, plays


def test_amounts_that_vary_are_believed_to_be_what_they_are_on_average():
    """Three offers of which the second pays best, 3 a round: it is played most, and estimates are near plain means."""
    policy = AutoBandit(ArmSet.separate(["a", "b", "c"]), seed=1, reward_range=(0.0, 500.0))
    sums, plays = offers(policy, 6_000, np.random.default_rng(1))
    assert policy._two_valued.varying
    assert plays.argmax() == 1
    assert policy.estimate()[1] == pytest.approx(sums[1] / plays[1], rel=0.1)
    low, high = policy.interval()
    assert ((low < sums / plays) & (sums / plays < high)).all()
    assert policy.explain().noise == pytest.approx(np.sqrt(0.02 * 150.0**2 * 1.09), rel=0.35)
    assert policy.changes == ()


@pytest.mark.filterwarnings("ignore::UserWarning")  # at first nothing but a corner of the range is seen
def test_an_offer_that_pays_far_more_than_the_others_is_believed_to_when_it_comes_late():
    """Offers of about 1 for 2,000 rounds, then 400 rounds of one that pays 300 in a twentieth of its rounds."""
    policy, rng = (
        AutoBandit(ArmSet.separate(["a", "b", "c"]), seed=0, reward_range=(0.0, 500.0)),
        np.random.default_rng(0),
    )
    for number in range(2_400):
        choice = policy.ask(allowed=["a", "b"] if number < 2_000 else ["c"])
        chance, amount = ((0.3, 1.0), (0.25, 1.2), (0.05, 300.0))[choice.arm]
        policy.tell(choice, float(rng.uniform(0.5, 1.5) * amount) if rng.random() < chance else 0.0)
    assert policy.law().argmax() == 2
    assert policy.estimate()[2] == pytest.approx(15.0, rel=0.4)


def test_amounts_that_vary_survive_saving_and_new_arms():
    policy = AutoBandit(ArmSet.separate(["a", "b", "c"]), seed=0, reward_range=(0.0, 500.0))
    offers(policy, 1_500, np.random.default_rng(0))
    again = AutoBandit.restore(policy.arms, policy.state_dict())
    both = [offers(one, 500, np.random.default_rng(5)) for one in (policy, again)]
    np.testing.assert_array_equal(both[0], both[1])
    np.testing.assert_array_equal(policy.law(), again.law())
    more = policy.with_arms(policy.arms.extended(names=["d"]))
    np.testing.assert_allclose(more.estimate()[:3], policy.estimate(), rtol=0.2, atol=0.3)
    np.testing.assert_array_equal(more._two_valued.paid[:3], policy._two_valued.paid)


def test_a_change_is_found_and_what_was_counted_before_it_is_forgotten():
    """All chances of 0.1 to 0.5 are dealt anew; found within 1,500 rounds."""
    chances = np.array([0.1, 0.5, 0.2, 0.3, 0.15, 0.25])
    policy, rng = shop(), np.random.default_rng(0)
    play(policy, 2000, rng=rng, chances=chances)
    assert policy.changes == ()
    play(policy, 1500, rng=rng, chances=np.array([0.4, 0.1, 0.1, 0.1, 0.1, 0.1]))
    assert len(policy.changes) == 1
    assert 1900 <= policy.changes[0].interval[0] <= 2600
    assert policy.law().argmax() == 0


# --- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [3, 60, 700])
def test_it_goes_on_from_its_state_bit_for_bit(rounds):
    """Before the first success, while everything is learned anew now and then, and later."""
    policy = shop()
    play(policy, rounds, rng=np.random.default_rng(3))
    again = AutoBandit.restore(SIX_ARMS, copy.deepcopy(policy.state_dict()))
    for one in (policy, again):
        play(one, 400, rng=np.random.default_rng(4))
    np.testing.assert_array_equal(policy.law(), again.law())
    np.testing.assert_array_equal(policy.estimate(), again.estimate())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("centre", 0.0),
        ("centre", 1.5),
        ("value", np.full(6, 2.0)),
        ("value", np.full(6, -1.0)),  # begun, and no success of any arm
        ("plays", np.full(6, -1)),
        ("plays", np.full(6, 10**6)),
        ("successes", np.full(6, 500)),
        ("looked", -1),
        ("begun", 3),
    ],
)
def test_a_damaged_state_is_refused(name, value):
    policy = shop()
    play(policy, 300, rng=np.random.default_rng(0))
    state = policy.state_dict()
    state["engine"]["two_valued"][name] = value
    with pytest.raises(StateError):
        AutoBandit.restore(SIX_ARMS, state)


# --- a new arm --------------------------------------------------------------------------------------------------------


def test_an_arm_unlike_all_before_it_is_found_out():
    """Twice as good as the best: it has most of rounds 600 to 800 after it came, in both runs (measured: 8 of 8)."""
    more, chances = ArmSet(np.linspace(0, 1.2, 7)[:, None]), np.append(CHANCES, 0.2)
    for seed in range(2):
        policy, rng = shop(seed), np.random.default_rng(seed)
        play(policy, 1_000, rng=rng)
        policy = policy.with_arms(more)
        play(policy, 600, rng=rng, chances=chances)
        before = policy.summary().to_pandas().set_index("arm")["plays"]
        play(policy, 200, rng=rng, chances=chances)
        after = policy.summary().to_pandas().set_index("arm")["plays"]
        assert after[6] - before[6] > 100
