import numpy as np
import pytest

from driftbandits.detection.wagers import POWERS, Wagers, raised_ranks
from driftbandits.logs import together
from driftbandits.logs.together import Together, locate_together, log_factors


def by_definition(ranks, cells, number, starts):
    """The mean over starts and shares of products over cells of mixtures of products over ranks."""
    bets = np.exp(log_factors(ranks))
    chances = [1 / max(number, 2), 0.5, 0.9]
    wealth = []
    for start in starts:
        late = np.arange(len(ranks)) >= start
        factors = [bets[late & (cells == cell)].prod(axis=0).mean() for cell in range(number)]
        wealth += [np.prod([1 - chance + chance * factor for factor in factors]) for chance in chances]
    return np.mean(wealth)


@pytest.mark.parametrize("looks", [2_000, 10])
def test_evidence_is_that_of_its_definition(looks, monkeypatch):
    monkeypatch.setattr(together, "_LOOKS", looks)
    rng = np.random.default_rng(0)
    ranks, cells = rng.random(120) ** 1.3, rng.integers(0, 3, 120)
    found = Together(120, 3)
    for rank, cell in zip(ranks.tolist(), cells.tolist(), strict=True):
        found.see(rank, cell)
    assert found.step == max(120 // looks, 1)
    assert found.evidence == pytest.approx(by_definition(ranks, cells, 3, found.starts), rel=1e-9)


def test_bets_are_fair_and_those_of_single_streams():
    middles = (np.arange(200_000) + 0.5) / 200_000
    assert np.exp(log_factors(middles)).mean(axis=0) == pytest.approx(1.0, abs=0.06)  # the steepest power is slow
    wagers = Wagers()
    wagers.see(0.3)
    np.testing.assert_allclose(raised_ranks(np.array([0.3]))[0], wagers._won, rtol=1e-12)
    assert raised_ranks(middles).shape == (200_000, len(POWERS))


@pytest.mark.parametrize("rank", [0.01, 1 / 16, 0.3, 1 / 2, 0.51, 0.99])
def test_bets_on_odds_are_those_of_their_formula(rank):
    cut, odds = 1 / 2, 5 / 2  # of the last odds, the fifth cut
    share = odds * cut / (1 - cut + odds * cut)
    expected = share / cut if rank <= cut else (1 - share) / (1 - cut)
    assert np.exp(log_factors(np.array([rank]))[0, 3 * 9 + 4]) == pytest.approx(expected)


def test_a_log_of_very_many_cells_has_fewer_starts():
    assert len(Together(10_000, 5_000).starts) < together.STARTS == len(Together(10_000, 100).starts)
    assert len(Together(3, 2).starts) == 3


@pytest.mark.parametrize("seed", range(4))
def test_locating_is_the_split_with_the_least_squares_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 3, 80)
    rewards = rng.normal(size=80) + np.where(np.arange(80) < 50, 1.5, -1.5) * (cells - 1)

    def squares(split):
        parts = [
            rewards[part & (cells == c)] for part in (np.arange(80) < split, np.arange(80) >= split) for c in range(3)
        ]
        return sum(float(np.square(part - part.mean()).sum()) for part in parts if len(part))

    place, low, high = locate_together(rewards, cells, 2)
    assert place == min(range(2, 79), key=squares)
    assert low <= place <= high
