"""The constants of `CalibratedOPKB` in closed form, and the optimal designs that they need.

The constants of `CalibratedOPKB`, which follow from noise, signal and kernel; nothing is left to tune.

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

Optimal designs of the kernels believed in, found so far: those of many arms are found from one another.

A design follows from the kernel and the regulariser alone; of few arms it is found anew whenever it is not at hand. Of
many arms it is solved loosely, and from the nearest one known, in a third of the time: what is found depends on
what was known, so these are part of the state. At most MOST_DESIGNS are kept.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.design import Design, effective_dimension
from driftbandits.design.blocks import law_factor
from driftbandits.design.problem import Information
from driftbandits.detection.gaps import gaps
from driftbandits.detection.streams import part_arms
from driftbandits.policies.opkb.parts import MANY_ARMS, Epoch, Estimator, best_design, latest_law
from driftbandits.policies.opkb.surrogate import Surrogate
from driftbandits.state.reader import ROUNDING
from driftbandits.types import Floats, Ints

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


class CalibratedConstants(ABC):
    """What both modes share: a `BlockConstants`, and what the detector takes from the block."""

    share = 0.5
    lowest_index = 0

    _levels: Calibration

    def __init__(self, surrogate: Surrogate, estimator: Estimator, *, arms: int) -> None:
        self._surrogate = surrogate
        self._estimator = estimator
        self._arms = arms
        self._designs = Designs(arms)

    def begin(self, horizon: int | None) -> None:  # noqa: B027
        """No horizon is needed."""

    def open(self, epoch: Epoch) -> Calibration:
        """The constants that noise, signal and kernel lead to."""
        noise, signal, block = self._surrogate.noise_variance, self._surrogate.signal, len(epoch.laws)
        if block == 0:
            size = block_size(lambda regulariser: self._design_at(regulariser)[1], noise, signal)
        else:
            size = self._levels.block_size
        regulariser = ridge(noise, signal, size * 2.0**block)
        dimension = self._design_at(regulariser)[1]
        behind = max(self._surrogate.told, size)  # rounds behind the gaps
        width = math.sqrt(noise * self._dimension_at(ridge(noise, signal, behind)) / behind)
        width, good_gap = self._widths(block, width)
        self._levels = Calibration(size, regulariser, dimension, width, good_gap)
        return self._levels

    @abstractmethod
    def _widths(self, block: int, width: float) -> tuple[float, float]:
        """w_j and the largest gap of a good arm, from one standard error of the worst arm."""

    def optimal_design(self, epoch: Epoch, *, moved: bool) -> Floats:
        """pi(X) of the kernel believed; where nothing is known, as if arms were hardly alike."""
        if epoch.number == 0 and not epoch.laws:
            return best_design(self._surrogate.first, self._levels.regulariser).probabilities
        return self._design_at(self._levels.regulariser)[0]

    def _design_at(self, regulariser: float) -> tuple[Floats, float]:
        """Optimal design of the kernel believed, and its effective dimension."""
        return self._designs.at(self._surrogate.kernel, self._surrogate.present, regulariser)

    def _dimension_at(self, regulariser: float) -> float:
        """Effective dimension of that design, where the design itself is not needed."""
        return self._designs.dimension(self._surrogate.kernel, self._surrogate.present, regulariser)

    def _near(self, epoch: Epoch) -> Floats | None:
        """A law from which the next is soon found: the last one, or the optimal design where that was all there was.

        What was played then is the design of another kernel, as if arms were hardly alike.
        """
        return self._design_at(self._levels.regulariser)[0] if len(epoch.laws) == 1 else latest_law(epoch)

    @abstractmethod
    def knows_enough(self) -> bool:
        """Whether a new epoch can begin with a law of OP."""

    @abstractmethod
    def solve(self, epoch: Epoch, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """The law that costs least for what it teaches."""

    def good_gap(self, block: int, design: Floats) -> float:
        """By what is believed of noise and signal alone."""
        return self._levels.largest_good_gap

    @abstractmethod
    def mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        """mu_j."""

    def replay_scale(self, epoch: Epoch) -> float:
        """Replays may cost a share of the block's planned regret."""
        return replay_scale(epoch.laws, gaps(self._estimator.rewards(epoch)))

    # --- for the detector -----------------------------------------------------------------------------------------

    @property
    def block_size(self) -> int:
        """E."""
        return self._levels.block_size

    @property
    def noise_variance(self) -> float:
        """s^2, as estimated when the block began."""
        return self._surrogate.noise_variance

    def cells(self) -> Ints:
        """Cells of neighbouring arms, as many as the kernel tells apart in the block."""
        return part_arms(self._surrogate.present, self._levels.dimension)

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """The constants of the block, and designs."""
        return {**dataclasses.asdict(self._levels), "designs": self._designs.export()}

    def load(self, state: states.Reader, *, horizon: int) -> Calibration:
        """Inverse of `export`."""
        numbers = [state.number(name) for name in ("regulariser", "dimension", "width", "largest_good_gap")]
        states.check(all(number > 0 for number in numbers), "constants")
        size = state.integer("block_size", low=SHORTEST_BLOCK, high=max(SHORTEST_BLOCK, self._arms))
        self._levels = Calibration(size, *numbers)
        self._designs.load(list(state.readers("designs")), self._surrogate.kernels)
        return self._levels

    def check(self, epoch: Epoch) -> None:
        """Refuse constants far from those that noise, signal and the length of the block lead to."""
        levels, believed = self._levels, self._surrogate
        meant = ridge(believed.noise_variance, believed.signal, levels.block_size * 2.0 ** (len(epoch.laws) - 1))
        states.check(0.6 < levels.regulariser / meant < 1.6, "regulariser")  # a rounding to powers of sqrt(2)
        states.check(levels.dimension <= (1.0 + ROUNDING) * self._arms, "dimension")
        states.check(1e-100 < levels.width < 1e3, "width")
        states.check(math.isclose(levels.largest_good_gap, self._good_gap(levels.width), rel_tol=ROUNDING), "good gap")

    @abstractmethod
    def _good_gap(self, width: float) -> float:
        """Largest gap of a good arm."""


class PracticalConstants(CalibratedConstants):
    """Widths of one standard error; a law is chosen for what it adds to what the epoch knows. No bound is proved."""

    _whitened: Floats | None = None  # while the laws of a block are sought: of many arms it is as large as the features

    def open(self, epoch: Epoch) -> Calibration:
        """The constants that noise, signal and kernel lead to."""
        self._whitened = None
        return super().open(epoch)

    def _widths(self, block: int, width: float) -> tuple[float, float]:
        if block == 0:
            width = math.hypot(width, math.sqrt(self._surrogate.shift))
        return width, self._good_gap(width)

    def _good_gap(self, width: float) -> float:
        return width

    def knows_enough(self) -> bool:
        """If it goes on with the old mean, or with enough rounds of its own."""
        return self._surrogate.follows or self._surrogate.told >= self._levels.block_size

    def solve(self, epoch: Epoch, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """By features whitened by what the epoch knows of each direction."""
        if self._whitened is None:
            self._whitened = self._whiten(epoch)
        return best_design(self._whitened, 1.0, costs=costs, candidates=candidates, near=self._near(epoch))

    def _whiten(self, epoch: Epoch) -> Floats:
        features = self._surrogate.present
        known = self._surrogate.since(0).counts / (self._levels.block_size * 2.0 ** len(epoch.laws))
        whitened = law_factor(features, known, self._levels.regulariser).half_solve(features.T).T
        return np.ascontiguousarray(whitened)

    def mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        """As much as costs a share of the block's planned regret."""
        self._whitened = None  # all laws are found
        return REGRET_SHARE * min(1.0, self._levels.width / max(float(design @ estimated), 1e-12))


class TheoryConstants(CalibratedConstants):
    """Widths that hold for all arms at once, and mixing that bounds all importance weights, as the analysis needs."""

    def _widths(self, block: int, width: float) -> tuple[float, float]:
        width *= math.sqrt(2.0 * math.log(2.0 * self._arms))
        return width, self._good_gap(width)

    def _good_gap(self, width: float) -> float:
        return 2.0 * width

    def knows_enough(self) -> bool:
        """Rounds chosen by their values would break the analysis."""
        return False

    def solve(self, epoch: Epoch, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """A law is chosen for what it teaches by itself."""
        features, near = self._surrogate.present, self._near(epoch)
        return best_design(features, self._levels.regulariser, costs=costs, candidates=candidates, near=near)

    def mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        """The least with which no importance weight exceeds sqrt(n_j g_j)."""
        levels = self._levels
        largest = math.sqrt(levels.block_size * 2.0**block * levels.dimension)
        return least_mixing(self._surrogate.present, law, design, levels.regulariser, largest)
