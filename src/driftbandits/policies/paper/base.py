"""What the four policies of the paper share: their settings, and the parts of the block engine made from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Unpack

from driftbandits.arms import ArmSet
from driftbandits.detection import Detector
from driftbandits.detection.gap_test import GapTest
from driftbandits.detection.horizons import rounds_by_gaps
from driftbandits.errors import InputError, StateError
from driftbandits.policies.blocks.engine import BlockPolicy
from driftbandits.policies.blocks.parts import FeatureSource, InversePropensities, Parts
from driftbandits.policies.core.scale import RewardScale, read_range
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.policies.paper.block_constants import PaperConstants
from driftbandits.policies.paper.constants import Constants, Variant
from driftbandits.showing import shown

_LEAST_DIVISOR = 1e-6  # rewards a million times their usual size train no network and pass every threshold


class PaperBlockPolicy(BlockPolicy):
    """The block engine with the paper's constants, IPS and, if it is to adapt, its test of gaps, on given features."""

    needs_horizon = True

    def __init__(
        self,
        arms: ArmSet,
        features: FeatureSource,
        *,
        constants: Constants,
        variant: Variant | None,
        **common: Unpack[CommonSettings],
    ) -> None:
        self.constants = constants
        self.variant = Variant.paper() if variant is None else variant
        if not isinstance(self.constants, Constants):
            raise InputError(f"constants must be a Constants, such as Constants.published(), got {shown(constants)}")
        if not isinstance(self.variant, Variant):
            raise InputError(f"variant must be a Variant, such as Variant.published(), got {shown(variant)}")
        self._resolved = PaperConstants(self.constants, self.variant, features, arms=len(arms))
        parts = Parts(
            features=features,
            constants=self._resolved,
            estimator=InversePropensities(),
            detector=self._new_detector(),
        )
        divisor = _divisor(self.constants, read_range(common.get("reward_range", (-1.0, 1.0))))
        super().__init__(arms, parts, divisor, **common)

    def _new_detector(self) -> Detector | None:
        """What watches for changes: the paper's test of gaps. A subclass may give a detector of its own."""
        return GapTest(self._resolved) if self.reports_changes else None

    def _rounds_by_gaps(self, size: float | None) -> int:
        """Least rounds in which the gap test can find a change of `size`, by default half the range."""
        internal = 1.0 if size is None else self._scale.inward_size(size)
        return rounds_by_gaps(internal / self._divisor, self._resolved.at)

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


def _divisor(constants: Constants, scale: RewardScale) -> float:
    """What rewards on the internal scale are divided by."""
    if constants.scale is None:
        return 1.0
    divisor = scale.inward_size(constants.scale)
    if not _LEAST_DIVISOR <= divisor <= 1.0 / _LEAST_DIVISOR:
        raise InputError(
            f"scale must be from {_LEAST_DIVISOR:g} to {1 / _LEAST_DIVISOR:g} times half the reward range, which is "
            f"{scale.half:g}, got {constants.scale:g}; leave it at None unless the theory's is wanted"
        )
    return divisor
