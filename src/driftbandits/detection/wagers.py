"""Bets on ranks, in memory that does not grow: evidence that a stream has changed, and since when.

symbol  name      meaning
p_t               rank of number t, uniform on (0, 1) and independent of the others as long as nothing changes
c_t     cash      wealth not yet bet after t numbers (`detection.bets`); v_t = c_{t-1} - c_t is bet at t
q                 what is bet on: p (numbers rise), 1 - p (fall), 2 min(p, 1 - p) (spread), 1 - 2 min(p, 1 - p) (gather)
b_k     POWERS    k q^(k - 1): 1 on average over (0, 1), large for numbers far out
M_t^k             (M_{t-1}^k + v_t) b_k, the wealth of a bet that begins anew at every number
A_t               weighted mean of the M_t^k plus c_t: a martingale from 1
f_j     factors   densities on (0, 1), constant between `CUTS`: 1 on average too, and nearly 1 everywhere; for small
                  changes, and for numbers of two values, where single numbers say little (`SteadyWagers`)
B_t               as A_t with f_j, settled `STEP` numbers at a time, and c at t / `SLOW`: a small change shows only
                  after many numbers, so little is bet on one that comes before
evidence          max(w A_t, (1 - w) B_t), w = `QUICK`. By Ville's inequality A ever reaches 1 / (a w) with probability
                  a w at most, and B likewise, so this reaches 1 / a with probability a at most
W_t^k             max(W_{t-1}^k, 1) b_k: what the bet begun at the best number has become; that number is the
                  estimated change

Of numbers of two values, a share s of them large, the ranks of the large ones are spread over (0, s): a cut near s sees
their share change with nearly all the information there is, where powers of ranks see half of it. Cuts must be fixed.
One at the share of large numbers so far would not be fair: ranks are uniform given earlier ranks, not given earlier
numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from statistics import NormalDist
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.detection.bets import cash_after
from driftbandits.state.declared import Declared, array, count, listed
from driftbandits.types import Floats, Ints

STEP = 16
SLOW = 400.0  # numbers
_LOW = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2)
CUTS: tuple[float, ...] = tuple(sorted({*_LOW, *(1.0 - cut for cut in _LOW)}))
_ENDS: Floats = np.array([0.0, *CUTS, 1.0])
# What the ranks do if numbers rise, as (kind, size, weight); all the same is bet on a fall.
# "odds": of being at most this are `ODDS` times as large; "power": k of p^k; "shift": standard deviations, if normal.
ODDS = 1.8
STEADY = (
    *(("odds", cut, 0.35 / 6) for cut in (1 / 16, 1 / 8, 1 / 4, 3 / 4, 7 / 8, 15 / 16)),
    ("power", 0.75, 0.2),
    ("shift", 0.22, 0.3),
    ("shift", 0.55, 0.15),
)


def _below(kind: str, size: float) -> Floats:
    """Probability of a rank up to each of `_ENDS`, if numbers rose."""
    if kind == "odds":
        share = ODDS * size / (1.0 - size + ODDS * size)
        return np.interp(_ENDS, (0.0, size, 1.0), (0.0, share, 1.0))
    if kind == "power":
        return np.asarray(_ENDS**size)
    normal = NormalDist()
    return np.array([0.0, *(normal.cdf(normal.inv_cdf(cut) + size) for cut in CUTS), 1.0])


_RISES: Floats = np.stack([np.diff(_below(kind, size)) / np.diff(_ENDS) for kind, size, _ in STEADY], axis=1)
FACTORS: Floats = np.hstack([_RISES, _RISES[::-1]])  # f_j between cuts, shape (pieces, bets): of rises, then of falls
_LOGS: Floats = np.log(FACTORS)
WEIGHTS: Floats = np.tile([0.5 * weight for *_, weight in STEADY], 2)


class SteadyWagers(Declared):
    """Evidence for small changes, and for numbers above some value coming more or less often.

    >>> from random import Random
    >>> draw, wagers = Random(0), SteadyWagers()
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
        self._wealth: Floats = np.zeros(len(WEIGHTS))
        self._won: Floats = np.zeros(len(WEIGHTS))  # log of what the bet begun at the best step has become
        self._starts: Ints = np.zeros(len(WEIGHTS), dtype=np.int64)

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
        self._wealth += cash_after(self.numbers / SLOW) - cash_after((self.numbers + STEP) / SLOW)
        self._wealth *= np.exp(gains)
        self.numbers += STEP
        self.evidence = self._total()

    def _total(self) -> float:
        return float(self._wealth @ WEIGHTS) + cash_after(self.numbers / SLOW)

    @property
    def begun(self) -> int:
        """Place in the stream, from 0 and to a step, at which the change seems to have come."""
        return int(self._starts[self._won.argmax()])

    @property
    def rose(self) -> bool:
        """Whether the numbers rose; else they fell."""
        return int(self._won.argmax()) < len(STEADY)

    saved = (
        count("numbers", high=None),
        listed("pieces", np.int64, None, within=(0, len(CUTS))),
        array("wealth", within=(0.0, None)),
        array("won"),
        array("starts", within=(0, None)),
    )

    def _check_state(self, *, seen: int = 0, **known: Any) -> None:
        """After `seen` numbers."""
        states.check(self.numbers == seen - seen % STEP and len(self._pieces) == seen % STEP, "numbers of steps")
        states.check(bool((self._starts < max(self.numbers, 1)).all()), "beginnings of steady bets")
        self.evidence = self._total()


_RISE, _FALL, _SPREAD, _GATHER = range(4)
WORDS = ("rose", "fell", "spread", "gathered")
_LEAST = 2.0**-53
# Kind, k, weight. Two powers do as well as four.
POWERS = (
    (_RISE, 0.2, 0.18),
    (_RISE, 0.6, 0.18),
    (_FALL, 0.2, 0.18),
    (_FALL, 0.6, 0.18),
    (_SPREAD, 0.5, 0.18),
    (_GATHER, 0.5, 0.1),
)
QUICK = 0.12  # of the false alarms, for bets on numbers far out: a large change is found at once anyway
_COUNT = len(POWERS)
_PLACED_POWERS = tuple((place, power, weight) for place, (_, power, weight) in enumerate(POWERS))


class Wagers(Declared):
    """Evidence that ranks are no longer uniform.

    >>> wagers = Wagers()
    >>> for p in (0.6, 0.3, 0.9, 0.01, 0.02, 0.005, 0.01):
    ...     evidence = wagers.see(p)
    >>> round(evidence), wagers.begun, wagers.kind
    (10, 3, 'rose')
    """

    __slots__ = ("_cash", "_powers", "_starts", "_steady", "_wealth", "_won", "numbers")

    def __init__(self) -> None:
        self.numbers = 0
        self._powers = 1.0  # A
        self._steady = SteadyWagers()
        self._cash = 1.0
        self._wealth = [0.0] * _COUNT
        self._won = [0.0] * _COUNT  # W: 0 where nothing was bet yet
        self._starts = [0] * _COUNT

    def see(self, rank: float) -> float:
        """Bet on the next rank; the evidence there is now."""
        wealth, won, starts = self._wealth, self._won, self._starts
        number = self.numbers
        self.numbers = number + 1
        cash = cash_after(number + 1)
        stake, self._cash = self._cash - cash, cash
        other = 1.0 - rank
        near = 2.0 * (rank if rank < other else other)
        far = 1.0 - near
        up, down = rank**-0.4, other**-0.4
        # q^(k - 1) of every bet, in their order; -0.8 is twice -0.4, and powers are what costs most here
        raised = (up * up, up, down * down, down, near**-0.5, (far if far > _LEAST else _LEAST) ** -0.5)
        total = cash
        for place, power, weight in _PLACED_POWERS:
            factor = power * raised[place]
            own = wealth[place] = (wealth[place] + stake) * factor
            total += weight * own
            best = won[place]
            if best <= 1.0:
                starts[place] = number
                won[place] = factor
            else:
                won[place] = best * factor
        self._powers = total
        steady = self._steady
        steady.see(rank)
        quick, slow = QUICK * total, (1.0 - QUICK) * steady.evidence
        return quick if quick > slow else slow

    @property
    def evidence(self) -> float:
        """The larger of both martingales, weighed: 1 at most on average as long as nothing changes."""
        return max(QUICK * self._powers, (1.0 - QUICK) * self._steady.evidence)

    @property
    def begun(self) -> int:
        """Place in the stream, from 0, at which the change seems to have come."""
        return self._starts[self._best()] if self._by_powers() else self._steady.begun

    @property
    def kind(self) -> str:
        """What the numbers did: "rose", "fell", "spread" or "gathered"."""
        if self._by_powers():
            return WORDS[POWERS[self._best()][0]]
        return WORDS[_RISE if self._steady.rose else _FALL]

    def _by_powers(self) -> bool:
        return QUICK * self._powers >= (1.0 - QUICK) * self._steady.evidence

    def _best(self) -> int:
        return max(range(_COUNT), key=self._won.__getitem__)

    saved = (
        count("numbers", high=None),
        listed("wealth", np.float64, _COUNT, within=(0.0, None)),
        listed("won", np.float64, _COUNT, within=(0.0, None)),
        listed("starts", np.int64, _COUNT, within=(0, None)),
    )

    def export(self) -> dict[str, Any]:
        """Wealth and beginnings, as arrays."""
        return {**super().export(), "steady": self._steady.export()}

    def load(self, state: states.Reader, **known: Any) -> None:
        """Go on from what `export` gave."""
        super().load(state, **known)
        states.check(max(self._starts) < max(self.numbers, 1), "beginnings of the bets")
        self._cash = self._powers = cash_after(self.numbers)
        for own, bet in zip(self._wealth, POWERS, strict=True):  # in the order of `see`: bit for bit
            self._powers += bet[-1] * own
        self._steady.load(state.reader("steady"), seen=self.numbers)
