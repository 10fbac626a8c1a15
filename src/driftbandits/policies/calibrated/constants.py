"""The engine's constants as `CalibratedOPKB` has them: closed forms of what is believed, found anew at every block."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.design import Design
from driftbandits.detection.gap_test import gaps
from driftbandits.detection.streams import part_arms
from driftbandits.estimation import law_factor
from driftbandits.policies.blocks.design import best_design
from driftbandits.policies.blocks.epoch import Epoch, latest_law
from driftbandits.policies.blocks.parts import Estimator
from driftbandits.policies.calibrated.closed_forms import (
    REGRET_SHARE,
    SHORTEST_BLOCK,
    Calibration,
    block_size,
    least_mixing,
    replay_scale,
    ridge,
)
from driftbandits.policies.calibrated.designs import Designs
from driftbandits.policies.calibrated.surrogate import Surrogate
from driftbandits.state.plausible import ROUNDING
from driftbandits.types import Floats, Ints


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
