"""Does what is believed fit the rewards? A check of AutoBandit by itself, apart from how it learns.

Before each reward, what was expected of it is noted; the residuals of an arm, and of all arms, must then scatter about
0, whatever the distribution of the rewards and however they drift, as long as beliefs follow.

symbol  name      meaning
r                 reward less what was expected of it
R                 fading sum of r: the last `MEMORY` rewards or so
V, W              fading sums of the squares of its terms, and of the variances believed of them: after a run of
                  failures V has no success yet
z                 R / sqrt(max(V, W)), about a standard normal number where beliefs are right

It speaks where z lies beyond `LIMIT` for `CHECKS` checks in a row, `BETWEEN` rewards apart. Beliefs may lag behind
steady drift by a small share of the noise: hence not at 3. The first rewards of an arm do not count: what is
expected of them is the prior.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandits import state as states
from driftbandits.state.declared import Declared, array, count
from driftbandits.types import Floats, Ints

MEMORY = 1_000.0  # rewards, of an arm or of all
LIMIT = 6.0  # standard errors
BETWEEN = 100  # rewards between two checks
CHECKS = 3  # in a row
FIRST_PLAYS = 8  # of an arm, which do not count
LEAST_WEIGHT = 50.0  # rewards of an arm, about, before it is checked
_FADE = 1.0 - 1.0 / MEMORY


class Misfit(NamedTuple):
    """An arm, or -1 for all together: what was expected of its rewards on average, what came, and the z of these."""

    arm: int
    expected: float
    came: float
    errors: float


class Doubts(Declared):
    """Sums of residuals of every representative, and of all arms (last).

    >>> doubts = Doubts(2)
    >>> found = [doubts.see(0, 0.5, -1.0 + 0.1 * (now % 2), 0.01) for now in range(1_000)]
    >>> [misfit.arm for misfit in found if misfit]
    [0]
    """

    def __init__(self, arms: int) -> None:
        self._plays: Ints = np.zeros(arms + 1, dtype=np.int64)
        self._sums: Floats = np.zeros((5, arms + 1))  # R, V, W, and the fading sums of what was expected and of 1
        self._told = 0
        self._suspect = -1  # place in the sums
        self._checks = 0  # in a row in which it was suspect

    def see(self, arm: int, expected: float, reward: float, variance: float) -> Misfit | None:
        """A reward, beside what was expected of it and the variance believed; what does not fit, told once."""
        residual = reward - expected
        return self.add(arm, residual, residual * residual, variance, expected, 1.0)

    def add(
        self, arm: int, residual: float, square: float, variance: float, expected: float, weight: float
    ) -> Misfit | None:
        """Rewards of so many decisions: sums of residuals, squares and variances, and what was expected of each."""
        self._plays[arm] += 1
        self._told += 1
        if self._plays[arm] > FIRST_PLAYS:
            fade = _FADE if weight == 1.0 else _FADE**weight
            new = (residual, square, variance, expected * weight, weight)
            for place in (arm, -1):  # in plain numbers: of every reward
                column = self._sums[:, place]
                r, v, w, e, n = column.tolist()
                column[0], column[3], column[4] = r * fade + new[0], e * fade + new[3], n * fade + new[4]
                column[1], column[2] = v * fade * fade + new[1], w * fade * fade + new[2]
        return self._check() if self._told % BETWEEN == 0 and self._checks < CHECKS else None

    def _check(self) -> Misfit | None:
        residuals, expected, weights = self._sums[[0, 3, 4]]
        scatter = self._sums[1:3].max(axis=0)
        known = (weights >= LEAST_WEIGHT) & (scatter > 0.0)
        errors = residuals / np.sqrt(np.where(known, scatter, np.inf))
        worst = int(np.abs(errors).argmax())
        if abs(errors[worst]) <= LIMIT:
            self._checks = 0
            return None
        self._checks = self._checks + 1 if worst == self._suspect else 1
        self._suspect = worst
        if self._checks < CHECKS:
            return None
        mean = float(expected[worst] / weights[worst])
        arm = worst if worst < len(weights) - 1 else -1
        return Misfit(arm, mean, mean + float(residuals[worst] / weights[worst]), float(errors[worst]))

    def forget(self) -> None:
        """A change was recorded: what came before does not count."""
        self._sums[:] = 0.0

    @property
    def doubtful(self) -> bool:
        """Whether it has spoken."""
        return self._checks >= CHECKS

    def renumbered(self, sources: Ints) -> Doubts:
        """The same where representative i was sources[i] before, -1 if it is new."""
        moved = Doubts(len(sources))
        places = np.append(sources, len(self._plays) - 1)
        kept = places >= 0
        moved._plays[kept], moved._sums[:, kept] = self._plays[places[kept]], self._sums[:, places[kept]]
        moved._told, moved._checks = self._told, self._checks
        return moved

    saved = (
        array("plays", within=(0, None)),
        array("sums"),
        count("told"),
        count("suspect", low=-1),
        count("checks", high=CHECKS),
    )

    def _check_state(self, **known: Any) -> None:
        states.check(bool(np.isfinite(self._sums).all() and (self._sums[[1, 2, 4]] >= 0.0).all()), "sums")
        states.check(self._suspect < len(self._plays), "suspect")
