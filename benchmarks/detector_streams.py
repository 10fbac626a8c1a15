"""Streams on which detectors are compared: how they are drawn, and what changes in them.

Numbers are in units of the noise's standard deviation (0/1 numbers as they are): Page-Hinkley's threshold of 50 means
something there, DriftDetector and KSWIN do not mind, and ADWIN is quicker than on smaller numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driftbandits.types import Floats

AFTER = 1_000  # numbers of a stream after its change
SLOWLY = 500  # numbers over which a slow change comes
DEVIATIONS = "standard deviations"


@dataclass(frozen=True)
class Kind:
    """A kind of stream: its noise, how numbers are drawn after a jump of some size (0: none), and the sizes tried."""

    name: str
    noise: str
    draw: Callable[[np.random.Generator, int, float], Floats]
    jumps: tuple[float, ...]
    unit: str = DEVIATIONS
    before: int = 1_000  # numbers before the change

    def first(self, seed: int) -> list[float]:
        """Numbers before the change; those of one seed begin alike whatever comes after."""
        return list(map(float, self.draw(np.random.default_rng([seed, 0]), self.before, 0.0)))

    def then(self, seed: int, jump: float) -> list[float]:
        """Numbers after it."""
        return list(map(float, self.draw(np.random.default_rng([seed, 1]), AFTER, jump)))


def _normal(rng: np.random.Generator, size: int, jump: float) -> Floats:
    return rng.normal(jump, 1.0, size)


def _slowly(rng: np.random.Generator, size: int, jump: float) -> Floats:
    return rng.normal(jump * np.minimum(np.arange(size) / SLOWLY, 1.0), 1.0)


def _student(rng: np.random.Generator, size: int, jump: float) -> Floats:
    return np.asarray(jump + rng.standard_t(3, size) / math.sqrt(3.0))


def _zero_one(rng: np.random.Generator, size: int, jump: float) -> Floats:
    return (rng.random(size) < 0.1 + jump).astype(np.float64)


JUMPS = (0.25, 0.5, 1.0, 2.0, 5.0)
KINDS = (
    Kind("normal", "normal", _normal, JUMPS),
    Kind("t, 3 degrees of freedom", "t", _student, JUMPS),
    Kind("0/1, rate 0.1", "0/1", _zero_one, (0.025, 0.05, 0.1, 0.2, 0.4), unit="added to the rate"),
    Kind("normal, after 100 numbers", "normal", _normal, JUMPS, before=100),
    Kind(f"normal, over {SLOWLY} numbers", "normal", _slowly, JUMPS),
)
