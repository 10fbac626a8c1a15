"""The constants of `CalibratedOPKB`, which follow from noise, signal and kernel; nothing is left to tune.

symbol     name             formula
n          told             rewards behind the estimated gaps
n_j                         E 2^j, rounds of block j
lambda_j   regulariser      s^2 / (kappa n_j): S(P, lambda_j) n_j / s^2 is then the precision of the posterior
g_j        dimension        trace S^-1 (S - lambda_j I) of the optimal design: directions told apart
E          block_size       least E >= 16 with E >= g(s^2 / (kappa E)): one round per direction
w_j        width            s sqrt(g(s^2 / (kappa n)) / n), one standard error of the worst arm
beta_j     beta             g_j / w_j: what the law then loses is what the gaps are uncertain by
           largest_good_gap w_j

Theory mode has its width times sqrt(2 log 2N), for all arms at once, and takes arms within 2 w_j as good. The first law
of an epoch that goes on with the old mean adds to w^2 what that mean was seen to be off by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driftbandits.design.measure import Information
from driftbandits.types import Floats

REGRET_SHARE = 0.3  # of what a block is planned to lose, for replays, and as much for mixing with the optimal design
SHORTEST_BLOCK = 16  # rounds of a first block: finding a law costs as much as hundreds of rounds
_LEAST_RIDGE = 2.0**-23  # beyond some million rounds leverages would leave no digits to the designs
_STEPS = 12  # of a bisection


@dataclass(frozen=True)
class Calibration:
    """The constants of one block."""

    block_size: int
    regulariser: float
    dimension: float
    width: float
    largest_good_gap: float

    def beta(self, block: int) -> float:
        """Weight of exploitation."""
        return self.dimension / self.width


def ridge(noise: float, signal: float, rounds: float) -> float:
    """lambda_j, to the nearest power of sqrt(2): close ones can then share their designs.

    >>> ridge(0.01, 0.1, 100) == 2**-10
    True
    """
    return max(float(2.0 ** (round(2.0 * math.log2(noise / (signal * rounds))) / 2.0)), _LEAST_RIDGE)


def block_size(dimension: Callable[[float], float], noise: float, signal: float) -> int:
    """E: the least whole number of at least g(lambda(E)) and SHORTEST_BLOCK, found from below (g grows with E).

    >>> block_size(lambda regulariser: 40 / (1 + regulariser), 0.01, 0.1)
    40
    """
    length = SHORTEST_BLOCK
    while True:
        needed = math.ceil(dimension(ridge(noise, signal, length)) - 1e-6)
        if needed <= length:
            return length
        length = needed


def least_mixing(features: Floats, law: Floats, design: Floats, regulariser: float, largest: float) -> float:
    """The least share of the optimal design with which no importance weight of the law exceeds `largest`.

    Weights |phi(x)' S^-1 phi(a)| are largest on the diagonal (Cauchy and Schwarz): the leverages.
    """
    squares = np.einsum("ij,ij->i", features, features)

    def too_large(share: float) -> bool:
        mixed = (1.0 - share) * law + share * design
        return float(Information(features, mixed, regulariser).leverage(features, squares).max()) > largest

    if not too_large(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_large(middle) else (low, middle)
    return high


def replay_scale(laws: list[Floats], estimated: Floats) -> float:
    """nu_j: what the chances of replays in the last block are multiplied by, so that they cost a share of its regret.

    Replays of index m fill E 2^((j + m) / 2) rounds of block j on average, each of regret sum P^(m) gap.
    """
    block = len(laws) - 1
    planned = 2.0**block * float(laws[-1] @ estimated)
    replays = sum(2.0 ** ((block + m) / 2) * float(law @ estimated) for m, law in enumerate(laws[:-1]))
    return 1.0 if replays <= REGRET_SHARE * planned else REGRET_SHARE * planned / replays
