"""Smoothed ranks: those of the definition while numbers are kept, and exactly uniform afterwards."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from driftbandits import state as states
from driftbandits.detection.ranks import EXACT, Ranked, cut_places
from driftbandits.errors import StateError

PROPERTY = settings(max_examples=30, deadline=None, derandomize=True)
LAWS = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "Student-t": lambda rng, size: rng.standard_t(2.5, size),
    "Bernoulli": lambda rng, size: (rng.random(size) < 0.3).astype(float),
    "three values": lambda rng, size: rng.integers(3, size=size).astype(float),
}


def ranks_of(scores, uniforms, numbers=None):
    numbers = Ranked() if numbers is None else numbers
    return [numbers.see(float(x), float(u)) for x, u in zip(scores, uniforms, strict=True)]


# --- all numbers kept -------------------------------------------------------------------------------------------


@PROPERTY
@given(seed=st.integers(0, 2**32 - 1), scores=st.lists(st.integers(-3, 3) | st.floats(-5, 5), min_size=1, max_size=40))
def test_ranks_are_those_of_the_definition(seed, scores):
    uniforms = np.random.default_rng(seed).random(len(scores))
    direct = []
    for t, (score, u) in enumerate(zip(scores, uniforms, strict=True), 1):
        larger = sum(x > score for x in scores[: t - 1])
        ties = sum(x == score for x in scores[: t - 1])
        direct.append((larger + u * (ties + 1)) / t)
    np.testing.assert_allclose(ranks_of(scores, uniforms), direct, rtol=1e-14)


# --- cuts -------------------------------------------------------------------------------------------------------


def test_cuts_are_close_at_both_ends_and_ever_wider_inwards():
    places = np.array(cut_places(EXACT))
    assert places[0] == 1
    assert places[-1] == EXACT
    np.testing.assert_array_equal(places, EXACT + 1 - places[::-1])
    low = places[places <= EXACT / 2]
    assert low.max() == EXACT / 2
    assert (np.diff(low) <= np.maximum(0.25 * low[:-1], 1)).all()


@pytest.mark.parametrize("exact", [2, 3, 5])
def test_ranks_beyond_the_cuts_are_uniform_given_all_before_by_enumeration(exact):
    """All orders of exact + 2 different numbers are as likely. With u = 1/2 a rank is the middle of its piece.

    So whatever came before, ranks must be the middles of pieces that are as long as they are likely.
    """
    length = exact + 2
    following = defaultdict(Counter)
    for order in itertools.permutations(range(length)):
        ranks = ranks_of(order, [0.5] * length, Ranked(exact=exact))
        for t in range(length):
            following[tuple(ranks[:t])][ranks[t]] += 1
    assert len(following) > length
    for counts in following.values():
        likely = np.array([counts[rank] for rank in sorted(counts)]) / counts.total()
        np.testing.assert_allclose(sorted(counts), np.cumsum(likely) - likely / 2, rtol=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("exact", [6, EXACT])
def test_ranks_of_independent_draws_are_uniform_and_independent(law, exact):
    """KS of 4,000 ranks, and of the correlation of neighbours: fails for 2e-3 of the seeds (level 1e-3 each).

    With 6 numbers kept, 500 streams of 8 ranks each: in one stream ranks stay tied to where its few cuts are.
    """
    rng = np.random.default_rng(1)
    if exact == EXACT:
        ranks = np.array(ranks_of(LAWS[law](rng, 4000), rng.random(4000), Ranked(rng.random)))[None]
    else:
        ranks = np.array(
            [ranks_of(LAWS[law](rng, 14), rng.random(14), Ranked(rng.random, exact=6))[6:] for _ in range(500)]
        )
    assert stats.kstest(ranks.ravel(), "uniform").pvalue > 1e-3
    assert stats.pearsonr(ranks[:, :-1].ravel(), ranks[:, 1:].ravel()).pvalue > 1e-3


def test_few_kept_numbers_rank_nearly_as_all_do():
    """5,000 normal numbers: against ranks among all, off by a fifth of the distance from the end at most, and 1 / n."""
    rng = np.random.default_rng(2)
    scores, uniforms = rng.standard_normal(5000), rng.random(5000)
    binned = np.array(ranks_of(scores, uniforms))
    exact = np.array(ranks_of(scores, uniforms, Ranked(exact=10**9)))
    np.testing.assert_array_equal(binned[:EXACT], exact[:EXACT])
    distance = np.minimum(exact, 1 - exact)
    assert (np.abs(binned - exact) <= 0.25 * distance + 4 / EXACT).all()


# --- state ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbers", [0, 5, EXACT - 1, EXACT, EXACT + 100])
@pytest.mark.parametrize("law", ["normal", "three values"])
def test_a_copy_goes_on_bit_for_bit(numbers, law):
    rng = np.random.default_rng(3)
    one, two = Ranked(), Ranked()
    ranks_of(LAWS[law](rng, numbers), rng.random(numbers), one)
    two.load(states.Reader(one.export()), most=numbers, largest=10.0)
    scores, uniforms = LAWS[law](rng, 30), rng.random(30)
    assert ranks_of(scores, uniforms, one) == ranks_of(scores, uniforms, two)


BROKEN = {
    "scores": ("scores", 10, lambda a: a[::-1]),
    "size": ("scores", 10, lambda a: a + 20),
    "count": ("count", 10, lambda n: n + 1),
    "cuts": ("cuts", EXACT, lambda a: a[::-1]),
    "masses": ("masses", EXACT, lambda a: np.append(a[:-1], a[-1] + 1)),
    "small masses": ("masses", EXACT + 9, lambda a: np.append(a[:-1] - 1, a[-1] + len(a) - 1)),
    "ties": ("ties", EXACT, lambda a: a + 1),
    "order of ties": ("ties", EXACT, lambda a: a[::-1]),
}


@pytest.mark.parametrize(("key", "numbers", "change"), BROKEN.values(), ids=BROKEN)
def test_a_broken_state_is_refused(key, numbers, change):
    rng, ranked = np.random.default_rng(4), Ranked()
    ranks_of(rng.integers(3, size=numbers), rng.random(numbers), ranked)
    saved = ranked.export()
    saved[key] = change(saved[key])
    with pytest.raises(StateError):
        Ranked().load(states.Reader(saved), most=2 * EXACT, largest=10.0)
