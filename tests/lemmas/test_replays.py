"""The lemma on the replay schedule: replays are not overdone, the sum of mu over a block is of the order |B| mu_j."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from driftbandits.design.blocks import draw_schedule, replay_probability

FAILURE = 1e-6


def sum_of_levels(schedule):
    """Sum over rounds of mu_(m_t), in units of c1 E."""
    return float((np.diff(schedule.edges) * 2.0 ** (-schedule.indices / 2)).sum())


def expected_sum(block):
    """Its mean: a slot follows index m if m is replayed there and no smaller index is."""
    total, left = 0.0, 1.0
    for index in range(block):
        chance = replay_probability(index, block)
        total += left * chance * 2.0 ** (-index / 2)
        left *= 1.0 - chance
    return 2.0**block * (total + left * 2.0 ** (-block / 2))


def bound(block, failure):
    """The proof's, with its constants: Hoeffding for the number of replays of each m < j, and the block itself."""
    excess = math.sqrt(math.log(block / failure) / 2) if block else 0.0
    return 2.0 ** (block / 2) * (block * (1.0 + excess) + 1.0)


@pytest.mark.parametrize("block", range(13))
def test_sum_of_mu_over_a_block_with_replays(block):
    """Lemma "for any block B(j), sum over t in B(j) of mu_(m_t) = O~(|B(j)| mu_j)": with the constants of its proof.

    A draw passes the bound with probability 1e-6 at most, so 2,120 draws in all give a wrong alarm in less than 3e-3
    of cases.
    """
    rng = np.random.default_rng(block)
    draws = 200 if block < 10 else 40
    worst = max(sum_of_levels(draw_schedule(block, rng)) for _ in range(draws))
    assert worst <= bound(block, FAILURE)
    alone = 2.0 ** (block / 2)  # |B(j)| mu_j, the sum without replays
    assert worst >= alone


@pytest.mark.parametrize("block", [1, 4, 8, 11])
def test_mean_of_the_sum_over_the_coins(block):
    """The mean over 2,000 schedules is the one written out, within 5 standard errors: wrong in 6e-7 of cases."""
    rng = np.random.default_rng(block)
    sums = np.array([sum_of_levels(draw_schedule(block, rng)) for _ in range(2_000 if block < 9 else 500)])
    error = sums.std(ddof=1) / math.sqrt(len(sums))
    assert abs(sums.mean() - expected_sum(block)) <= 5 * error
    assert 5 * error < 0.1 * expected_sum(block)  # or the agreement says little


def test_the_mean_is_within_j_plus_one_times_that_of_a_block_without_replays():
    """So the order of the lemma is right in j too: the ratio to |B(j)| mu_j grows, and no faster than j + 1."""
    ratios = [expected_sum(block) / 2.0 ** (block / 2) for block in range(40)]
    assert all(ratio <= block + 1 for block, ratio in enumerate(ratios))
    assert all(late > early for early, late in itertools.pairwise(ratios))


def test_with_replays_in_every_slot_the_bound_fails():
    """Were every index replayed always, every round would cost mu_0: the sum is |B(j)| mu_0, beyond the bound."""
    always = draw_schedule(12, np.random.default_rng(0), scale=1e9)
    assert sum_of_levels(always) == 2.0**12 > bound(12, FAILURE)
