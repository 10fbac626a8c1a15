"""What users may pass as rewards, ids and ranges, and the words for what they may not."""

import datetime
import decimal
import fractions

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import driftbandits as db
from driftbandits.checks import check_count, check_positive
from driftbandits.errors import DriftbanditsError, InputError, RewardError, UnknownDecisionError
from driftbandits.policies.core.inputs import read_allowed, read_ids, read_rewards
from driftbandits.policies.core.scale import read_range

ARMS = db.ArmSet([[0.0], [0.5], [1.0]], names=["low", "mid", "high"])
HUGE = 10**400

NO_REWARDS = {
    "text": "0.3",
    "bytes": b"0.3",
    "list of text": [0.1, "0.3"],
    "nested text": [["0.1", "0.3"]],
    "array of text": np.array(["0.1", "0.3"]),
    "array of bytes": np.array([b"0.1", b"0.3"]),
    "objects that are text": np.array([0.1, "0.3"], dtype=object),
    "series of text": pd.Series(["0.1", "0.3"]),
    "complex": 0.3 + 0.0j,
    "list of complex": [0.1, 0.3 + 0.1j],
    "array of complex": np.array([0.1, 0.3 + 0.1j]),
    "one complex of NumPy": np.complex128(0.3),
    "date": datetime.datetime(1970, 1, 1),
    "date of NumPy": np.datetime64("1970-01-01"),
    "array of dates": np.array(["1970-01-01", "1970-01-01"], dtype="M8[D]"),
    "duration": datetime.timedelta(0),
    "duration of NumPy": np.timedelta64(0, "s"),
    "list of durations": [np.timedelta64(0, "s"), np.timedelta64(1, "s")],
    "series of durations": pd.Series([pd.Timedelta(0), pd.Timedelta(0)]),
    "too large": HUGE,
    "too large and negative": -HUGE,
    "list with one too large": [0.1, HUGE],
    "objects with one too large": np.array([0.1, HUGE], dtype=object),
    "fraction too large": fractions.Fraction(HUGE),
    "long double too large": np.longdouble("1e1000"),
    "masked": np.ma.masked,
    "masked array": np.ma.array([0.1, 0.3], mask=[False, True]),
    "list with a masked entry": [0.1, np.ma.masked],
    "ragged": [[0.1, 0.2], [0.3]],
    "record": np.array([(0.3,), (0.1,)], dtype=[("reward", "f8")]),
    "sparse": scipy.sparse.eye(2, format="csr"),
    "missing": None,
    "missing in pandas": pd.Series([1, None], dtype="Int64"),
    "not a number": [0.1, float("nan")],
    "infinite": [0.1, float("inf")],
    "set": {0.1, 0.3},
    "generator": (value for value in (0.1, 0.3)),
}


@pytest.mark.parametrize("reward", NO_REWARDS.values(), ids=NO_REWARDS)
def test_what_is_no_reward_is_refused_and_changes_nothing(reward):
    policy = db.GPUCB(ARMS, seed=0)
    one = isinstance(reward, (str, bytes)) or np.ndim(np.empty(0) if isinstance(reward, list) else reward) == 0
    ids = [policy.ask().id] if one and not isinstance(reward, set) else policy.ask(size=2).ids
    before = policy.law().tolist()
    with pytest.raises(RewardError):
        policy.tell(ids, reward)
    assert policy.pending == len(ids)
    assert policy.law().tolist() == before


REWARDS = {
    "float": (0.5, [0.5]),
    "whole number": (1, [1.0]),
    "true": (True, [1.0]),
    "array of booleans": (np.array([True, False]), [1.0, 0.0]),
    "array of whole numbers": (np.array([0, 1]), [0.0, 1.0]),
    "half precision": (np.float16(0.5), [0.5]),
    "long double": (np.longdouble(0.5), [0.5]),
    "list": ([0.5, 1], [0.5, 1.0]),
    "tuple": ((0.5, 1), [0.5, 1.0]),
    "range": (range(2), [0.0, 1.0]),
    "decimal": (decimal.Decimal("0.5"), [0.5]),
    "fractions": ([fractions.Fraction(1, 2), fractions.Fraction(1, 4)], [0.5, 0.25]),
    "objects": (np.array([0.5, decimal.Decimal("0.25")], dtype=object), [0.5, 0.25]),
    "series": (pd.Series([0.5, 0.25], index=[7, 3]), [0.5, 0.25]),
    "nullable series": (pd.Series([0, 1], dtype="Int64"), [0.0, 1.0]),
    "frame": (pd.DataFrame({"reward": [0.5, 0.25]}), [0.5, 0.25]),
    "masked array without a mask": (np.ma.array([0.5, 0.25]), [0.5, 0.25]),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("given", "wanted"), REWARDS.values(), ids=REWARDS)
def test_numbers_of_every_kind_are_rewards(given, wanted):
    values = read_rewards(given)
    assert values.dtype == np.float64
    assert values.tolist() == wanted
    policy = db.Uniform(ARMS, seed=0)
    if wanted:
        policy.tell(policy.ask(size=len(wanted)).ids, given)
        assert policy.pending == 0


def test_the_entry_that_is_no_reward_is_named_and_the_message_stays_short():
    rewards = [0.5] * 5000
    rewards[4321] = "0.3"
    with pytest.raises(RewardError, match=r"got '0\.3' at place 4321; .*forget\(\)") as caught:
        read_rewards(rewards)
    assert len(str(caught.value)) < 300
    with pytest.raises(RewardError, match=r"1000000000\.\.\.0000000000 \(401 digits\)"):
        read_rewards(HUGE)
    with pytest.raises(RewardError, match="5,001 digits"):  # Python itself refuses to write so many
        read_rewards([10**5000])
    with pytest.raises(RewardError, match=r"place 1, which is masked; forget\(\)"):
        read_rewards(np.ma.array([0.1, 0.3], mask=[False, True]))


UNKNOWN_IDS = {
    "beyond int64": 2**63,
    "list beyond int64": [2**63],
    "beyond uint64": 2**64,
    "below int64": -(2**63) - 1,
    "huge": HUGE,
    "list with a huge one": [0, HUGE],
    "of both signs": [-1, 2**63],
    "uint64 that would wrap to -1": np.array([2**64 - 1], dtype=np.uint64),
    "one uint64 that would wrap": np.uint64(2**63),
    "objects": np.array([0, 2**64], dtype=object),
}


@pytest.mark.parametrize("ids", UNKNOWN_IDS.values(), ids=UNKNOWN_IDS)
def test_ids_beyond_64_bits_are_unknown_and_named_as_they_were_given(ids):
    policy = db.Uniform(ARMS, seed=0)
    policy.ask(size=2)
    count = len(read_rewards(np.zeros(np.size(np.asarray(ids, dtype=object)))))
    with pytest.raises(UnknownDecisionError, match="no decision has the id") as caught:
        policy.tell(ids, [0.1] * count)
    assert "-9223372036854775808" not in str(caught.value)
    assert len(str(caught.value)) < 200
    with pytest.raises(UnknownDecisionError):
        policy.forget(ids)
    assert policy.pending == 2


NO_IDS = {
    "text": "0",
    "list of text": ["0"],
    "float": 0.0,
    "list of floats": [0.0],
    "boolean": False,
    "array of booleans": np.array([False]),
    "objects that are booleans": np.array([False], dtype=object),
    "objects that are text": np.array(["0"], dtype=object),
    "complex": 0j,
    "dates": np.array([0], dtype="M8[s]"),
    "durations": np.array([0], dtype="m8[s]"),
    "one duration": np.timedelta64(0),
    "masked": np.ma.array([0], mask=[True]),
    "list with a masked entry": [0, np.ma.masked],
    "ragged": [[0], [0, 1]],
    "none": None,
}


@pytest.mark.parametrize("ids", NO_IDS.values(), ids=NO_IDS)
def test_what_is_no_id_is_refused(ids):
    policy = db.Uniform(ARMS, seed=0)
    policy.ask(size=2)
    with pytest.raises(InputError):
        policy.forget(ids)
    assert policy.pending == 2


@pytest.mark.parametrize(
    "ids",
    [[0, 1], (0, 1), range(2), np.array([0, 1], dtype=np.uint64), np.array([0, 1], dtype=object), pd.Series([0, 1])],
)
def test_ids_of_every_whole_kind_are_read(ids):
    assert read_ids(ids).tolist() == [0, 1]
    assert read_ids(ids).dtype == np.int64


def test_ids_are_a_copy():
    given = np.array([3, 4])
    read_ids(given)[0] = 0
    assert given.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((-1.7e308, 1.7e308), "another unit"),  # their difference is infinite
        ((0, 1.7e308), "another unit"),
        ((0, 5e-324), "another unit"),  # half of it is 0
        ((0, 1e-310), "another unit"),
        ((1e16, 1e16 + 2), r"too narrow .* 2 apart; subtract 1e\+16 from the rewards"),
        ((1e16, 1e16 + 1998), "too narrow"),
        ((-1.0, np.nextafter(-1.0, 0.0)), "too narrow"),
        ((0, HUGE), "pair"),
        (("0", "1"), "pair"),
        (np.array(["0", "1"]), "pair"),
        (b"01", "pair"),
        ({0, 1}, "pair"),
        ((0, 1 + 0j), "pair"),
        ((np.timedelta64(0), np.timedelta64(1)), "pair"),
        ((0, 1, 2), "pair"),
        ((0, None), "pair"),
        (None, "pair"),
    ],
)
def test_ranges_that_cannot_be_mapped_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        read_range(given)
    with pytest.raises(InputError, match="reward_range"):
        db.Uniform(ARMS, reward_range=given)


@pytest.mark.parametrize(
    "given",
    [(0, 1), (-1e150, 1e150), (0, 1e-150), (1e16, 1e16 + 2000), (1e9, 1e9 + 1), (-3.5e-7, 1e12), (1e-150, 3e-150)],
)
def test_every_range_that_is_taken_maps_there_and_back(given):
    scale = read_range(given)
    policy = db.Uniform(ARMS, seed=0, reward_range=given)
    rewards = np.linspace(scale.low, scale.high, 9)
    policy.tell(policy.ask(size=9).ids, rewards)
    inside = scale.inward(rewards)
    assert np.isfinite(inside).all()
    assert np.abs(inside).max() <= 1.0 + 1e-12
    np.testing.assert_allclose(scale.outward(inside), rewards, rtol=0, atol=1e-3 * (scale.high - scale.low))
    assert np.isfinite(policy.estimate()).all()


def test_counts_and_numbers_beyond_all_bounds_are_refused_in_few_words():
    for value in (HUGE, 2**62 + 1, -HUGE, 0, True, 1.5, "3", None):
        with pytest.raises(InputError, match="window must be") as caught:
            check_count("window", value)
        assert len(str(caught.value)) < 200
    assert check_count("window", np.int32(7)) == 7
    assert check_count("window", 2**62) == 2**62
    for value in (HUGE, 1e300, 5e-324, "0.1", b"1", 1j, np.timedelta64(1), True, [0.1], float("nan")):
        with pytest.raises(InputError, match="ridge must be a") as caught:
            check_positive("ridge", value)
        assert len(str(caught.value)) < 200
    assert check_positive("ridge", decimal.Decimal("0.5")) == 0.5


@pytest.mark.parametrize("horizon", [2**62 + 1, 10**30, HUGE], ids=["2^62 + 1", "10^30", "huge"])
def test_horizons_beyond_64_bits_are_refused(horizon):
    with pytest.raises(InputError, match=r"horizon must be at most 2\^62.*horizon=None"):
        db.OPKB(ARMS, horizon=horizon)


@pytest.mark.parametrize(
    "allowed",
    [
        [[0], [0, 1]],
        np.ma.array([True, True, False], mask=[False, True, False]),
        [0, np.ma.masked],
        [0, HUGE],
        [0, 2**64],
        np.array([2**64 - 1], dtype=np.uint64),
        ["low", 1],
        [0.0],
    ],
)
def test_what_lists_no_arms_is_refused(allowed):
    with pytest.raises(InputError):
        read_allowed(ARMS, allowed)
    with pytest.raises(DriftbanditsError):
        db.Uniform(ARMS, seed=0).ask(allowed=allowed)


def test_a_long_list_of_arms_that_is_refused_is_not_repeated():
    with pytest.raises(InputError) as caught:
        read_allowed(ARMS, [0.5] * 10_000)
    assert len(str(caught.value)) < 200
