"""OPKB and ADA-OPKB (Hong, Li and Tewari, AISTATS 2023, algorithms 2 and 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self, Unpack

from driftbandits.arms.arm_set import ArmSet
from driftbandits.detection import Detector
from driftbandits.detection.gaps import GapTest, rounds_by_gaps
from driftbandits.errors import InputError, StateError
from driftbandits.policies.algorithm import Family
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.opkb.constants import Constants, PaperConstants, Variant
from driftbandits.policies.opkb.engine import BlockPolicy
from driftbandits.policies.opkb.parts import FeatureSource, InversePropensities, Parts
from driftbandits.policies.rewards import RewardScale, read_range
from driftbandits.text import shown
from driftbandits.types import Floats

_LEAST_DIVISOR = 1e-6  # rewards a million times their usual size train no network and pass every threshold


class FixedFeatures(FeatureSource):
    """Features of the arms' kernel, which never change."""

    def __init__(self, arms: ArmSet) -> None:
        self._arms = arms

    @property
    def first(self) -> Floats:
        """Those of the arms."""
        return self._arms.features


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

    def _setting(self, name: str) -> Any:
        value = super()._setting(name)
        return dataclasses.asdict(value) if name in ("constants", "variant") else value

    def _shown(self) -> dict[str, Any]:
        return {**self._settings(), "constants": self.constants, "variant": self.variant}

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


class KernelBlockPolicy(PaperBlockPolicy):
    """What OPKB and ADA-OPKB share: the features of the arms' kernel."""

    family = Family.OPTIMISATION

    def __init__(
        self,
        arms: ArmSet,
        *,
        constants: Constants | None = None,
        variant: Variant | None = None,
        **common: Unpack[CommonSettings],
    ) -> None:
        chosen = Constants.tuned() if constants is None else constants
        super().__init__(arms, FixedFeatures(arms), constants=chosen, variant=variant, **common)


class OPKB(KernelBlockPolicy):
    """Optimisation-based kernel bandit for rewards that do not change.

    Plays the optimal design for E rounds, then in blocks of doubling size a law that minimises
    sum P(x) gap(x) - (2 / beta_j) log det S(P, sigma / T), mixed with optimal designs over the good arms and over all.
    Rewards are estimated by inverse propensities, so only the laws need to be right.

    It never forgets: after a change it follows the average of old and new. Use `AdaOPKB` if the world may change.

    Its defaults are not enough where rewards change, nor for 10,000 rounds with a hundred arms that have little in
    common (the paper's worlds at d = 10): it assumes that nothing changes, and must be told a longer horizon.

    Parameters
    ----------
    constants : Constants, default Constants.tuned()
    variant : Variant, default Variant.paper(); OPKB uses its `share` only
    others : see `Policy`

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None], kernel=RBF(0.2))
    >>> policy = OPKB(arms, horizon=1000, seed=0)
    >>> choice = policy.ask()
    >>> policy.tell(choice.id, 0.3)
    >>> policy.rounds, policy.pending
    (1, 0)
    """


class AdaOPKB(KernelBlockPolicy):
    """OPKB that replays its earlier laws to notice a change, and starts anew when it finds one.

    Inside block j, intervals of 2^m E rounds replay law m < j with probability 2^((m - j) / 2) each. When a replay (or
    the block) ends, its estimated gaps are compared with those of the blocks before; a difference beyond a factor of 4
    plus 4 c0 mu restarts. `changes` lists what was found. Neither the number nor the size of changes need be known.

    Most of its regret is the price of replays: in a late block nearly every round is one. A change is seen only when a
    replay ends, so detection takes at least E rounds. With theory constants no change can be found at usual horizons.

    Its defaults are not enough for 10,000 rounds with a hundred arms that have little in common (the paper's worlds at
    d = 10): it must be told a horizon several times as long, or constants found for such a world.

    Parameters
    ----------
    constants : Constants, default Constants.tuned()
    variant : Variant, default Variant.paper()
    others : see `Policy`

    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> arms = ArmSet(np.linspace(0, 1, 20)[:, None], kernel=RBF(0.2))
    >>> policy = AdaOPKB(arms, horizon=1000, seed=0)
    >>> batch = policy.ask(size=5)
    >>> policy.tell(batch.ids, [0.1, 0.2, 0.0, -0.1, 0.3])
    >>> policy.changes
    ()
    """

    reports_changes = True

    @classmethod
    def published(cls, arms: ArmSet, **settings: Any) -> Self:
        """ADA-OPKB as in the authors' code: their constants and variant, restarts not capped.

        Parameters
        ----------
        arms : the options to choose from
        settings : those of the class; they come before the authors'

        Returns
        -------
        AdaOPKB

        Raises
        ------
        InputError
            For settings that the class refuses.
        """
        return cls(arms, **{"constants": Constants.published(), "variant": Variant.published(), **settings})

    def rounds_to_find(self, size: float | None = None) -> int:
        """Least horizon at which a change of a size can be found, see `first_detectable_horizon`.

        Parameters
        ----------
        size : by which the reward of an arm moves, in the user's units; by default half the reward range

        Returns
        -------
        int
        """
        return self._rounds_by_gaps(size)
