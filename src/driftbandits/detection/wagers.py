"""Bets on ranks, in memory that does not grow: evidence that a stream has changed, and since when.

symbol  name      meaning
p_t               rank of number t, uniform on (0, 1) and independent of the others as long as nothing changes
c_t     _cash     1 / (1 + log(1 + t)): wealth not yet bet after t numbers; v_t = c_{t-1} - c_t is bet at t
q                 what is bet on: p (numbers rise), 1 - p (fall), 2 min(p, 1 - p) (spread), 1 - 2 min(p, 1 - p) (gather)
b_k(q)            k q^(k - 1): 1 on average over (0, 1)
M_t^k             (M_{t-1}^k + v_t) b_k(q_t), the wealth of a bet that begins anew at every number
M_t     evidence  weighted mean of the M_t^k plus c_t: a martingale from 1, which by Ville's inequality ever reaches
                  1 / a with probability a at most
W_t^k             max(W_{t-1}^k, 1) b_k(q_t): what the bet begun at the best number has become; that number is the
                  estimated change
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits import state as states

_RISE, _FALL, _SPREAD, _GATHER = range(4)
WORDS = ("rose", "fell", "spread", "gathered")
_LEAST = 2.0**-53
# Kind, power, exponent, weight. Most go on rises and falls, which is what users look for; two powers of each do as well
# as four, at half the cost.
_BETS = tuple(
    (kind, power, power - 1.0, weight)
    for kinds, powers, weight in (((_RISE, _FALL), (0.2, 0.6), 0.175), ((_SPREAD, _GATHER), (0.3, 0.7), 0.075))
    for kind in kinds
    for power in powers
)
_COUNT = len(_BETS)


def _cash(numbers: int) -> float:
    return 1.0 / (1.0 + math.log1p(numbers))


class Wagers:
    """Evidence that ranks are no longer uniform.

    >>> wagers = Wagers()
    >>> for p in (0.6, 0.3, 0.9, 0.01, 0.02, 0.005, 0.01):
    ...     evidence = wagers.see(p)
    >>> round(evidence), wagers.begun, wagers.kind
    (76, 3, 'rose')
    """

    __slots__ = ("_cash", "_starts", "_wealth", "_won", "evidence", "numbers")

    def __init__(self) -> None:
        self.numbers = 0
        self.evidence = 1.0
        self._cash = 1.0
        self._wealth = [0.0] * _COUNT
        self._won = [0.0] * _COUNT  # W: 0 where nothing was bet yet
        self._starts = [0] * _COUNT

    def see(self, rank: float) -> float:
        """Bet on the next rank; the evidence there is now."""
        wealth, won, starts = self._wealth, self._won, self._starts
        number = self.numbers
        self.numbers = number + 1
        cash = 1.0 / (1.0 + math.log1p(number + 1))
        stake, self._cash = self._cash - cash, cash
        other = 1.0 - rank
        near = 2.0 * (rank if rank < other else other)
        far = 1.0 - near
        on = (rank, other, near, far if far > _LEAST else _LEAST)
        evidence = cash
        for place, (kind, power, exponent, weight) in enumerate(_BETS):
            factor = power * on[kind] ** exponent
            own = wealth[place] = (wealth[place] + stake) * factor
            evidence += weight * own
            best = won[place]
            if best <= 1.0:
                starts[place] = number
                won[place] = factor
            else:
                won[place] = best * factor
        self.evidence = evidence
        return evidence

    @property
    def begun(self) -> int:
        """Place in the stream, from 0, at which the change seems to have come."""
        return self._starts[self._best()]

    @property
    def kind(self) -> str:
        """What the numbers did: "rose", "fell", "spread" or "gathered"."""
        return WORDS[_BETS[self._best()][0]]

    def _best(self) -> int:
        return max(range(_COUNT), key=self._won.__getitem__)

    def export(self) -> dict[str, Any]:
        """Wealth and beginnings, as arrays."""
        return {
            "numbers": self.numbers,
            "wealth": np.array(self._wealth),
            "won": np.array(self._won),
            "starts": np.array(self._starts, dtype=np.int64),
        }

    def load(self, state: states.Reader) -> None:
        """Go on from what `export` gave."""
        self.numbers = state.integer("numbers")
        wealth, won = (state.array(name, np.float64, (_COUNT,)) for name in ("wealth", "won"))
        starts = state.array("starts", np.int64, (_COUNT,))
        states.check(bool((wealth >= 0.0).all() and (won >= 0.0).all()), "wealth of the bets")
        states.check(bool(((starts >= 0) & (starts < max(self.numbers, 1))).all()), "beginnings of the bets")
        self._wealth, self._won, self._starts = wealth.tolist(), won.tolist(), starts.tolist()
        self._cash = _cash(self.numbers) if self.numbers else 1.0
        self.evidence = self._cash
        for own, (_, _, _, weight) in zip(self._wealth, _BETS, strict=True):  # in the order of `see`: bit for bit
            self.evidence += weight * own
