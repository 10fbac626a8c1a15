"""Conformal test martingales: evidence that a stream of numbers has changed, whatever their distribution.

If the numbers are independent draws from one law, the smoothed rank of each among those before it is uniform on
(0, 1), and ranks are independent of each other (`driftbandits.detection.ranks`). A bet on ranks whose factor is 1 on
average over (0, 1) then multiplies wealth without gain (`driftbandits.detection.bets`): wealth is a martingale, and by
Ville's inequality it ever reaches 1 / a with probability a at most. Nothing is assumed of the law, so nothing can be
wrong with the assumption. Time per number and memory are bounded, however long the stream.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.detection.bets import Bets, CutBets, OrderBets, PowerBets
from driftbandits.detection.ranks import Ranked, Uniforms


class ConformalMartingale:
    """A stream with the evidence that it has changed, to larger numbers or, if `two_sided`, to smaller ones.

    `ordered` adds bets on order, and `cut` bets on shares, each with as much wealth as the powers have. `uniforms`
    draws what breaks ties among the first numbers once there are many; by default always the same.

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

    def __init__(
        self, *, two_sided: bool = False, ordered: bool = False, cut: bool = False, uniforms: Uniforms | None = None
    ) -> None:
        self.numbers = Ranked() if uniforms is None else Ranked(uniforms)
        self.bets: dict[str, Bets] = {"powers": PowerBets(two_sided=two_sided)}
        if ordered:
            self.bets["orders"] = OrderBets()
        if cut:
            self.bets["cuts"] = CutBets()
        self._all = tuple(self.bets.values())
        self._share = 1.0 / len(self._all)

    def see(self, score: float, u: float, round_: int) -> float:
        """Take in the number of round `round_`, with `u` drawn from (0, 1); the evidence there is now."""
        before = self.numbers.count
        rank = self.numbers.see(score, u)
        evidence = 0.0
        for bets in self._all:
            evidence += bets.see(rank, before, round_)
        return evidence * self._share

    @property
    def evidence(self) -> float:
        """1 on average as long as nothing changes."""
        return sum((bets.evidence for bets in self._all), 0.0) * self._share

    def start(self) -> int:
        """Round at which the change seems to have come, by the bets that have won most."""
        return max(self._all, key=lambda bets: bets.evidence).start()

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        return {"numbers": self.numbers.export(), **{name: bets.export() for name, bets in self.bets.items()}}

    def load(self, state: states.Reader, *, rounds: int, largest: float) -> None:
        """Inverse of `export`, after `rounds` rounds, of numbers of at most `largest` in size."""
        self.numbers.load(state.reader("numbers"), most=rounds, largest=largest)
        with np.errstate(all="ignore"):
            for name, bets in self.bets.items():
                bets.load(state.reader(name), self.numbers.count, rounds)
            states.check(math.isfinite(self.evidence), "evidence of a stream")
