"""Bets on ranks, in memory that does not grow: evidence that a stream has changed, and since when.

symbol  name      meaning
p_t               rank of number t, uniform on (0, 1) and independent of the others as long as nothing changes
c_t     _cash     1 / (1 + log(1 + t)): wealth not yet bet after t numbers; v_t = c_{t-1} - c_t is bet at t
q                 what is bet on: p (numbers rise), 1 - p (fall), 2 min(p, 1 - p) (spread), 1 - 2 min(p, 1 - p) (gather)
b_k               a factor that is 1 on average over (0, 1): k q^(k - 1), or one value for p up to a cut and another
                  beyond
M_t^k             (M_{t-1}^k + v_t) b_k, the wealth of a bet that begins anew at every number
M_t     evidence  weighted mean of the M_t^k plus c_t: a martingale from 1, which by Ville's inequality ever reaches
                  1 / a with probability a at most
W_t^k             max(W_{t-1}^k, 1) b_k: what the bet begun at the best number has become; that number is the
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
# Kind, power, exponent, weight: numbers far out. Two powers do as well as four.
POWERS = (
    (_RISE, 0.2, -0.8, 0.125),
    (_RISE, 0.6, -0.4, 0.125),
    (_FALL, 0.2, -0.8, 0.125),
    (_FALL, 0.6, -0.4, 0.125),
    (_SPREAD, 0.5, -0.5, 0.125),
    (_GATHER, 0.5, -0.5, 0.075),
)
# Kind, cut, factor where p is at most that, factor elsewhere, weight: other shares of middling numbers. Where there are
# two values only, powers see half of what there is to see.
STEPS = (
    (_RISE, 0.25, 2.0, 2.0 / 3.0, 0.05),
    (_RISE, 0.5, 1.5, 0.5, 0.05),
    (_RISE, 0.75, 3.7 / 3.0, 0.3, 0.05),
    (_FALL, 0.25, 0.3, 3.7 / 3.0, 0.05),
    (_FALL, 0.5, 0.5, 1.5, 0.05),
    (_FALL, 0.75, 2.0 / 3.0, 2.0, 0.05),
)
_KINDS = (*(bet[0] for bet in POWERS), *(bet[0] for bet in STEPS))
_WEIGHTS = (*(bet[-1] for bet in POWERS), *(bet[-1] for bet in STEPS))
_COUNT = len(_KINDS)
_PLACED_POWERS = tuple((place, *bet) for place, bet in enumerate(POWERS))
# For a rank in each quarter of (0, 1): place, factor, weight. Cuts are ends of quarters.
_STEPS_IN_QUARTER = tuple(
    tuple(
        (len(POWERS) + place, inside if 0.25 * (quarter + 1) <= cut else outside, weight)
        for place, (_, cut, inside, outside, weight) in enumerate(STEPS)
    )
    for quarter in range(4)
)


def _cash(numbers: int) -> float:
    return 1.0 / (1.0 + math.log1p(numbers))


class Wagers:
    """Evidence that ranks are no longer uniform.

    >>> wagers = Wagers()
    >>> for p in (0.6, 0.3, 0.9, 0.01, 0.02, 0.005, 0.01):
    ...     evidence = wagers.see(p)
    >>> round(evidence), wagers.begun, wagers.kind
    (56, 3, 'rose')
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
        for place, kind, power, exponent, weight in _PLACED_POWERS:
            factor = power * on[kind] ** exponent
            own = wealth[place] = (wealth[place] + stake) * factor
            evidence += weight * own
            best = won[place]
            if best <= 1.0:
                starts[place] = number
                won[place] = factor
            else:
                won[place] = best * factor
        for place, factor, weight in _STEPS_IN_QUARTER[int(4.0 * rank)]:
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
        return WORDS[_KINDS[self._best()]]

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
        for own, weight in zip(self._wealth, _WEIGHTS, strict=True):  # in the order of `see`: bit for bit
            self.evidence += weight * own
