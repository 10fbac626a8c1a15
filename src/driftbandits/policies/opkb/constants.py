"""The paper's constants of OPKB and ADA-OPKB: as one value, and resolved for a horizon.

The constants of OPKB and ADA-OPKB as one value, the levels they give, and where the authors' code differs.

symbol     name                      formula
sigma      sigma                     regulariser of a law is sigma / T
delta      failure_probability
C0                                   8 T log2 T
mu_j       mixing(j), level(j)       c1 2^(-j/2), clipped at 1 where it mixes laws
E          block_size                ceil(c3 gamma log(C0 N / delta))
alpha      alpha                     c4 sigma / log(C0 N / delta)
beta_j     beta(j)                   c2 gamma 2^(j/2)

The engine's constants as the paper has them: resolved once per horizon, from the optimal design of phi^(0).

Only line 2 of OP uses the present features: an arm is good by the information gain of phi^(j).
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_count, check_flag, check_positive, check_probability, check_word
from driftbandits.design import Design
from driftbandits.design.blocks import law_factor
from driftbandits.errors import ConvergenceWarning, StateError
from driftbandits.policies.opkb.parts import Epoch, FeatureSource, best_design, latest_law
from driftbandits.state.reader import ROUNDING
from driftbandits.types import Floats, Ints


@dataclass(frozen=True)
class Constants:
    """sigma, failure_probability and c0 to c4 together: how much OPKB explores, and how readily ADA-OPKB restarts.

    Parameters
    ----------
    sigma : regularisation of designs and estimates; over T rounds it is sigma / T
    failure_probability : delta, with which the theory's bounds may fail
    c0 : scales the threshold of the change test; None for the paper's 40 + 16 sqrt(alpha)
    c1 : the share of the optimal design in every law
    c2 : how fast exploitation grows; None for the paper's 1 / (10 + 4 sqrt(alpha))
    c3 : the length of the first block
    c4 : the size of the set of good arms
    scale : what rewards, less the middle of the declared range, are divided by, in the user's units; None: half the
        range. Only the theory needs another

    Raises
    ------
    InputError
        For numbers that are not positive, and a probability outside (0, 1).

    >>> Constants.published().c0
    1.38
    """

    sigma: float = 168.0
    failure_probability: float = 1e-4
    c0: float | None = 8.89
    c1: float = 0.0507
    c2: float | None = 2.41
    c3: float = 0.0293
    c4: float = 0.0266
    scale: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name in ("c0", "c2", "scale"):
                continue
            check = check_probability if field.name == "failure_probability" else check_positive
            object.__setattr__(self, field.name, check(field.name, value))  # plain floats: the state is JSON

    @classmethod
    def theory(
        cls, *, bound: float, noise: float, sigma: float = 100.0, failure_probability: float = 1e-4
    ) -> Constants:
        """The constants of the proofs, for checking them: the first block is longer than most horizons.

        The theory divides all rewards by S + B.

        Parameters
        ----------
        bound : B, the RKHS norm of the reward function (less the middle of the declared range), in the user's units
        noise : S, the bound of the noise, in the user's units
        sigma, failure_probability : as in the class

        Returns
        -------
        Constants

        Raises
        ------
        InputError
            For negative numbers, and a probability outside (0, 1).
        """
        bound, noise = check_positive("bound", bound, zero=True), check_positive("noise", noise, zero=True)
        return cls(
            sigma=sigma,
            failure_probability=failure_probability,
            c0=None,
            c1=0.5,
            c2=None,
            c3=4.0,
            c4=0.25,
            scale=bound + noise,
        )

    @classmethod
    def published(cls) -> Constants:
        """The settings of the authors' experiments, found by them on environment 1, in the paper's letters.

        They belong with `Variant.published()`: under the paper's own test they restart every hundred rounds.

        Returns
        -------
        Constants
        """
        return cls(sigma=100.0, failure_probability=1e-4, c0=1.38, c1=0.1, c2=1.81, c3=0.02, c4=0.3125)

    @classmethod
    def published_neural(cls) -> Constants:
        """The settings of the authors' experiments with ADA-OPNN, in the paper's letters.

        They belong with `Variant.published()` and with features that are not scaled to k(x, x) <= 1.

        Returns
        -------
        Constants
        """
        return cls(sigma=100.0, failure_probability=1e-4, c0=4 * 1.38, c1=0.1, c2=1.81, c3=0.01, c4=0.625)

    @classmethod
    def published_stationary(cls) -> Constants:
        """The settings of the authors' experiments with OPNN and OPNN0; they belong where `published_neural` does.

        Returns
        -------
        Constants
        """
        return dataclasses.replace(cls.published_neural(), c1=0.15, c4=0.3125)

    @classmethod
    def neural(cls) -> Constants:
        """The default of OPNN and ADA-OPNN: found by `make tune` on tuning seeds, at infinite width.

        Returns
        -------
        Constants
        """
        return cls(sigma=740.0, c0=1.63, c1=0.156, c2=7.16, c3=0.0507, c4=0.0113)

    @classmethod
    def tuned(cls) -> Constants:
        """The default of every field: found by `make tune` on tuning seeds, see `reproduction.tuning`.

        Returns
        -------
        Constants
        """
        return cls()

    def levels(self, *, gamma: float, horizon: int, arms: int) -> Levels:
        """Everything the block engine needs.

        Parameters
        ----------
        gamma : information gain
        horizon : number of rounds
        arms : number of arms

        Returns
        -------
        Levels
        """
        log_term = math.log(8.0 * horizon * max(math.log2(horizon), 1.0) * arms / self.failure_probability)
        alpha = self.c4 * self.sigma / log_term
        return Levels(
            gamma=gamma,
            regulariser=self.sigma / horizon,
            block_size=max(1, math.ceil(self.c3 * gamma * log_term)),
            alpha=alpha,
            c0=40.0 + 16.0 * math.sqrt(alpha) if self.c0 is None else self.c0,
            c1=self.c1,
            c2=1.0 / (10.0 + 4.0 * math.sqrt(alpha)) if self.c2 is None else self.c2,
        )


@dataclass(frozen=True)
class Levels:
    """The constants resolved for one horizon and one set of arms."""

    gamma: float
    regulariser: float
    block_size: int
    alpha: float
    c0: float
    c1: float
    c2: float

    def level(self, block: int) -> float:
        """mu_j as the change test uses it, not clipped."""
        return float(self.c1 * 2.0 ** (-block / 2))

    def mixing(self, block: int) -> float:
        """mu_j as a share of a law."""
        return min(1.0, self.level(block))

    def beta(self, block: int) -> float:
        """Weight of exploitation in block j."""
        return float(self.c2 * self.gamma * 2.0 ** (block / 2))

    def good_gap(self, block: int, gain: float) -> float:
        """Largest estimated gap of a good arm: 2 alpha gain / beta_j, line 2 of OP."""
        return 2.0 * self.alpha * gain / self.beta(block)


@dataclass(frozen=True)
class Variant:
    """Where the authors' published code departs from the paper.

    Parameters
    ----------
    share : of the optimal design over the good arms in OP's answer
    lowest_index : that is replayed and compared
    threshold : 4 c0 mu_{min(m, k)} ("smaller_index") or 4 c0 (mu_m + mu_k) / 2 ("mean_level")
    test_block : whether a whole block is tested when it ends
    good_arms_by : whether an arm is good by the information gain of the network as trained for the block
        ("present_gain") or as it was drawn ("initial_gain"), the same without a network
    after_restart : a network's features in the first block of a new epoch, and the optimal design by them: those of
        W^(0) ("initial_features"), or those it had before the restart ("kept_features"); training begins at W^(0)
        either way

    Raises
    ------
    InputError
        For a share outside (0, 1), a negative index, and other words than these.

    >>> Variant.paper()
    Variant(share=0.5, lowest_index=0, threshold='smaller_index', test_block=True, good_arms_by='present_gain',
            after_restart='initial_features')
    """

    share: float = 0.5
    lowest_index: int = 0
    threshold: Literal["smaller_index", "mean_level"] = "smaller_index"
    test_block: bool = True
    good_arms_by: Literal["present_gain", "initial_gain"] = "present_gain"
    after_restart: Literal["initial_features", "kept_features"] = "initial_features"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check_probability("share", self.share))
        object.__setattr__(self, "lowest_index", check_count("lowest_index", self.lowest_index, least=0))
        check_word("threshold", self.threshold, ("smaller_index", "mean_level"))
        check_flag("test_block", self.test_block)
        check_word("good_arms_by", self.good_arms_by, ("present_gain", "initial_gain"))
        check_word("after_restart", self.after_restart, ("initial_features", "kept_features"))

    @classmethod
    def paper(cls) -> Variant:
        """As the paper writes it.

        Returns
        -------
        Variant
        """
        return cls()

    @classmethod
    def published(cls) -> Variant:
        """As the authors' code runs it with a kernel; a network keeps its features there, see `after_restart`.

        Returns
        -------
        Variant
        """
        return cls(share=0.2, lowest_index=4, threshold="mean_level", test_block=False, good_arms_by="initial_gain")

    def test_threshold(self, levels: Levels, index: int, compared_with: int) -> float:
        """Threshold for a replay against the blocks before it.

        Parameters
        ----------
        levels : what `Constants.levels` gave
        index : of the replay
        compared_with : index of the last block it is compared with

        Returns
        -------
        float
        """
        if self.threshold == "mean_level":
            return 4.0 * levels.c0 * (levels.level(index) + levels.level(compared_with)) / 2.0
        return 4.0 * levels.c0 * levels.level(min(index, compared_with))


def subgaussian_range(*, bound: float, noise: float, horizon: int, failure_probability: float) -> tuple[float, float]:
    """Reward range that holds the rewards of all rounds with probability 1 - 2 delta, under sub-Gaussian noise.

    The paper's truncation (appendix D): |r| <= B + sqrt(2 R^2 log(T / delta)). Pass the range as `reward_range`
    together with `out_of_range="clip"`.

    Parameters
    ----------
    bound : B, the largest mean reward
    noise : R, scale of the sub-Gaussian noise
    horizon : T, number of rounds
    failure_probability : delta; each of the two ends is passed with this probability at most, so give half of what may
        fail in all

    Returns
    -------
    (low, high)

    Raises
    ------
    InputError
        For negative numbers, a horizon below 1, and a probability outside (0, 1).

    >>> low, high = subgaussian_range(bound=0.8, noise=0.1, horizon=10_000, failure_probability=0.01)
    >>> round(high, 3)
    1.326
    """
    bound, noise = check_positive("bound", bound, zero=True), check_positive("noise", noise, zero=True)
    horizon = check_count("horizon", horizon)
    failure_probability = check_probability("failure_probability", failure_probability)
    reach = bound + noise * math.sqrt(2.0 * math.log(horizon / failure_probability))
    return -reach, reach


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
        """pi(X), solved anew where the features are not those of the network as it was drawn."""
        return self._design if self._features.present is self._features.first else self.solve(epoch).probabilities

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
