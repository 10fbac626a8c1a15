"""Some arms that stand for all where there are very many: which arms were seen and which have moved is said of them.

An arm is represented by the nearest of them: by its point, or by its features where there are no points. Up to
`MOST_REPRESENTATIVES` arms represent themselves. Where arms are options in segments, some options represent all, in
every segment the same.
"""

from __future__ import annotations

import numpy as np

from driftbandits.arms import ArmSet
from driftbandits.types import Floats, Ints

MOST_REPRESENTATIVES = 1024


class Representatives:
    """Numbers of the representatives among the arms, growing; `together` of them belong to each segment.

    >>> few = Representatives(ArmSet([[0.0], [0.5], [1.0]]))
    >>> few.everyone, few.of(2)
    (True, 2)
    >>> many = Representatives(ArmSet(np.linspace(0.0, 1.0, 5_000)[:, None]))
    >>> many.everyone, len(many.numbers), bool(abs(many.numbers[many.of(3_210)] - 3_210) < 50)
    (False, 1024, True)
    """

    def __init__(self, arms: ArmSet, most: int = MOST_REPRESENTATIVES) -> None:
        crossing = arms.crossing
        self._options = arms if crossing is None else crossing.options
        segments = 1 if crossing is None else len(crossing.names)
        self._size = len(self._options)
        self.everyone = len(arms) <= most
        self._chosen = _some(self._size, self._size if self.everyone else max(most // segments, 1))
        self.together = len(self._chosen)
        self.numbers: Ints = (np.arange(segments)[:, None] * self._size + self._chosen).ravel()
        self.places: Ints | slice = slice(None) if self.everyone else self.numbers  # to take them from what is of all
        self._points = None if self.everyone else self._point(self._chosen)

    def of(self, arm: int) -> int:
        """Which of the representatives stands for `arm`."""
        if self._points is None:
            return arm
        segment, option = divmod(arm, self._size)
        distances = np.square(self._points - self._point(np.array([option]))).sum(axis=1)
        return segment * self.together + int(distances.argmin())

    def _point(self, options: Ints) -> Floats:
        """Where options are, (M, d): their points as distances are measured, or their features."""
        if self._options.kernel is None:
            return self._options.features[options]
        return self._options.gauge.standardised(self._options.points[options])


def _some(size: int, most: int) -> Ints:
    """So many numbers below `size`, growing, spread at random: every tenth of a grid would lie in a few columns."""
    if size <= most:
        return np.arange(size)
    return np.sort(np.random.default_rng(0).permutation(size)[:most])
