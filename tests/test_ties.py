"""Numbers equal up to rounding: the choice among them does not depend on their last digits."""

from __future__ import annotations

import numpy as np
import pytest

from driftbandits._util.linalg import SLACK, first_largest, largest_first, small_pivoted, some_largest, upright

ROUNDING = 1e-14


@pytest.fixture(params=range(20))
def drawn(request):
    """Values with many ties, and the same values off by rounding."""
    rng = np.random.default_rng(request.param)
    values = rng.integers(0, 6, size=rng.integers(1, 60)) / 6.0
    return values, values + ROUNDING * rng.standard_normal(len(values))


def test_rounding_changes_no_choice(drawn):
    values, off = drawn
    count = max(len(values) // 3, 1)
    assert first_largest(values) == first_largest(off) == values.argmax()
    assert largest_first(values).tolist() == largest_first(off).tolist() == np.argsort(-values, kind="stable").tolist()
    expected = np.sort(np.argsort(-values, kind="stable")[:count])
    assert some_largest(values, count).tolist() == some_largest(off, count).tolist() == expected.tolist()


def test_without_ties_they_are_the_usual_functions():
    values = np.random.default_rng(0).permutation(200) * 2.0 * SLACK
    assert first_largest(values) == values.argmax()
    assert largest_first(values).tolist() == np.argsort(-values).tolist()
    assert some_largest(values, 9).tolist() == np.sort(np.argsort(-values)[:9]).tolist()


def test_what_has_no_weight_is_never_taken():
    values = np.array([-np.inf, -3.0, -np.inf, -3.0 + SLACK / 2.0])
    assert first_largest(values) == 1
    assert largest_first(np.array([0.5])).tolist() == [0]


@pytest.mark.parametrize("seed", range(10))
def test_pivots_of_mirrored_arms_do_not_depend_on_rounding(seed):
    points = np.linspace(0.0, 1.0, 21)
    gram = np.exp(-0.5 * np.square((points[:, None] - points) / 0.15))
    noise = ROUNDING * np.random.default_rng(seed).standard_normal(gram.shape)
    order, factor = small_pivoted(gram, 1e-4, tilted=True)
    again, other = small_pivoted(gram + noise + noise.T, 1e-4, tilted=True)
    assert again.tolist() == order.tolist()
    np.testing.assert_allclose(other, factor, atol=1e-9)
    np.testing.assert_allclose(factor @ factor.T, gram[np.ix_(order, order)], atol=1e-12)


def test_upright_rows_do_not_depend_on_how_they_were_turned():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((7, 3))
    turn = np.linalg.qr(rng.standard_normal((3, 3))).Q
    np.testing.assert_allclose(upright(rows @ turn), upright(rows), atol=1e-12)
    np.testing.assert_allclose(upright(rows) @ upright(rows).T, rows @ rows.T, atol=1e-12)
