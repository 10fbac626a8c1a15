"""Contexts: what users write, the codes that policies learn from, and what is refused."""

import math

import numpy as np
import pytest

import driftbandits as db
from driftbandits.arms.contexts import scale_of, standardised

WHOLE = db.Contexts(
    hour=db.cyclic(24),
    device=["mobile", "desktop", "other"],
    plan=["free", "paid"],
    basket=(0, 500),
    length=float,
    member=bool,
    embedding=96,
    age=db.optional((0, 100)),
)
GOOD = {
    "hour": 6,
    "device": "mobile",
    "plan": "free",
    "basket": 250,
    "length": 12.5,
    "member": True,
    "embedding": [0.1] * 96,
    "age": None,
}


def test_codes_are_those_of_the_table():
    codes = WHOLE.read(GOOD)
    assert codes.shape == (WHOLE.width,) == (2 + 3 + 2 + 1 + 1 + 1 + 16 + 2,)
    assert codes[:2] == pytest.approx([0.0, math.sqrt(2.0)])
    assert codes[2:11].tolist() == [1, 0, 0, 1, 0, 0.0, 12.5, 1, codes[10]]
    assert codes[-2:].tolist() == [0.0, 1.0]


def test_a_cycle_closes_and_ranges_end():
    assert WHOLE.read({**GOOD, "hour": 30}) == pytest.approx(WHOLE.read(GOOD))
    beyond, at = (WHOLE.read({**GOOD, "basket": value})[7] for value in (10_000, 500))
    assert beyond == at == pytest.approx(math.sqrt(3.0))


def test_unknown_categories_count_as_other_where_declared():
    assert WHOLE.read({**GOOD, "device": "fridge"})[2:5].tolist() == [0, 0, 1]


def test_projections_of_vectors_keep_distances_about():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((200, 96))
    contexts = db.Contexts(e=96)
    codes = contexts.read_many([{"e": vector} for vector in vectors])
    pairs = np.arange(0, 200, 2)
    before = np.square(vectors[pairs] - vectors[pairs + 1]).sum(axis=1)
    after = np.square(codes[pairs] - codes[pairs + 1]).sum(axis=1)
    assert 16 / 96 * before.mean() == pytest.approx(after.mean(), rel=0.2)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"hour": "noon"}, "'hour' must be a finite number, got 'noon'"),
        ({"hour": True}, "'hour' must be a finite number"),
        ({"basket": float("nan")}, "'basket' must be a finite number, got nan"),
        ({"length": 10**400}, "'length' must be a finite number"),
        ({"length": None}, "'length' must be a finite number, got None"),
        ({"plan": "gold"}, "'plan' must be one of 'free', 'paid', got 'gold'"),
        ({"device": 3}, "'device' must be any text, got 3"),
        ({"member": 1}, "'member' must be true or false, got 1"),
        ({"embedding": [0.1] * 95}, "'embedding' must be 96 finite numbers, got .* of length 95"),
        ({"embedding": "x" * 96}, "'embedding' must be 96 finite numbers"),
        ({"embedding": [float("inf")] * 96}, "'embedding' must be 96 finite numbers"),
        ({"age": "old"}, "'age' must be a finite number, or None, got 'old'"),
        ({"devise": "mobile"}, "no column 'devise'; did you mean 'device'?"),
        ({"plan": "x" * 10_000_000}, "'plan' must be one of"),
    ],
)
def test_what_is_wrong_is_named(change, match):
    with pytest.raises(db.DriftbanditsError, match=match) as caught:
        WHOLE.read({**GOOD, **change})
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("context", [None, 5, "mobile", [1, 2], [("hour", 6)]])
def test_no_mapping_is_refused(context):
    with pytest.raises(db.DriftbanditsError, match="a context must be a mapping of 'hour'"):
        WHOLE.read(context)


def test_a_column_that_is_missing_is_named_with_the_cure():
    with pytest.raises(db.DriftbanditsError, match=r"no 'plan', which must be .* declare it as db.optional"):
        WHOLE.read({name: value for name, value in GOOD.items() if name != "plan"})
    assert (WHOLE.read({name: value for name, value in GOOD.items() if name != "age"}) == WHOLE.read(GOOD)).all()


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({}, "either the size of a vector"),
        ({"a": ["x"]}, "2 to 256 categories"),
        ({"a": ["x", "x"]}, "different categories"),
        ({"a": (5, 1)}, "low < high"),
        ({"a": (0, float("inf"))}, "low < high"),
        ({"a": 0}, "must be at least 1"),
        ({"a": 10**9}, "at most 100,000"),
        ({"a": "number"}, "must be .low, high., float"),
        ({"a": None}, "must be .low, high., float"),
        ({f"c{k}": bool for k in range(300)}, "256 columns"),
    ],
)
def test_columns_that_are_none_are_refused(columns, match):
    with pytest.raises(db.DriftbanditsError, match=match):
        db.Contexts(**columns)


@pytest.mark.parametrize("contexts", [WHOLE, db.Contexts(3)])
def test_a_spec_goes_through_json(contexts):
    import json

    again = db.Contexts.from_dict(json.loads(json.dumps(contexts.to_dict())))
    assert again == contexts
    assert hash(again) == hash(contexts)
    assert again.parts == contexts.parts


@pytest.mark.parametrize("spec", [None, "x", {"a": "text"}, {"a": {"cycle": 3}}, {"a": {"cyclic": -1}}, {1: [0, 1]}])
def test_specs_that_are_none_are_refused(spec):
    with pytest.raises(db.DriftbanditsError):
        db.Contexts.from_dict(spec)


def test_tables_of_all_kinds_give_the_same_codes():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    contexts = db.Contexts(plan=["free", "paid"], age=db.optional((0, 100)))
    columns = {"plan": ["free", "paid", "free"], "age": [20.0, None, 60.0]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    wanted = contexts.read_many(rows)
    for table in (columns, pandas.DataFrame(columns), polars.DataFrame(columns)):
        assert (contexts.read_many(table) == wanted).all()
    with pytest.raises(db.DriftbanditsError, match="row 1: context column 'plan'"):
        contexts.read_many([rows[0], {"plan": "gold", "age": 1}])
    with pytest.raises(db.DriftbanditsError, match="one length"):
        contexts.read_many({"plan": ["free"], "age": [1, 2]})


def test_scales_come_from_medians_and_quartiles():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.normal(5.0, 3.0, 4000), rng.standard_normal(4000), np.full(4000, 7.0)])
    centre, scale = scale_of(codes, np.array([False, True, False]))
    assert centre == pytest.approx([5.0, 0.0, 7.0], abs=0.2)
    assert scale == pytest.approx([3.0, 1.0, 1.0], rel=0.05)
    assert np.abs(standardised(codes * 1e6, centre, scale)).max() == 4.0


@pytest.mark.parametrize(
    ("part", "value", "wanted"),
    [
        ("hour", {"hour": 6}, "hour = around 6"),
        ("device", {"device": "mobile"}, "device = mobile"),
        ("basket", {"basket": 100}, "basket = 100 to 100"),
        ("member", {"member": False}, "member = false"),
        ("age", {"age": None}, "age = missing"),
        ("age", {"age": 30}, "age = 30 to 30"),
    ],
)
def test_codes_can_be_told_as_values(part, value, wanted):
    number = [name for name, _ in WHOLE.parts].index(part)
    codes = WHOLE.read({**GOOD, **value})[WHOLE.parts[number][1]]
    assert WHOLE.tell(number, codes, codes) == wanted
