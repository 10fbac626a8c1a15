"""Smoothed ranks of a stream of numbers, each among those before it, in time and memory that do not grow.

If the numbers are independent draws of one distribution, whatever it is, their ranks are independent and uniform on
(0, 1). The first EXACT numbers are kept, and ranked among each other. Then cuts are made at some of them, which stay
for ever, and of later numbers only counts between cuts are kept. Ranks stay exactly independent and uniform:

- Ties are broken by uniforms, so numbers have a continuous distribution, and may be thought uniform on (0, 1).
- The k-th, l-th, ... smallest of n such numbers cut (0, 1) into pieces whose lengths have a Dirichlet distribution,
  with parameters k, l - k, ... that add up to n + 1. It does not depend on the order in which the n numbers came, and
  so not on their ranks.
- Given the lengths, later numbers fall into the pieces independently. So the next falls into a piece with probability
  (parameter + numbers that fell there) / (n + 1 + numbers that fell anywhere): an urn of Polya, whose masses are known.
- A point drawn evenly from the share of the piece, behind the shares of all pieces above it, is uniform given all that
  came before. This is the rank.

Nothing of what later numbers say of the distribution is lost: masses go on to count. What is lost is the order inside a
piece. Pieces grow from either end by a factor of 2^(1 / 4), so that ranks are known to a fifth of their distance from
0 or 1, down to 1 / EXACT.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits._util.seeding import stream
from driftbandits.state.reader import FARTHEST, ROUNDING
from driftbandits.types import Floats, Ints

EXACT = 2048  # numbers that are kept
_PIECES_PER_OCTAVE = 4
_LEAST = 2.0**-53  # nothing drawn is nearer to 0 or 1
_LARGEST = 1.0 - _LEAST
Uniforms = Callable[[int], Floats]


@cache
def cut_places(numbers: int) -> tuple[int, ...]:
    """Which of so many numbers, in ascending order from 1, become cuts: the outermost, and ever fewer inwards.

    >>> cut_places(20)
    (1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 17, 18, 19, 20)
    >>> len(cut_places(2048))
    72
    """
    octaves = (numbers // 2).bit_length() - 1
    steps = np.arange(_PIECES_PER_OCTAVE * octaves + 1) / _PIECES_PER_OCTAVE
    low = {round(float(place)) for place in 2.0**steps}
    return tuple(sorted(low | {numbers + 1 - place for place in low}))


def _first_masses(numbers: int) -> list[int]:
    """Of the pieces between the cuts: what is between their places, n + 1 in all."""
    masses: list[int] = np.diff([0, *cut_places(numbers), numbers + 1]).tolist()
    return masses


def _fixed_uniforms(count: int) -> Floats:
    return stream(0, "ties").random(count)


class Ranked:
    """A stream of numbers, each ranked among those before it: small for a large number.

    `uniforms` draws the numbers that break ties for good when cuts are made; by default they are always the same.
    `exact`: how many numbers are kept, 2 at least.

    >>> numbers = Ranked()
    >>> [numbers.see(x, 0.5) for x in [3.0, 5.0, 1.0, 3.0]]
    [0.5, 0.25, 0.8333333333333334, 0.5]
    """

    def __init__(self, uniforms: Uniforms = _fixed_uniforms, *, exact: int = EXACT) -> None:
        self.exact = exact
        self.count = 0
        self.scores: list[float] = []  # sorted; none once there are cuts
        self.pieces: Pieces | None = None
        self._uniforms = uniforms

    def see(self, score: float, u: float) -> float:
        """Rank of the next number, with `u` drawn from (0, 1)."""
        self.count += 1
        if self.pieces is not None:
            return self.pieces.see(score, u)
        past = self.scores
        before = len(past)
        left = right = bisect_left(past, score)
        if left < before and past[left] == score:
            right = bisect_right(past, score, left)
        past.insert(right, score)
        if before + 1 == self.exact:
            self._cut()
        return min((before - right + u * (right - left + 1)) / (before + 1), _LARGEST)

    def _cut(self) -> None:
        ties = self._uniforms(self.exact)
        order = np.lexsort((ties, np.array(self.scores)))[np.array(cut_places(self.exact)) - 1]
        cuts = [self.scores[k] for k in order]
        self.pieces = Pieces(cuts, np.clip(ties[order], _LEAST, _LARGEST).tolist(), _first_masses(self.exact))
        self.scores = []

    def export(self) -> dict[str, Any]:
        """What `load` needs, as JSON values and arrays."""
        pieces = self.pieces or Pieces([], [], [])
        return {
            "count": self.count,
            "scores": np.array(self.scores),
            "cuts": np.array(pieces.cuts),
            "ties": np.array(pieces.ties),
            "masses": np.array(pieces.masses, dtype=np.int64),
        }

    def load(self, state: states.Reader, *, most: int, largest: float) -> None:
        """Inverse of `export`, of at most `most` numbers of at most `largest` in size."""
        self.count = state.integer("count", high=most)
        whole = self.count < self.exact
        scores = state.array("scores", np.float64, (self.count if whole else 0,))
        size = 0 if whole else len(cut_places(self.exact))
        cuts, ties = state.array("cuts", np.float64, (size,)), state.array("ties", np.float64, (size,))
        for numbers in (scores, cuts):
            states.check(bool((np.diff(numbers) >= 0).all()), "order of numbers of a stream")
            states.check(bool((np.abs(numbers) <= (1.0 + ROUNDING) * largest).all()), "numbers of a stream")
        masses: Ints = state.array("masses", np.int64, (size + 1 if size else 0,))
        self.scores, self.pieces = scores.tolist(), None
        if size:
            fine = (
                (masses >= _first_masses(self.exact)).all()
                and (masses <= FARTHEST).all()
                and masses.sum() == self.count + 1
            )
            states.check(bool(fine), "masses of a stream")
            inside = (ties >= _LEAST).all() and (ties <= _LARGEST).all()
            states.check(bool(inside and (np.diff(ties)[np.diff(cuts) == 0] >= 0).all()), "ties of a stream")
            self.pieces = Pieces(cuts.tolist(), ties.tolist(), masses.tolist())


class Pieces:
    """The urn: cuts in ascending order, the uniforms that break ties with them, and a mass for each of the pieces.

    >>> urn = Pieces([1.0, 2.0], [0.5, 0.5], [1, 1, 1])  # two numbers were seen
    >>> urn.see(3.0, 0.5), urn.masses
    (0.16666666666666666, [1, 1, 2])
    >>> urn.see(2.0, 0.25)  # below the cut, as 0.25 < 0.5, and half the way to it
    0.625
    """

    def __init__(self, cuts: list[float], ties: list[float], masses: list[int]) -> None:
        self.cuts = cuts
        self.ties = ties
        self.masses = masses
        self._total = sum(masses)

    def see(self, score: float, u: float) -> float:
        """Rank of the next number, with `u` drawn from (0, 1)."""
        cuts, masses = self.cuts, self.masses
        place = bisect_left(cuts, score)
        if place < len(cuts) and cuts[place] == score:
            place, u = self._break_tie(place, score, u)
        upper = place > len(cuts) // 2  # which sum is the shorter
        above = sum(masses[place + 1 :]) if upper else self._total - sum(masses[: place + 1])
        rank = (above + u * masses[place]) / self._total
        masses[place] += 1
        self._total += 1
        return min(rank, _LARGEST)

    def _break_tie(self, first: int, score: float, u: float) -> tuple[int, float]:
        """The piece of a number equal to the cut `first`, and where `u` lies between its ends: again a uniform."""
        end = bisect_right(self.cuts, score, first)
        place = bisect_left(self.ties, u, first, end)
        low = self.ties[place - 1] if place > first else 0.0
        high = self.ties[place] if place < end else 1.0
        return place, min(max((u - low) / max(high - low, _LEAST), _LEAST), _LARGEST)
