"""Linear bandits with contexts: every arm has a regression of its own on the codes of the request.

symbol  name        shape        meaning
z                   (d,)         1 and the codes of the request
eta     discount                 weight of a reward k rounds old is eta^k
V_a     matrices    (N, d, d)    sum of eta^k z z' over the rewards of arm a, plus ridge I
b_a     vectors     (N, d)       sum of eta^k reward z
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from driftbandits import state as states
from driftbandits._util.checks import check_positive, check_probability
from driftbandits.arms.arm_set import ArmSet
from driftbandits.arms.contexts import Contexts
from driftbandits.errors import InputError
from driftbandits.policies.algorithm import Family, OneByOne
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.base import Policy
from driftbandits.policies.decisions import Row
from driftbandits.policies.inspection import around
from driftbandits.policies.open_contexts import OpenContexts
from driftbandits.policies.optimistic import Optimism, OptimisticPolicy
from driftbandits.policies.rivals.thompson import PosteriorSampling
from driftbandits.types import Floats

_AVERAGED = 256.0  # requests, in what is shown without a context


class DisjointRegressions(OneByOne, Policy):
    """The beliefs of both policies below."""

    family = Family.LINEAR

    def __init__(
        self,
        arms: ArmSet,
        *,
        contexts: Contexts | None = None,
        discount: float = 1.0,
        beta: float = 0.5,
        ridge: float = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        if contexts is not None and not isinstance(contexts, Contexts):
            raise InputError(f"contexts must be a db.Contexts, got {type(contexts).__name__}; as in db.Contexts(8)")
        self.contexts = contexts
        self.discount = check_probability("discount", discount, one=True)
        self.beta = check_positive("beta", beta, zero=True)
        self.ridge = check_positive("ridge", ridge)
        self._codes: Floats | None = None  # of the request asked for

    def _start(self, horizon: int | None) -> None:
        width = 0 if self.contexts is None else self.contexts.width
        size, d = len(self.arms), width + 1
        self._matrices, self._vectors = np.zeros((size, d, d)), np.zeros((size, d))
        self._average, self._requests = np.zeros(width), 0.0
        self._open = OpenContexts(width)
        self._clock = self.rounds
        self._coefficients, self._covariances = np.zeros((size, d)), np.zeros((size, d, d))  # of all regressions, V^-1
        self._is_solved = False

    # --- requests -----------------------------------------------------------------------------------------------

    def _enter(self, codes: Floats | None) -> None:
        self._codes = codes

    def _drawn(self, arms: Sequence[int], counted: bool) -> None:
        if self._codes is not None:
            self._open.add(self.rounds - 1, self._codes)
            self._requests = min(self._requests + 1.0, _AVERAGED)
            self._average += (self._codes - self._average) / self._requests

    def _lose(self, rows: npt.NDArray[np.void]) -> None:
        if self.contexts is not None:
            for ident in rows["id"].tolist():
                self._open.take(ident)

    def _row(self) -> Floats:
        return np.append(1.0, self._average if self._codes is None else self._codes)

    # --- beliefs ------------------------------------------------------------------------------------------------

    def _learn_one(self, row: Row, reward: float) -> None:
        codes = self._open.take(row.id) if self.contexts is not None else np.zeros(0)
        passed = max(row.id + 1 - self._clock, 0)
        self._clock += passed
        if self.discount < 1.0:
            self._matrices *= self.discount**passed
            self._vectors *= self.discount**passed
        weight = self.discount ** (self._clock - 1 - row.id)
        z = np.append(1.0, codes)
        self._matrices[row.arm] += weight * np.multiply.outer(z, z)
        self._vectors[row.arm] += weight * reward * z
        if self.discount < 1.0:
            self._is_solved = False
        elif self._is_solved:
            self._solve(slice(row.arm, row.arm + 1))

    def _solve(self, arms: slice) -> None:
        """Solve the regressions of some arms: without a discount, a reward changes one alone."""
        inverse = np.linalg.inv(self._matrices[arms] + self.ridge * np.eye(self._vectors.shape[1]))
        self._covariances[arms] = inverse
        self._coefficients[arms] = np.einsum("aij,aj->ai", inverse, self._vectors[arms])
        self._is_solved = True

    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and deviation of every arm for the request, (N,) each, up to the noise."""
        if not self._is_solved:
            self._solve(slice(None))
        z = self._row()
        return self._coefficients @ z, np.sqrt(np.maximum(self._covariances @ z @ z, 0.0))

    def _estimate(self) -> Floats:
        return self._moments()[0]

    def _interval(self) -> tuple[Floats, Floats]:
        mean, deviation = self._moments()
        return around(mean, self.beta * deviation)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        self._start(None)
        origins = change.source[change.kept]
        self._matrices[change.kept] = old._matrices[origins]
        self._vectors[change.kept] = old._vectors[origins]
        self._average, self._requests, self._clock = old._average.copy(), old._requests, old._clock
        self._open = old._open.copy()

    # --- state --------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        contexts = {} if self.contexts is None else {"contexts": self.contexts.to_dict()}
        return {"discount": self.discount, "beta": self.beta, "ridge": self.ridge, **contexts}

    @classmethod
    def _read_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        contexts = {"contexts": Contexts.from_dict(settings["contexts"])} if "contexts" in settings else {}
        return {**settings, **contexts}

    def _shown(self) -> dict[str, Any]:
        contexts = {} if self.contexts is None else {"contexts": self.contexts}
        return {**self._settings(), **contexts}

    def _export(self) -> dict[str, Any]:
        learned = {"matrices": self._matrices.copy(), "vectors": self._vectors.copy(), "clock": self._clock}
        if self.contexts is None:
            return learned
        self._open.keep(self._awaited()["id"])
        requests = {"average": self._average.copy(), "requests": self._requests, "open": self._open.export()}
        return {**learned, **requests}

    def _import(self, state: states.Reader) -> None:
        self._start(None)
        self._matrices = state.array("matrices", np.float64, self._matrices.shape)
        self._vectors = state.array("vectors", np.float64, self._vectors.shape)
        self._clock = state.integer("clock", high=self.rounds)
        states.check(bool(np.isfinite(self._vectors).all() and np.isfinite(self._matrices).all()), "matrices")
        states.check(bool((np.linalg.eigvalsh(self._matrices)[:, 0] > -0.5 * self.ridge).all()), "matrices")
        if self.contexts is not None:
            self._average = state.array("average", np.float64, self._average.shape)
            self._requests = state.number("requests")
            self._open = OpenContexts.load(state.reader("open"), len(self._average), awaited=self._awaited()["id"])
            states.check(0.0 <= self._requests <= _AVERAGED and bool(np.isfinite(self._average).all()), "requests")


class DisjointLinUCB(DisjointRegressions, OptimisticPolicy):
    """LinUCB with disjoint linear models (Li et al. 2010), and its discounted form, for requests with contexts.

    Every arm has a ridge regression of its own on the codes of the context; the arm with the largest upper confidence
    bound is played. Codes of columns without a range are taken as they come: scale them before. Without contexts, it is
    a confidence bound on each arm's mean.

    Its defaults are not enough where rewards change: tell it a `discount`, at whose pace it forgets. Nothing is shared
    between arms.

    Parameters
    ----------
    contexts : the columns of each request
    discount : weight of a reward one round older, in (0, 1]; 1 never forgets
    beta : width of the confidence bounds, about the deviation of the noise on rewards in [-1, 1], times 2 or so
    ridge : of the regressions
    others : see `Policy`

    Cost per round: O(N d^2) without a discount, O(N d^3) with one, for d - 1 codes.

    >>> policy = DisjointLinUCB(ArmSet([[0.0], [1.0]]), contexts=Contexts(2), seed=0)
    >>> policy.tell(policy.ask(context=[0.1, 0.5]), 0.3)
    """

    def _index(self) -> Floats:
        mean, deviation = self._moments()
        return np.asarray(mean + self.beta * deviation)

    def _optimism(self, arm: int) -> Optimism:
        mean, deviation = self._moments()
        width = self.beta * float(deviation[arm])
        return Optimism(float(mean[arm]) + width, width)


class DisjointLinThompson(DisjointRegressions, PosteriorSampling):
    """Linear Thompson sampling (Agrawal and Goyal 2013) with a model per arm, and its discounted form, with contexts.

    As `DisjointLinUCB`, but an arm is played as often as it is best in samples from the posteriors.

    Its defaults are not enough where rewards change: tell it a `discount`, at whose pace it forgets.

    Parameters
    ----------
    contexts : the columns of each request
    discount : weight of a reward one round older, in (0, 1]; 1 never forgets
    beta : what deviations are multiplied by
    ridge : of the regressions
    samples : samples per round, whose votes are the law
    others : see `Policy`

    Cost per round: O(N d^2 + samples N) without a discount, O(N d^3) with one, for d - 1 codes.

    >>> policy = DisjointLinThompson(ArmSet([[0.0], [1.0]]), contexts=Contexts(2), seed=0)
    >>> policy.tell(policy.ask(context=[0.1, 0.5]), 0.3)
    """

    def _sampled(self, rng: np.random.Generator, count: int) -> Floats:
        mean, deviation = self._moments()
        return np.asarray(mean + self.beta * deviation * rng.standard_normal((count, len(mean))))
