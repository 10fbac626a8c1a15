import numpy as np
import pytest
from scipy import stats

from driftbandits.detection.urn import KEPT, UrnRanks
from driftbandits.errors import StateError
from driftbandits.state import Reader
from tests.detection.slow_ranks import exact_ranks, urn_ranks


def streams(seed, size, kind):
    rng = np.random.default_rng(seed)
    numbers = {
        "normal": rng.normal(size=size),
        "two values": (rng.random(size) < 0.2).astype(float),
        "one value": np.zeros(size),
        "rising": np.arange(size, dtype=float),
    }[kind]
    return numbers.tolist(), rng.random(size).tolist(), rng.random(size).tolist()


KINDS = ["normal", "two values", "one value", "rising"]


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_are_those_counted_one_by_one(kind):
    columns = streams(1, 300, kind)
    ranks = UrnRanks()
    np.testing.assert_allclose([ranks.see(*row) for row in zip(*columns, strict=True)], exact_ranks(*columns))


@pytest.mark.parametrize("kept", [1, 20, 150])
@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_kept_ranks_are_those_of_the_urn(kind, kept):
    columns = streams(2, 400, kind)
    ranks = UrnRanks(kept=kept)
    np.testing.assert_allclose([ranks.see(*row) for row in zip(*columns, strict=True)], urn_ranks(*columns, kept))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["normal", "two values", "one value"])
def test_ranks_are_uniform_and_independent_across_the_border(kind):
    """Kolmogorov-Smirnov of each of three ranks beyond the border, and a correlation: four tests at 1e-4 each."""
    kept, size, trials = 8, 40, 2_000
    found = np.array([ranks_of(streams(seed, size, kind), kept) for seed in range(trials)])
    for place in (kept, 20, size - 1):
        assert stats.kstest(found[:, place], "uniform").pvalue > 1e-4
    assert stats.spearmanr(found[:, kept + 1], found[:, kept + 5]).pvalue > 1e-4


def ranks_of(columns, kept):
    ranks = UrnRanks(kept=kept)
    return [ranks.see(*row) for row in zip(*columns, strict=True)]


def test_memory_stays_bounded_beyond_the_border():
    ranks = UrnRanks(kept=50)
    columns = streams(3, 2_000, "normal")
    for row in zip(*columns, strict=True):
        ranks.see(*row)
    state = ranks.export()
    assert state["values"].size == state["ties"].size == 50
    assert state["counts"].sum() == 2_001
    assert KEPT == 10_000


@pytest.mark.parametrize("size", [0, 30, 50, 90])
def test_state_goes_on_bit_for_bit(size):
    columns = list(zip(*streams(4, 150, "two values"), strict=True))
    first, second = UrnRanks(kept=50), UrnRanks(kept=50)
    for row in columns[:size]:
        first.see(*row)
    second.load(Reader(first.export()))
    assert [first.see(*row) for row in columns[size:]] == [second.see(*row) for row in columns[size:]]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("values", np.array([2.0, 1.0])), ("ties", np.array([0.5, 1.0])), ("counts", np.array([1])), ("numbers", 3)],
)
def test_a_state_that_cannot_be_is_refused(name, wrong):
    ranks = UrnRanks()
    for row in [(1.0, 0.1, 0.5), (2.0, 0.1, 0.5)]:
        ranks.see(*row)
    with pytest.raises(StateError):
        UrnRanks().load(Reader({**ranks.export(), name: wrong}))


@pytest.mark.parametrize("wrong", [np.array([1, 1, 1, 1]), np.array([0, 4, 1, 1])])
def test_masses_that_cannot_be_are_refused(wrong):
    ranks = UrnRanks(kept=3)
    for row in zip(*streams(5, 5, "normal"), strict=True):
        ranks.see(*row)
    with pytest.raises(StateError, match="masses"):
        UrnRanks(kept=3).load(Reader({**ranks.export(), "counts": wrong}))
