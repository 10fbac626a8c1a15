"""Conformal test martingales: evidence that a stream of numbers has changed, whatever their distribution.

If the numbers are exchangeable (independent draws from one law are), the smoothed rank of each among those before it is
uniform on (0, 1), and ranks are independent of each other. A bet on ranks whose factor is 1 on average over (0, 1) then
multiplies wealth without gain: wealth is a martingale, and by Ville's inequality it ever reaches 1 / a with probability
a at most. Nothing is assumed of the numbers, so nothing can be wrong with the assumption.

symbol     name         meaning
p_t        Ranked.see   (numbers before that are larger + u (ties + 1)) / t, u uniform: small for a large number
c_t        _cash        1 / (1 + log(1 + t)): wealth not yet bet after t numbers; v_t = c_{t-1} - c_t is bet at t
b_k(p)     PowerBets    k p^(k - 1), for a change to numbers beyond most before: M_t^k = (M_{t-1}^k + v_t) b_k(p_t)
b_l(p)     OrderBets    (1 - e) 1[p <= q] / q + e with q = (t - l + 1) / t, e = 1/10, for a change at number l to
                        numbers beyond all before, of which there were few: W_l(t) = v_l prod_{i = l..t} b_l(p_i)
M_t        see          mean of M_t^k (sum of W_l) and c_t: a martingale from 1

Both begin a bet at every number, so that a change may come at any time; cash spent slowly makes one after n numbers
cost log n + 2 log log n of evidence, about the least that leaves something for every n. Powers gain about
(1 - k) log n from one number beyond n others. Orders gain log (n + m choose n) from m numbers beyond n others: a seldom
played arm, where powers gain next to nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from driftbandits.types import Floats

POWERS = (0.1, 0.3, 0.5, 0.7)
_ABOVE = [(k, power, power - 1.0) for k, power in enumerate(POWERS)]  # place of the wealth, factor, exponent
_BELOW = [(k + len(POWERS), power, exponent) for k, power, exponent in _ABOVE]
MOST_ORDER_BETS = 64  # numbers at which order bets begin
MOST_ORDERED_NUMBERS = 128  # numbers on which they bet: with many before, powers do as well
_LARGEST = 1.0 - 2.0**-53  # rank below 1
_KEPT_IF_LOST = 0.1  # e: what a bet on order keeps if it loses


def _cash(numbers: float) -> float:
    return 1.0 / (1.0 + math.log1p(numbers))


def stake_after(numbers: int) -> float:
    """What is bet from the number on that comes after so many.

    >>> round(stake_after(0), 3), stake_after(1000) > 1e-5
    (0.409, True)
    """
    return _cash(numbers) - _cash(numbers + 1)


_STAKES: Floats = -np.diff([_cash(t) for t in range(MOST_ORDER_BETS + 1)])
_NUMBER, _START = np.ogrid[1 : MOST_ORDERED_NUMBERS + 1, 1 : MOST_ORDER_BETS + 1]
_FACTORS_IF_WON: Floats = (1.0 - _KEPT_IF_LOST) * _NUMBER / np.maximum(
    _NUMBER - _START + 1.0, 1.0
) + _KEPT_IF_LOST  # (numbers, starts)


class ConformalMartingale:
    """A stream with the evidence that it has changed, to larger numbers or, if `two_sided`, to smaller ones.

    `ordered` adds bets on order, with half of the wealth.

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

    def __init__(self, *, two_sided: bool = False, ordered: bool = False) -> None:
        self.numbers = Ranked()
        self.powers = PowerBets(two_sided=two_sided)
        self.orders = OrderBets() if ordered else None

    def see(self, score: float, u: float, round_: int) -> float:
        """Take in the number of round `round_`, with `u` drawn from (0, 1); the evidence there is now."""
        before = len(self.numbers.scores)
        rank = self.numbers.see(score, u, round_)
        evidence = self.powers.see(rank, before)
        return evidence if self.orders is None else 0.5 * (evidence + self.orders.see(rank, before))

    def _parts(self) -> tuple[float, float]:
        numbers = len(self.numbers.scores)
        return self.powers.evidence, 0.0 if self.orders is None else self.orders.evidence(numbers)

    @property
    def evidence(self) -> float:
        """1 on average as long as nothing changes."""
        return sum(self._parts()) * (1.0 if self.orders is None else 0.5)

    def start(self) -> int:
        """Round at which the change seems to have come."""
        powers, orders = self._parts()
        if self.orders is not None and orders > powers:
            return self.numbers.rounds[self.orders.begun()]
        return self.powers.start(self.numbers)


class Ranked:
    """Numbers in the order they came, each with its smoothed rank among those before.

    >>> numbers = Ranked()
    >>> [numbers.see(x, 0.5, t) for t, x in enumerate([3.0, 5.0, 1.0, 3.0])]
    [0.5, 0.25, 0.8333333333333334, 0.5]
    """

    def __init__(self) -> None:
        self.scores: list[float] = []  # sorted
        self.ranks: list[float] = []  # in the order of the stream, as are
        self.rounds: list[int] = []

    def see(self, score: float, u: float, round_: int) -> float:
        """Rank of the next number, that of round `round_`, with `u` drawn from (0, 1)."""
        past = self.scores
        before = len(past)
        left = right = bisect_left(past, score)
        if left < before and past[left] == score:
            right = bisect_right(past, score, left)
        rank = min((before - right + u * (right - left + 1)) / (before + 1), _LARGEST)
        past.insert(right, score)
        self.ranks.append(rank)
        self.rounds.append(round_)
        return rank

    def export(self) -> dict[str, Any]:
        """Scores, ranks and rounds as arrays."""
        return {
            "scores": np.array(self.scores),
            "ranks": np.array(self.ranks),
            "rounds": np.array(self.rounds, dtype=np.int64),
        }


class PowerBets:
    """Bets on small ranks, and if `two_sided` on large ones too.

    >>> bets = PowerBets()
    >>> [round(bets.see(p, t), 3) for t, p in enumerate([0.5, 0.01, 0.01, 0.01])]
    [0.82, 2.198, 10.507, 63.088]
    """

    def __init__(self, *, two_sided: bool = False) -> None:
        self.two_sided = two_sided
        self.wealth = [0.0] * (len(POWERS) * (2 if two_sided else 1))
        self._cash = 1.0

    def load(self, wealth: list[float], numbers: int) -> None:
        """Go on from saved wealth, after so many numbers."""
        self.wealth = wealth
        self._cash = _cash(numbers)

    def see(self, rank: float, before: int) -> float:
        """Bet on the rank of a number that came after `before` others; the evidence there is now."""
        wealth, cash = self.wealth, _cash(before + 1)
        stake, self._cash = self._cash - cash, cash
        for k, power, exponent in _ABOVE:
            wealth[k] = (wealth[k] + stake) * power * rank**exponent
        if self.two_sided:
            rank = 1.0 - rank
            for k, power, exponent in _BELOW:
                wealth[k] = (wealth[k] + stake) * power * rank**exponent
        return sum(wealth) / len(wealth) + cash

    @property
    def evidence(self) -> float:
        """M_t: 1 on average as long as nothing changes."""
        return sum(self.wealth) / len(self.wealth) + self._cash

    def start(self, numbers: Ranked) -> int:
        """Round at which the bet that would have won most by now should have begun: the estimated change."""
        ranks: Floats = np.array(numbers.ranks)
        sides = (ranks, 1.0 - ranks) if self.two_sided else (ranks,)
        won = [_winnings(side, power) for side in sides for power in POWERS]
        best = max(won, key=lambda path: float(path.max()))
        return numbers.rounds[int(best.argmax())]


class OrderBets:
    """Bets that all numbers from some one on lie above all before, or all below.

    >>> numbers, bets = Ranked(), OrderBets()
    >>> for t, x in enumerate([0.3, 0.8, 0.5, 0.6, 0.4, 5.2, 5.4, 5.1, 5.5, 5.3]):
    ...     evidence = bets.see(numbers.see(x, 0.5, t), t)
    >>> round(evidence, 1), bets.begun()
    (3.0, 5)
    """

    def __init__(self) -> None:
        self.wealth: Floats = np.zeros((2, MOST_ORDER_BETS))  # of bets on large numbers, and on small ones
        self._won = 0.0  # all of it

    def load(self, wealth: Floats) -> None:
        """Go on from saved wealth."""
        self.wealth = wealth
        self._won = float(wealth.sum())

    def see(self, rank: float, before: int) -> float:
        """Bet on the rank of a number that came after `before` others; the evidence there is now."""
        if before < MOST_ORDERED_NUMBERS:
            if before < MOST_ORDER_BETS:
                self.wealth[:, before] = 0.5 * _STAKES[before]
            number = before + 1
            begun = min(number, MOST_ORDER_BETS)
            for wealth, small in zip(self.wealth, (rank, 1.0 - rank), strict=True):
                won = min(int(number + 1 - small * number), begun)  # bets on q >= p: shares fall with the start
                wealth[:won] *= _FACTORS_IF_WON[before, :won]
                wealth[won:begun] *= _KEPT_IF_LOST
            self._won = float(self.wealth.sum())
        return self.evidence(before + 1)

    def evidence(self, numbers: int) -> float:
        """M_t after so many numbers: 1 on average as long as nothing changes."""
        return self._won + _cash(min(numbers, MOST_ORDER_BETS))

    def begun(self) -> int:
        """Place in the stream, from 0, of the number at which the bet that has won most began."""
        return int((self.wealth.max(axis=0) / _STAKES).argmax())


def _winnings(ranks: Floats, power: float) -> Floats:
    """Logarithm of what a bet begun at each number has become by the last."""
    logs = math.log(power) + (power - 1.0) * np.log(ranks)
    return np.asarray(np.cumsum(logs[::-1])[::-1])
