import numpy as np
import pytest
from scipy.integrate import quad

from driftbandits.detection.wagers import CUTS, FACTORS, POWERS, WEIGHTS, Wagers
from driftbandits.errors import StateError
from driftbandits.state import Reader
from tests.detection.changing import changed
from tests.detection.slow_ranks import evidence_of


@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_what_was_bet_times_what_it_won(seed):
    ranks = np.random.default_rng(seed).random(200)
    ranks[150:] **= [1, 3, 0.5, 2][seed]
    wagers = Wagers()
    for rank in ranks.tolist():
        evidence = wagers.see(rank)
    total, begun = evidence_of(ranks)
    assert evidence == pytest.approx(total, rel=1e-9)
    if seed:  # where nothing changes, nothing may have won more than was bet
        assert wagers.begun == begun


def test_bets_are_fair_and_stakes_add_up():
    for _, k, _ in POWERS:
        assert quad(lambda q: k * q ** (k - 1), 0, 1)[0] == pytest.approx(1, abs=1e-6)  # noqa: B023
    np.testing.assert_allclose(np.diff([0, *CUTS, 1]) @ FACTORS, 1)
    assert sum(bet[-1] for bet in POWERS) == pytest.approx(1)
    assert sum(WEIGHTS) == pytest.approx(1)


@pytest.mark.parametrize(
    ("ranks", "kind"),
    [
        (lambda u: u**4, "rose"),
        (lambda u: 1 - u**4, "fell"),
        (lambda u: np.where(u < 0.5, u**3, 1 - (1 - u) ** 3), "spread"),
        (lambda u: 0.4 + 0.2 * u, "gathered"),
    ],
)
def test_it_says_what_the_numbers_did(ranks, kind):
    u = np.random.default_rng(0).random(400)
    wagers = Wagers()
    for rank in np.concatenate([u[:200], ranks(u[200:])]).tolist():
        evidence = wagers.see(rank)
    assert evidence > 1e4
    assert wagers.kind == kind
    assert 185 <= wagers.begun <= 215


def test_state_goes_on_bit_for_bit():
    ranks = np.random.default_rng(1).random(100).tolist()
    first, second = Wagers(), Wagers()
    for rank in ranks[:60]:
        first.see(rank)
    second.load(Reader(first.export()))
    assert second.evidence == first.evidence
    assert [first.see(rank) for rank in ranks[60:]] == [second.see(rank) for rank in ranks[60:]]
    assert (first.begun, first.kind) == (second.begun, second.kind)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("wealth", np.full(6, -1.0)),
        ("starts", np.full(6, 9)),
        ("numbers", -1),
        ("steady.numbers", 16),
        ("steady.pieces", np.array([12])),
        ("steady.wealth", np.full(18, -1.0)),
        ("steady.starts", np.full(18, 1)),
    ],
)
def test_a_state_that_cannot_be_is_refused(name, wrong):
    wagers = Wagers()
    wagers.see(0.3)
    with pytest.raises(StateError):
        Wagers().load(Reader(changed(wagers.export(), name, wrong)))


def test_a_share_that_doubles_is_found_by_steady_bets_and_dated():
    """Powers of ranks hardly see 0/1 numbers whose rate goes from 0.1 to 0.2."""
    rng = np.random.default_rng(1_000_000)
    ranks = rng.random(1_400)
    hits = (ranks > 0.1) & (ranks < 0.2) & (np.arange(1_400) >= 800)
    ranks[hits] -= 0.1
    wagers = Wagers()
    for rank in ranks.tolist():
        evidence = wagers.see(rank)
    total, begun = evidence_of(ranks)
    assert evidence == pytest.approx(total, rel=1e-9)
    assert evidence > 100
    assert wagers.begun == begun
    assert abs(begun - 800) < 300  # single numbers say little, so the beginning is vague
    assert wagers.kind == "rose"
