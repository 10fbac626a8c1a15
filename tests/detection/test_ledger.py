"""The ledger of an epoch: totals before and after any round against all single rewards, and bounded memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits import state as states
from driftbandits.detection.ledger import MOST_ALIKE, RECENT, SMALLEST, Ledger, Totals
from driftbandits.errors import StateError

PROPERTY = settings(max_examples=20, deadline=None, derandomize=True)
SIZE = 7


def rows_of(rounds, seed=0, late=0):
    """Arms, rewards and rounds in the order told: each reward up to `late` rounds late."""
    rng = np.random.default_rng(seed)
    order = np.argsort(np.arange(rounds) + rng.integers(late + 1, size=rounds), kind="stable")
    return rng.integers(SIZE, size=rounds), rng.uniform(-1, 1, rounds), order


def filled(rounds, seed=0, late=0):
    ledger, rows = Ledger(SIZE), rows_of(rounds, seed, late)
    ledger.observe(*rows)
    return ledger, rows


def assert_close(totals, expected):
    np.testing.assert_array_equal(totals.counts, expected.counts)
    np.testing.assert_allclose(totals.sums, expected.sums, atol=1e-9)
    np.testing.assert_allclose(totals.squares, expected.squares, atol=1e-9)


@PROPERTY
@given(
    seed=st.integers(0, 2**32 - 1),
    rounds=st.sampled_from([0, 10, 2 * RECENT - 1, 2 * RECENT, 9000]),
    late=st.sampled_from([0, 50, 5000]),
    where=st.floats(0, 1),
)
def test_a_cut_counts_every_round_on_its_own_side(seed, rounds, late, where):
    ledger, (arms, rewards, played) = filled(rounds, seed, late)
    assert ledger.told == rounds
    assert_close(ledger.totals(), Totals.of(arms, rewards, SIZE))
    before, after = ledger.cut(round(where * rounds))
    # every side is that of a cut at some round, a little earlier and a little later than the one asked for
    first, last = int(before.counts.sum()), rounds - int(after.counts.sum())
    assert first <= round(where * rounds) <= last
    old, new = played < first, played >= last
    assert_close(before, Totals.of(arms[old], rewards[old], SIZE))
    assert_close(after, Totals.of(arms[new], rewards[new], SIZE))
    sparse = ledger.played_since(round(where * rounds))
    np.testing.assert_array_equal(sparse.arms, np.flatnonzero(after.counts))
    np.testing.assert_allclose(sparse.totals, np.array([after.counts, after.sums, after.squares])[:, sparse.arms])
    assert last - first <= max(0.3 * (rounds - first), SMALLEST)


def test_recent_cuts_are_exact():
    ledger, (arms, rewards, played) = filled(20_000)
    for ago in (0, 1, 100, RECENT):
        before, after = ledger.cut(20_000 - ago)
        new = played >= 20_000 - ago
        assert_close(after, Totals.of(arms[new], rewards[new], SIZE))
        assert_close(before, Totals.of(arms[~new], rewards[~new], SIZE))


def test_what_is_kept_after_a_cut_goes_on():
    ledger, (arms, rewards, _) = filled(20_000)
    after = ledger.cut(12_000)[1]
    ledger.forget(12_000)
    assert_close(ledger.totals(), after)
    assert ledger.told == after.counts.sum()
    ledger.observe(arms[:3000], rewards[:3000], 20_000 + np.arange(3000))
    assert ledger.told == after.counts.sum() + 3000
    assert_close(ledger.cut(22_000)[1], Totals.of(arms[2000:3000], rewards[2000:3000], SIZE))
    ledger.forget(10**6)
    assert ledger.told == 0
    assert not ledger.totals().counts.any()


def test_memory_grows_with_the_logarithm_of_rounds():
    """At most MOST_ALIKE buckets of each size, and twice RECENT single rounds."""
    for rounds in (10_000, 80_000):
        saved = filled(rounds)[0].export()
        assert len(saved["rounds"]) < 2 * RECENT
        assert len(saved["buckets"]) <= MOST_ALIKE * np.log2(rounds / SMALLEST)


@pytest.mark.parametrize("late", [0, 3000])
def test_a_copy_goes_on_bit_for_bit(late):
    ledger, copy = filled(9000, late=late)[0], Ledger(SIZE)
    copy.load(states.Reader(ledger.export()), rounds=9000)
    arms, rewards, played = rows_of(3000, seed=1)
    for one in (ledger, copy):
        one.observe(arms, rewards, 9000 + played)
    for mine, others in zip(ledger.cut(5000), copy.cut(5000), strict=True):
        for name in ("counts", "sums", "squares"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(others, name))


def first_bucket(saved, **changes):
    return {**saved, "buckets": [{**saved["buckets"][0], **changes}, *saved["buckets"][1:]]}


BROKEN = {
    "unknown arms": lambda s: {**s, "arms": s["arms"] + SIZE},
    "rewards too large": lambda s: {**s, "rewards": s["rewards"] + 2},
    "rounds to come": lambda s: {**s, "rounds": s["rounds"] + 9000},
    "border": lambda s: {**s, "border": 0},
    "no buckets": lambda s: {**s, "buckets": []},
    "order": lambda s: {**s, "buckets": s["buckets"][::-1]},
    "level": lambda s: first_bucket(s, level=0),
    "arms of a bucket": lambda s: first_bucket(s, arms=s["buckets"][0]["arms"][::-1].copy()),
    "counts": lambda s: first_bucket(s, totals=s["buckets"][0]["totals"] + 0.5),
    "many": lambda s: first_bucket(s, totals=s["buckets"][0]["totals"] * 100),
    "squares": lambda s: first_bucket(s, totals=s["buckets"][0]["totals"] * np.array([[1], [1], [0]])),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_state_is_refused(change):
    saved = filled(9000)[0].export()
    Ledger(SIZE).load(states.Reader(saved), rounds=9000)
    with pytest.raises(StateError):
        Ledger(SIZE).load(states.Reader(change(saved)), rounds=9000)
