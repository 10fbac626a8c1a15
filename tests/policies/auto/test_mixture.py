"""The weights against the evidence of all rewards, and what births, merging and giving up leave as it was."""

import math

import numpy as np
import pytest

from driftbandits import ArmSet
from driftbandits.policies.auto import hypotheses as priors_module
from driftbandits.policies.auto import mixture as module
from driftbandits.policies.auto.beliefs import Beliefs
from driftbandits.policies.auto.hypotheses import Priors
from driftbandits.policies.auto.mixture import LOCAL, RESET, Mixture
from tests.policies.auto.reference import (
    WHITE_ALONE,
    covariance_of,
    exact,
    given,
    line,
    log_evidence,
    plane,
    play_in,
    some_rewards,
)

NOISE = 0.02
RATES = (0.0, 1e-2, 0.1)


@pytest.fixture
def one_prior(monkeypatch):
    """With the kernel given there is then one prior only."""
    monkeypatch.setattr(priors_module, "SIGNAL_VARIANCES", (0.1,))


@pytest.fixture
def unbounded(monkeypatch):
    """A reward may count by any number of nats."""
    monkeypatch.setattr(module, "MOST_NATS_PER_REWARD", math.inf)


def weigh(beliefs, mixture, told):
    for step in play_in(beliefs, told):
        mixture.update(step.likelihood)


@pytest.mark.usefixtures("unbounded")
@pytest.mark.parametrize("arms", [line(), plane()], ids=["arms", "features"])
def test_weights_are_the_evidence_of_all_rewards(arms):
    """By the density of all rewards together, for every rate and prior."""
    priors, told = given(arms), some_rewards(len(arms), 40)
    beliefs, mixture = exact(priors, RATES, noise=NOISE)
    first = mixture.weights().copy()
    weigh(beliefs, mixture, told)
    evidence = np.array(
        [
            log_evidence(covariance_of(priors, kind), told, rate=rate, noise=NOISE)
            for kind, rate in zip(beliefs.kind.tolist(), beliefs.rate.tolist(), strict=True)
        ]
    )
    expected = first * np.exp(evidence - evidence.max())
    np.testing.assert_allclose(mixture.weights(), expected / expected.sum(), atol=1e-7)


@pytest.mark.usefixtures("unbounded")
def test_weights_of_priors_are_those_of_their_hypotheses():
    beliefs, mixture = exact(Priors(line(), auto=True, rank=100), RATES, noise=NOISE)
    weigh(beliefs, mixture, some_rewards(10, 30))
    kinds = mixture.kinds()
    assert len(kinds) == beliefs.priors.count > 2
    for kind, weight in enumerate(kinds):
        assert weight == pytest.approx(mixture.weights()[beliefs.kind == kind].sum())


@pytest.mark.usefixtures("one_prior")
def test_half_of_the_weight_begins_with_the_drifting():
    beliefs, mixture = exact(given(line()), RATES, noise=NOISE)
    assert mixture.weights()[beliefs.rate > 0].sum() == pytest.approx(0.5)


@pytest.mark.usefixtures("unbounded", "one_prior")
def test_those_not_able_keep_their_share():
    _, mixture = exact(given(line()), RATES, noise=NOISE)
    first = mixture.weights().copy()
    mixture.update(np.array([-1.0, 5.0, -3.0]), np.array([True, False, True]))
    after = mixture.weights()
    assert after[1] == pytest.approx(first[1])
    assert after[0] / after[2] == pytest.approx(first[0] / first[2] * math.exp(2.0))


@pytest.mark.usefixtures("one_prior")
def test_a_reward_none_is_able_to_judge_changes_nothing():
    _, mixture = exact(given(line()), RATES, noise=NOISE)
    first = mixture.weights().copy()
    mixture.update(np.array([-1.0, 5.0, -3.0]), np.zeros(3, dtype=bool))
    np.testing.assert_array_equal(mixture.weights(), first)


@pytest.mark.usefixtures("one_prior")
def test_one_reward_changes_odds_by_a_bounded_factor():
    _, mixture = exact(given(line()), RATES, noise=NOISE)
    first = mixture.weights().copy()
    mixture.update(np.array([0.0, -1000.0, 0.0]))
    after = mixture.weights()
    assert after[1] / after[0] == pytest.approx(first[1] / first[0] * math.exp(-module.MOST_NATS_PER_REWARD))


# --- births and merging -----------------------------------------------------------------------------------------


def stack(births, weights, *, kinds=None, auto=False):
    """A full stack of hypotheses that do not drift."""
    beliefs = Beliefs(Priors(line(), auto=auto, rank=100), len(births))
    mixture = Mixture(beliefs, rates=(), slots=len(births), models=WHITE_ALONE)
    for row, birth in enumerate(births):
        beliefs.write(row, kind=0 if kinds is None else kinds[row], birth=birth, noise=0.01)
    mixture.log_weight[:] = np.log(weights)
    return beliefs, mixture


def begun(priors):
    beliefs = Beliefs(priors, Mixture.capacity(priors.count))
    mixture = Mixture(beliefs, models=WHITE_ALONE)
    mixture.start(0)
    return beliefs, mixture


def breed(mixture, rng, rounds):
    """Let time pass and weights move, with births after every ten rounds."""
    for now in range(10, rounds, 10):
        mixture.pass_time(10, now)
        mixture.renew(now)
        yield now
        mixture.update(rng.normal(0.0, 1.5, mixture.beliefs.count))


@pytest.mark.usefixtures("one_prior")
def test_births_keep_the_sum_of_the_weights():
    beliefs, mixture = begun(given(line()))
    rng = np.random.default_rng(0)
    for _ in breed(mixture, rng, 2000):
        assert np.exp(mixture.log_weight[: beliefs.count]).sum() == pytest.approx(1.0)
        mixture.log_weight[: beliefs.count] = np.log(mixture.weights())


@pytest.mark.parametrize("auto", [False, True])
def test_the_number_of_rows_is_bounded(auto):
    priors = Priors(line(), auto=auto, rank=100)
    beliefs, mixture = begun(priors)
    for _ in breed(mixture, np.random.default_rng(0), 2000):
        assert beliefs.count <= len(beliefs.mean)
        assert np.count_nonzero(beliefs.rate[: beliefs.count] == 0) <= max(mixture.slots, priors.count)
        assert mixture.weights().sum() == pytest.approx(1.0)


@pytest.mark.usefixtures("one_prior")
def test_the_oldest_is_never_merged():
    beliefs, mixture = begun(given(line()))
    for _ in breed(mixture, np.random.default_rng(0), 2000):
        assert beliefs.birth[0] == 0
        assert beliefs.rate[0] == 0.0


@pytest.mark.usefixtures("one_prior")
def test_drifting_hypotheses_are_never_merged():
    beliefs, mixture = begun(given(line()))
    for _ in breed(mixture, np.random.default_rng(0), 1000):
        assert sorted(beliefs.rate[beliefs.rate > 0]) == sorted(mixture.rates)


@pytest.mark.usefixtures("one_prior")
def test_births_begin_now_and_one_of_them_knows_nothing():
    beliefs, mixture = begun(given(line()))
    play_in(beliefs, some_rewards(10, 10, gaps=False))
    mixture.pass_time(10, 9)
    known = beliefs.count
    mixture.renew(10)
    born = np.arange(known, beliefs.count)
    assert (beliefs.birth[born] == 10).all()
    fresh = born[beliefs.origin[born] == RESET]
    assert len(fresh) == 1
    mean, variance = beliefs.reading(fresh[0])
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(variance, covariance_of(beliefs.priors, 0).diagonal())


@pytest.mark.usefixtures("one_prior")
def test_no_births_while_no_time_passes():
    beliefs, mixture = begun(given(line()))
    mixture.pass_time(10, 9)
    before = beliefs.writes
    mixture.renew(10)
    writes = beliefs.writes
    assert writes > before
    mixture.renew(10)
    assert beliefs.writes == writes


@pytest.mark.usefixtures("one_prior")
def test_a_merged_hypothesis_leaves_its_weight_to_a_neighbour():
    beliefs, mixture = stack([0, 10, 20, 1000, 1010], [0.3, 0.2, 0.1, 0.1, 0.3])
    before = mixture.weights().copy()
    row = mixture._room()
    gained = np.exp(mixture.log_weight) - before
    assert np.delete(gained, row).sum() == pytest.approx(before[row])
    assert abs(int(np.flatnonzero(gained > 1e-9)[0]) - row) == 1
    assert beliefs.birth[row] not in (0, 1010)


@pytest.mark.usefixtures("one_prior")
def test_the_leader_is_not_merged_because_others_were_born_with_it():
    """Three hypotheses are born in the same round; here the one in the middle has explained all since."""
    _, mixture = stack([0, 50, 50, 50, 60, 60, 60], [0.002, 0.002, 0.988, 0.002, 0.002, 0.002, 0.002])
    leader = mixture.leader()
    assert mixture._room() != leader


def test_making_room_for_one_prior_leaves_every_other_its_first_hypothesis():
    """Prior 0 has one hypothesis, so another has to give one up, and prior 3 has some to spare."""
    beliefs, mixture = stack([0, 0, 0, 0, 500, 500, 600], [1 / 7] * 7, kinds=[0, 1, 2, 3, 3, 3, 3], auto=True)
    assert beliefs.birth[mixture._room()] > 0


def test_making_room_for_one_prior_leaves_the_leader_of_another():
    _, mixture = stack([0, 0, 500, 600, 0, 0], [0.02, 0.02, 0.02, 0.9, 0.02, 0.02], kinds=[0, 1, 1, 1, 2, 2], auto=True)
    leader = mixture.leader()
    assert mixture._room() != leader


def test_making_room_for_one_prior_from_another_divides_by_no_zero():
    _, mixture = stack([0, 0, 501, 0, 500], [0.2] * 5, kinds=[0, 1, 1, 2, 2], auto=True)
    assert mixture._room() in range(1, 5)  # prior 0 keeps its only hypothesis
    assert mixture.weights().sum() == pytest.approx(1.0)


def test_giving_up_a_prior_leaves_the_rest_in_proportion(monkeypatch):
    monkeypatch.setattr(module, "LEAST_PRIOR_WEIGHT", 1e-12)
    priors = Priors(line(), auto=True, rank=100)
    beliefs, mixture = exact(priors, RATES, noise=NOISE)
    weigh(beliefs, mixture, some_rewards(10, 10))
    hopeless = beliefs.kind[: beliefs.count] == 1
    mixture.log_weight[: beliefs.count][hopeless] -= 50.0
    mixture._weights = None
    weights, means = mixture.weights()[~hopeless].copy(), beliefs.mean[: beliefs.count][~hopeless].copy()
    kinds, rates = beliefs.kind[: beliefs.count][~hopeless].copy(), beliefs.rate[: beliefs.count][~hopeless].copy()
    mixture.prune()
    assert beliefs.count == len(weights)
    np.testing.assert_allclose(mixture.weights(), weights / weights.sum())
    np.testing.assert_array_equal(beliefs.mean[: beliefs.count], means)
    np.testing.assert_array_equal(beliefs.kind[: beliefs.count], kinds)
    np.testing.assert_array_equal(beliefs.rate[: beliefs.count], rates)
    writes = beliefs.writes
    mixture.prune()
    assert beliefs.writes == writes


# --- one arm alone ----------------------------------------------------------------------------------------------


def suspected(mixture):
    """The row of a hypothesis that only arm 1 has changed, of chance 0.01."""
    mixture.suspect(1, 0.01, 30)
    return int(np.flatnonzero(mixture.beliefs.origin == LOCAL)[0])


def clusters():
    """Two groups of arms, far apart."""
    return ArmSet(np.array([0.0, 0.1, 0.3, 5.0, 5.1, 5.3])[:, None], {"name": "rbf", "length_scale": 0.2})


@pytest.mark.usefixtures("one_prior")
@pytest.mark.parametrize("arms", [clusters(), plane()], ids=["arms", "features"])
def test_a_suspect_is_the_leader_but_for_the_arm_and_its_like(arms):
    """Wider by the part of the prior, level apart, that the arm shares; the mean stays."""
    priors = given(arms)
    beliefs = Beliefs(priors, Mixture.capacity(1), known_noise=NOISE)
    mixture = Mixture(beliefs)
    mixture.start(0)
    weigh(beliefs, mixture, some_rewards(len(arms), 25))
    leader = mixture.leader()
    row = suspected(mixture)
    read = np.eye(len(arms), priors.width) if priors.rows is None else priors.rows.of(0)
    column = covariance_of(priors, 0)[:, 1] - priors_module.LEVEL_VARIANCE
    np.testing.assert_array_equal(beliefs.mean[row], beliefs.mean[leader])
    wider = read @ (beliefs.covariance(row) - beliefs.covariance(leader)) @ read.T
    np.testing.assert_allclose(wider, np.outer(column, column) / column[1], atol=1e-10)
    assert mixture.log_weight[row] - mixture.log_weight[leader] == pytest.approx(math.log(0.01))
    assert beliefs.birth[row] == 30


@pytest.mark.usefixtures("one_prior")
def test_a_suspect_knows_arms_far_away_as_well_as_before():
    beliefs = Beliefs(given(clusters()), Mixture.capacity(1), known_noise=NOISE)
    mixture = Mixture(beliefs)
    mixture.start(0)
    weigh(beliefs, mixture, some_rewards(6, 25))
    leader = mixture.leader()
    before = beliefs.reading(leader)[1]
    after = beliefs.reading(suspected(mixture))[1]
    np.testing.assert_allclose(after[3:], before[3:], atol=1e-12)
    assert (after[:3] > 2 * before[:3]).all()


def some_mixture(births, weights, *, now):
    """Weights of hypotheses born in these rounds, and what is in doubt at round `now`."""
    beliefs = Beliefs(given(line()), len(births))
    mixture = Mixture(beliefs)
    for row, birth in enumerate(births):
        beliefs.write(row, kind=0, birth=birth, noise=NOISE)
    mixture.log_weight[: len(births)] = np.log(weights)
    return mixture.in_doubt(now)


def test_what_was_born_lately_is_in_doubt():
    assert some_mixture([0, 400, 480, 490], [0.9, 0.05, 0.03, 0.02], now=500) == pytest.approx(0.05)


def test_where_the_young_leads_all_else_is_in_doubt():
    assert some_mixture([0, 400, 480, 490], [0.1, 0.05, 0.65, 0.2], now=500) == pytest.approx(0.35)


def test_nothing_is_in_doubt_in_the_beginning_or_long_after():
    assert some_mixture([0, 0], [0.5, 0.5], now=10) == 0.0
    assert some_mixture([0, 100], [0.5, 0.5], now=500) == 0.0
