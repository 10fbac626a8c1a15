"""Numbers from what users pass."""

import decimal
import fractions

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from driftbandits._util.checks import as_float, as_floats


@pytest.mark.parametrize(
    "value", [2, True, 2.0, np.float32(2), np.int8(2), np.array(2), decimal.Decimal(2), fractions.Fraction(2)]
)
def test_one_number(value):
    assert as_float(value) == (1.0 if value is True else 2.0)
    assert type(as_float(value)) is float


@pytest.mark.parametrize(
    "value",
    ["2", b"2", bytearray(b"2"), 2j, np.complex64(2), np.datetime64(2, "s"), np.timedelta64(2, "s"), [2], None],
)
def test_no_number(value):
    with pytest.raises((TypeError, ValueError)):
        as_float(value)


def test_a_number_beyond_floats():
    with pytest.raises(OverflowError):
        as_float(10**400)
    with pytest.raises(OverflowError):
        as_floats([1.0, 10**400])
    assert as_floats(np.longdouble("1e1000")).item() == np.inf


def test_shapes_are_kept_and_floats_are_not_copied():
    matrix = np.arange(6.0).reshape(2, 3)
    assert as_floats(matrix) is matrix
    assert as_floats(matrix.tolist()).tolist() == matrix.tolist()
    assert as_floats(matrix.astype(object)).shape == (2, 3)
    assert as_floats(pd.DataFrame(matrix)).shape == (2, 3)
    assert as_floats(5).shape == ()
    assert np.isnan(as_floats([1.0, None])[1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("12", "text"),
        (["1", "2"], "text"),
        (np.array(["1", "2"], dtype=object), "str is not one number"),
        ([1j], "complex"),
        (np.array([1], dtype="M8[s]"), "dates"),
        (np.array([1], dtype="m8[s]"), "durations"),
        (np.ma.array([1.0], mask=[True]), "masked"),
        (scipy.sparse.eye(2), r"sparse; call its toarray\(\)"),
        (np.zeros(1, dtype=[("a", "f8")]), "of type"),
    ],
)
def test_what_is_found_instead_is_said(values, message):
    with pytest.raises(TypeError, match=message):
        as_floats(values)


def test_rows_of_unequal_length():
    with pytest.raises(ValueError, match="inhomogeneous"):
        as_floats([[1.0], [1.0, 2.0]])
