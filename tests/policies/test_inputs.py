"""What users may pass as rewards, ids and ranges, and the words for what they may not.

What the page on writing a policy says of mistakes is what one sees.

Settings of a policy of one's own: kept under their names, they are saved, restored and shown.

Lists of settings in docstrings: own ones in one's own words, all others in those of the nearest base.

Settings of waiting: what they are read as, what is refused and how, what is shown and saved.
"""

import datetime
import decimal
import fractions
import inspect
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import driftbandits as db
from driftbandits._util.checks import check_count, check_positive
from driftbandits.errors import DriftbanditsError, InputError, RewardError, UnknownDecisionError
from driftbandits.policies.inputs import read_allowed, read_ids, read_rewards, read_waiting, whole_docstring
from driftbandits.policies.rewards import RewardScale, read_range
from tests.pages import ROOT

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


FOUR_ARMS = db.ArmSet(np.linspace(0, 1, 4)[:, None])


class Whole(db.Policy):
    """A policy without mistakes, which plays any arm."""

    def _start(self, horizon):
        self._told = np.zeros(len(self.arms))

    def _law(self):
        return np.full(len(self.arms), 1 / len(self.arms))

    def _estimate(self):
        return self._told

    def _learn(self, feedback):
        np.add.at(self._told, feedback.arms, feedback.rewards)

    def _export(self):
        return {"told": self._told.copy()}

    def _import(self, state):
        self._told = state.array("told", np.float64, (len(self.arms),))


def mine(base=Whole, **hooks):
    """A class called Mine with these hooks in place of those of the base."""
    return type("Mine", (base,), hooks)


def unkept(self, arms, *, rate=0.1, **common):
    Whole.__init__(self, arms, **common)


MISTAKES = {
    "a hook is not written": lambda _: mine(db.Policy)(FOUR_ARMS),
    "`_law` returns a list, integers, or numbers that do not add up to 1": lambda _: sums_to_four(),
    "a hook calls `self.ask()` or `self.law()`": lambda _: mine(_law=lambda self: self.ask())(FOUR_ARMS).ask(),
    "a setting is not kept as an attribute": lambda _: mine(__init__=unkept)(FOUR_ARMS).state_dict(),
    "`_export` returns an object": lambda folder: saves_an_object(folder),
    "`_export` gives a list where `_import` reads an array": lambda _: restored(
        _export=lambda self: {"latest": [0.1]},
        _import=lambda self, state: state.array("latest", np.float64, (None,)),
    ),
    "`state.array` without its type or shape": lambda _: restored(
        _import=lambda self, state: state.array("told", np.float64)
    ),
    "an array is read as another type than it was exported with": lambda _: restored(
        _export=lambda self: {"arms": np.array([0, 1])},
        _import=lambda self, state: state.array("arms", np.float64, (None,)),
    ),
    "the constructor does not call `super().__init__(arms, **common)`": lambda _: mine(
        __init__=lambda self, arms: None
    )(FOUR_ARMS).ask(),
}


def restored(**hooks):
    policy = mine(**hooks)(FOUR_ARMS)
    policy.ask()
    return type(policy).restore(FOUR_ARMS, policy.state_dict())


def sums_to_four():
    policy = mine(_law=lambda self: np.ones(4) if self.rounds == 7 else Whole._law(self))(FOUR_ARMS)
    policy.ask(size=7)
    policy.ask()


def saves_an_object(folder):
    policy = mine(_export=lambda self: {"self": self})(FOUR_ARMS)
    policy.ask()
    policy.save(folder / "mine.state")


def rows_of_the_page():
    """The mistakes of the table and the errors that answer them, without those that a check answers."""
    page = (ROOT / "docs" / "extending.md").read_text()
    table = page.split("| mistake | message |")[1].split("\n\n")[0]
    rows = [row.split(" | ") for row in table.splitlines()[2:]]
    return {mistake.removeprefix("| "): answer for mistake, answer in rows if "fails" not in answer}


def test_the_table_has_no_other_mistakes():
    assert set(rows_of_the_page()) == set(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_as_the_page_says(mistake, tmp_path):
    answer = re.search("`([^`]*)`", rows_of_the_page()[mistake])[1]
    kind, _, message = answer.partition(": ")
    with pytest.raises(Exception, match=re.escape(message.partition("...")[0].strip())) as caught:
        MISTAKES[mistake](tmp_path)
    assert type(caught.value).__name__ == kind


def test_a_setting_may_have_any_name():
    def sized(self, arms, *, size=3, given=1, settings=2, **common):
        Whole.__init__(self, arms, **common)
        self.size, self.given, self.settings = size, given, settings

    kind = mine(__init__=sized)
    policy = kind(FOUR_ARMS, size=5, given=6)
    assert policy.state_dict()["settings"] == {"size": 5, "given": 6, "settings": 2}
    assert kind.restore(FOUR_ARMS, policy.state_dict()).size == 5


SIX_ARMS = db.ArmSet(np.linspace(0, 1, 6)[:, None])


class Rated(db.Uniform):
    """A policy of one's own with a setting, kept under its name."""

    def __init__(self, arms, *, rate=0.1, **common):
        super().__init__(arms, **common)
        self.rate = rate


class Forgetful(db.Uniform):
    """One that does not keep its setting."""

    def __init__(self, arms, *, rate=0.1, **common):
        super().__init__(arms, **common)


def test_settings_kept_under_their_names_are_saved_without_a_hook():
    policy = Rated(SIX_ARMS, rate=0.5, seed=3)
    assert policy.state_dict()["settings"] == {"rate": 0.5}
    assert Rated.restore(SIX_ARMS, policy.state_dict()).rate == 0.5
    assert "rate=0.5" in repr(policy)


def test_settings_that_cannot_be_saved_are_refused_by_name():
    with pytest.raises(InputError, match="Forgetful has a setting 'rate' but no attribute of that name"):
        Forgetful(SIX_ARMS).state_dict()


class Window(db.Uniform):
    """Keeps a window.

    Parameters
    ----------
    window : rounds kept,
        at least one
    order : as it likes
    others : see `Policy`

    Slow.

    >>> 1 + 1
    2
    """

    def __init__(self, arms: db.ArmSet, *, window: int = 3, **settings: Any) -> None:
        super().__init__(arms, **settings)
        self.window = window


class Wider(Window):
    """Without a list, but with an example.

    >>> 2 + 2
    4
    """


class Silent(Window):
    pass


def settings_listed(docstring):
    section = docstring.split("Parameters\n----------\n")[1].split("\n\n")[0]
    return [line.split(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]


@pytest.mark.parametrize("policy", [Window, Wider])
def test_every_setting_is_listed_once_in_the_order_of_the_signature(policy):
    assert settings_listed(policy.__doc__) == list(inspect.signature(policy).parameters)


def test_own_words_come_before_those_of_a_base():
    for policy in (Window, Wider):
        assert "window : rounds kept,\n    at least one\n" in policy.__doc__
        assert "order : as it likes\n" in policy.__doc__
        assert "seed : of all the policy's randomness" in policy.__doc__


def test_the_rest_of_the_docstring_stays():
    assert Window.__doc__.startswith("Keeps a window.\n\nParameters\n")
    assert Window.__doc__.endswith("range.\n\nSlow.\n\n>>> 1 + 1\n2\n")
    assert Wider.__doc__.startswith("Without a list, but with an example.\n\nParameters\n")
    assert Wider.__doc__.endswith("range.\n\n>>> 2 + 2\n4\n")


def test_errors_are_those_of_the_base():
    assert Window.__doc__.count("Raises\n------\nInputError\n") == 1


def test_no_docstring_stays_none():
    assert Silent.__doc__ is None
    assert whole_docstring(Silent, ["arms"]) is None


def test_items_of_several_names_stand_once():
    assert db.SlidingWindowNeuralUCB.__doc__.count("width, depth : ") == 1
    assert "\ndepth : " not in db.SlidingWindowNeuralUCB.__doc__


UNIT = RewardScale(0.0, 1.0)


def test_patience_implies_the_order_asked():
    assert read_waiting("told", 5, "forget", UNIT).order == "asked"
    assert read_waiting("told", None, 0.5, UNIT).order == "told"


@pytest.mark.parametrize(
    ("missing", "value"), [(0, -1.0), (np.float64(0.5), 0.0), (1.0, 1.0), ("forget", None), (None, None)]
)
def test_missing_is_a_reward_in_the_users_units(missing, value):
    assert read_waiting("asked", None, missing, UNIT).value == value


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"order": "first"}, "order must be 'told' or 'asked', got 'first'"),
        ({"patience": 600}, "patience=600 needs missing"),
        ({"patience": 0, "missing": 0.0}, "patience must be at least 1, got 0"),
        ({"patience": -1, "missing": 0.0}, "patience must be at least 1, got -1"),
        ({"patience": True, "missing": 0.0}, "patience must be at least 1, got True"),
        ({"patience": 1.5, "missing": 0.0}, "patience must be a whole number, got 1.5"),
        ({"patience": "long", "missing": 0.0}, "patience must be a whole number"),
        ({"missing": 1.01}, "missing must be 'forget' or a number within reward_range=(0, 1), got 1.01"),
        ({"missing": float("nan")}, "got nan"),
        ({"missing": False}, "got False"),
        ({"missing": "drop"}, "missing must be 'forget', got 'drop'"),
        ({"missing": [0.0]}, "missing must be 'forget' or a number"),
    ],
)
def test_what_cannot_be_is_refused_with_the_value_and_the_cure(settings, said):
    with pytest.raises(InputError) as error:
        db.Uniform(FOUR_ARMS, reward_range=(0, 1), **settings)
    assert said in str(error.value)


def test_patience_without_missing_says_why():
    with pytest.raises(InputError, match="forgetting the rest teaches that all succeed"):
        db.Uniform(FOUR_ARMS, patience=5)


def test_settings_are_shown_where_they_are_not_usual():
    assert "order" not in repr(db.Uniform(FOUR_ARMS))
    assert repr(db.Uniform(FOUR_ARMS, order="asked")).endswith("seed=0, order='asked')")
    assert repr(db.Uniform(FOUR_ARMS, patience=9, missing=0)).endswith("seed=0, patience=9, missing=0.0)")


def test_settings_are_restored():
    policy = db.Uniform.restore(FOUR_ARMS, db.Uniform(FOUR_ARMS, patience=9, missing="forget").state_dict())
    assert (policy.order, policy.patience, policy.missing) == ("asked", 9, "forget")


def test_expire_without_missing_is_refused():
    policy = db.Uniform(FOUR_ARMS, reward_range=(0, 1))
    with pytest.raises(InputError, match="build it with missing=0, say"):
        policy.expire(policy.ask())
    assert policy.pending == 1
