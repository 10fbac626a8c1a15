"""The check of beliefs against rewards: it speaks where something is wrong, and not where nothing is."""

import itertools
import warnings

import numpy as np
import pytest

import driftbandits as db
from driftbandits.errors import ClippedRewardsWarning, DoubtWarning, RewardRangeWarning, StateError
from driftbandits.policies.auto.doubts import BETWEEN, CHECKS, FIRST_PLAYS, LIMIT, MEMORY, Doubts
from driftbandits.policies.auto.learning import Learning
from driftbandits.state import Reader

MEANS = np.array([0.2, 0.5, 0.3, 0.35])
ROUNDS = 2_000


def dense(rng, arm):
    return float(np.clip(MEANS[arm] + 0.1 * rng.standard_normal(), 0.0, 1.0))


def sales(rng, arm):
    return float(rng.random() < 0.2 * MEANS[arm]) * float(rng.uniform(0.3, 0.6))


def rare_sales(rng, arm):
    return float(rng.random() < 0.01) * float(rng.uniform(0.3, 0.6))


def warned(seed, *, draw=dense, rounds=ROUNDS, kind=db.AutoBandit, **settings):
    """The categories of what a run warns of, and the policy."""
    policy = kind(db.ArmSet.separate(list("abcd")), seed=seed, **{"reward_range": (0.0, 1.0), **settings})
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(rounds):
            choice = policy.ask()
            policy.tell(choice, draw(rng, choice.arm))
    return [warning.category for warning in caught], policy


def slow(told):
    """z of one arm from its residuals and variances, by plain sums."""
    fades = (1.0 - 1.0 / MEMORY) ** np.arange(len(told))[::-1]
    residuals, variances = np.array(told).T
    scatter = max((fades**2 * residuals**2).sum(), (fades**2 * variances).sum())
    return (fades * residuals).sum() / np.sqrt(scatter)


def test_sums_fade_as_they_would_if_summed_anew():
    doubts, rng, told = Doubts(1), np.random.default_rng(0), []
    found = None
    while found is None:
        reward = 1.5 * rng.standard_normal() + 0.5
        told.append((reward, 0.01))
        found = doubts.see(0, 0.0, reward, 0.01)
    counted = told[FIRST_PLAYS:]
    assert found.errors == pytest.approx(slow(counted))
    assert found.errors > LIMIT
    before = slow(told[FIRST_PLAYS : len(told) - (CHECKS - 1) * BETWEEN])
    assert before > LIMIT  # at the first of the checks in a row
    assert slow(told[FIRST_PLAYS : len(told) - CHECKS * BETWEEN]) <= LIMIT


@pytest.mark.parametrize("draw", [dense, sales])
def test_nothing_is_said_where_nothing_is_wrong(draw):
    """In none of 12 runs of each kind, with a change in half of them."""
    for seed in range(6):
        assert DoubtWarning not in warned(seed, draw=draw)[0]
        assert DoubtWarning not in warned(seed, draw=changing(draw))[0]


def changing(draw):
    """The same with arms in the opposite order from round 1,000 on."""
    rounds = itertools.count()
    return lambda rng, arm: draw(rng, arm if next(rounds) < 1_000 else 3 - arm)


def _swapped(monkeypatch):
    """Rewards of the best arm are learned as another's and those of the other as its own."""
    learn, swap = Learning._learn_now, np.array([0, 2, 1, 3])
    monkeypatch.setattr(Learning, "_lets_wait", lambda *_: False)

    def wrong(self, row, reward, news):
        forecast = self._forecast
        self._forecast = lambda row, *told: forecast(row._replace(arm=int(swap[row.arm])), *told)
        try:
            learn(self, row, reward, news)
        finally:
            del self._forecast

    monkeypatch.setattr(Learning, "_learn_now", wrong)


def _scaled(monkeypatch):
    """A reward is learned ten times too small."""
    inside = Learning._in_coordinates
    monkeypatch.setattr(Learning, "_lets_wait", lambda *_: False)

    def wrong(self, arm, reward, news):
        told = inside(self, arm, reward, news)
        return None if told is None else told / 10.0

    monkeypatch.setattr(Learning, "_in_coordinates", wrong)


def _stuck(monkeypatch):
    """After a hundred rewards nothing is learned any more, whatever comes."""
    learn = Learning._take_in
    monkeypatch.setattr(Learning, "_lets_wait", lambda *_: False)
    monkeypatch.setattr(Learning, "_take_in", lambda self, *told: learn(self, *told) if self.rounds < 100 else None)


@pytest.mark.parametrize("plant", [_swapped, _scaled, _stuck])
def test_it_speaks_where_something_is_wrong(plant, monkeypatch):
    plant(monkeypatch)
    worse = iter(range(ROUNDS))  # the best arm becomes worse in round 200: a stuck estimate does not see it

    def draw(rng, arm):
        return dense(rng, arm) - (0.1 if next(worse) > 200 and plant is _stuck else 0.0)

    categories, policy = warned(0, draw=draw, reward_range=(-1.0, 1.5))
    assert categories.count(DoubtWarning) == 1
    assert "The rewards do not fit what is believed" in str(policy.explain())


def test_rewards_that_are_cut_and_a_range_that_is_far_too_wide_are_named():
    def cut(rng, arm):
        return dense(rng, arm) + 1.0

    assert ClippedRewardsWarning in warned(0, draw=cut, out_of_range="clip", rounds=1_000)[0]
    assert RewardRangeWarning in warned(0, reward_range=(0.0, 1_000.0), rounds=1_000)[0]
    assert RewardRangeWarning in warned(0, draw=sales, reward_range=(0.0, 1_000.0), rounds=1_000)[0]
    assert RewardRangeWarning not in warned(0, rounds=1_000)[0]


@pytest.mark.parametrize("kind", [db.AutoBandit, db.GPUCB, db.CalibratedOPKB])
@pytest.mark.parametrize("draw", [dense, sales, rare_sales])
def test_a_range_that_is_far_too_wide_or_narrow_is_named_within_a_thousand_rounds(kind, draw):
    """With fewer than four sales in 1,000 rounds, one run in a hundred of those with rare ones, nothing is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = [
            [
                category
                for category in warned(0, draw=draw, kind=kind, reward_range=limits, out_of_range="clip", rounds=1_000)[
                    0
                ]
                if issubclass(category, RewardRangeWarning)
            ]
            for limits in [(0.0, 1_000.0), (0.0, 0.1), (0.0, 1.0)]
        ]
    assert said == [[RewardRangeWarning], [ClippedRewardsWarning], []]


def test_a_saved_check_goes_on():
    _, policy = warned(0, rounds=333)
    again = db.AutoBandit.restore(policy.arms, policy.state_dict())
    np.testing.assert_array_equal(again._doubts._sums, policy._doubts._sums)
    state = policy._doubts.export()
    state["sums"][1, 0] = -1.0
    with pytest.raises(StateError, match="sums"):
        Doubts(4).load(Reader(state), rounds=333)


def test_arms_keep_their_sums_when_others_come_and_go():
    _, policy = warned(0, rounds=400)
    moved = policy.with_arms(policy.arms.without(["a"]))
    np.testing.assert_array_equal(moved._doubts._sums[:, :-1], policy._doubts._sums[:, 1:-1])
    np.testing.assert_array_equal(moved._doubts._sums[:, -1], policy._doubts._sums[:, -1])
