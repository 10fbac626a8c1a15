"""Bets that other shares of the numbers than before lie above some value: for numbers of two values, and small changes.

symbol  name     meaning
c       CUTS     a share: as long as nothing changes, ranks are at most c with probability c
b_co             o' / c if p <= c, else (1 - o') / (1 - c), where o' / (1 - o') = o c / (1 - c): bets that the odds of
                 p <= c are o times as large, o = ODDS or 1 / ODDS
M_t     evidence mean of all wealths plus what was not bet yet, as in `driftbandits.detection.wagers`

Of numbers of two values, a share s of them large, the ranks of the large ones are spread over (0, s): a cut near s sees
their share change with nearly all the information there is, where powers of ranks see half of it. Single numbers say
little here, so bets are settled `STEP` numbers at a time: they begin at the first of them, and evidence changes at the
last. Cuts must be fixed. One at the share of large numbers so far would not be fair: ranks are uniform given earlier
ranks, not given earlier numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.detection.cash import cash_after
from driftbandits.types import Floats, Ints

STEP = 16
ODDS = 1.8
_LOW = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2)
CUTS: tuple[float, ...] = tuple(sorted({*_LOW, *(1.0 - cut for cut in _LOW)}))
# (cut, odds of being at most that): for every cut, numbers that rose, then numbers that fell
BETS: tuple[tuple[float, float], ...] = tuple((cut, odds) for cut in CUTS for odds in (ODDS, 1.0 / ODDS))


def factors(ranks: Floats) -> Floats:
    """b_co of every rank, shape (ranks, bets)."""
    cut, odds = np.array(BETS).T
    share = odds * cut / (1.0 - cut + odds * cut)
    return np.asarray(np.where(np.asarray(ranks)[:, None] <= cut, share / cut, (1.0 - share) / (1.0 - cut)))


_MIDDLES: Floats = (np.array([0.0, *CUTS]) + np.array([*CUTS, 1.0])) / 2.0  # factors are constant between cuts
_LOGS: Floats = np.log(factors(_MIDDLES))
_EVEN: Floats = np.full(len(BETS), 1.0 / len(BETS))


class ShareWagers:
    """Evidence that ranks fall below cuts more often than they should, or less often.

    >>> from random import Random
    >>> draw, wagers = Random(0), ShareWagers()
    >>> for t in range(800):  # from number 400 on, twice as many as before are among the eighth of the largest
    ...     p = draw.random()
    ...     wagers.see(p - 0.125 if t >= 400 and 0.125 < p < 0.25 else p)
    >>> wagers.evidence > 1e4, abs(wagers.begun - 400) < 100, wagers.rose
    (True, True, True)
    """

    __slots__ = ("_pieces", "_starts", "_wealth", "_won", "evidence", "numbers")

    def __init__(self) -> None:
        self.numbers = 0  # of the steps settled
        self.evidence = 1.0
        self._pieces: list[int] = []  # between which cuts ranks were since
        self._wealth: Floats = np.zeros(len(BETS))
        self._won: Floats = np.zeros(len(BETS))  # log of what the bet begun at the best step has become
        self._starts: Ints = np.zeros(len(BETS), dtype=np.int64)

    def see(self, rank: float) -> None:
        """Bet on the next rank."""
        self._pieces.append(bisect_left(CUTS, rank))
        if len(self._pieces) == STEP:
            self._settle()

    def _settle(self) -> None:
        gains = np.bincount(self._pieces, minlength=len(_LOGS)) @ _LOGS
        self._pieces = []
        won = self._won
        np.copyto(self._starts, self.numbers, where=won <= 0.0)
        np.maximum(won, 0.0, out=won)
        won += gains
        self._wealth += cash_after(self.numbers) - cash_after(self.numbers + STEP)
        self._wealth *= np.exp(gains)
        self.numbers += STEP
        self.evidence = self._total()

    def _total(self) -> float:
        return float(self._wealth @ _EVEN) + cash_after(self.numbers)

    @property
    def begun(self) -> int:
        """Place in the stream, from 0 and to a step, at which the change seems to have come."""
        return int(self._starts[self._won.argmax()])

    @property
    def rose(self) -> bool:
        """Whether the numbers rose; else they fell."""
        return BETS[int(self._won.argmax())][1] > 1.0

    def export(self) -> dict[str, Any]:
        """Wealth and beginnings, as arrays."""
        return {
            "numbers": self.numbers,
            "pieces": np.array(self._pieces, dtype=np.int64),
            "wealth": self._wealth.copy(),
            "won": self._won.copy(),
            "starts": self._starts.copy(),
        }

    def load(self, state: states.Reader, seen: int) -> None:
        """Go on from what `export` gave after `seen` numbers."""
        self.numbers = state.integer("numbers")
        states.check(self.numbers == seen - seen % STEP, "numbers of steps")
        pieces: Ints = state.array("pieces", np.int64, (seen % STEP,))
        states.check(bool(((pieces >= 0) & (pieces <= len(CUTS))).all()), "ranks of a step")
        wealth, won = (state.array(name, np.float64, (len(BETS),)) for name in ("wealth", "won"))
        starts: Ints = state.array("starts", np.int64, (len(BETS),))
        states.check(bool((wealth >= 0.0).all()), "wealth of bets on shares")
        states.check(bool(((starts >= 0) & (starts < max(self.numbers, 1))).all()), "beginnings of bets on shares")
        self._pieces, self._wealth, self._won, self._starts = pieces.tolist(), wealth, won, starts
        self.evidence = self._total()
