"""How often worse arms are looked at: the formula, its bounds, and second looks.

New arms are tried, and no longer than it takes.
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.gaussian_process.kernels import RBF

import driftbandits as db
from driftbandits import ArmSet
from driftbandits.policies.auto import probing as module
from driftbandits.policies.auto.beliefs import moments
from driftbandits.policies.auto.hypotheses import Priors
from driftbandits.policies.auto.probing import LARGEST_PROBE_SHARE, MOST_PROBES_IN_A_ROW, TRIAL_SHARE, Probing, Trial
from tests.policies.auto.reference import given, line

SIZE = 6
MEAN = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.0])


def independent():
    """Arms so far apart that a look at one is no look at another."""
    return given(line(SIZE, scale=0.01))


def watching(now=100):
    """All arms seen, arm 0 at last."""
    probing = Probing(independent(), SIZE)
    for arm in reversed(range(SIZE)):
        probing.see(arm, 0, now - 10 * arm)
    return probing


def test_no_looks_before_anything_is_told():
    assert (Probing(independent(), SIZE).law(np.zeros(SIZE), 0) == 0).all()


def stakes(hidden, best, now):
    """What hidden changes are expected to win more per round in all regions together; here arms are alone.

    The gain of an arm drawn anew by numerical integration.
    """
    deviation = module._PRIOR_DEVIATION
    density = stats.norm(scale=deviation).pdf
    gain = integrate.quad(lambda f: (f - best) * density(f), best, best + 12 * deviation)[0]
    expected = module.HIDDEN_AT_FIRST * math.sqrt(SIZE)
    return (expected * gain + module.WORTH_OF_FOUND * hidden) / (now + module.ROUNDS_BEFORE_PROBES)


@pytest.mark.parametrize(("hidden", "now"), [(0, 100), (2, 100), (1, 5_000)])
def test_intervals_cost_the_least_by_search(hidden, now):
    """Looks at all of n arms every D rounds cost n gap / D per round, and what goes unseen half of stakes times D."""
    probing, at_stake = watching(now), stakes(hidden, 0.5, now)
    probing.hidden = hidden
    for arm, found in list(enumerate(probing.intervals(MEAN, now)))[1:]:
        cost = [
            SIZE * (0.5 - MEAN[arm]) / rounds + at_stake * rounds / 2.0
            for rounds in (found / 1.01, found, found * 1.01)
        ]
        assert cost[1] < min(cost[0], cost[2])


def test_the_mean_time_between_looks_is_the_interval():
    """By numerical integration of the chance that an arm has not been looked at again."""
    probing, now, arm = watching(0), 4_000, 3
    interval = probing.intervals(MEAN, now)[arm]

    def rate(unseen):
        probing.seen[:] = now
        probing.seen[arm] = now - unseen
        return probing.law(MEAN, now)[arm]

    times = np.linspace(0.0, 4.0 * interval, 2_001)
    rates = np.array([rate(time) for time in times])
    assert rates[:1_000].max() < LARGEST_PROBE_SHARE
    unseen = np.exp(-integrate.cumulative_trapezoid(rates, times, initial=0.0))
    assert integrate.trapezoid(unseen, times) == pytest.approx(interval, rel=1e-3)


def test_the_arm_just_seen_is_not_looked_at():
    assert watching().law(MEAN, 100)[0] == 0.0


@pytest.mark.parametrize("hidden", [0, 3, 10**6])
def test_looks_are_at_most_the_share_allowed(hidden):
    probing = watching()
    probing.hidden = hidden
    assert probing.law(MEAN, 10**6).sum() <= LARGEST_PROBE_SHARE + 1e-12
    assert probing.law(np.zeros(SIZE), 10**6).sum() <= LARGEST_PROBE_SHARE + 1e-12


def test_staler_arms_are_looked_at_more():
    law = watching().law(np.where(np.arange(SIZE) == 0, 0.5, 0.2), 100)
    assert (np.diff(law[1:]) > 0).all()


def test_better_arms_are_looked_at_more():
    probing = watching()
    probing.seen[:] = 50.0
    assert (np.diff(probing.law(MEAN, 100)[1:]) < 0).all()


def test_looks_become_rarer_while_no_hidden_change_is_found():
    intervals = [watching(now).intervals(MEAN, now)[3] for now in (100, 1_000, 10_000, 100_000)]
    assert (np.diff(intervals) > 0).all()
    assert intervals[-1] > 5 * intervals[0]


def test_looks_become_rarer_the_less_can_be_won():
    low, high = (watching().intervals(MEAN + level, 100)[3] for level in (0.0, 0.4))
    assert high > 1.5 * low


def test_hidden_changes_found_make_looks_more_frequent():
    probing = watching()
    before = probing.law(MEAN, 100).sum()
    probing.hidden += 1
    assert probing.law(MEAN, 100).sum() > before


def test_the_summary_says_how_often_and_why():
    probing = watching()
    probing.hidden, probing.shown = 2, 3
    looks = probing.summary(MEAN, 100)
    assert looks.share == probing.law(MEAN, 100).sum()
    assert looks.every == np.median(probing.intervals(MEAN, 100)[1:])
    assert (looks.found, looks.shown) == (2, 3)
    assert Probing(given(line(1)), 1).summary(np.zeros(1), 5).every == math.inf


def test_a_mask_leaves_no_look_outside():
    mask = np.arange(SIZE) > 2
    probing = watching()
    probing.doubted = 0
    law = probing.law(MEAN, 100, mask)
    assert (law[~mask] == 0).all()
    assert law.sum() <= LARGEST_PROBE_SHARE + 1e-12


def look(probing, reward, *, arm=4, best=0.5):
    """A reward of an arm of which 0.1 was expected, unseen for 40 of 100 rounds; the noise has deviation 0.1."""
    probing.verify(arm, 0, reward, np.array([best, 0.0, 0.0, 0.0, 0.1, 0.1]), 0.1, 100)


def test_the_second_look_comes_first():
    probing = watching()
    look(probing, 0.9)
    assert probing.doubted == 4
    assert probing.law(MEAN, 100)[4] >= module.REPEAT_PROBE_PROBABILITY
    assert probing.law(MEAN, 100).sum() <= 1.0


def test_a_surprising_arm_is_asked_at_most_so_many_times_in_a_row():
    probing, looks = watching(), 0
    look(probing, 0.9)
    while probing.doubted == 4:
        looks += 1
        look(probing, 0.9)
        assert looks <= MOST_PROBES_IN_A_ROW
    assert looks == MOST_PROBES_IN_A_ROW - 1


@pytest.mark.parametrize(("reward", "best"), [(0.12, 0.1), (0.5, 0.9)], ids=["as expected", "good, but not enough"])
def test_what_does_not_surprise_is_not_looked_at_again(reward, best):
    probing = watching()
    look(probing, reward, best=best)
    assert probing.doubted == -1


def test_a_disappointing_second_look_ends_it():
    probing = watching()
    look(probing, 0.9)
    look(probing, 0.1)
    assert probing.doubted == -1


def found(probing, *, moved=(3, 4), birth=99):
    look(probing, 0.9)
    probing.record(np.array(moved), birth, 0)


@pytest.mark.parametrize(("reward", "hidden"), [(0.6, 1), (0.9, 0), (0.1, 0)], ids=["as ever", "risen too", "fallen"])
def test_a_change_was_hidden_if_the_old_best_has_not_moved(reward, hidden):
    probing = watching()
    found(probing)
    probing.confirm(4, 0.9, 0.1)  # says nothing of the old best
    assert probing.hidden == 0
    for _ in range(2):  # the second time it is no longer asked
        probing.confirm(0, reward, 0.1)
        assert probing.hidden == hidden


@pytest.mark.parametrize("otherwise", [{"moved": (2, 3)}, {"birth": 90}], ids=["others moved", "it began before"])
def test_a_change_that_no_look_has_shown_was_not_hidden(otherwise):
    probing = watching()
    found(probing, **otherwise)
    probing.confirm(0, 0.5, 0.1)
    assert probing.hidden == 0


def test_a_change_of_an_arm_just_seen_was_not_hidden():
    probing = watching()
    probing.seen[4] = 95.0
    found(probing)
    probing.confirm(0, 0.5, 0.1)
    assert probing.hidden == 0


def shown_by_the_best(probing, *, reward=0.1, moved=(0, 3), birth=99):
    """The best arm, of which 0.5 was expected, is played in round 99; then a change is recorded."""
    probing.compare(reward, 0.5, 0.1, 100)
    probing.record(np.array(moved), birth, 0)
    return probing.shown


def test_a_change_that_the_best_arm_shows_makes_looks_rarer():
    probing = watching()
    before = probing.intervals(MEAN, 100)
    assert shown_by_the_best(probing) == 1
    assert probing.intervals(MEAN, 100) == pytest.approx(2.0 * before)
    assert shown_by_the_best(probing) == 2
    assert probing.intervals(MEAN, 100) == pytest.approx(3.0 * before)


@pytest.mark.parametrize(
    "otherwise",
    [{"reward": 0.6}, {"moved": (3,)}, {"birth": 100}],
    ids=["it did not surprise", "it has not moved", "it surprised before"],
)
def test_a_change_that_the_best_arm_does_not_show_leaves_looks_as_they_are(otherwise):
    assert shown_by_the_best(watching(), **otherwise) == 0


def test_arms_unseen_since_a_shift_of_the_level_are_looked_at_as_often_as_ever():
    """A redraw that is taken for a shift would else stay unnoticed, for the best arm shows nothing of it."""
    probing = watching()
    before = probing.intervals(MEAN, 100)
    probing.compare(0.1, 0.5, 0.1, 100)
    probing.record(np.array([0, 3]), 75, 0, shift=True)
    np.testing.assert_allclose(probing.intervals(MEAN, 100) / before, [2, 2, 2, 1, 1, 1])


def test_a_change_that_shows_by_itself_was_not_hidden():
    probing = watching()
    look(probing, 0.9)
    assert shown_by_the_best(probing, moved=(0, 4)) == 1
    probing.confirm(0, 0.5, 0.1)
    assert probing.hidden == 0


def test_a_look_without_a_change_finds_nothing():
    probing = watching()
    look(probing, 0.9)
    probing.confirm(0, 0.5, 0.1)
    assert probing.hidden == 0


def test_the_chance_of_a_hidden_change_is_a_small_probability():
    probing = watching()
    for hidden in (0, 1, 10**6):
        probing.hidden = hidden
        for now in (100, 10_000):
            assert 0 < probing.chance(3, now) <= 0.1


def test_arms_alike_count_as_seen():
    arms = ArmSet(np.array([0.0, 0.01, 5.0])[:, None], RBF(0.2))
    probing = Probing(given(arms), 3)
    probing.see(0, 0, 7)
    assert probing.seen.tolist() == [7.0, 7.0, 0.0]


def test_arms_alike_share_their_looks():
    """Two arms at one point are together looked at as often as one arm alone."""
    arms = ArmSet(np.array([0.0, 0.0, 5.0, 9.0])[:, None], RBF(0.2))
    probing = Probing(given(arms), 4)
    probing.see(3, 0, 10)
    law = probing.law(np.array([0.1, 0.1, 0.1, 0.5]), 10)
    assert law[0] + law[1] == pytest.approx(law[2])


@pytest.mark.parametrize(
    "arms",
    [ArmSet([[1.0], [0.5]], {"name": "linear"}), ArmSet(np.random.default_rng(0).standard_normal((60, 8)), RBF(4.0))],
    ids=["linear", "cut"],
)
def test_an_arm_told_of_counts_as_seen(arms):
    probing = Probing(Priors(arms, auto=False, rank=10), len(arms))
    for arm in range(len(arms)):
        probing.see(arm, 0, 5)
    assert (probing.seen == 5).all()


def test_the_expected_gain_is_half_the_mean_deviation_at_zero():
    assert module._expected_gain(0.0) == pytest.approx(module._PRIOR_DEVIATION / math.sqrt(2 * math.pi))


SHOP = db.ArmSet(np.linspace(0.0, 1.0, 4)[:, None], names=list("abcd"))
MORE = SHOP.extended([[1.3], [1.6]], names=["new", "newer"])


def played():
    """A policy that knows four arms, the last of them the best."""
    policy = db.AutoBandit(SHOP, seed=0, reward_range=(0, 1))
    rng = np.random.default_rng(0)
    for _ in range(400):
        choice = policy.ask()
        policy.tell(choice, float(rng.random() < (0.3 if choice.arm == 3 else 0.05)))
    return policy


def test_new_arms_share_a_tenth_of_the_rounds():
    policy = played().with_arms(MORE)
    tried = policy.law()
    policy._trial.left[:] = 0
    other = db.AutoBandit.restore(MORE, policy.state_dict()).law()
    untried = (other - 0.001 / 6) * (1.0 - TRIAL_SHARE)  # the floor stays as it is
    np.testing.assert_allclose(tried - 0.001 / 6 - untried, 0.999 * np.array([0, 0, 0, 0, 0.05, 0.05]), atol=1e-12)


def test_a_trial_ends_when_the_arm_was_told_often_enough():
    policy = played().with_arms(MORE)
    owed = int(policy._trial.left[4])
    assert 8 <= owed <= 40  # about two over the mean chance of success
    new = np.arange(6) == 4
    for _ in range(owed):
        assert policy.law()[4] >= TRIAL_SHARE / 2 * (1.0 - 0.001)
        policy.tell(policy.ask(allowed=new), 0.0)
    assert policy._trial.left.tolist()[:5] == [0] * 5
    assert policy.law()[4] < TRIAL_SHARE / 2


def test_an_arm_that_is_not_allowed_is_not_tried():
    policy = played().with_arms(MORE)
    choice = policy.ask(allowed=np.arange(6) < 4)
    assert choice.arm < 4
    assert Trial(3).law() is None
    trial = Trial(3)
    trial.begin(np.array([2]), plays=3)
    assert trial.law(np.array([True, True, False])).sum() == 0.0


def test_where_noise_is_small_four_plays_are_a_trial():
    policy = db.AutoBandit(SHOP, seed=0)
    for _ in range(100):
        choice = policy.ask()
        policy.tell(choice, 0.1 * choice.arm)
    assert policy.with_arms(MORE)._trial.left.tolist() == [0, 0, 0, 0, 4, 4]


def test_trials_go_on_after_arms_change_again_and_after_a_restart():
    policy = played().with_arms(MORE)
    fewer = policy.with_arms(MORE.without(["a"]))
    assert fewer._trial.left.tolist() == policy._trial.left.tolist()[1:]
    again = db.AutoBandit.restore(MORE, policy.state_dict())
    assert again._trial.left.tolist() == policy._trial.left.tolist()
    np.testing.assert_array_equal(again.law(), policy.law())


def test_what_is_known_of_kept_arms_stays_to_the_last_digits():
    """In what is believed; estimates are those of samples, which drift a little less between two draws."""
    policy = played()
    more = policy.with_arms(MORE)
    (before, spread), (after, now) = (moments(one._beliefs, one._mixture.weights()) for one in (policy, more))
    np.testing.assert_allclose(after[:4], before, atol=1e-13, rtol=0.0)
    np.testing.assert_allclose(now[:4], spread, atol=1e-7, rtol=0.0)
    np.testing.assert_allclose(more.estimate()[:4], policy.estimate(), atol=1e-5)


def test_an_arm_that_surprised_is_followed_through_a_change_of_arms():
    """Or forgotten with its arm: its old number is another arm's, or none."""
    policy = played()
    policy._probing._stale, policy._probing._rival = 3, 0
    fewer = policy.with_arms(policy.arms.without(["a"]))
    assert (fewer._probing._stale, fewer._probing._rival) == (2, -1)
    assert policy.with_arms(policy.arms.without(["d"]))._probing._stale == -1
