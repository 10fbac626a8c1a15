"""Smoothed ranks of a stream of any length, in memory that does not grow: an exact Polya urn.

symbol  name      meaning
n       numbers   how many numbers have been seen
(x, v)            a number and a uniform that breaks ties: pairs are distinct, and in the order of a dictionary
m_j     counts    mass of gap j between the kept pairs: 1 + how many later pairs fell into it
p       see       (mass of the gaps above its own + u m_j) / (n + 1): small for a large number

The first `KEPT` pairs are kept, in order. Of exchangeable pairs the next is equally likely to fall into each of the
n + 1 gaps between those before. A gap between kept pairs is made of m_j of these, so the next falls into it with
probability m_j / (n + 1), whatever the ranks before were: p is uniform on (0, 1) and independent of all earlier ones,
beyond `KEPT` numbers as below. What is lost there is resolution: numbers of one gap are not told apart.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from driftbandits import state as states

KEPT = 10_000
_BLOCK = 100  # gaps whose masses are added up beforehand: a sum over all gaps is two short ones
_SMALLEST, _LARGEST = 2.0**-53, 1.0 - 2.0**-53  # a rank lies strictly between 0 and 1


class UrnRanks:
    """Numbers seen, each with its smoothed rank among those before.

    >>> ranks = UrnRanks()
    >>> [ranks.see(x, 0.5, 0.5) for x in [3.0, 5.0, 1.0]]
    [0.5, 0.25, 0.8333333333333334]
    """

    __slots__ = ("_blocks", "_counts", "_kept", "_ties", "_values", "numbers")

    def __init__(self, *, kept: int = KEPT) -> None:
        self.numbers = 0
        self._kept = kept
        # Arrays, in the middle of which a number is put twice as fast as in that of a list.
        self._values = array("d")  # sorted, and within equal ones
        self._ties = array("d")  # sorted by these
        self._counts: list[int] = []  # of the gaps, once all are there
        self._blocks: list[int] = []  # sums of them

    def see(self, number: float, tie: float, u: float) -> float:
        """Rank of the next number; `tie` and `u` are independent draws from [0, 1)."""
        values = self._values
        left = place = bisect_left(values, number)
        if left < len(values) and values[left] == number:
            place = bisect_left(self._ties, tie, left, bisect_right(values, number, left))
        before = self.numbers
        if before < self._kept:
            values.insert(place, number)
            self._ties.insert(place, tie)
            rank = (before - place + u) / (before + 1)
            self.numbers = before + 1
            if before + 1 == self._kept:
                self._close([1] * (self._kept + 1))
        else:
            rank = self._draw(place, u) / (before + 1)
            self.numbers = before + 1
        return _SMALLEST if rank < _SMALLEST else _LARGEST if rank > _LARGEST else rank

    def _draw(self, gap: int, u: float) -> float:
        """Mass above a place drawn at random in `gap`, whose mass then grows by 1."""
        counts, blocks = self._counts, self._blocks
        block = gap // _BLOCK
        own = counts[gap]
        if 2 * block < len(blocks):  # the shorter of two sums
            above = self.numbers + 1 - own - sum(counts[block * _BLOCK : gap]) - sum(blocks[:block])
        else:
            above = sum(counts[gap + 1 : (block + 1) * _BLOCK]) + sum(blocks[block + 1 :])
        counts[gap] = own + 1
        blocks[block] += 1
        return above + u * own

    def _close(self, counts: list[int]) -> None:
        """From now on numbers are counted, not kept."""
        self._counts = counts
        self._blocks = [sum(counts[start : start + _BLOCK]) for start in range(0, len(counts), _BLOCK)]

    def export(self) -> dict[str, Any]:
        """What was seen, as arrays."""
        return {
            "numbers": self.numbers,
            "values": np.array(self._values, dtype=np.float64),
            "ties": np.array(self._ties, dtype=np.float64),
            "counts": np.array(self._counts, dtype=np.int64),
        }

    def load(self, state: states.Reader) -> None:
        """Go on from what `export` gave."""
        self.numbers = state.integer("numbers")
        size = min(self.numbers, self._kept)
        closed = self.numbers >= self._kept
        values = state.array("values", np.float64, (size,))
        ties = state.array("ties", np.float64, (size,))
        counts = state.array("counts", np.int64, (self._kept + 1 if closed else 0,))
        rising = (values[1:] > values[:-1]) | ((values[1:] == values[:-1]) & (ties[1:] >= ties[:-1]))
        states.check(bool(rising.all()), "order of the numbers")
        states.check(bool(((ties >= 0.0) & (ties < 1.0)).all()), "uniforms that break ties")
        self._values, self._ties = array("d", values.tolist()), array("d", ties.tolist())
        if closed:
            states.check(bool((counts >= 1).all()), "masses of the gaps")
            states.check(sum(counts.tolist()) == self.numbers + 1, "sum of the masses of the gaps")
            self._close(counts.tolist())
