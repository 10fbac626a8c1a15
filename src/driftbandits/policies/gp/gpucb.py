"""GPUCB on the arms' kernel, and LinUCB on the arms' points.

LinUCB (OFUL) is GPUCB with the points as features: sigma = sqrt(lambda) ||x||_{V^-1}, and the `ridge` rule is OFUL's
radius divided by sqrt(lambda). So the linear family is the kernel family with other features and other sizes from V_T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_positive, check_probability
from driftbandits._util.guard import guarded
from driftbandits.arms.arm_set import ArmSet
from driftbandits.design import information_gain
from driftbandits.errors import KernelError, StateError
from driftbandits.policies.algorithm import UNTIL_TOLD, Family
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Row
from driftbandits.policies.gp.leading import LEAST_ARMS, LeadingPosterior
from driftbandits.policies.gp.posterior import (
    CONFIDENCE_RULES,
    ArmPosterior,
    Roster,
    carry_roster,
    check_beta,
    check_posterior,
    confidence_factor,
)
from driftbandits.policies.inputs import CommonSettings
from driftbandits.policies.inspection import around
from driftbandits.policies.optimistic import Optimism, OptimisticPolicy
from driftbandits.state.reader import check_whole
from driftbandits.types import Bools, Floats, Ints

SMALLEST_RIDGE = 1e-4  # of the default: declaring no noise must not make a posterior believe one reward wholly


class GPUCB(OptimisticPolicy):
    """GP-UCB (IGP-UCB, Chowdhury and Gopalan 2017): plays argmax mean + scale beta sd. It never forgets.

    Its defaults are not enough where rewards change: it assumes that nothing does. Take a forgetting form then.

    Parameters
    ----------
    ridge : lambda, the variance of the surrogate's noise, on the internal scale where the reward range is [-1, 1];
        default 10 noise^2, at least 1e-4, for rewards usually span less than the range while k(x, x) is 1
    scale : v, multiplies beta; with too little of both the optimism about unseen arms fails
    noise : R, scale of the sub-Gaussian noise, in the user's units; default a tenth of half the reward range
    bound : B, RKHS norm of the reward function (not its largest value), in the user's units; default half the range
    failure_probability : delta, with which the theory's widths may fail
    beta : a number, or the theory's "ridge", "igp" or "paper", see `confidence_factor`, which use noise, bound and
        delta. The default 0.75 promises of an arm not yet seen three quarters of half the range; an arm better than
        that ends the search for others
    others : see `Policy`

    Cost per round: O(N^2), or O(N r) where the kernel's rank r is below N / 2; from 20,000 arms on, only
    groups of arms that may lead are examined (`policies/gp/leading.py`), and the features are held twice.

    >>> policy = GPUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    family = Family.GAUSSIAN_PROCESS
    _linear: ClassVar[bool] = False
    _adds_only: ClassVar[bool] = True  # rewards are never forgotten, nor beliefs of all arms asked for between rounds
    _rules: ClassVar[tuple[str, ...]] = CONFIDENCE_RULES  # what beta may be called
    _ridge_over_variance: ClassVar[float] = 10.0  # of the noise, where no ridge is given
    _roster: Roster | None = None  # of arms that are gone, where rewards of them are in use
    _places: Ints  # on it, of everyone there was before the arms changed

    def __init__(
        self,
        arms: ArmSet,
        *,
        ridge: float | None = None,
        scale: float = 1.0,
        noise: float | None = None,
        bound: float | None = None,
        failure_probability: float = 0.01,
        beta: str | float = 0.75,
        **common: Unpack[CommonSettings],
    ) -> None:
        super().__init__(arms, **common)
        check_posterior(arms.points if self._linear else arms.features)
        self.scale = check_positive("scale", scale, zero=True)
        self.noise = None if noise is None else check_positive("noise", noise, zero=True)
        self.bound = None if bound is None else check_positive("bound", bound, zero=True)
        self.failure_probability = check_probability("failure_probability", failure_probability)
        self.beta = check_beta(beta, self._rules)
        self._noise = self._scale.noise(self.noise)
        usual = max(self._ridge_over_variance * self._noise**2, SMALLEST_RIDGE)
        self.ridge = round(usual, 9) if ridge is None else check_positive("ridge", ridge)
        self._bound = 1.0 if self.bound is None else self._scale.inward_size(self.bound)

    def _own_basis(self) -> Floats:
        """Features of the arms on offer."""
        return self.arms.points if self._linear else self.arms.features

    def _basis(self) -> Floats:
        """Features of the regression: those of the arms on offer, and behind them of arms that are gone."""
        return self._own_basis() if self._roster is None else self._roster.basis

    def _new_posterior(self) -> ArmPosterior:
        """The belief of a fresh start."""
        basis = self._basis()
        many = self._adds_only and len(basis) >= LEAST_ARMS and 2 * basis.shape[1] < len(basis)
        if many:
            return LeadingPosterior(basis, ridge=self.ridge, offered=len(self.arms))
        return ArmPosterior(basis, ridge=self.ridge)

    def _start(self, horizon: int | None) -> None:
        self._posterior = self._new_posterior()

    def _factor(self, gain: float) -> float:
        """What the sd is multiplied by, with data of this information gain behind it."""
        if not isinstance(self.beta, str):  # in every round of live requests, where calls count
            return self.scale * self.beta
        return self.scale * confidence_factor(
            self.beta,
            gain=gain,
            ridge=self.ridge,
            noise=self._noise,
            bound=self._bound,
            failure_probability=self.failure_probability,
        )

    def _index(self) -> Floats:
        posterior = self._posterior
        factor = self._factor(posterior.information_gain)
        index: Floats = posterior.mean + factor * np.sqrt(np.maximum(posterior.variance, 0.0))
        return index if self._roster is None else index[: len(self.arms)]

    def _leading(self) -> LeadingPosterior | None:
        """The posterior of many arms, if this is one and nothing else is made of it than here."""
        own = type(self)._index is GPUCB._index and type(self)._estimate is GPUCB._estimate
        return self._posterior if own and isinstance(self._posterior, LeadingPosterior) else None

    def _leading_index(self) -> Floats:
        leading = self._leading()
        if leading is None:
            return self._index()
        return leading.index(self._factor(leading.information_gain), len(self.arms))

    def _optimism(self, arm: int) -> Optimism:
        posterior = self._posterior
        if isinstance(posterior, LeadingPosterior):
            mean, variance = (float(some[0]) for some in posterior.mean_and_variance(np.array([arm])))
        else:
            mean, variance = float(posterior.mean[arm]), float(posterior.variance[arm])
        width = self._factor(posterior.information_gain) * math.sqrt(max(variance, 0.0))
        return Optimism(value=mean + width, width=width)

    @property
    @guarded
    def information_gain(self) -> float:
        """Realised information gain of the data now in use, 1/2 log det(I + K n / lambda) (half convention)."""
        self._begin_once()
        return self._posterior.information_gain

    def _quiet_rounds(self) -> int:
        return UNTIL_TOLD

    def _learn_one(self, row: Row, reward: float) -> None:
        posterior = self._posterior
        posterior.add(row.arm, reward)
        if isinstance(posterior, LeadingPosterior):
            posterior.settle(self._factor(posterior.information_gain))

    def _estimate(self) -> Floats:
        return self._posterior.mean[: len(self.arms)]

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._place(old, change, old._posterior.weights > 0.0)
        self._posterior = self._new_posterior()
        self._posterior.take(old._posterior, self._places)

    def _place(self, old: Self, change: ArmsChange, in_use: Bools) -> None:
        """Find a place for everyone the data of `old` speak of."""
        self._roster, self._places = carry_roster(old._roster, change, in_use, linear=self._linear)

    def _interval(self) -> tuple[Floats, Floats]:
        variance = np.maximum(self._posterior.variance[: len(self.arms)], 0.0)
        return around(self._estimate(), self._unit * np.sqrt(variance))

    def _glimpse(self, arms: Ints) -> Sequence[Floats]:
        leading = self._leading() if self._adds_only else None
        if leading is None:
            return super()._glimpse(arms)
        mean, variance = leading.mean_and_variance(arms)
        return [mean, *around(mean, self._unit * np.sqrt(np.maximum(variance, 0.0)))]

    @property
    def _unit(self) -> float:
        """What an sd of the posterior is multiplied by for one of rewards: its noise has variance lambda, theirs R^2.

        So the prior that belongs to the noise declared has the variance R^2 / lambda of an arm.
        """
        return math.sqrt(max(self._noise**2, SMALLEST_RIDGE / self._ridge_over_variance) / self.ridge)

    def _export(self) -> dict[str, Any]:
        return {"posterior": self._posterior.export(), **self._export_roster(), **super()._export()}

    def _export_roster(self) -> dict[str, Any]:
        return {"roster": None if self._roster is None else self._roster.export()}

    def _import_roster(self, state: states.Reader) -> None:
        if state.raw("roster") is not None:
            self._roster = Roster.load(state.reader("roster"), self.arms, self._own_basis())

    def _import(self, state: states.Reader) -> None:
        self._import_roster(state)
        try:
            self._posterior = self._new_posterior()
        except KernelError as error:
            raise StateError(f"the settings in the state are not usable: {error}") from error
        self._posterior.load(state.reader("posterior"))
        check_whole(self._posterior.weights, self._most_told(), "number of rewards")
        super()._import(state)

    def _gain_at(self, horizon: int) -> float:
        """Largest information gain of `horizon` rounds (half convention), for the sizes."""
        return 0.5 * information_gain(self.arms, horizon=horizon, sigma=self.ridge)


class LinUCB(GPUCB):
    """LinUCB (OFUL, Abbasi-Yadkori, Pal and Szepesvari 2011) on the arms' points. It never forgets.

    Index x'theta + scale beta sqrt(lambda) ||x||_{V^-1}. With beta="ridge" it is that of the theory, where
    beta sqrt(lambda) = sqrt(lambda) S + R sqrt(2 log(1/delta) + log det(V / lambda)).

    Its defaults are not enough where rewards are not linear in the points, or change. Tell it features in which they
    are linear: for a fair comparison on a kernel, `ArmSet.from_features(arms.features)`.

    Parameters
    ----------
    bound : S, the norm of the parameter, in the user's units; default half the range
    others : see `GPUCB`

    >>> policy = LinUCB(ArmSet([[0.0, 1.0], [1.0, 0.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    family = Family.LINEAR
    _linear: ClassVar[bool] = True
