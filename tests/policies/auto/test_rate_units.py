"""Chances of success as coordinates: against Beta posteriors, one reward at a time, and another centre."""

import math

import numpy as np
import pytest

from driftbandits import ArmSet
from driftbandits.policies.auto.beliefs import TERMS_GATHERED, Beliefs
from driftbandits.policies.auto.mixture import Mixture
from driftbandits.policies.auto.rate_units import LOW, RateUnits
from driftbandits.policies.auto.two_valued import Tally
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
