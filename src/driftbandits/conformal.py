"""Conformal test martingales: evidence that a stream of numbers has changed, whatever their distribution.

If the numbers are exchangeable (independent draws from one law are), the smoothed rank of each among those before it is
uniform on (0, 1), and ranks are independent of each other. Betting on small ranks (and on large ones) then multiplies
wealth by a factor of mean 1: wealth is a martingale, and by Ville's inequality it ever reaches 1 / a with probability a
at most. Nothing is assumed of the numbers, so nothing can be wrong with the assumption.

symbol    name        meaning
p_i       ranks[i]    (numbers before that are larger + u (ties + 1)) / i, u uniform: small for a large number
b_k(p)                k p^(k - 1): the factor of the bet k, 1 on average
t_i       _cash       1 / (1 + log(1 + i)): wealth not yet bet after i numbers; t_{i-1} - t_i is bet at i and left in
M_i^k     wealth      (M_{i-1}^k + t_{i-1} - t_i) b_k(p_i)
M_i       evidence    mean over the bets of M_i^k, and t_i: a martingale from 1

Starting a bet at every number lets it win from a change at any time; the cash spent slowly makes a change after n
numbers cost log n + 2 log log n of evidence, about the least that leaves something for every n.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from driftbandits.types import Floats

BETS = (0.1, 0.3, 0.5, 0.7)


class ConformalMartingale:
    """Evidence against exchangeability of a stream, in which large numbers (or, if `two_sided`, small ones too) betray.

    >>> from random import Random
    >>> draw = Random(0)
    >>> martingale = ConformalMartingale()
    >>> for t in range(200):
    ...     evidence = martingale.see(draw.gauss(0, 1), draw.random(), t)
    >>> evidence < 10  # nothing has changed
    True
    >>> for t in range(200, 220):
    ...     evidence = martingale.see(draw.gauss(4, 1), draw.random(), t)
    >>> evidence > 1e6, martingale.start()
    (True, 200)
    """

    def __init__(self, *, two_sided: bool = False) -> None:
        self.two_sided = two_sided
        self.scores: list[float] = []  # sorted
        self.ranks: list[float] = []  # in the order of the stream, as are
        self.rounds: list[int] = []
        self._wealth = [0.0] * (len(BETS) * (2 if two_sided else 1))
        self._cash = 1.0

    def see(self, score: float, u: float, round_: int) -> float:
        """Rank a number of `round_` among those before, with `u` drawn from (0, 1); the evidence there is now."""
        past = self.scores
        before = len(past)
        left = bisect_left(past, score)
        right = bisect_right(past, score, left)
        ties = u * (right - left + 1)
        rank = (before - right + ties) / (before + 1)
        past.insert(right, score)
        self.ranks.append(rank)
        self.rounds.append(round_)
        cash = 1.0 / (1.0 + math.log(before + 2))
        stake, self._cash = self._cash - cash, cash
        wealth = self._wealth
        for k, bet in enumerate(BETS):
            wealth[k] = (wealth[k] + stake) * bet * rank ** (bet - 1.0)
        if self.two_sided:
            rank = (right + 1 - ties) / (before + 1)  # 1 - rank, without its rounding
            for k, bet in enumerate(BETS, len(BETS)):
                wealth[k] = (wealth[k] + stake) * bet * rank ** (bet - 1.0)
        return sum(wealth) / len(wealth) + cash

    @property
    def evidence(self) -> float:
        """M_i: 1 on average as long as nothing changes."""
        return sum(self._wealth) / len(self._wealth) + self._cash

    def start(self) -> int:
        """Round at which the bet that would have won most by now should have begun: the estimated change."""
        ranks: Floats = np.array(self.ranks)
        sides = (ranks, 1.0 - ranks) if self.two_sided else (ranks,)
        won = [_winnings(np.maximum(side, 1e-300), bet) for side in sides for bet in BETS]
        best = max(won, key=lambda path: float(path.max()))
        return self.rounds[int(best.argmax())]

    def export(self) -> dict[str, Any]:
        """What `load` needs, as arrays."""
        return {
            "scores": np.array(self.scores),
            "ranks": np.array(self.ranks),
            "rounds": np.array(self.rounds, dtype=np.int64),
            "wealth": np.array(self._wealth),
        }

    def load(self, scores: Floats, ranks: Floats, rounds: list[int], wealth: Floats) -> None:
        """Inverse of `export`."""
        self.scores, self.ranks, self.rounds = scores.tolist(), ranks.tolist(), rounds
        self._wealth = wealth.tolist()
        self._cash = 1.0 / (1.0 + math.log(len(self.scores) + 1))


def _winnings(ranks: Floats, bet: float) -> Floats:
    """Logarithm of what a bet begun at each number has become by the last."""
    logs = math.log(bet) + (bet - 1.0) * np.log(ranks)
    return np.asarray(np.cumsum(logs[::-1])[::-1])
