"""NeuralUCB (Zhou, Li and Gu 2020) on a finite set of arms, and its sliding-window form.

The paper's index is f(x; W) + gamma sqrt(g' Z^-1 g / m) with Z = lambda I + sum g g' / m over the past: the posterior
standard deviation of a Gaussian process with the network's tangent kernel. So between two trainings this is GPUCB with
the tangent kernel at the trained weights and the network's output as the prior mean: exact in arm space, without a
matrix of the size of the network, and moved by every reward, not only by the next training.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from driftbandits import state as states
from driftbandits._util.checks import check_count
from driftbandits.arms.arm_set import ArmSet
from driftbandits.design import information_gain
from driftbandits.errors import ConvergenceError
from driftbandits.neural import ArmsSeen, NetworkModel, NetworkView
from driftbandits.neural.model import (
    INFINITE,
    NETWORK_SETTINGS,
    NetworkFacts,
    Rate,
    Width,
    check_network_depth,
    check_rate,
    network_model,
)
from driftbandits.policies.algorithm import Family
from driftbandits.policies.arm_migration import ArmsChange
from driftbandits.policies.decisions import Feedback, Row
from driftbandits.policies.gp.forgetting import SlidingWindowGPUCB
from driftbandits.policies.gp.gpucb import GPUCB
from driftbandits.policies.gp.posterior import ArmPosterior
from driftbandits.state.reader import FARTHEST
from driftbandits.types import Floats

_LARGEST_OUTPUT = 1e6  # of a network trained on rewards of at most 1


class NetworkPosterior(ArmPosterior):
    """ArmPosterior whose prior is a network, trained again on the observations in use after every `every` new ones."""

    def __init__(self, model: NetworkModel, *, ridge: float, every: int) -> None:
        self._model = model
        self._every = every
        super().__init__(model.initial.features, ridge=ridge)

    def reset(self) -> None:
        """Forget everything, the training too."""
        self._since = 0
        self._set_prior(self._model.initial.features, self._model.initial.outputs)
        self._clear()

    def _set_prior(self, features: Floats, prior_mean: Floats) -> None:
        self.features = features
        super()._set_prior(features, prior_mean)

    def add(self, arm: int, reward: float) -> None:
        """Take in one observation."""
        super().add(arm, reward)
        self._since += 1

    def replace(self, arm: int, old: float, new: float) -> None:
        """Exchange one observation."""
        super().replace(arm, old, new)
        self._since += 1

    def take_due(self) -> bool:
        """Whether `every` new observations are among those in use; asked once for each training."""
        due = self._since >= self._every and self._model.width != INFINITE
        if due:
            self._since = 0
        return due

    def train(self) -> NetworkView:
        """The network trained on the observations in use; changes nothing."""
        return self._model.view(self._model.train(ArmsSeen(self.weights, self.sums)).network)

    def export(self) -> dict[str, Any]:
        """The prior too: computed with another number of BLAS threads, its last bits could differ."""
        prior = {"features": self.features.copy(), "prior_mean": self.prior_mean.copy()}
        return {**super().export(), **prior, "since": self._since}

    def load(self, state: states.Reader, **known: Any) -> None:
        """Inverse of `export`."""
        size = len(self.weights)
        features = state.array("features", np.float64, (size, None))
        outputs = state.array("prior_mean", np.float64, (size,))
        with np.errstate(over="ignore"):
            longest = float(np.square(features).sum(axis=1).max(initial=0.0))
        states.check(abs(longest - 1.0) <= 1e-3 and features.shape[1] <= size, "features")
        states.check(bool((np.abs(outputs) <= _LARGEST_OUTPUT).all()), "outputs of the network")
        self._set_prior(features, outputs)
        self._since = state.integer("since", high=FARTHEST)
        super().load(state, **known)


class NeuralUCB(NetworkFacts, GPUCB):
    """NeuralUCB (Zhou, Li and Gu 2020): optimism with a network's output and its tangent kernel. It never forgets.

    It uses the arms' points, scaled to the unit sphere, and not their kernel. With `width="infinite"` it is GPUCB with
    the `NeuralTangentKernel`, divided by `depth`.

    Its defaults are not enough where rewards change: it assumes that nothing does. Take `SlidingWindowNeuralUCB` then.

    Parameters
    ----------
    width, depth : units per layer and number of weight matrices of the network; 100 and 2 as in the authors' code
    steps : full-batch gradient steps per training; its weight decay is ridge * depth, the same ridge on the tangent
        kernel before that is divided by its largest k(x, x)
    learning_rate : of these steps; "auto" takes half of the largest stable step size at each training
    every : rewards between trainings
    symmetric : begin with a network whose output is 0 everywhere; needs an even width
    device : None for NumPy, or a torch device such as "cuda" or "cpu" (the `torch` extra)
    ridge : lambda, the variance of the surrogate's noise, on the internal scale where the reward range is [-1, 1];
        default 30 noise^2, at least 1e-4, for the tangent kernel is smoother than rewards usually are
    others : see `GPUCB`

    >>> policy = NeuralUCB(ArmSet([[0.0], [0.5], [1.0]]), seed=0)
    >>> policy.tell(policy.ask().id, 0.3)
    """

    _adds_only = False

    family = Family.NEURAL

    _posterior: NetworkPosterior
    _ridge_over_variance = 30.0

    def __init__(
        self,
        arms: ArmSet,
        *,
        width: Width = 100,
        depth: int = 2,
        steps: int = 100,
        learning_rate: Rate = "auto",
        every: int = 100,
        symmetric: bool = True,
        device: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(arms, **settings)
        self.every = check_count("every", every)
        self._model = network_model(
            arms,
            seed=self.seed,
            width=width,
            depth=depth,
            steps=steps,
            learning_rate=learning_rate,
            weight_decay=self.ridge * check_network_depth(depth),
            symmetric=symmetric,
            normalise=True,
            device=device,
        )
        check_rate(self._model, self.horizon)

    def _new_posterior(self) -> NetworkPosterior:
        return NetworkPosterior(self._model, ridge=self.ridge, every=self.every)

    def _learn(self, feedback: Feedback) -> None:
        *earlier, last = feedback.rows()
        for row, reward in earlier:
            super()._learn_one(row, reward)
            if self._posterior.take_due():
                self._rebase(self._posterior.train())
        self._learn_one(*last)

    def _learn_one(self, row: Row, reward: float) -> None:
        """Train last, when what leaves a window has left: should that fail, the reward is learned all the same."""
        super()._learn_one(row, reward)
        if self._posterior.take_due():
            try:
                view = self._posterior.train()
            except ConvergenceError:
                self._guard.changing = False  # the reward is learned and the network before kept: all is as it should
                raise
            self._rebase(view)

    def _rebase(self, view: NetworkView) -> None:
        self._posterior.rebase(view.features, view.outputs)

    def _carry(self, old: Self, change: ArmsChange) -> None:
        """A new start: the network was trained on the old arms."""
        self._start_with_arms(change)

    def _gain_at(self, horizon: int) -> float:
        return 0.5 * information_gain(self._model.initial.features, horizon=horizon, sigma=self.ridge)

    def _setting(self, name: str) -> Any:
        return getattr(self._model, name) if name in NETWORK_SETTINGS else super()._setting(name)


class SlidingWindowNeuralUCB(NeuralUCB, SlidingWindowGPUCB):
    """NeuralUCB on the rewards of the last `window` rounds, both in training and in its widths.

    Parameters
    ----------
    others : see `NeuralUCB` and `SlidingWindowGPUCB`

    >>> SlidingWindowNeuralUCB(ArmSet([[0.0], [0.5], [1.0]]), window=200, width=20, seed=0).window
    200
    """
