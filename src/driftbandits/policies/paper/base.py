"""The parts of the block engine as the paper has them: its constants, IPS, and its change test on gaps."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from driftbandits import state as states
from driftbandits.arms import ArmSet
from driftbandits.detection.detector import Detector, GapTest
from driftbandits.errors import ConvergenceWarning, InputError, StateError
from driftbandits.estimation import law_factor
from driftbandits.policies.blocks.engine import BlockPolicy, best_design
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.policies.paper.constants import Constants, Levels, Variant
from driftbandits.policies.paper.features import FeatureSource, FixedFeatures
from driftbandits.state.plausible import ROUNDING
from driftbandits.types import Floats

_LEAST_SCALE = 1e-6  # rewards a million times their usual size train no network and pass every threshold


class PaperBlockPolicy(BlockPolicy):
    """Without (`watches = False`) or with change detection; see `OPKB`, `AdaOPKB`, `OPNN` and `AdaOPNN`."""

    needs_horizon = True
    watches: ClassVar[bool] = False

    _levels: Levels

    def __init__(
        self,
        arms: ArmSet,
        *,
        constants: Constants | None = None,
        variant: Variant | None = None,
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        self.constants = Constants.tuned() if constants is None else constants
        self.variant = Variant.paper() if variant is None else variant
        if not isinstance(self.constants, Constants) or not isinstance(self.variant, Variant):
            raise InputError(
                f"constants must be a Constants and variant a Variant, such as Constants.published() and "
                f"Variant.paper(), got {constants!r} and {variant!r}"
            )
        self.share = self.variant.share
        self.lowest_index = self.variant.lowest_index
        half = self._scale.half
        self._divisor = 1.0 if self.constants.scale is None else self._scale.inward_size(self.constants.scale)
        if not _LEAST_SCALE <= self._divisor <= 1.0 / _LEAST_SCALE:
            raise InputError(
                f"scale must be from {_LEAST_SCALE:g} to {1 / _LEAST_SCALE:g} times half the reward range, which is "
                f"{half:g}, got {self.constants.scale:g}; leave it at None unless the theory's is wanted"
            )

    def _feature_source(self) -> FeatureSource:
        """Where features come from; a subclass may have others than the arms'."""
        return FixedFeatures(self.arms.features)

    def _assemble(self, horizon: int | None) -> None:
        if horizon is None:
            raise StateError("the constants of the paper need a horizon")
        self._source = self._feature_source()
        self._source.begin()
        self._settle_constants(*self._resolve(self._source.first, horizon))

    def _resolve(self, features: Floats, horizon: int) -> tuple[Levels, Floats]:
        """The constants for a horizon, and the optimal design that they follow from."""
        regulariser = self.constants.sigma / horizon
        design = best_design(features, regulariser, None, None)
        gamma = design.log_det - features.shape[1] * np.log(regulariser)
        levels = self.constants.levels(gamma=float(gamma), horizon=horizon, arms=len(self.arms))
        return levels, design.probabilities

    def levels_at(self, horizon: int) -> Levels:
        """The constants that a run of `horizon` rounds would have."""
        source = self._feature_source()
        source.begin()
        with warnings.catch_warnings():  # gamma to five digits will do, at horizons where designs have no more
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self._resolve(source.first, horizon)[0]

    @property
    def internal_scale(self) -> float:
        """What rewards, on [-1, 1], are divided by before they are estimated from and tested."""
        return self._divisor

    def _settle_constants(self, levels: Levels, design: Floats) -> None:
        """Keep what stays the same through all epochs of a horizon."""
        self._levels = levels
        self._design = design
        self._detector: Detector | None = GapTest(self.variant, levels) if self.watches else None

    def _levels_for(self, block: int) -> Levels:
        return self._levels

    def _optimal_design(self, moved: bool) -> Floats:
        return self._solve(self._levels.regulariser).probabilities if moved else self._design

    def _rewards(self) -> Floats:
        return self._epoch.so_far()

    def _mixing(self, block: int, law: Floats, design: Floats, estimated: Floats) -> float:
        return self._levels.mixing(block)

    # --- state --------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        return {"constants": dataclasses.asdict(self.constants), "variant": dataclasses.asdict(self.variant)}

    def _shown(self) -> dict[str, Any]:
        return {"constants": self.constants, "variant": self.variant}

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"constants": Constants(**settings["constants"]), "variant": Variant(**settings["variant"])}
        except (TypeError, KeyError, OverflowError) as error:  # other names, another kind, a number beyond floats
            raise StateError(f"the constants or the variant in the state are not usable: {error!r}") from error

    def _export_levels(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self._levels), "design": self._design.copy()}

    def _reassemble(self, source: states.Reader, levels: states.Reader) -> None:
        self._source = self._feature_source()
        self._source.load(source)
        numbers = {field.name: levels.number(field.name) for field in dataclasses.fields(Levels)}
        resolved = Levels(**{**numbers, "block_size": levels.integer("block_size", low=1)})  # type: ignore[arg-type]
        design = levels.law("design", len(self.arms))
        self._check_levels(resolved, design)
        self._settle_constants(resolved, design)

    def _check_levels(self, levels: Levels, design: Floats) -> None:
        """Refuse constants that do not follow from the settings, the horizon and the design."""
        regulariser, features = self.constants.sigma / self._phase_length, self._source.first
        gamma = law_factor(features, design, regulariser).log_det - features.shape[1] * math.log(regulariser)
        states.check(math.isclose(levels.gamma, gamma, rel_tol=1e-3, abs_tol=1e-3), "constant gamma")
        meant = self.constants.levels(gamma=levels.gamma, horizon=self._phase_length, arms=len(self.arms))
        for name, value in dataclasses.asdict(meant).items():
            slack = 1 if name == "block_size" else 0  # it is rounded up
            fine = math.isclose(getattr(levels, name), value, rel_tol=ROUNDING, abs_tol=slack)
            states.check(fine, f"constant {name}")
