"""Open decisions as data: cohorts against a slow twin with an age for every decision, and a policy that uses them.

Statistical tests have fixed seeds; limits lie four standard errors from what is expected, an error rate of 6e-5 each.
"""

import copy
import heapq
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import driftbandits as db
from driftbandits.errors import DelayWarning, StateError
from driftbandits.policies.auto.exposures import _ENDS, _PRIOR_DELAYS, CLASSES, HORIZON, Exposures
from driftbandits.state import Reader
from driftbandits.testing.helpers import require_equal

CHANCES = np.array([0.05, 0.1])
ROUNDING = 1e-9


class Shop:
    """Decisions at random times, rewards that come later; what was collected, and every decision and reward."""

    def __init__(self, seed, patience, *, rate=5.0, delay=lambda rng: 10.0 ** rng.uniform(-0.5, 2.5)):
        self.rng, self.patience, self.rate, self.delay = np.random.default_rng(seed), patience, rate, delay
        self.exposures = Exposures(len(CHANCES))
        self.exposures.at(0.0, None)
        self.exposures.begin(now=0.0, patience=patience, first_id=0)
        self.learned, self.successes = np.zeros((2, len(CHANCES)))
        self.asked, self.rewarded = [], []  # arm and time; id and time
        self._coming, self._next = [], float(self.rng.exponential(1.0 / rate))

    def collect(self, now):
        found = self.exposures.collect(now, self.learned)
        self.learned[found.arms] += found.exposure
        np.add.at(self.successes, [arm for arm, _ in found.told], 1)

    def until(self, end):
        """Exposures and successes of every arm at this time."""
        while self._next <= end:
            self._tell(self._next)
            self._at(self._next)
            ident, arm = len(self.asked), int(self.rng.integers(len(CHANCES)))
            self.asked.append((arm, self._next))
            if self.exposures.play([arm], ident, self._next):
                self.collect(self._next)
            if self.rng.random() < CHANCES[arm]:
                heapq.heappush(self._coming, (self._next + self.delay(self.rng), ident, arm))
            self._next += float(self.rng.exponential(1.0 / self.rate))
        self._tell(end)
        self._at(end)
        self.collect(end)
        return self.learned + self.exposures._owed, self.successes.copy()

    def _at(self, now):
        if self.exposures.at(now, self.patience):
            self.collect(now)

    def _tell(self, now):
        while self._coming and self._coming[0][0] <= now:
            time, ident, arm = heapq.heappop(self._coming)
            self._at(time)
            self.rewarded.append((ident, time))
            if self.exposures.tell(ident, arm, 1.0, time):
                self.collect(time)


def slow(shop, now):
    """F at the ends of the classes and exposures by the age of every decision: no cohorts, no steps."""
    arms, times = (np.array(part) for part in zip(*shop.asked, strict=True))
    ages = now - times
    told = [(ages[ident], time - times[ident]) for ident, time in shop.rewarded]
    share = np.ones(CLASSES)
    prior = np.cumsum(_PRIOR_DELAYS)
    for j in range(CLASSES - 1, 0, -1):
        low, high = _ENDS[j - 1] * shop.patience, _ENDS[j] * shop.patience
        older = [delay for age, delay in told if age >= high]
        inside = _PRIOR_DELAYS[j] + sum(low < delay <= high for delay in older)
        up_to = prior[j] + sum(delay <= high for delay in older)
        share[j - 1] = share[j] * (1.0 - inside / up_to)
    reached = np.interp(ages / shop.patience, _ENDS, share)
    return share, np.bincount(arms, reached, len(CHANCES))


# --- F and exposures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [30.0, 300.0])
def test_cohorts_and_steps_say_what_single_ages_do(patience):
    shop = Shop(0, patience)
    for now in (200.0, 500.0):
        exposure, _ = shop.until(now)
        share, expected = slow(shop, now)
        known = np.flatnonzero(
            (_ENDS * patience > 3.0) & (_ENDS * patience < now)
        )  # cohorts are as wide as shorter ages
        np.testing.assert_allclose(shop.exposures._arrived[known], share[known], atol=0.08)
        np.testing.assert_allclose(exposure, expected, rtol=0.03)


def test_of_old_decisions_whose_delays_are_known_the_estimate_is_their_distribution():
    exposures, rng, patience = Exposures(1), np.random.default_rng(0), 16.0
    exposures.begin(now=0.0, patience=patience, first_id=0)
    delays = rng.integers(1, 200, 400)
    for now in range(400):
        exposures.play([0], now, float(now))
    shares = np.zeros(CLASSES)
    ages = []
    for ident, delay in enumerate(delays.tolist()):  # told at the end, as if each had come then: what counts is the age
        now = 10_000.0 + delay
        cohort = np.searchsorted(exposures._first, ident, side="right") - 1
        ages.append(now - 0.5 * (exposures._start[cohort] + exposures._end[cohort]))
        exposures.tell(ident, 0, 1.0, now)
    counts = np.bincount(np.minimum(np.searchsorted(_ENDS, np.array(ages) / patience), CLASSES - 1), minlength=CLASSES)
    shares = (np.cumsum(counts) + np.cumsum(_PRIOR_DELAYS)) / (len(delays) + _PRIOR_DELAYS.sum())
    exposures.estimate(1e6)
    np.testing.assert_allclose(exposures._arrived, shares, atol=ROUNDING)


@pytest.mark.parametrize(
    ("patience", "delay"),
    [
        (20.0, lambda rng: 10.0 ** rng.uniform(-0.5, 2.3)),  # up to 200: most come after patience
        (200.0, lambda rng: 10.0 ** rng.uniform(-0.5, 2.3)),
        (1_000.0, lambda rng: rng.exponential(40.0)),
        (100.0, lambda rng: 30.0),
    ],
)
def test_successes_are_chance_times_exposure_at_any_patience(patience, delay):
    """Also while most decisions are young: then up to a factor that all arms share, as nobody can know yet how many
    rewards come later than the oldest decision.
    """
    runs = []
    for seed in range(6):
        shop = Shop(seed, patience, delay=delay)
        runs.append([shop.until(now) for now in (300.0, 600.0)])
    exposure, successes = np.array(runs).transpose(2, 0, 1, 3)
    for moment, now in enumerate((300.0, 600.0)):
        expected, came = (CHANCES * exposure[:, moment]).sum(), successes[:, moment].sum()
        if now >= patience:
            assert abs(came / expected - 1.0) < 4.0 / np.sqrt(expected) + 0.03
        ratio = (successes[:, moment] / exposure[:, moment] / CHANCES).mean(axis=0)
        spread = np.sqrt((1.0 / successes[:, moment].sum(axis=0)).sum())
        assert abs(ratio[0] / ratio[1] - 1.0) < 4.0 * spread


def test_a_late_moment_has_every_decision_whole():
    shop = Shop(0, 5.0, delay=lambda rng: rng.uniform(0.0, 60.0))
    shop.until(100.0)
    shop.rate = 1e-9
    shop._next = 1e9
    exposure, successes = shop.until(100.0 + HORIZON * 5.0)
    plays = np.bincount([arm for arm, _ in shop.asked], minlength=2)
    np.testing.assert_allclose(exposure, plays, rtol=1e-9)
    assert successes.sum() == len(shop.rewarded)
    assert not shop.exposures._first


def test_decisions_that_join_a_cohort_that_is_exposed_already_are_exposed_as_it_is():
    exposures = Exposures(1)
    exposures.begin(now=0.0, patience=10_000.0, first_id=0)
    learned = np.zeros(1)
    for now in range(30):  # one cohort
        exposures.play([0], now, float(now))
        learned += exposures.collect(float(now), np.zeros(1)).exposure.sum()
    assert len(exposures._first) == 1
    assert learned.sum() + exposures._owed[0] == pytest.approx(30 * exposures._exposed[0])


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["play", "play", "tell", "wait", "collect", "forget", "patience", "reload", "renumber"]),
        st.integers(0, 10**6),
    ),
    max_size=60,
)


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(CALLS)
def test_exposures_never_shrink_and_never_exceed_the_plays(calls):
    exposures, now, asked, learned, patience = Exposures(3), 0.0, [], np.zeros(3), 50.0
    exposures.at(now, None)
    exposures.begin(now=now, patience=patience, first_id=0)
    plays = np.zeros(3)
    for kind, number in calls:
        before = np.array(exposures._exposed)
        firsts = list(exposures._first)
        if kind == "play":
            arms = [number % 3, number // 3 % 3]
            exposures.play(arms, len(asked), now)
            asked += arms
            np.add.at(plays, arms, 1)
        elif kind == "tell" and asked:
            exposures.tell(number % len(asked), asked[number % len(asked)], 0.5, now)
        elif kind == "wait":
            now += number % 200
            exposures.at(now, patience)
        elif kind == "patience":
            patience = 1.0 + number % 300
            exposures.at(now, patience)
        elif kind == "collect":
            found = exposures.collect(now, learned)
            learned[found.arms] += found.exposure
        elif kind == "forget" and asked and number % len(asked) >= exposures.since:
            ident = number % len(asked)
            if asked[ident] >= 0 and exposures._first and ident >= exposures._first[0]:
                exposures.forget(np.array([ident]), np.array([asked[ident]]))
                plays[asked[ident]] -= 1
                asked[ident] = -1
        elif kind == "reload":
            exposures = reloaded(exposures, rounds=len(asked))
        elif kind == "renumber":
            turned = np.array([1, 2, 0])
            exposures.renumber(turned, 3)
            asked = [-1 if arm < 0 else int(turned[arm]) for arm in asked]
            learned, plays = learned[[2, 0, 1]], plays[[2, 0, 1]]
        if kind in ("collect", "patience", "wait", "reload") and firsts == exposures._first:
            assert (np.array(exposures._exposed) >= before).all()
        assert ((learned + exposures._owed) <= plays + 1e-6 * len(calls) + ROUNDING).all()
    exposures.collect(now + HORIZON * patience + 1.0, learned)
    assert not exposures._first


def reloaded(exposures, rounds):
    again = Exposures(len(exposures._owed))
    again.load(Reader(copy.deepcopy(exposures.export())), rounds=rounds)
    require_equal(again.export(), exposures.export())
    return again


# --- arms, forgotten and late ones, states ----------------------------------------------------------------------------


def played(plays, *, patience=40.0):
    exposures = Exposures(3)
    exposures.begin(now=0.0, patience=patience, first_id=0)
    for now in range(plays):
        exposures.play([now % 3], now, float(now))
        if now % 8 == 7:
            exposures.tell(now - 4, (now - 4) % 3, 0.5, float(now))
    return exposures


def test_arms_that_go_take_their_plays_and_the_last_cohort_is_renumbered_too():
    exposures = played(50)
    exposures.close(np.array([3, 4, 5]), np.array([0, 1, 2]))
    exposures.renumber(np.array([1, -1, 0]), 2)
    again = Exposures(2)
    again.load(Reader(exposures.export()), rounds=50)
    found = again.collect(1e6, np.zeros(2))
    np.testing.assert_allclose(found.exposure, [16.0, 17.0])
    assert {arm for arm, _ in found.told} == {0, 1}
    assert again._closed.tolist() == [[3, 1], [4, -1], [5, 0]]


def test_forgotten_decisions_are_not_failures():
    exposures = played(60)
    first = exposures.collect(60.0, np.zeros(3))
    gone = np.arange(0, 60, 3)  # of arm 0
    exposures.forget(gone, gone % 3)
    found = exposures.collect(1e6, np.zeros(3))
    total = np.zeros(3)
    for part in (first, found):
        total[part.arms] += part.exposure
    total += exposures._owed
    np.testing.assert_allclose(total, [0.0, 20.0, 20.0], atol=1e-5)


def test_late_rewards_are_learned_once_and_those_of_unknown_decisions_never():
    exposures = played(60)
    exposures.collect(60.0, np.zeros(3))
    exposures.close(np.arange(10), np.arange(10) % 3)
    ids = np.array([3, 99, 4, 5])
    assert exposures.tell_late(ids, np.array([0.5, 0.5, -1.0, 0.7]), 70.0) == 3
    assert exposures.tell_late(ids, np.full(4, 0.5), 71.0) == 0
    assert exposures.collect(71.0, np.zeros(3)).told == [(0, 0.5), (2, 0.7)]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("patience", lambda value: -1.0),
        ("patience", lambda value: float("nan")),
        ("since", lambda value: 61),
        ("decisions", lambda value: 3),
        ("first", lambda value: value[::-1].copy()),
        ("start", lambda value: value + 1_000.0),
        ("end", lambda value: value[::-1].copy()),
        ("exposed", lambda value: value + 2.0),
        ("delays", lambda value: value - 1),
        ("delays", lambda value: value[1:]),
        ("arms", lambda value: value[1:]),
        ("arms", lambda value: np.where(value == 2, 3, value)),
        ("counts", lambda value: value - 1),
        ("complete", lambda value: value - 1.0),
        ("arrived", lambda value: value[::-1].copy()),
        ("arrived", lambda value: value[1:]),
        ("owed", lambda value: value * np.nan),
        ("told", lambda value: np.array([[3.0, 0.5]])),
        ("told", lambda value: np.array([[0.0, 1.5]])),
        ("closed", lambda value: np.array([[60, 0]])),
        ("closed", lambda value: np.array([[1, 3]])),
    ],
)
def test_damaged_states_are_refused(name, damage):
    state = played(60).export()
    state[name] = damage(state[name])
    with pytest.raises(StateError):
        Exposures(3).load(Reader(state), rounds=60)


# --- the policy -------------------------------------------------------------------------------------------------------


ARMS = ["a", "b", "c", "d"]
SALES = [0.05, 0.1, 0.07, 0.15, 0.1, 0.2]


@pytest.mark.parametrize("amounts", ["equal", "varying"])
@pytest.mark.parametrize("clocked", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_bit_for_bit_however_it_is_asked_expired_saved_and_imposed(clocked, amounts):
    """`first` asks in stretches and expires at once; `second` one by one in two parts, read from its state now and
    then; `third` is told what `first` decided. New arms come in between: their trial is part of the law.
    """
    rng, patience, time = np.random.default_rng(7), 60, 1_000.0
    waits = {"missing": 0.0} if clocked else {"missing": 0.0, "patience": patience}
    policies = [db.AutoBandit(db.ArmSet.separate(ARMS), seed=1, reward_range=(0, 1), **waits) for _ in range(3)]
    coming, still_open = [], []
    for now in range(500):
        time += float(rng.exponential(1.0)) if rng.random() < 0.9 else -5.0
        if clocked:
            for policy in policies:
                policy.at(max(time, 0.0), patience=float(patience))
        while coming and coming[0][0] <= now:
            _, ident, reward = heapq.heappop(coming)
            for policy in policies:
                policy.tell(ident, reward)
        due = [ident for ident, asked in still_open if time - asked >= patience]
        if clocked and due and rng.random() < 0.5:
            cut = int(rng.integers(len(due) + 1))
            for policy, parts in zip(policies, ([due], [due[:cut], due[cut:]], [due[::-1]]), strict=True):
                for part in parts:
                    policy.expire(part)
            still_open = [one for one in still_open if one[0] not in due]
        size, allowed = int(rng.integers(1, 6)), None if rng.random() < 0.7 else [0, 2]
        several = policies[0].ask(size=size, allowed=allowed)
        single = [policies[1].ask(allowed=allowed) for _ in range(size)]
        assert several.arms.tolist() == [one.arm for one in single]
        assert several.probabilities.tolist() == [one.probability for one in single]
        assert several.laws.tolist() == [one.law for one in single]
        assert policies[2].impose(several.arms, several.probabilities, allowed).differing == 0
        for one in single:
            still_open.append((one.id, time))
            if rng.random() < SALES[one.arm]:
                reward = 1.0 if amounts == "equal" else float(rng.uniform(0.2, 1.0))
                heapq.heappush(coming, (now + int(10 ** rng.uniform(0.0, 2.3)), one.id, reward))
            elif rng.random() < 0.02:
                for policy in policies:
                    policy.forget(one.id)
        if rng.random() < 0.1:
            policies[1] = copy.deepcopy(policies[1])
        if now == 300:
            arms = policies[0].arms.without(["a"]).extended(names=["e", "f"])
            policies = [policy.with_arms(arms) for policy in policies]
        if now % 20 == 0 or 300 <= now < 310:
            require_equal(policies[0].state_dict(), policies[1].state_dict())
            require_equal(policies[0].state_dict(), policies[2].state_dict())
    assert policies[0]._exposures.active
    assert policies[0].late > 0


def delayed(policy, rng, rounds, *, failures=None, chances=(0.05, 0.1, 0.15), slow=300, value=lambda rng: 1.0):
    """Successes come after up to `slow` rounds, failures after `failures` rounds or never."""
    coming = []
    for now in range(rounds):
        while coming and coming[0][0] <= now:
            _, ident, reward = heapq.heappop(coming)
            policy.tell(ident, reward)
        choice = policy.ask()
        success = rng.random() < chances[choice.arm]
        if success:
            heapq.heappush(coming, (now + 1 + int(slow ** rng.uniform()), choice.id, value(rng)))
        elif failures is not None:
            heapq.heappush(coming, (now + failures, choice.id, 0.0))


def shop(**settings):
    return db.AutoBandit(db.ArmSet.separate(list("abc")), seed=0, reward_range=(0, 1), **settings)


@pytest.mark.parametrize("failures", [400, None])
def test_zeros_told_late_or_never_are_noticed_and_counted(failures):
    policy, rng = shop(), np.random.default_rng(0)
    with pytest.warns(DelayWarning, match="counts in part as one of 0"):
        delayed(policy, rng, 8_000, failures=failures)
    assert policy._exposures.active
    np.testing.assert_allclose(policy.estimate()[2], 0.15, atol=0.03)
    assert int(policy.law().argmax()) == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("together", [False, True])
def test_rewards_that_come_in_bursts_are_no_changes(together):
    """Between two bursts no arm has a success. The chance of a change found where there is none is set to 1 % a run."""
    policy, rng, chances = shop(patience=2_000, missing=0.0), np.random.default_rng(0), np.array([0.05, 0.1, 0.15])
    for _ in range(40):
        decisions = policy.ask(size=250)
        sold = decisions.ids[rng.random(250) < chances[decisions.arms]]
        if together:
            policy.tell(sold, np.ones(len(sold)))
        else:
            for ident in sold.tolist():
                policy.tell(ident, 1.0)
    assert policy._exposures.active
    assert policy.changes_found == 0
    assert int(policy.law().argmax()) == 2


@pytest.mark.filterwarnings("error")
def test_the_order_asked_is_kept():
    policy, rng = shop(order="asked", patience=400, missing=0.0), np.random.default_rng(0)
    delayed(policy, rng, 2_000)
    assert not policy._exposures.active
    assert policy.held > 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("missing", [0.5, "forget"])
def test_another_value_of_missing_waits_in_order(missing):
    policy, rng = shop(patience=400, missing=missing), np.random.default_rng(0)
    assert policy.order == "asked"
    delayed(policy, rng, 1_000)
    policy.at(5.0, patience=3.0)
    assert not policy._exposures.active
    assert policy.held > 0
    assert policy.expired > 0
    assert policy.forgotten == (policy.expired if missing == "forget" else 0)


@pytest.mark.filterwarnings("ignore::driftbandits.errors.DelayWarning")
def test_where_most_are_successes_that_vary_it_waits_in_order():
    policy, rng = shop(patience=1_000, missing=0.0), np.random.default_rng(0)
    chances = (0.6, 0.75, 0.7)
    delayed(policy, rng, 12_000, chances=chances, slow=1_000, value=lambda rng: float(rng.uniform(0.3, 0.7)))
    assert (policy.order, policy._exposures.active) == ("asked", False)
    best = int(policy.law().argmax())
    np.testing.assert_allclose(policy.estimate()[best], 0.5 * chances[best], atol=0.03)
    again = copy.deepcopy(policy)
    require_equal(again.state_dict(), policy.state_dict())
    assert again.ask() == policy.ask()


@pytest.mark.parametrize("told", [9, 12, 20, 40])
def test_whether_rewards_are_silent_is_asked_at_the_same_moments_after_a_state_was_read(told):
    def run(reload):
        policy, rng, count = shop(), np.random.default_rng(3), 0
        coming = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for now in range(1_000):
                while coming and coming[0][0] <= now:
                    policy.tell(*heapq.heappop(coming)[1:])
                    count += 1
                    if reload and count == told:
                        policy = copy.deepcopy(policy)
                choice = policy.ask()
                chance = 0.9 if now < 40 else 0.05  # silence begins after the first questions
                if rng.random() < chance:
                    heapq.heappush(coming, (now + 1 + int(rng.integers(5)), choice.id, 1.0))
        return policy

    require_equal(run(True).state_dict(), run(False).state_dict())


def test_a_log_is_learned_as_it_was_played():
    policy, rng = shop(patience=200, missing=0.0), np.random.default_rng(1)
    arms, shares, rewards, told = [], [], [], []
    coming = []
    for now in range(1_000):
        while coming and coming[0][0] <= now:
            policy.tell(*heapq.heappop(coming)[1:])
        choice = policy.ask()
        arms.append(choice.arm)
        shares.append(choice.probability)
        success = rng.random() < 0.1
        rewards.append(1.0 if success else np.nan)
        when = now + 1 + int(rng.integers(1, 300))
        told.append(when if success else 10**6)
        if success:
            heapq.heappush(coming, (when, choice.id, 1.0))
    known = np.array(told) < 1_000
    pupil = shop(patience=200, missing=0.0)
    log = {"arm": arms, "probability": shares, "reward": np.where(known, rewards, np.nan), "told": told}
    pupil.learn(log)
    assert pupil.rounds == policy.rounds
    np.testing.assert_allclose(pupil.estimate(), policy.estimate(), atol=0.02)
