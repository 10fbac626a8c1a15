"""OPKB and ADA-OPKB (Hong, Li and Tewari, AISTATS 2023, algorithms 2 and 3)."""

from __future__ import annotations

from typing import Any, Self, Unpack

from driftbandits.arms import ArmSet
from driftbandits.policies.core.facts import Family
from driftbandits.policies.core.settings import CommonSettings
from driftbandits.policies.paper.base import PaperBlockPolicy
from driftbandits.policies.paper.constants import Constants, Variant
from driftbandits.policies.paper.features import FixedFeatures


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
    """Optimisation-based kernel bandit for a world that stays as it is.

    Plays the optimal design for E rounds, then in blocks of doubling size a law that minimises
    sum P(x) gap(x) - (2 / beta_j) log det S(P, sigma / T), mixed with optimal designs over the good arms and over all.
    Rewards are estimated by inverse propensities, so nothing but the laws needs to be trusted.

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

    colour = "#56B4E9"
    of_the_paper = True
    seconds_per_run = 0.03
    microseconds_per_round = 1.5


class AdaOPKB(KernelBlockPolicy):
    """OPKB that replays its earlier laws to notice a change, and starts anew when it finds one.

    Inside block j, intervals of 2^m E rounds replay law m < j with probability 2^((m - j) / 2) each. When a replay (or
    the block) ends, its estimated gaps are compared with those of the blocks before; a difference beyond a factor of 4
    plus 4 c0 mu restarts. `changes` lists what was found. Neither the number nor the size of changes need be known.

    Most of its regret is the price of replays: in a late block nearly every round is one (`schedule.replayed_share`). A
    change is seen only when a replay ends, so detection takes at least E rounds. With theory constants no change can be
    found at usual horizons.

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

    label = "ADA-OPKB"
    colour = "#0072B2"
    of_the_paper = True
    seconds_per_run = 0.07
    microseconds_per_round = 11.0
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
