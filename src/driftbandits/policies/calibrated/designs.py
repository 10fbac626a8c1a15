"""Optimal designs of the kernels believed in, found so far: those of many arms are found from one another.

A design follows from the kernel and the regulariser alone; of few arms it is found anew whenever it is not at hand. Of
many arms it is solved loosely, and from the nearest one known, in a third of the time: what is found depends on
what was known, so these are part of the state. At most MOST_DESIGNS are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.design import effective_dimension
from driftbandits.policies.blocks.design import MANY_ARMS, best_design
from driftbandits.state.plausible import ROUNDING
from driftbandits.types import Floats, Ints

MOST_DESIGNS = 48
_NEAR = math.log(2.0) + 1e-9  # regularisers are powers of sqrt(2): two steps


@dataclass(frozen=True)
class Known:
    """A design: the arms with mass, their probabilities, and its effective dimension."""

    kernel: int
    regulariser: float
    support: Ints
    masses: Floats
    dimension: float

    def law(self, arms: int) -> Floats:
        """Over all arms."""
        law = np.zeros(arms)
        law[self.support] = self.masses
        return law

    def distance(self, regulariser: float) -> float:
        """How far the design of another regulariser may be."""
        return abs(math.log(self.regulariser / regulariser))


class Designs:
    """Optimal designs of `arms` arms.

    >>> law, dimension = Designs(3).at(0, np.eye(3), 1.0)
    >>> law.round(6).tolist(), round(dimension, 6)
    ([0.333333, 0.333333, 0.333333], 0.75)
    """

    def __init__(self, arms: int) -> None:
        self._arms = arms
        self._known: dict[tuple[int, float], Known] = {}

    def at(self, kernel: int, features: Floats, regulariser: float) -> tuple[Floats, float]:
        """The design of these features, which are those of the kernel, and its effective dimension."""
        known = self._known.get((kernel, regulariser))
        if known is None:
            near = self._nearest(kernel, regulariser)
            found = best_design(features, regulariser, near=None if near is None else near.law(self._arms))
            law = found.probabilities
            dimension = effective_dimension(features, regulariser=regulariser, probabilities=law)
            support = np.flatnonzero(law)
            known = Known(kernel, regulariser, support, law[support], dimension)
            self._keep(known)
        return known.law(self._arms), known.dimension

    def dimension(self, kernel: int, features: Floats, regulariser: float) -> float:
        """Effective dimension of the design, to within 1 % or so of many arms: a law nearby is then good enough."""
        near = self._nearest(kernel, regulariser)
        if self._arms <= MANY_ARMS or near is None or near.distance(regulariser) > _NEAR:
            return self.at(kernel, features, regulariser)[1]
        if near.regulariser == regulariser:
            return near.dimension
        return effective_dimension(features, regulariser=regulariser, probabilities=near.law(self._arms))

    def _nearest(self, kernel: int, regulariser: float) -> Known | None:
        """Of the same kernel: from the design of another one it takes longer than from none."""
        same = [known for known in self._known.values() if known.kernel == kernel]
        return min(same, key=lambda known: known.distance(regulariser), default=None)

    def _keep(self, known: Known) -> None:
        self._known[known.kernel, known.regulariser] = known
        if len(self._known) > MOST_DESIGNS:
            del self._known[next(iter(self._known))]

    def export(self) -> list[dict[str, Any]]:
        """What `load` needs, as JSON values and arrays."""
        return [
            {
                "kernel": known.kernel,
                "regulariser": known.regulariser,
                "support": known.support.copy(),
                "masses": known.masses.copy(),
            }
            for known in (self._known.values() if self._arms > MANY_ARMS else ())
        ]

    def load(self, items: list[states.Reader], kernels: list[Floats]) -> None:
        """Inverse of `export`, of these kernels' features."""
        self._known = {}
        states.check(len(items) <= (MOST_DESIGNS if self._arms > MANY_ARMS else 0), "number of designs")
        for item in items:
            kernel, regulariser = item.integer("kernel", high=len(kernels) - 1), item.number("regulariser")
            support: Ints = item.array("support", np.int64, (None,))
            masses: Floats = item.array("masses", np.float64, support.shape)
            inside = (np.diff(support) > 0).all() and (support >= 0).all() and (support < self._arms).all()
            states.check(bool(inside and len(support)), "arms of a design")
            states.check(bool((masses > 0.0).all() and abs(masses.sum() - 1.0) <= ROUNDING), "masses of a design")
            states.check(regulariser > 0.0 and (kernel, regulariser) not in self._known, "regulariser of a design")
            law = Known(kernel, regulariser, support, masses, 0.0).law(self._arms)
            dimension = effective_dimension(kernels[kernel], regulariser=regulariser, probabilities=law)
            self._keep(Known(kernel, regulariser, support, masses, dimension))
