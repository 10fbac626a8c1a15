import numpy as np
import pytest

from driftbandits.arms.inputs import read_bounds, read_names, read_table
from driftbandits.errors import InputError


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        ([[10**400]], "too large"),
        (np.array([[0.5, "1.5"]], dtype=object), "str is not one number"),
        (np.array([[np.datetime64("2020")]], dtype=object), "datetime64 is not one number"),
        (np.ma.array([["a"]], mask=[[False]]), "str is not one number"),
        ([[1 + 2j]], "complex"),
    ],
)
def test_what_is_no_number_is_refused(data, cause):
    with pytest.raises(InputError, match=f"points must be numbers in rows of equal length: .*{cause}"):
        read_table(data, "points")


def test_masked_entries_are_missing():
    with pytest.raises(InputError, match="points at row 1, column 0 is nan; fill or drop missing values"):
        read_table(np.ma.array([[1.0], [2.0]], mask=[[False], [True]]), "points")
    assert read_table(np.ma.array([[1.0], [2.0]], mask=False), "points").values.tolist() == [[1.0], [2.0]]


def test_what_is_read_is_a_copy():
    data = np.ones((2, 2))
    table = read_table(data, "points")
    data[0, 0] = 7.0
    assert table.values[0, 0] == 1.0


@pytest.mark.parametrize("bounds", [[(0, 10**400)], [("0", "1")], [(0, 1j)], [(1, 0)], "a", [(np.nan, 1)]])
def test_bounds_are_pairs_of_numbers(bounds):
    with pytest.raises(InputError, match="bounds must be a list"):
        read_bounds(bounds)


def test_messages_stay_short_whatever_was_given():
    for call in (
        lambda: read_names(["x" * 10**6] * 2, 2),
        lambda: read_names("x" * 10**6, 2),
        lambda: read_bounds([()] * 10**4),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert len(str(caught.value)) < 400
