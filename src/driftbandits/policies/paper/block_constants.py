"""The engine's constants as the paper has them: resolved once per horizon, from the optimal design of phi^(0).

Only line 2 of OP looks at the present features: an arm is good by the information gain of phi^(j).
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np

from driftbandits import state as states
from driftbandits.design import Design
from driftbandits.errors import ConvergenceWarning, StateError
from driftbandits.estimation import law_factor
from driftbandits.policies.blocks.design import best_design
from driftbandits.policies.blocks.epoch import Epoch, latest_law
from driftbandits.policies.blocks.parts import FeatureSource
from driftbandits.policies.paper.constants import Constants, Levels, Variant
from driftbandits.state.plausible import ROUNDING
from driftbandits.types import Floats, Ints


class PaperConstants:
    """`Constants` and `Variant` for `arms` arms with these features: a `BlockConstants`, and `Thresholds`."""

    _levels: Levels
    _design: Floats

    def __init__(self, constants: Constants, variant: Variant, features: FeatureSource, *, arms: int) -> None:
        self._constants = constants
        self._variant = variant
        self._features = features
        self._arms = arms

    @property
    def share(self) -> float:
        """Of the optimal design over the good arms in OP's answer."""
        return self._variant.share

    @property
    def lowest_index(self) -> int:
        """That is replayed and compared."""
        return self._variant.lowest_index

    def begin(self, horizon: int | None) -> None:
        """Resolve the constants for a horizon."""
        if horizon is None:
            raise StateError("the constants of the paper need a horizon")
        regulariser = self._constants.sigma / horizon
        design = best_design(
            self._features.first, regulariser, near=getattr(self, "_design", None)
        )  # of half the horizon
        gamma = design.log_det - self._features.first.shape[1] * np.log(regulariser)
        self._levels = self._constants.levels(gamma=float(gamma), horizon=horizon, arms=self._arms)
        self._design = design.probabilities

    def at(self, horizon: int) -> PaperConstants:
        """The constants that a run of `horizon` rounds would have."""
        others = PaperConstants(self._constants, self._variant, self._features, arms=self._arms)
        with warnings.catch_warnings():  # gamma to five digits will do, at horizons where designs have no more
            warnings.simplefilter("ignore", ConvergenceWarning)
            others.begin(horizon)
        return others

    def open(self, epoch: Epoch) -> Levels:
        """They stay the same through all blocks of a horizon."""
        return self._levels

    def optimal_design(self, epoch: Epoch, *, moved: bool) -> Floats:
        """pi(X), solved anew where the features have moved."""
        return self.solve(epoch).probabilities if moved else self._design

    def knows_enough(self) -> bool:
        """An epoch knows nothing of those before."""
        return False

    def solve(self, epoch: Epoch, *, costs: Floats | None = None, candidates: Ints | None = None) -> Design:
        """A law is chosen for what it teaches by itself."""
        features, near = self._features.present, latest_law(epoch)
        return best_design(features, self._levels.regulariser, costs=costs, candidates=candidates, near=near)

    def good_gap(self, block: int, design: Floats) -> float:
        """2 alpha gamma / beta_j with the gain of the present features, or of the first, as the variant has it."""
        moved = self._features.present is not self._features.first
        if not moved or self._variant.good_arms_by == "initial_gain":
            return self._levels.good_gap(block, self._levels.gamma)
        return self._levels.good_gap(block, _gain(self._features.present, design, self._levels.regulariser))

    def mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        """mu_j, whatever the law."""
        return self._levels.mixing(block)

    def replay_scale(self, epoch: Epoch) -> float:
        """Replays have the paper's chances."""
        return 1.0

    # --- the thresholds of the gap test ---------------------------------------------------------------------------

    @property
    def block_size(self) -> int:
        """E."""
        return self._levels.block_size

    @property
    def tests_blocks(self) -> bool:
        """Whether a whole block is tested when it ends."""
        return self._variant.test_block

    def test_threshold(self, index: int, compared_with: int) -> float:
        """Threshold for a replay of this index against the blocks up to `compared_with`."""
        return self._variant.test_threshold(self._levels, index, compared_with)

    # --- state --------------------------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Levels and design."""
        return {**dataclasses.asdict(self._levels), "design": self._design.copy()}

    def load(self, state: states.Reader, *, horizon: int) -> Levels:
        """Inverse of `export`."""
        numbers = {field.name: state.number(field.name) for field in dataclasses.fields(Levels)}
        levels = Levels(**{**numbers, "block_size": state.integer("block_size", low=1)})  # type: ignore[arg-type]
        design = state.law("design", self._arms)
        self._check(levels, design, horizon)
        self._levels, self._design = levels, design
        return levels

    def check(self, epoch: Epoch) -> None:
        """They do not depend on the epoch."""

    def _check(self, levels: Levels, design: Floats, horizon: int) -> None:
        """Refuse levels that do not follow from the settings, the horizon and the design."""
        gamma = _gain(self._features.first, design, self._constants.sigma / horizon)
        states.check(math.isclose(levels.gamma, gamma, rel_tol=1e-3, abs_tol=1e-3), "constant gamma")
        meant = self._constants.levels(gamma=levels.gamma, horizon=horizon, arms=self._arms)
        for name, value in dataclasses.asdict(meant).items():
            slack = 1 if name == "block_size" else 0  # it is rounded up
            fine = math.isclose(getattr(levels, name), value, rel_tol=ROUNDING, abs_tol=slack)
            states.check(fine, f"constant {name}")


def _gain(features: Floats, design: Floats, regulariser: float) -> float:
    """Information that T rounds of a law bring: gamma, if it is the optimal design."""
    log_det = law_factor(features, design, regulariser).log_det
    return float(log_det - features.shape[1] * math.log(regulariser))
