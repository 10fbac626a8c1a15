import numpy as np
import pytest
from scipy.integrate import quad

from driftbandits.detection.wagers import POWERS, STEPS, Wagers
from driftbandits.errors import StateError
from driftbandits.state import Reader
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
    for _, power, exponent, _ in POWERS:
        assert quad(lambda q: power * q**exponent, 0, 1)[0] == pytest.approx(1, abs=1e-6)  # noqa: B023
    for _, cut, inside, outside, _ in STEPS:
        assert cut * inside + (1 - cut) * outside == pytest.approx(1)
    assert sum(bet[-1] for bet in (*POWERS, *STEPS)) == pytest.approx(1)


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
    ("name", "wrong"), [("wealth", np.full(12, -1.0)), ("starts", np.full(12, 9)), ("numbers", -1)]
)
def test_a_state_that_cannot_be_is_refused(name, wrong):
    wagers = Wagers()
    wagers.see(0.3)
    with pytest.raises(StateError):
        Wagers().load(Reader({**wagers.export(), name: wrong}))
