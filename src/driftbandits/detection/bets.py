"""Bets on ranks: games that are fair as long as ranks are independent and uniform on (0, 1).

symbol     name         meaning
p_t        rank         of number t, small for a large number (see `driftbandits.detection.ranks`)
c_t        cash_after   1 / (1 + log(1 + t)): wealth not yet bet after t numbers; v_t = c_{t-1} - c_t is bet at t
b_k(p)     PowerBets    k p^(k - 1), for a change to numbers beyond most before: M_t^k = (M_{t-1}^k + v_t) b_k(p_t)
b_l(p)     OrderBets    (1 - e) 1[p <= q] / q + e with q = (t - l + 1) / t, e = 1/10, for a change at number l to
                        numbers beyond all before, of which there were few: W_l(t) = v_l prod_{i = l..t} b_l(p_i)
b_cr(p)    CutBets      r if p <= c, else (1 - r c) / (1 - c), for a change of how often numbers are among the share c
                        of the largest (or smallest: 1 - p for p), by a factor r: M_t^cr = (M_{t-1}^cr + v_t) b_cr(p_t)
M_t        evidence     mean of M_t^k (sum of W_l, mean of M_t^cr) and c_t: a martingale from 1

All begin a bet at every number, so that a change may come at any time; cash spent slowly makes one after n numbers
cost log n + 2 log log n of evidence, about the least that leaves something for every n. Powers gain about
(1 - k) log n from one number beyond n others. Orders gain log (n + m choose n) from m numbers beyond n others: a seldom
played arm, where powers gain next to nothing. Cuts are for numbers of two values, where a single one never says much:
ranks of successes are spread over (0, s) where a share s of all were successes, so a cut c near s sees rates change
with nearly the information of the rewards themselves. Cuts are a fixed grid: one at the share of successes so far would
not be fair, since ranks are uniform given earlier ranks, not given earlier numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from math import exp, log, log1p
from typing import Any, Protocol

import numpy as np

from driftbandits import state as states
from driftbandits.state.declared import Declared, array, count, listed
from driftbandits.types import Floats, Ints


def cash_after(numbers: float) -> float:
    """Wealth not yet bet after so many numbers, 1 / (1 + log(1 + t)).

    A bet begun after n numbers costs log n + 2 log log n of evidence, about the least that leaves something for every
    n.

    >>> cash_after(0), round(cash_after(1_000), 3)
    (1.0, 0.126)
    """
    return 1.0 / (1.0 + math.log1p(numbers))


POWERS = (0.1, 0.3, 0.5, 0.7)
_ON_SMALL = [(k, math.log(power), power - 1.0) for k, power in enumerate(POWERS)]  # place, log factor, exponent
_ON_LARGE = [(len(POWERS) + k, log_power, exponent) for k, log_power, exponent in _ON_SMALL]
MOST_ORDER_BETS = 64  # numbers at which order bets begin
MOST_ORDERED_NUMBERS = 128  # numbers on which they bet: with many before, powers do as well
_MOST_NATS = 1e18  # that any bet has won: a rank brings 40 at most
_KEPT_IF_LOST = 0.1  # e: what a bet on order keeps if it loses
CUTS: Floats = 0.5 * 1.5 ** -np.arange(15.0, -1.0, -1.0)  # 1/876 to 1/2
STEP = 16  # numbers to which a change is found by cuts
RATIOS: Floats = np.array([0.5, 0.7, 1.4, 1.9])  # times a cut they stay below 1


def stake_after(numbers: int) -> float:
    """What is bet from the number on that comes after so many.

    >>> round(stake_after(0), 3), stake_after(1000) > 1e-5
    (0.409, True)
    """
    return cash_after(numbers) - cash_after(numbers + 1)


class Bets(Protocol):
    """A martingale of ranks."""

    @property
    def evidence(self) -> float:
        """M_t: 1 on average as long as nothing changes."""

    def see(self, rank: float, before: int, round_: int) -> float:
        """Bet on the rank of a number of round `round_`, after `before` others; the evidence there is now."""

    def start(self) -> int:
        """Round at which the bet that would have won most by now should have begun: the estimated change."""

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""

    def load(self, state: states.Reader, *, numbers: int, rounds: int) -> None:
        """Inverse of `export`, after so many numbers of at most `rounds` rounds."""


class PowerBets(Declared):
    """Bets on small ranks, and if `two_sided` on large ones too.

    >>> bets = PowerBets()
    >>> [round(bets.see(p, t, t), 3) for t, p in enumerate([0.5, 0.01, 0.01, 0.01])]
    [0.82, 2.198, 10.507, 63.088]
    >>> bets.start()
    1
    """

    def __init__(self, *, two_sided: bool = False) -> None:
        self.two_sided = two_sided
        number = len(POWERS) * (2 if two_sided else 1)
        self.wealth = [0.0] * number
        self._cash = 1.0
        # log of what the best start has won by now, and its round: a bet that has lost is better begun anew
        self._leads = [0.0] * number
        self._starts = [0] * number

    def see(self, rank: float, before: int, round_: int) -> float:
        """Bet on the rank of a number of round `round_`, after `before` others; the evidence there is now.

        Five streams see every reward of `CalibratedOPKB`, so here a call fewer counts: two loops, not one called twice.
        """
        wealth, leads, starts = self.wealth, self._leads, self._starts
        cash = cash_after(before + 1)
        stake, self._cash = self._cash - cash, cash
        log_rank, total = log(rank), 0.0
        for place, log_power, exponent in _ON_SMALL:
            won = log_power + exponent * log_rank
            wealth[place] = own = (wealth[place] + stake) * exp(won)
            total += own
            if leads[place] > 0.0:
                leads[place] += won
            else:
                leads[place], starts[place] = won, round_
        if not self.two_sided:
            return total / len(POWERS) + cash
        log_rank = log1p(-rank)
        for place, log_power, exponent in _ON_LARGE:
            won = log_power + exponent * log_rank
            wealth[place] = own = (wealth[place] + stake) * exp(won)
            total += own
            if leads[place] > 0.0:
                leads[place] += won
            else:
                leads[place], starts[place] = won, round_
        return total / (2 * len(POWERS)) + cash

    @property
    def evidence(self) -> float:
        """M_t: 1 on average as long as nothing changes."""
        total = 0.0
        for own in self.wealth:  # in the order of `see`, to the last bit
            total += own
        return total / len(self.wealth) + self._cash

    def start(self) -> int:
        """Round at which the bet that would have won most by now should have begun: the estimated change."""
        return self._starts[max(range(len(self._leads)), key=self._leads.__getitem__)]

    saved = (
        listed("wealth", np.float64, "wealth", within=(0.0, None)),
        listed("leads", np.float64, "wealth", within=(-_MOST_NATS, _MOST_NATS)),
        listed("starts", np.int64, "wealth", within=(0, None)),
    )

    def _check_state(self, *, numbers: int = 0, rounds: int = 0, **known: Any) -> None:
        _check_bets(self.wealth, self._leads, self._starts, numbers, rounds)
        self._cash = cash_after(numbers)


_STAKES: Floats = -np.diff([cash_after(t) for t in range(MOST_ORDER_BETS + 1)])
_NUMBER, _START = np.ogrid[1 : MOST_ORDERED_NUMBERS + 1, 1 : MOST_ORDER_BETS + 1]
_FACTORS_IF_WON: Floats = (1.0 - _KEPT_IF_LOST) * _NUMBER / np.maximum(
    _NUMBER - _START + 1.0, 1.0
) + _KEPT_IF_LOST  # (numbers, starts)


class OrderBets(Declared):
    """Bets that all numbers from some one on lie above all before, or all below.

    >>> from driftbandits.detection.ranks import Ranked
    >>> numbers, bets = Ranked(), OrderBets()
    >>> for t, x in enumerate([0.3, 0.8, 0.5, 0.6, 0.4, 5.2, 5.4, 5.1, 5.5, 5.3]):
    ...     evidence = bets.see(numbers.see(x, 0.5), t, t)
    >>> round(evidence, 1), bets.start()
    (3.0, 5)
    """

    def __init__(self) -> None:
        self.wealth: Floats = np.zeros((2, MOST_ORDER_BETS))  # of bets on large numbers, and on small ones
        self._rounds: list[int] = []  # at which they began
        self.evidence = 1.0

    def see(self, rank: float, before: int, round_: int) -> float:
        """Bet on the rank of a number of round `round_`, after `before` others; the evidence there is now."""
        if before < MOST_ORDERED_NUMBERS:
            if before < MOST_ORDER_BETS:
                self.wealth[:, before] = 0.5 * _STAKES[before]
                self._rounds.append(round_)
            number = before + 1
            begun = min(number, MOST_ORDER_BETS)
            for wealth, small in zip(self.wealth, (rank, 1.0 - rank), strict=True):
                won = min(int(number + 1 - small * number), begun)  # bets on q >= p: shares fall with the start
                wealth[:won] *= _FACTORS_IF_WON[before, :won]
                wealth[won:begun] *= _KEPT_IF_LOST
            self.evidence = self._evidence(number)
        return self.evidence

    def _evidence(self, numbers: int) -> float:
        return float(self.wealth.sum()) + cash_after(min(numbers, MOST_ORDER_BETS))

    def start(self) -> int:
        """Round at which the bet that has won most began."""
        return self._rounds[int((self.wealth.max(axis=0) / _STAKES).argmax())]

    saved = (array("wealth", within=(0.0, None)), listed("rounds", np.int64, None, within=(0, None)))

    def _check_state(self, *, numbers: int = 0, rounds: int = 0, **known: Any) -> None:
        states.check(not self.wealth[:, numbers:].any(), "evidence of order")
        states.check(len(self._rounds) == min(numbers, MOST_ORDER_BETS), "number of bets on order")
        states.check(max(self._rounds, default=-1) < rounds, "rounds of a stream")
        self.evidence = self._evidence(numbers)


_EDGES: Floats = np.unique([CUTS, 1.0 - CUTS])
_MIDDLES: Floats = (np.append(0.0, _EDGES) + np.append(_EDGES, 1.0)) / 2.0  # factors are constant between edges


def _factors(ranks: Floats) -> Floats:
    """b_cr of every rank, cut and ratio, shape (ranks, cuts x ratios)."""
    cuts, ratios = CUTS[:, None], RATIOS[None, :]
    factors = np.where(ranks[:, None, None] <= cuts, ratios, (1.0 - ratios * cuts) / (1.0 - cuts))
    return np.asarray(factors.reshape(len(ranks), -1))


_FACTORS: Floats = np.hstack([_factors(_MIDDLES), _factors(1.0 - _MIDDLES)])
_LOG_FACTORS: Floats = np.log(_FACTORS)
_FACTOR_ROWS: list[Floats] = list(_FACTORS)
_EDGES_LIST: list[float] = _EDGES.tolist()
_EVEN: Floats = np.full(_FACTORS.shape[1], 1.0 / _FACTORS.shape[1])


class CutBets(Declared):
    """Bets that numbers are among the largest, or among the smallest, more often than before, or less often.

    >>> from random import Random
    >>> draw, bets = Random(0), CutBets()
    >>> for t in range(4000):  # first a tenth of the numbers are among a tenth; from 2,000 on a twentieth
    ...     p = draw.random()
    ...     evidence = bets.see(p if t < 2000 or p > 0.1 or draw.random() < 0.5 else 1.1 - p, t, t)
    >>> evidence > 1e6, abs(bets.start() - 2000) < 1000  # single numbers say little, so the start is vague
    (True, True)
    """

    def __init__(self) -> None:
        number = _FACTORS.shape[1]
        self.wealth: Floats = np.zeros(number)
        self._leads: Floats = np.zeros(number)  # as those of powers, but begun at every STEP-th number only
        self._starts: Ints = np.zeros(number, dtype=np.int64)
        self._pieces: list[int] = []  # in which ranks were since the last such number, and its round
        self._step_round = 0
        self._cash = 1.0
        self.evidence = 1.0

    def see(self, rank: float, before: int, round_: int) -> float:
        """Bet on the rank of a number of round `round_`, after `before` others; the evidence there is now."""
        cash = cash_after(before + 1)
        stake, self._cash = self._cash - cash, cash
        piece, pieces, wealth = bisect_left(_EDGES_LIST, rank), self._pieces, self.wealth
        wealth += stake
        wealth *= _FACTOR_ROWS[piece]
        if not pieces:
            self._step_round = round_
        pieces.append(piece)
        if len(pieces) == STEP:
            self._leads, self._starts = self._best()
            self._pieces = []
        self.evidence = float(wealth.dot(_EVEN)) + cash
        return self.evidence

    def _best(self) -> tuple[Floats, Ints]:
        """What the best start of every bet has won by now, and its round."""
        starts = np.where(self._leads <= 0.0, self._step_round, self._starts)
        return np.maximum(self._leads, 0.0) + _LOG_FACTORS[self._pieces].sum(axis=0), starts

    def _evidence(self) -> float:
        return float(self.wealth @ _EVEN) + self._cash

    def start(self) -> int:
        """Round at which the bet that would have won most by now should have begun: the estimated change."""
        leads, starts = self._best() if self._pieces else (self._leads, self._starts)
        return int(starts[int(leads.argmax())])

    saved = (
        array("wealth", within=(0.0, None)),
        array("leads", within=(-_MOST_NATS, _MOST_NATS)),
        array("starts", within=(0, None)),
        listed("pieces", np.int64, None, within=(0, len(_EDGES))),
        count("step_round"),
    )

    def _check_state(self, *, numbers: int = 0, rounds: int = 0, **known: Any) -> None:
        _check_bets(self.wealth, self._leads, self._starts, numbers, rounds)
        states.check(len(self._pieces) == numbers % STEP and self._step_round < max(rounds, 1), "ranks of a stream")
        self._cash = cash_after(numbers)
        self.evidence = self._evidence()


def _check_bets(wealth: Any, leads: Any, starts: Any, numbers: int, rounds: int) -> None:
    """Refuse bets that cannot be those on so many numbers of at most `rounds` rounds."""
    states.check(bool(numbers) or not (np.any(wealth) or np.any(leads)), "evidence of a stream")
    states.check(bool(np.all(np.asarray(starts) < max(rounds, 1))), "rounds of a stream")
