"""Conformal test martingales: ranks and wealth against their definitions, mean 1 exactly, Ville's inequality."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from driftbandits.detection.conformal import (
    MOST_ORDER_BETS,
    MOST_ORDERED_NUMBERS,
    POWERS,
    ConformalMartingale,
    OrderBets,
    PowerBets,
    Ranked,
    stake_after,
)

PROPERTY = settings(max_examples=30, deadline=None, derandomize=True)
KEPT = 0.1  # e in the table of the module
LAWS = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "Student-t": lambda rng, size: rng.standard_t(2.5, size),
    "Bernoulli": lambda rng, size: (rng.random(size) < 0.3).astype(float),
    "uniform": lambda rng, size: rng.random(size),
}
seeds = st.integers(0, 2**32 - 1)


def cash(numbers):
    return 1 / (1 + math.log(1 + numbers))


def ranks_of(scores, uniforms):
    numbers = Ranked()
    return [numbers.see(float(x), float(u), t) for t, (x, u) in enumerate(zip(scores, uniforms, strict=True))]


def see_all(bets, ranks):
    evidence = 1.0
    for before, rank in enumerate(ranks):
        evidence = bets.see(float(rank), before)
    return evidence


# --- ranks ------------------------------------------------------------------------------------------------------


@PROPERTY
@given(seed=seeds, scores=st.lists(st.integers(-3, 3) | st.floats(-5, 5), min_size=1, max_size=40))
def test_ranks_are_those_of_the_definition(seed, scores):
    uniforms = np.random.default_rng(seed).random(len(scores))
    direct = []
    for t, (score, u) in enumerate(zip(scores, uniforms, strict=True), 1):
        larger = sum(x > score for x in scores[: t - 1])
        ties = sum(x == score for x in scores[: t - 1])
        direct.append((larger + u * (ties + 1)) / t)
    np.testing.assert_allclose(ranks_of(scores, uniforms), direct, rtol=1e-14)


def test_numbers_are_kept_sorted_and_the_rest_in_the_order_they_came():
    numbers = Ranked()
    for score, u, round_ in ((2.0, 0.5, 7), (-1.0, 0.25, 3), (2.0, 0.75, 9)):
        numbers.see(score, u, round_)
    saved = numbers.export()
    assert saved["scores"].tolist() == [-1.0, 2.0, 2.0]
    assert saved["rounds"].tolist() == [7, 3, 9]
    assert saved["ranks"].tolist() == [0.5, 1.25 / 2, 1.5 / 3]


@pytest.mark.parametrize("law", LAWS)
def test_ranks_of_independent_draws_are_uniform_and_independent(law):
    """KS of 2,000 ranks, and of the correlation of neighbours: fails for 2e-3 of the seeds (level 1e-3 each)."""
    rng = np.random.default_rng(1)
    ranks = np.array(ranks_of(LAWS[law](rng, 2000), rng.random(2000)))
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3
    assert stats.pearsonr(ranks[:-1], ranks[1:]).pvalue > 1e-3


# --- bets: fair at every step -----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(len(POWERS)))
def test_a_bet_on_a_power_is_fair(place):
    """Integral of its factor, that of k p^(k - 1), in x = log p: of k e^(k x) over x < 0."""

    def factor(p):
        bets = PowerBets()
        bets.see(p, 0)
        return bets.wealth[place] / stake_after(0)

    assert factor(0.5) == pytest.approx(POWERS[place] * 0.5 ** (POWERS[place] - 1))
    value, error = integrate.quad(lambda x: factor(math.exp(x)) * math.exp(x), -300, 0, limit=200)
    assert error < 1e-6
    assert value == pytest.approx(1.0, abs=1e-6)


def after_random_numbers(bets, seed, numbers):
    ranks = np.random.default_rng(seed).beta(0.6, 1.0, numbers)  # not uniform: wealth of all sizes
    return see_all(bets, ranks)


@PROPERTY
@given(seed=seeds, numbers=st.integers(0, 60), two_sided=st.booleans())
def test_power_bets_expect_what_they_have(seed, numbers, two_sided):
    """E[M_{t+1} | past] = M_t: from each end to the middle by Gauss-Legendre in the logarithm of the distance.

    What lies nearer to an end than 1e-15, where ranks have no more digits, is added in closed form.
    """

    def state():
        bets = PowerBets(two_sided=two_sided)
        return bets, after_random_numbers(bets, seed, numbers)

    def following(rank):
        return state()[0].see(rank, numbers)

    bets, now = state()
    nearest, middle = math.log(1e-15), math.log(0.5)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    distances = np.exp(nearest + (middle - nearest) / 2 * (nodes + 1))
    weights = weights * distances * (middle - nearest) / 2
    expected = sum(
        (following(float(q)) + following(float(1 - q))) * float(v) for q, v in zip(distances, weights, strict=True)
    )
    powers = POWERS * (2 if two_sided else 1)
    stake = stake_after(numbers)
    expected += np.mean([(m + stake) * math.exp(k * nearest) for m, k in zip(bets.wealth, powers, strict=True)])
    assert expected == pytest.approx(now, rel=1e-3)


@PROPERTY
@given(seed=seeds, numbers=st.integers(0, MOST_ORDERED_NUMBERS + 5))
def test_order_bets_expect_what_they_have(seed, numbers):
    """Factors are constant between multiples of 1 / t: the mean over the middles of these pieces is exact."""

    def state():
        bets = OrderBets()
        return bets, after_random_numbers(bets, seed, numbers)

    now, count = state()[1], numbers + 1
    pieces = (np.arange(count) + 0.5) / count
    expected = np.mean([state()[0].see(float(p), numbers) for p in pieces])
    assert expected == pytest.approx(now, rel=1e-10)


@pytest.mark.parametrize("number", [1, 2, 3, 17, MOST_ORDER_BETS, MOST_ORDER_BETS + 1, MOST_ORDERED_NUMBERS])
def test_every_bet_on_order_is_fair(number):
    """The factor of every start, on both sides, over the middles of the pieces on which it is constant."""
    pieces = (np.arange(number) + 0.5) / number
    wealth, begun = [], min(number, MOST_ORDER_BETS)
    for p in pieces:
        bets = OrderBets()
        after_random_numbers(bets, 0, number - 1)
        before = bets.wealth.copy()
        if number <= MOST_ORDER_BETS:
            before[:, number - 1] = 0.5 * stake_after(number - 1)
        bets.see(float(p), number - 1)
        wealth.append(bets.wealth[:, :begun] / before[:, :begun])
    np.testing.assert_allclose(np.mean(wealth, axis=0), 1.0, rtol=1e-10)


# --- wealth against the sum over starts --------------------------------------------------------------------------


@PROPERTY
@given(seed=seeds, numbers=st.integers(1, 30), two_sided=st.booleans())
def test_power_bets_are_the_sum_over_their_starts(seed, numbers, two_sided):
    ranks = np.random.default_rng(seed).beta(0.5, 1.0, numbers).clip(1e-9, 1 - 1e-9)
    direct = []
    for side in (ranks, 1 - ranks) if two_sided else (ranks,):
        for power in POWERS:
            factors = power * side ** (power - 1)
            direct.append(sum(stake_after(start) * factors[start:].prod() for start in range(numbers)))
    bets = PowerBets(two_sided=two_sided)
    evidence = see_all(bets, ranks)
    assert evidence == pytest.approx(np.mean(direct) + cash(numbers), rel=1e-9)


@PROPERTY
@given(
    seed=seeds,
    numbers=st.sampled_from(
        [
            1,
            5,
            MOST_ORDER_BETS - 1,
            MOST_ORDER_BETS,
            MOST_ORDER_BETS + 9,
            MOST_ORDERED_NUMBERS,
            MOST_ORDERED_NUMBERS + 1,
            MOST_ORDERED_NUMBERS + 40,
        ]
    ),
)
def test_order_bets_are_the_sum_over_their_starts(seed, numbers):
    rng = np.random.default_rng(seed)
    ranks = np.where(rng.random(numbers) < 0.8, 0.05, 0.9) * rng.random(numbers)
    direct = 0.0
    for side in (ranks, 1 - ranks):
        for start in range(1, min(numbers, MOST_ORDER_BETS) + 1):
            wealth = 0.5 * stake_after(start - 1)
            for number in range(start, min(numbers, MOST_ORDERED_NUMBERS) + 1):
                share = (number - start + 1) / number
                wealth *= (1 - KEPT) * (side[number - 1] <= share) / share + KEPT
            direct += wealth
    bets = OrderBets()
    evidence = see_all(bets, ranks)
    assert evidence == pytest.approx(direct + cash(min(numbers, MOST_ORDER_BETS)), rel=1e-9)


def test_late_stakes_are_larger_than_those_of_inverse_squares():
    """By 3.3 nats at a thousand rounds, both adding up to 1 over all rounds."""
    inverse_square = 6.0 / (np.pi * 1000) ** 2
    assert np.log(stake_after(1000) / inverse_square) == pytest.approx(3.27, abs=0.01)


def test_stakes_and_cash_are_all_there_is():
    stakes = [stake_after(t) for t in range(1000)]
    assert all(a > b > 0 for a, b in itertools.pairwise(stakes))
    assert sum(stakes) + cash(1000) == pytest.approx(1.0, rel=1e-12)


# --- the whole martingale ---------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
def test_wealth_is_1_on_average_and_seldom_large(law):
    """2,000 streams of 30 numbers. Two things that Ville and fairness say, for each of two martingales:

    the bet on power 0.7 (the only one with a finite variance: E b^2 = 0.49 / 0.4) has a mean of 1 - cash within 4.5
    standard errors after 8 numbers; P(sup M >= c) <= 1 / c for c = 5, 10, 20, to the binomial's 1e-5. A correct
    program fails for fewer than 1 in 1,000 seeds.
    """
    rng, streams, length = np.random.default_rng(7), 2000, 30
    means, largest = np.zeros(streams), np.zeros((2, streams))
    for s, (scores, uniforms) in enumerate(
        zip(LAWS[law](rng, (streams, length)), rng.random((streams, length)), strict=True)
    ):
        martingales = ConformalMartingale(), ConformalMartingale(two_sided=True, ordered=True)
        for t in range(length):
            for kind, martingale in enumerate(martingales):
                largest[kind, s] = max(largest[kind, s], martingale.see(scores[t], uniforms[t], t))
            if t == 7:
                means[s] = martingales[0].powers.wealth[POWERS.index(0.7)]
    expected = 1 - cash(8)
    assert abs(means.mean() - expected) < 4.5 * means.std() / math.sqrt(streams)
    for reached in (5, 10, 20):
        allowed = stats.binom.isf(1e-5, streams, 1 / reached)
        assert (largest >= reached).sum(axis=1).max() <= allowed


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_evidence_is_what_see_said_last(two_sided, ordered):
    rng, martingale = np.random.default_rng(3), ConformalMartingale(two_sided=two_sided, ordered=ordered)
    assert martingale.evidence == 1.0
    for t in range(200):
        said = martingale.see(rng.standard_normal() + 2 * (t > 150), rng.random(), t)
        assert martingale.evidence == said


def jump(size, *, before=200, after=30, seed=0, **kind):
    """Evidence after a jump by `size` standard deviations, in rounds 0, 3, 6, ..."""
    rng, martingale = np.random.default_rng(seed), ConformalMartingale(**kind)
    for t in range(before + after):
        evidence = martingale.see(rng.standard_normal() + size * (t >= before), rng.random(), 3 * t)
    return evidence, martingale


@pytest.mark.parametrize("kind", [{}, {"two_sided": True}, {"two_sided": True, "ordered": True}], ids=str)
def test_a_jump_is_seen_and_its_round_found(kind):
    """Of 15 jumps by 4 standard deviations after 200 numbers (600 rounds): half within 2 numbers, all within 20.

    On 120 other seeds per kind half are exact and none is off by more than 11.
    """
    off = []
    for seed in range(15):
        evidence, martingale = jump(4.0, seed=seed, **kind)
        assert evidence > 1e6
        off.append(abs(martingale.start() - 600) / 3)
    assert np.median(off) <= 2
    assert max(off) <= 20


def test_a_jump_to_smaller_numbers_is_seen_only_from_both_sides():
    for seed in range(5):
        assert jump(-4.0, seed=seed)[0] < 2
        evidence, martingale = jump(-4.0, seed=seed, two_sided=True)
        assert evidence > 1e6
        assert abs(martingale.start() - 600) <= 60


@pytest.mark.parametrize("size", [-6.0, 6.0])
def test_order_sees_what_powers_cannot_with_few_numbers_before(size):
    """Ten numbers, then twelve beyond them all: order wins far more than powers, half of whose wealth it has."""
    plain, _ = jump(size, before=10, after=12, two_sided=True)
    ordered, martingale = jump(size, before=10, after=12, two_sided=True, ordered=True)
    assert ordered > 100
    assert ordered > 5 * plain
    assert martingale.start() == 30


def test_numbers_that_are_all_the_same_are_no_evidence():
    """Ties are broken by the uniforms alone; 1 / 20 of seeds may exceed 20, this one does not come near."""
    rng, martingale = np.random.default_rng(5), ConformalMartingale(two_sided=True, ordered=True)
    assert max(martingale.see(1.0, rng.random(), t) for t in range(500)) < 5
