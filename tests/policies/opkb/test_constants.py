"""Constants, the levels they give, and the variants of ADA-OPKB."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandits as db
from driftbandits import ArmSet, Constants, Variant, information_gain, subgaussian_range
from driftbandits.errors import InputError
from driftbandits.policies.opkb.constants import Levels

PROPERTY = settings(max_examples=60, deadline=None, derandomize=True)
BENCHMARK = {"gamma": 100 * math.log(2), "horizon": 10_000, "arms": 100}  # K = I, N = 100, T = 1e4, sigma = 100
LOG_TERM = math.log(8 * 10_000 * math.log2(10_000) * 100 / 1e-4)


def test_gamma_of_the_benchmark_has_no_factor_one_half():
    """K = I with N = 100 arms and T / sigma = 100 gives 100 log(1 + 1)."""
    arms = ArmSet.from_features(np.eye(100))
    assert information_gain(arms, horizon=10_000, sigma=100.0) == pytest.approx(BENCHMARK["gamma"], rel=1e-6)


def test_block_size_of_the_theory_and_of_the_published_constants():
    """E = ceil(c3 gamma log(C0 N / delta)) is 7,678 rounds and 39 rounds."""
    assert Constants.theory(bound=1.0, noise=0.0).levels(**BENCHMARK).block_size == 7678
    assert Constants.published().levels(**BENCHMARK).block_size == 39


def test_a_policy_resolves_the_same_levels():
    arms = ArmSet.from_features(np.eye(100))
    policy = db.AdaOPKB.published(arms, horizon=10_000)
    assert policy.steady_rounds() == 39  # block 0 is one slot of E rounds
    theory = db.AdaOPKB(arms, horizon=10_000, constants=Constants.theory(bound=0.5, noise=0.5))
    assert theory.steady_rounds() == 7678
    related = db.environments.create("switching/1", seed=0).arms  # nearly as many dimensions as arms
    assert db.AdaOPKB(related, horizon=10_000, constants=theory.constants).steady_rounds() == 7677


def test_levels_of_the_published_constants():
    levels = Constants.published().levels(**BENCHMARK)
    assert levels.regulariser == 0.01
    assert levels.alpha == pytest.approx(0.3125 * 100 / LOG_TERM)
    assert levels.beta(0) == pytest.approx(1.81 * BENCHMARK["gamma"])
    assert levels.beta(4) == pytest.approx(4 * 1.81 * BENCHMARK["gamma"])
    assert [levels.level(j) for j in (0, 2, 6)] == pytest.approx([0.1, 0.05, 0.0125])
    assert levels.good_gap(2, 7.0) == pytest.approx(2 * levels.alpha * 7.0 / levels.beta(2))
    assert levels.c0 == 1.38


@PROPERTY
@given(
    sigma=st.floats(0.01, 1e3),
    horizon=st.integers(2, 10**7),
    arms=st.integers(1, 10**6),
    gamma=st.floats(0.1, 1e4),
    block=st.integers(0, 25),
)
def test_identities_of_the_theory_constants(sigma, horizon, arms, gamma, block):
    """Appendix 'Constants and notations': the four identities the proofs use, for every block."""
    levels = Constants.theory(bound=2.0, noise=1.0, sigma=sigma).levels(gamma=gamma, horizon=horizon, arms=arms)
    mu, beta, xi = levels.level(block), levels.beta(block), levels.level(block) / (4 * gamma)
    assert levels.c0 * beta * mu == pytest.approx(2 * gamma)
    assert xi * gamma == pytest.approx(mu / 4)
    assert mu * beta == pytest.approx(2 * gamma / levels.c0)
    assert mu * beta <= gamma / 20 * (1 + 1e-12)
    assert xi * beta == pytest.approx(1 / (2 * levels.c0))
    assert xi * beta <= 1 / 80 * (1 + 1e-12)
    assert mu == pytest.approx(2.0 ** (-(block + 2) / 2))
    log_term = math.log(8 * horizon * math.log2(horizon) * arms / 1e-4)
    assert levels.alpha == pytest.approx(sigma / (4 * log_term))
    assert levels.block_size == math.ceil(4 * gamma * log_term)
    assert levels.mixing(block) == mu <= 0.5  # 1 - mu_j >= 1/2: the proofs drop the rest of the mixture


def test_mixing_is_clipped_and_the_threshold_is_not():
    """mu_j = min(1, c1 2^(-j/2)) mixes laws, c1 2^(-j/2) is in the threshold."""
    levels = Constants(c0=1.38, c1=3.0).levels(**BENCHMARK)
    assert [levels.mixing(j) for j in (0, 2, 4)] == pytest.approx([1.0, 1.0, 0.75])
    assert [levels.level(j) for j in (0, 2, 4)] == pytest.approx([3.0, 1.5, 0.75])
    assert Variant.paper().test_threshold(levels, 0, 2) == pytest.approx(4 * 1.38 * 3.0)


def test_formulas_stand_in_for_constants_left_out():
    levels = Constants(c0=None, c2=None).levels(**BENCHMARK)
    assert levels.c0 == pytest.approx(40 + 16 * math.sqrt(levels.alpha))
    assert levels.c2 == pytest.approx(1 / (10 + 4 * math.sqrt(levels.alpha)))


def test_levels_need_no_more_than_one_round():
    levels = Constants.published().levels(gamma=0.5, horizon=1, arms=1)
    assert levels.block_size == 1
    assert math.isfinite(levels.alpha)
    assert isinstance(levels, Levels)


def test_theory_divides_rewards_by_noise_plus_bound():
    constants = Constants.theory(bound=2.9, noise=0.6)
    assert constants.scale == pytest.approx(3.5)
    assert (constants.c0, constants.c1, constants.c2, constants.c3, constants.c4) == (None, 0.5, None, 4.0, 0.25)


def test_published_constants_and_variant_are_those_of_the_authors():
    constants, variant = Constants.published(), Variant.published()
    assert (constants.sigma, constants.failure_probability) == (100.0, 1e-4)
    assert [constants.c0, constants.c1, constants.c2, constants.c3, constants.c4] == [1.38, 0.1, 1.81, 0.02, 0.3125]
    assert constants.scale is None
    assert variant == Variant(
        share=0.2, lowest_index=4, threshold="mean_level", test_block=False, good_arms_by="initial_gain"
    )
    policy = db.AdaOPKB.published(ArmSet([[0.0], [1.0]]), horizon=100, seed=3)
    assert (policy.constants, policy.variant, policy.seed) == (constants, variant, 3)


def test_defaults_of_a_policy_are_tuned_and_paper():
    policy = db.AdaOPKB(ArmSet([[0.0], [1.0]]), horizon=100)
    assert policy.constants == Constants.tuned()
    assert policy.variant == Variant.paper()
    assert Variant.paper() == Variant(
        share=0.5, lowest_index=0, threshold="smaller_index", test_block=True, good_arms_by="present_gain"
    )


def test_threshold_rules():
    levels = Constants.published().levels(**BENCHMARK)
    paper, published = Variant.paper(), Variant.published()
    mu = [0.1 * 2 ** (-j / 2) for j in range(9)]
    assert paper.test_threshold(levels, 5, 8) == pytest.approx(4 * 1.38 * mu[5])
    assert paper.test_threshold(levels, 8, 5) == pytest.approx(4 * 1.38 * mu[5])
    assert published.test_threshold(levels, 5, 8) == pytest.approx(4 * 1.38 * (mu[5] + mu[8]) / 2)


@pytest.mark.parametrize("name", ["sigma", "failure_probability", "c0", "c1", "c2", "c3", "c4", "scale"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", True])
def test_constants_refuse_what_is_not_a_positive_number(name, value):
    with pytest.raises(InputError, match=f"{name} must (be a (finite positive )?number|lie in \\(0, 1\\)), got"):
        Constants(**{name: value})


@pytest.mark.parametrize("name", ["sigma", "failure_probability", "c1", "c3", "c4"])
def test_only_c0_c2_and_scale_may_be_none(name):
    with pytest.raises(InputError, match=name):
        Constants(**{name: None})


def test_failure_probability_lies_below_one():
    with pytest.raises(InputError, match="failure_probability"):
        Constants(failure_probability=1.0)


@pytest.mark.parametrize("given", [{"bound": -1.0, "noise": 1.0}, {"bound": 1.0, "noise": math.nan}])
def test_theory_refuses_negative_bounds(given):
    with pytest.raises(InputError, match="non-negative"):
        Constants.theory(**given)


def test_theory_needs_some_reward():
    with pytest.raises(InputError, match="scale"):
        Constants.theory(bound=0.0, noise=0.0)


@pytest.mark.parametrize(
    "settings",
    [
        {"share": 0.0},
        {"share": 1.0},
        {"share": math.nan},
        {"lowest_index": -1},
        {"lowest_index": 1.0},
        {"lowest_index": True},
        {"threshold": "mean"},
        {"good_arms_by": "gain"},
        {"after_restart": "kept"},
    ],
)
def test_variant_refuses_unusable_values(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        Variant(**settings)


def test_constants_and_variants_are_frozen():
    for value in (Constants.tuned(), Variant.paper()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.sigma = 1.0


def test_subgaussian_range_is_the_truncation_of_appendix_d():
    low, high = subgaussian_range(bound=0.5, noise=0.1, horizon=1000, failure_probability=0.05)
    assert high == pytest.approx(0.5 + math.sqrt(2 * 0.1**2 * math.log(1000 / 0.05)))
    assert low == -high
    assert 1000 * 2 * math.exp(-((high - 0.5) ** 2) / (2 * 0.1**2)) == pytest.approx(2 * 0.05)  # two ends, 2 delta
    for wrong in (
        {"noise": -1.0},
        {"bound": -1.0},
        {"horizon": 0},
        {"failure_probability": 0.0},
        {"failure_probability": 1.0},
    ):
        with pytest.raises(InputError):
            subgaussian_range(**({"bound": 0.5, "noise": 0.1, "horizon": 10, "failure_probability": 0.1} | wrong))
